"""Logical queues made, counted, moved and taken off a broker, and every command that was cut off finished."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import pytest
from click.testing import CliRunner, Result

from replispec.administrator.rocketmq import NotAsWantedError
from replispec.administrator.rocketmq.logical_migration import MovedQueue, moved
from replispec.administrator.rocketmq.plans import Plan
from replispec.cli.main import command_line
from replispec.cli.rocketmq.admin import (
    drain_broker,
    logical_queues,
    query_topic_logical_queue_mapping,
    update_topic,
    update_topic_logical_queue_mapping,
    update_topic_logical_queue_num,
)
from replispec.cli.rocketmq.admin.asking import RefusedToAskError
from replispec.runtime.rocketmq.queues import Enabled, LogicalQueue, Statement
from replispec.runtime.rocketmq.queues.forms import message_of_queues
from replispec.wire.rocketmq.broker import TopicRouteData
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.constants import SEGMENT_START_MAX
from tests.administrator.logical_brokers import CLUSTER, NAME_SERVER, TOPIC, Cluster, CutOffError, address

NUMBER = "updateTopicLogicalQueueNum"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Two brokers and a third, and our commands among them."""
    return among(Cluster.of("broker1", "broker2", "broker3"), monkeypatch)


def among(made: Cluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Our commands among these brokers."""
    clock = count(1_700_000_000_000)

    def ask(plan: Any) -> Any:
        try:
            return made.carried_out(plan)
        except NotAsWantedError as error:
            raise RefusedToAskError(str(error)) from error

    for module in (logical_queues, drain_broker, query_topic_logical_queue_mapping):
        monkeypatch.setattr(module, "ask", ask)
    for each in (
        logical_queues,
        drain_broker,
        update_topic,
        update_topic_logical_queue_mapping,
        update_topic_logical_queue_num,
    ):
        monkeypatch.setattr(each, "wall_ms", lambda: next(clock))
    return made


def run(*words: str) -> Result:
    """One command."""
    line = ["admin", *words, "-n", NAME_SERVER]
    return CliRunner().invoke(command_line, line, standalone_mode=False)


def well(done: Result) -> None:
    assert (done.exception, done.return_value) == (None, 0), done.output


def refused(done: Result, why: str) -> None:
    """With one sentence, and exit code 1."""
    assert (done.exception, done.return_value) == (None, 1), done.output
    assert why in done.stderr
    assert len(done.stderr.splitlines()) == 1


def made(cluster: Cluster, *brokers: str, queues: int = 2) -> None:
    """The topic at these brokers, with logical queues."""
    for name in brokers or ("broker1", "broker2"):
        cluster.brokers[name].writes = queues
    well(run("updateTopicLogicalQueueMapping", "-t", TOPIC, "-c", CLUSTER))


def migrate(index: int, target: str, *more: str) -> Result:
    return run("migrateTopicLogicalQueue", "-t", TOPIC, "-i", str(index), "-b", target, *more)


def number(wanted: int) -> Result:
    return run(NUMBER, "-t", TOPIC, "-c", CLUSTER, "-num", str(wanted))


def table() -> list[list[str]]:
    """The rows that are printed, without their head."""
    done = run("queryTopicLogicalQueueMapping", "-t", TOPIC, "-m")
    well(done)
    return [line.split() for line in done.stdout.splitlines()[1:]]


def write(cluster: Cluster, index: int, messages: int) -> None:
    """Messages are sent to a logical queue."""
    segment = cluster.queues[index].writable
    assert segment is not None
    cluster.brokers[segment.queue.broker_name].send(segment.queue.queue_id, messages)


def test_a_topic_is_made_with_logical_queues_and_enabled_last_at_every_broker_that_has_it(
    cluster: Cluster,
) -> None:
    well(run("updateTopic", "-t", TOPIC, "-c", CLUSTER, "-r", "2", "-w", "2", "-lq", "true"))
    cluster.whole(6)
    assert [row[2] for row in table()] == ["0", "1", "2", "3", "4", "5"]
    assert cluster.brokers["broker1"].stated == cluster.brokers["broker3"].stated
    well(run("updateTopic", "-t", TOPIC, "-c", CLUSTER, "-r", "2", "-w", "2", "-lq", "true"))
    cluster.whole(6)


def test_one_queue_after_the_other_is_mapped_and_the_last_one_enables_the_topic(cluster: Cluster) -> None:
    cluster.brokers["broker1"].writes = 2

    def place(queue: int, index: int) -> Result:
        words = ("-t", TOPIC, "-b", address("broker1"), "-q", str(queue), "-i", str(index))
        return run("updateTopicLogicalQueueMapping", *words)

    first = place(0, 0)
    well(first)
    assert "not enabled yet: a queue of broker1 is not mapped" in first.stdout
    assert cluster.brokers["broker1"].stated is None
    refused(place(1, 0), "logical queue 0 is at broker1")
    well(place(1, 1))
    cluster.whole(2)
    refused(place(0, -1), "queue writable")


def test_tables_one_to_seven_of_the_proposal_are_printed_as_it_prints_them(
    cluster: Cluster,
) -> None:
    made(cluster)
    assert table() == [
        ["broker1", "0", "0", "Normal"],
        ["broker1", "1", "1", "Normal"],
        ["broker2", "0", "2", "Normal"],
        ["broker2", "1", "3", "Normal"],
    ]
    write(cluster, 0, 101)
    well(migrate(0, "broker2"))
    assert table()[0] == ["broker1", "0", "0(0-100)", "ReadOnly"]
    assert table()[-1] == ["broker2", "2", "0(101-)", "Normal"]
    write(cluster, 0, 100)
    cluster.brokers["broker1"].delete()
    assert table()[0] == ["broker1", "0", "0(-)", "Expired"]
    well(migrate(0, "broker1"))
    assert table() == [
        ["broker1", "0", "0(201-)", "Normal"],
        ["broker1", "1", "1", "Normal"],
        ["broker2", "0", "2", "Normal"],
        ["broker2", "1", "3", "Normal"],
        ["broker2", "2", "0(101-200)", "ReadOnly"],
    ]
    cluster.whole(4)


def test_a_queue_that_comes_back_where_its_messages_still_are_gets_another_message_queue(
    cluster: Cluster,
) -> None:
    made(cluster)
    write(cluster, 0, 101)
    well(migrate(0, "broker2"))
    write(cluster, 0, 100)
    well(migrate(0, "broker1"))
    assert table() == [
        ["broker1", "0", "0(0-100)", "ReadOnly"],
        ["broker1", "1", "1", "Normal"],
        ["broker1", "2", "0(201-)", "Normal"],
        ["broker2", "0", "2", "Normal"],
        ["broker2", "1", "3", "Normal"],
        ["broker2", "2", "0(101-200)", "ReadOnly"],
    ]


def test_a_broker_that_leaves_is_drained_and_may_stop_when_nothing_of_it_is_read(cluster: Cluster) -> None:
    del cluster.brokers["broker3"]
    made(cluster)
    for index in (2, 3):
        write(cluster, index, 101)
    drain = ("drainBroker", "-b", "broker2", "-t", TOPIC)
    refused(run(*drain, "--dry-run"), "it writes logical queue 2")
    assert len(table()) == 4
    refused(run(*drain), "may not stop yet: 2 segments of TopicL are still read")
    assert table() == [
        ["broker1", "0", "0", "Normal"],
        ["broker1", "1", "1", "Normal"],
        ["broker1", "2", "2(101-)", "Normal"],
        ["broker1", "3", "3(101-)", "Normal"],
        ["broker2", "0", "2(0-100)", "ReadOnly"],
        ["broker2", "1", "3(0-100)", "ReadOnly"],
    ]
    cluster.brokers["broker2"].delete()
    well(run(*drain))
    stated = cluster.brokers["broker1"].stated
    assert stated is not None
    assert dict(stated.gone) == {2: ((0, 101),), 3: ((0, 101),)}
    well(run(*drain))
    assert cluster.brokers["broker1"].stated == stated
    del cluster.brokers["broker2"]
    assert table() == [
        ["broker1", "0", "0", "Normal"],
        ["broker1", "1", "1", "Normal"],
        ["broker1", "2", "2(101-)", "Normal"],
        ["broker1", "3", "3(101-)", "Normal"],
    ]


def test_the_number_grows_shrinks_and_grows_again_behind_the_old_end(cluster: Cluster) -> None:
    made(cluster)
    well(number(6))
    cluster.whole(6)
    for index in (4, 5):
        write(cluster, index, 7)
    well(number(4))
    assert [index for index, each in cluster.queues.items() if each.writable] == [0, 1, 2, 3]
    stated = cluster.brokers["broker1"].stated
    assert stated is not None
    assert (stated.enabled.queues, stated.enabled.total) == (4, 6)
    refused(migrate(5, "broker1"), "its number was made smaller")
    cluster.brokers["broker3"].delete()
    well(number(6))
    cluster.whole(6)
    starts = {index: queue.segments[-1].logical_start for index, queue in cluster.queues.items()}
    assert (starts[4], starts[5]) == (7, 7)
    write(cluster, 5, 3)
    well(number(5))
    well(number(6))
    assert cluster.queues[5].segments[-1].logical_start == 10


def kinds() -> Iterator[tuple[str, Callable[[], Result], int]]:
    """Commands, and how many changes each of them makes."""
    yield "migrated", lambda: migrate(0, "broker3"), 4
    yield "grown", lambda: number(7), 6
    yield "shrunk", lambda: number(2), 5


@pytest.mark.parametrize(("again", "changes"), [(run_again, at_most) for _, run_again, at_most in kinds()])
@pytest.mark.parametrize("late", [False, True])
def test_a_command_that_is_cut_off_anywhere_is_finished_by_the_next_one(
    cluster: Cluster, again: Callable[[], Result], changes: int, *, late: bool
) -> None:
    made(cluster)
    for index in range(4):
        write(cluster, index, 10 + index)
    begun, cuts = cluster.changes, 0
    for cut in range(changes):
        cluster.cut, cluster.late = begun + cut, late
        done = again()
        if done.exception is None:
            break
        assert isinstance(done.exception, CutOffError), done.exception
        cuts += 1
        cluster.cut, begun = None, cluster.changes
    cluster.cut = None
    well(again())
    stated = cluster.brokers["broker1"].stated
    assert stated is not None
    cluster.whole(stated.enabled.queues)
    assert cuts >= 2
    for index, queue in cluster.queues.items():
        first = queue.segments[0]
        if first.is_sealed:
            assert first.logical_end == 10 + index


def racing(cluster: Cluster, order: Sequence[int], *plans: Plan[MovedQueue]) -> list[object]:
    """Administrators whose steps come in an order; then one after the other to their ends."""
    came: list[list[object]] = [[] for _ in plans]
    every = [iter(cluster.steps(plan, into)) for plan, into in zip(plans, came, strict=True)]
    for turn in order:
        next(every[turn], None)
    for each in every:
        for _ in each:
            pass
    return [into[0] for into in came]


@pytest.mark.parametrize("pattern", range(64))
def test_two_administrators_at_once_leave_one_queue_that_each_of_them_had_moved(
    cluster: Cluster, pattern: int
) -> None:
    made(cluster, "broker1", "broker2", "broker3", queues=1)
    write(cluster, 0, 101)
    order = [1 if pattern >> place & 1 else 0 for place in range(6)] * 2
    plans = [moved([NAME_SERVER], TOPIC, 0, target) for target in ("broker2", "broker3")]
    assert len(racing(cluster, order, *plans)) == 2
    cluster.whole(3)
    names = [each.queue.broker_name for each in cluster.queues[0].segments]
    assert names[0] == "broker1"
    assert {"broker2", "broker3"} <= set(names)


def gone(cluster: Cluster, name: str) -> None:
    """A broker is lost; the name server tells what it told before."""
    told = message_of_queues(cluster.queues.values(), TOPIC).queues
    cluster.told = TopicRouteData(logical_queues_info=told)
    cluster.silent.add(name)


def test_a_source_that_is_gone_is_passed_over_at_no_offset_that_may_have_been_given(cluster: Cluster) -> None:
    made(cluster)
    write(cluster, 0, 10)
    well(migrate(0, "broker2"))
    write(cluster, 0, 5)
    refused(migrate(0, "broker3", "-fd", "100"), "broker2, which writes the queue, answers: leave out -fd")
    gone(cluster, "broker2")
    refused(migrate(0, "broker3"), "broker2, which writes the queue, does not answer")
    refused(migrate(0, "broker3", "-fd", "9"), "known to have had 10 messages")
    for start in (SEGMENT_START_MAX + 1, 2**63 - 1, 2**63, 10**30):
        too_far = f"-fd {start}: no queue goes on behind {SEGMENT_START_MAX}"
        refused(migrate(0, "broker3", "-fd", str(start)), too_far)
    well(migrate(0, "broker3", "-fd", "5000"))
    (last,) = cluster.brokers["broker3"].held[0]
    assert (last.logical_start, last.is_writable) == (5000, True)
    assert cluster.brokers["broker1"].held[0][0].logical_end == 10


def test_what_cannot_be_is_refused_in_one_sentence(cluster: Cluster) -> None:
    refused(number(3), "are not enabled")
    refused(migrate(0, "broker2"), "are not enabled")
    made(cluster)
    refused(migrate(4, "broker2"), "TopicL has no logical queue 4")
    refused(migrate(0, "broker9"), "no broker set broker9")
    refused(run("deleteTopicLogicalQueueMapping", "-t", TOPIC, "-b", address("broker1")), "still 2 message")
    gone(cluster, "broker2")
    refused(number(5), "broker2: Connection refused")


def test_no_queue_moves_while_clients_are_told_that_the_topic_is_a_plain_one(cluster: Cluster) -> None:
    """PREVIEW's client says that it knows logical queues, whatever its name server told it: of a message
    queue that is sealed it is sent away, and cannot follow."""
    made(cluster)
    cluster.told = TopicRouteData()
    refused(migrate(0, "broker2"), "tells TopicL as a plain topic")
    assert [*cluster.brokers["broker2"].held] == [2, 3]
    cluster.told = None
    assert migrate(0, "broker2").exit_code == 0


def test_segments_that_cannot_be_are_not_worked_on(cluster: Cluster) -> None:
    made(cluster)
    (segment,) = cluster.brokers["broker2"].held[2]
    cluster.brokers["broker2"].held[0] = [segment]
    del cluster.brokers["broker2"].held[2]
    cluster.watched = None
    refused(number(5), "cannot be")


def test_a_logical_queue_is_where_it_was_wanted_already(cluster: Cluster) -> None:
    made(cluster)
    before: dict[int, LogicalQueue] = dict(cluster.queues)
    well(migrate(0, "broker1"))
    assert dict(cluster.queues) == before


def test_of_segments_without_a_message_which_all_begin_at_one_offset_the_newest_is_found(
    cluster: Cluster,
) -> None:
    made(cluster, "broker1", "broker2", "broker3", queues=1)
    for target in ("broker2", "broker3", "broker1") * 3:
        # The one that was written is sealed then, like all before it.
        cluster.cut_at = RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_PREPARE
        assert isinstance(migrate(0, target).exception, CutOffError)
        cluster.cut_at = None
        well(migrate(0, target))
        cluster.whole(3)
        assert cluster.queues[0].segments[-1].queue.broker_name == target


def test_what_says_where_a_sealed_queue_goes_on_is_taken_by_no_other_queue(cluster: Cluster) -> None:
    made(cluster)
    well(number(5))
    write(cluster, 4, 7)
    well(number(4))
    cluster.brokers["broker3"].delete()
    well(migrate(0, "broker3"))
    well(number(5))
    assert cluster.queues[4].segments[-1].logical_start == 7


def test_a_number_that_brokers_were_told_of_and_nobody_has_is_not_called_done(cluster: Cluster) -> None:
    """Clients are refused until all of them are there."""
    made(cluster)
    for each in cluster.brokers.values():
        if each.stated is not None:
            each.stated = Statement(Enabled(each.stated.enabled.epoch + 1, 4, 9))
    told = "brokers were told of 9, and nobody registered queue 4; -num 9 makes them"
    refused(number(4), f"4 logical queues of {TOPIC} are written, and clients are refused: {told}")
    well(number(9))
    well(number(4))


def test_a_command_ends_though_a_name_server_never_tells_what_it_enabled(cluster: Cluster) -> None:
    """One of Apache's knows nothing of logical queues."""
    cluster.told = TopicRouteData()
    done = run("updateTopic", "-t", TOPIC, "-c", CLUSTER, "-r", "2", "-w", "2", "-lq", "true")
    assert done.exit_code == 0
    assert f"clients are not told of them yet: {NAME_SERVER} tells it as a plain topic" in done.stderr
