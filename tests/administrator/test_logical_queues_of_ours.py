"""Logical queues of our own brokers: the proposal's tables, runs that are cut off or race, all under load."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from click.testing import CliRunner

from replispec.administrator.rocketmq import NotAsWantedError, static_topics
from replispec.administrator.rocketmq.logical_migration import moved
from replispec.administrator.rocketmq.logical_queues import made as logical_queues_made
from replispec.administrator.rocketmq.logical_queues import numbered, restated
from replispec.administrator.rocketmq.logical_topics import LogicalTopic, known
from replispec.administrator.rocketmq.plans import Asking, Plan, body_of, granted
from replispec.administrator.rocketmq.remapping import grown, remapped
from replispec.administrator.rocketmq.static_topics import TopicAtBrokers
from replispec.administrator.rocketmq.topics import TopicWanted, updated
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
from replispec.runtime.rocketmq.client import Stored
from replispec.runtime.rocketmq.queues import rows
from replispec.runtime.rocketmq.queues.forms import queues_heard
from replispec.wire.rocketmq.broker import GetRouteInfoRequest, TopicRouteData
from replispec.wire.rocketmq.codes import RequestCode, RouteFlag
from replispec.wire.rocketmq.constants import EMPTY_ITEMS_MS
from replispec.wire.rocketmq.logical_queue import CreateLogicalQueue
from tests.administrator.own_brokers import CLUSTER, NAME_SERVER, TOPIC, CutOffError, Load, OwnBrokers

NAMES = [NAME_SERVER]
EPOCHS = count(1_700_000_000_000)


def made(brokers: OwnBrokers, queues: int = 2) -> None:
    """The topic with logical queues, all of the brokers' message queues."""
    wanted = TopicWanted(TOPIC, queues, queues, 6)
    brokers.carried_out(logical_queues_made(NAMES, wanted, CLUSTER, next(EPOCHS)))
    brokers.world.run_for(2_000)


def move(brokers: OwnBrokers, index: int, target: int) -> None:
    """A logical queue moved, its target told that the topic is enabled."""
    brokers.carried_out(moved(NAMES, TOPIC, index, f"broker{target}"))
    brokers.carried_out(restated(NAMES, TOPIC, next(EPOCHS)))
    brokers.world.run_for(1_000)


def table(brokers: OwnBrokers) -> list[str]:
    """The mapping as -m prints it."""
    found: LogicalTopic = brokers.carried_out(known(NAMES, TOPIC))
    return [" ".join(row) for row in rows(found.queues.values())]


def judged(load: Load, queues: int) -> None:
    """Every message was acknowledged, and is read once, in order, where it was stored, without a hole."""
    load.ends()
    assert all(isinstance(each, Stored) for each in load.came.values()), load.came
    assert {each.queue.number for each in load.read} == set(range(queues))
    for index in range(queues):
        read = [each for each in load.read if each.queue.number == index]
        assert [each.offset for each in read] == list(range(len(read)))
        numbers = [int(each.body) for each in read]
        assert numbers == sorted(set(numbers))
    places = {int(each.body): (each.queue, each.offset) for each in load.read}
    assert len(places) == len(load.read) == len(load.came)
    for number, came in load.came.items():
        assert isinstance(came, Stored)
        assert places[number][0] == came.queue
        assert came.offset in {-1, places[number][1]}


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Commands typed among our brokers: text and exit code of each."""

    def among(brokers: OwnBrokers) -> Any:
        def ask(plan: Any) -> Any:
            try:
                return brokers.carried_out(plan)
            except NotAsWantedError as error:
                raise RefusedToAskError(str(error)) from error

        for module in (logical_queues, drain_broker, query_topic_logical_queue_mapping):
            monkeypatch.setattr(module, "ask", ask)
        for module in (
            logical_queues,
            drain_broker,
            update_topic,
            update_topic_logical_queue_mapping,
            update_topic_logical_queue_num,
        ):
            monkeypatch.setattr(module, "wall_ms", lambda: next(EPOCHS))

        def run(*words: str) -> tuple[str, int]:
            line = ["admin", *words, "-n", NAME_SERVER]
            done = CliRunner().invoke(command_line, line, standalone_mode=False)
            assert done.exception is None, done.exception
            return done.output, done.return_value

        return run

    return among


Row = list[str]
FIRST: list[Row] = [
    ["broker1", "0", "0", "Normal"],
    ["broker1", "1", "1", "Normal"],
    ["broker2", "0", "2", "Normal"],
    ["broker2", "1", "3", "Normal"],
]


class Tables:
    """Commands among our brokers, and the table that they leave."""

    def __init__(self, typed: Any, *, young: tuple[int, ...]) -> None:
        self.brokers = OwnBrokers(2, young=young)
        made(self.brokers)
        self.run = typed(self.brokers)

    def migrate(self, index: int, target: int) -> None:
        """A logical queue moves."""
        words = ("migrateTopicLogicalQueue", "-t", TOPIC, "-i", str(index), "-b", f"broker{target}")
        text, code = self.run(*words)
        assert code == 0, text
        self.brokers.world.run_for(1_000)

    @property
    def rows(self) -> list[Row]:
        """What is printed."""
        text, code = self.run("queryTopicLogicalQueueMapping", "-t", TOPIC, "-m")
        head, *lines = text.splitlines()
        assert (code, head.split()) == (0, ["brokerName", "MessageQueue", "LogicalQueue", "QueueStatus"])
        return [line.split() for line in lines]


def test_tables_one_to_four_of_the_proposal_a_queue_moves_expires_and_comes_back(typed: Any) -> None:
    tables = Tables(typed, young=(1,))
    assert tables.rows == FIRST
    tables.brokers.writes(1, 0, 101)
    tables.migrate(0, 2)
    moved_there = ["broker2", "2", "0(101-)", "Normal"]
    assert tables.rows == [["broker1", "0", "0(0-100)", "ReadOnly"], *FIRST[1:], moved_there]
    tables.brokers.fills(1)
    assert tables.rows == [["broker1", "0", "0(-)", "Expired"], *FIRST[1:], moved_there]
    tables.brokers.writes(2, 2, 100)
    tables.migrate(0, 1)
    came_back = ["broker1", "0", "0(201-)", "Normal"]
    assert tables.rows == [came_back, *FIRST[1:], ["broker2", "2", "0(101-200)", "ReadOnly"]]


def test_table_five_of_the_proposal_a_queue_comes_back_where_its_messages_still_are(typed: Any) -> None:
    tables = Tables(typed, young=())
    tables.brokers.writes(1, 0, 101)
    tables.migrate(0, 2)
    tables.brokers.writes(2, 2, 100)
    tables.migrate(0, 1)
    assert tables.rows == [
        ["broker1", "0", "0(0-100)", "ReadOnly"],
        ["broker1", "1", "1", "Normal"],
        ["broker1", "2", "0(201-)", "Normal"],
        *FIRST[2:],
        ["broker2", "2", "0(101-200)", "ReadOnly"],
    ]


def test_a_broker_that_leads_a_static_topic_may_not_stop_and_what_may_is_said_of_logical_queues_alone(
    typed: Any,
) -> None:
    """Who stops it for what drainBroker says loses no queue."""
    tables = Tables(typed, young=(2,))
    brokers = tables.brokers
    found: TopicAtBrokers = brokers.carried_out(static_topics.known(NAMES, "Static"))
    run = grown(found.topic, 3, ["broker2"], ["broker1", "broker2"], next(EPOCHS))
    brokers.carried_out(static_topics.carried_out(run, found.brokers))
    text, code = tables.run("drainBroker", "-b", "broker2")
    why = "it leads 3 logical queues of the static topic Static, which remappingStaticTopic moves"
    assert (text.splitlines()[-1], code) == (f"replispec: broker2 may not stop yet: {why}", 1)
    text, code = tables.run("drainBroker", "-b", "broker2", "-t", TOPIC)
    assert (text, code) == (f"broker2 holds nothing of {TOPIC} that is written or read.\n", 0)
    text, code = tables.run("drainBroker", "-b", "broker2", "-t", "Nope")
    assert (text, code) == ("replispec: no broker has logical queues of Nope\n", 1)
    found = brokers.carried_out(static_topics.known(NAMES, "Static"))
    moved_away = remapped(found.topic, ["broker1"], ["broker1", "broker2"], next(EPOCHS))
    brokers.carried_out(static_topics.carried_out(moved_away, found.brokers))
    text, code = tables.run("drainBroker", "-b", "broker2")
    assert (text.splitlines()[-1], code) == (
        "replispec: broker2 may not stop yet: 3 older items of the static topic Static are still read",
        1,
    )
    # They are empty, and go; what groups read of them is carried over before.
    brokers.world.run_for(6 * EMPTY_ITEMS_MS)
    text, code = tables.run("drainBroker", "-b", "broker2")
    assert (text.splitlines()[-1], code) == (
        "broker2 holds nothing of logical queues that is written or read: it may stop.",
        0,
    )


def test_tables_six_to_eight_of_the_proposal_a_broker_leaves_and_one_joins(typed: Any) -> None:
    tables = Tables(typed, young=(2,))
    brokers = tables.brokers
    for queue in (0, 1):
        brokers.writes(2, queue, 101)
    text, code = tables.run("drainBroker", "-b", "broker2")
    assert (code, "may not stop yet: 2 segments" in text) == (1, True)
    stay = [*FIRST[:2], ["broker1", "2", "2(101-)", "Normal"], ["broker1", "3", "3(101-)", "Normal"]]
    read = [["broker2", "0", "2(0-100)", "ReadOnly"], ["broker2", "1", "3(0-100)", "ReadOnly"]]
    assert tables.rows == [*stay, *read]
    brokers.fills(2)
    text, code = tables.run("drainBroker", "-b", "broker2")
    assert code == 0, text
    brokers.world.kill("broker2")
    brokers.world.run_for(130_000)
    assert tables.rows == stay
    for queue in (2, 3):
        brokers.writes(1, queue, 100)
    brokers.joins(3)
    for index in (2, 3):
        tables.migrate(index, 3)
    assert tables.rows == [
        *FIRST[:2],
        ["broker1", "2", "2(101-200)", "ReadOnly"],
        ["broker1", "3", "3(101-200)", "ReadOnly"],
        ["broker3", "0", "2(201-)", "Normal"],
        ["broker3", "1", "3(201-)", "Normal"],
    ]
    brokers.world.kill("nameserver")
    brokers.world.start("nameserver")
    brokers.world.run_for(40_000)
    found, _ = brokers.carried_out(heard_of())
    assert sorted(found) == [0, 1, 2, 3]


def heard_of() -> Plan[tuple[dict[int, Any], None]]:
    """What a name server tells who knows logical queues."""
    header = GetRouteInfoRequest(TOPIC, sys_flag=RouteFlag.LOGICAL_QUEUE)
    (reply,) = yield [Asking(NAME_SERVER, RequestCode.GET_ROUTEINFO_BY_TOPIC, header)]
    return dict(body_of(reply, TopicRouteData).logical_queues_info or {}), None


@pytest.mark.parametrize("late", [False, True])
def test_a_migration_that_is_cut_off_at_any_step_is_finished_and_no_client_notices(*, late: bool) -> None:
    brokers = OwnBrokers(3)
    made(brokers, queues=1)
    load = Load(brokers)
    brokers.world.run_for(2_000)
    targets = iter([2, 3, 1, 2, 3, 1, 2, 3, 1, 2])
    for cut in range(10):
        target = next(targets)
        plan = moved(NAMES, TOPIC, 0, f"broker{target}")
        try:
            brokers.carried_out(plan, cut=cut, late=late)
        except CutOffError:
            brokers.world.run_for(500)
        move(brokers, 0, target)
        assert sum("Normal" in row for row in table(brokers)) == 3
        assert not any("WriteOnly" in row for row in table(brokers))
    judged(load, 3)


def test_two_administrators_at_once_move_one_queue_and_no_client_notices() -> None:
    brokers = OwnBrokers(3)
    made(brokers, queues=1)
    load = Load(brokers)
    brokers.world.run_for(2_000)
    for pair in ((2, 3), (1, 2), (3, 1)):
        plans = [moved(NAMES, TOPIC, 0, f"broker{target}") for target in pair]
        came = brokers.at_once(*plans)
        assert not any(isinstance(each, NotAsWantedError) for each in came), came
        brokers.world.run_for(1_000)
        assert sum("Normal" in row for row in table(brokers)) == 3
        assert not any("WriteOnly" in row for row in table(brokers))
    judged(load, 3)


def test_the_number_grows_and_shrinks_under_load() -> None:
    brokers = OwnBrokers(2)
    made(brokers)
    load = Load(brokers)
    brokers.world.run_for(2_000)
    for number in (6, 3, 5):
        brokers.carried_out(numbered(NAMES, TOPIC, CLUSTER, number, next(EPOCHS)))
        brokers.world.run_for(40_000)
    judged(load, 6)


STEPS = 7
"""Of a migration: where brokers are, what they hold, what a name server knows, 416, 417, 418, 419."""


@pytest.mark.parametrize("step", range(3, STEPS))
@pytest.mark.parametrize("dies", ["broker1", "broker2", "nameserver"])
def test_whoever_dies_in_a_migration_comes_back_and_the_next_run_finishes_it(step: int, dies: str) -> None:
    """The administrator ends there, too: nobody is left who knows of the run but brokers' logs."""
    brokers = OwnBrokers(3)
    made(brokers, queues=1)
    brokers.writes(1, 0, 20)
    with pytest.raises(CutOffError):
        brokers.carried_out(moved(NAMES, TOPIC, 0, "broker2"), cut=step, late=True)
    brokers.world.kill(dies)
    brokers.world.run_for(2_000)
    brokers.start(dies)
    if dies != "nameserver":
        number = int(dies[-1])
        brokers.until(lambda: brokers.broker(number).serves, at_most_ms=180_000)
    brokers.world.run_for(40_000)
    move(brokers, 0, 2)
    assert table(brokers) == [
        "broker1 0 0(0-19) ReadOnly",
        "broker2 0 1 Normal",
        "broker2 1 0(20-) Normal",
        "broker3 0 2 Normal",
    ]
    load = Load(brokers)
    brokers.world.run_for(5_000)
    load.ends()
    assert all(isinstance(each, Stored) for each in load.came.values())
    offsets = [each.offset for each in load.read if each.queue.number == 0]
    assert offsets == list(range(len(offsets)))
    assert len(load.read) == len(load.came) + 20


@pytest.mark.parametrize("cut", range(10))
def test_a_topic_whose_making_was_cut_off_is_made_by_the_same_command(cut: int) -> None:
    brokers = OwnBrokers(2)
    wanted = TopicWanted(TOPIC, 2, 2, 6)
    try:
        brokers.carried_out(logical_queues_made(NAMES, wanted, CLUSTER, next(EPOCHS)), cut=cut, late=True)
    except CutOffError:
        brokers.world.run_for(500)
    made(brokers)
    assert [row.split()[2:] for row in table(brokers)] == [[str(index), "Normal"] for index in range(4)]
    assert sorted(brokers.carried_out(heard_of())[0]) == [0, 1, 2, 3]


def test_two_targets_that_two_administrators_left_are_both_finished_and_clients_are_told_of_them() -> None:
    brokers = OwnBrokers(3)
    made(brokers, queues=1)
    load = Load(brokers)
    brokers.world.run_for(2_000)
    for number in (2, 3):
        target = brokers.addresses[f"broker{number}"]
        brokers.carried_out(asks(target, CreateLogicalQueue(0, "WriteOnly", TOPIC).encode()))
    brokers.world.run_for(1_000)
    told, _ = brokers.carried_out(heard_of())
    queues = queues_heard(told, TOPIC)
    assert [each.is_decided for each in queues[0].segments] == [True, False, False]
    move(brokers, 0, 1)
    assert not any("WriteOnly" in row for row in table(brokers))
    assert sum("Normal" in row for row in table(brokers)) == 3
    judged(load, 3)


def asks(address: str, body: bytes) -> Plan[None]:
    code = RequestCode.CREATE_MESSAGE_QUEUE_FOR_LOGICAL_QUEUE
    (reply,) = yield [Asking(address, code, body=body)]
    granted(reply)


@pytest.mark.parametrize("is_new", [True, False])
def test_what_a_command_enabled_can_be_used_when_it_has_ended(typed: Any, is_new: bool) -> None:
    """Brokers tell name servers once a second: until then a topic would be told as a plain one, and no queue
    of it could move."""
    brokers = OwnBrokers(2)
    run = typed(brokers)
    new = ("updateTopic", "-t", TOPIC, "-c", CLUSTER, "-r", "2", "-w", "2")
    if is_new:
        lines = run(*new, "-lq", "true")
    else:
        brokers.carried_out(updated(NAMES, TopicWanted(TOPIC, 2, 2, 6), cluster=CLUSTER, broker=None))
        lines = run("updateTopicLogicalQueueMapping", "-t", TOPIC, "-c", CLUSTER)
    assert lines[1] == 0
    assert "not told" not in lines[0]
    header = GetRouteInfoRequest(TOPIC, sys_flag=RouteFlag.LOGICAL_QUEUE)
    told = brokers.ask(NAME_SERVER, RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
    assert sorted(TopicRouteData.decode(told.body).logical_queues_info or ()) == [0, 1, 2, 3]
    assert run("migrateTopicLogicalQueue", "-t", TOPIC, "-i", "0", "-b", "broker2")[1] == 0
