"""Static topics made, grown and moved among brokers as Java's are, and every interrupted run finished."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from replispec.administrator.rocketmq import NotAsWantedError
from replispec.cli.main import command_line
from replispec.cli.rocketmq.admin import delete_topic, static_topics
from replispec.cli.rocketmq.admin.asking import RefusedToAskError
from replispec.wire.rocketmq.static_topic import TopicRemappingDetailWrapper
from tests.administrator.static_brokers import (
    CLUSTER,
    NAME_SERVER,
    OTHER_NAME_SERVER,
    TOPIC,
    CutOffError,
    JavaCluster,
)

Admin = Callable[..., Result]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> JavaCluster:
    """Three brokers, and our commands among them; files go to a folder of their own."""
    made = JavaCluster.of("a", "b", "c")
    clock = iter(range(1_700_000_000_000, 1_800_000_000_000))

    def ask(plan: Any) -> Any:
        try:
            return made.carried_out(plan)
        except NotAsWantedError as error:
            raise RefusedToAskError(str(error)) from error

    for module in (static_topics, delete_topic):
        monkeypatch.setattr(module, "ask", ask)
    monkeypatch.setattr(static_topics, "wall_ms", lambda: next(clock))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return made


def run(*words: str) -> Result:
    """One command."""
    line = ["admin", *words, "-t", TOPIC, "-n", f"{NAME_SERVER};{OTHER_NAME_SERVER}"]
    return CliRunner().invoke(command_line, line, standalone_mode=False)


def update(total: int, *more: str, to: str = "a,b,c") -> Result:
    return run("updateStaticTopic", "-qn", str(total), "-b", to, *more)


def remap(*more: str, to: str) -> Result:
    return run("remappingStaticTopic", "-b", to, *more)


def well(done: Result) -> None:
    assert (done.exception, done.return_value) == (None, 0), done.output


def whole(cluster: JavaCluster, total: int) -> None:
    """One broker leads each queue, all starts are decided there, and nothing is apart."""
    for index in range(total):
        (leader,) = cluster.leaders(index)
        items = cluster.brokers[leader].items(index)
        starts = [each.logic_offset or 0 for each in items]
        assert starts == sorted(set(starts))
        assert starts[0] == 0
        assert [each.gen for each in items] == list(range(len(items)))
        queues = [(each.bname, each.queue_id) for each in items]
        assert len(set(queues)) == len(queues)
    told = {(each.detail.epoch, each.detail.total_queues) for each in cluster.brokers.values()}
    assert len(told) == 1
    assert {total for _, total in told} == {total}


def test_a_static_topic_is_made_grows_and_never_shrinks(cluster: JavaCluster) -> None:
    well(update(4, to="a,b"))
    whole(cluster, 4)
    assert [cluster.leaders(index) for index in range(4)] == [["a"], ["b"], ["a"], ["b"]]
    assert cluster.brokers["c"].detail.hosted_queues == {}
    well(update(6))
    whole(cluster, 6)
    assert sorted(name for index in (4, 5) for name in cluster.leaders(index)) == ["c", "c"]
    for total, why in ((5, "Cannot decrease the queue num"), (6, "do nothing")):
        refused = update(total)
        assert refused.return_value == 1
        assert why in refused.stderr
        assert len(refused.stderr.splitlines()) == 1
    whole(cluster, 6)


def test_queues_move_and_their_offsets_go_on_above_the_old_ones(cluster: JavaCluster) -> None:
    well(update(4, to="a,b"))
    assert cluster.brokers["a"].send(0, 237) == 0
    assert cluster.brokers["a"].send(2, 5_001) == 0
    well(remap(to="b,c"))
    whole(cluster, 4)
    assert [cluster.leaders(index) for index in range(4)] == [["c"], ["b"], ["c"], ["b"]]
    assert [cluster.brokers["c"].send(index, 1) for index in (0, 2)] == [10_000, 20_000]
    well(remap(to="a"))
    whole(cluster, 4)
    assert cluster.brokers["a"].send(0, 1) == 20_000


def test_queues_of_one_broker_move_to_several_and_each_of_them_decides(cluster: JavaCluster) -> None:
    well(update(4, to="a"))
    well(remap(to="b,c"))
    whole(cluster, 4)
    assert [cluster.leaders(index) for index in range(4)] == [["b"], ["b"], ["c"], ["c"]]


def test_who_holds_older_items_alone_is_not_told_of_a_queue_that_moves(cluster: JavaCluster) -> None:
    """Where its new leader refused, that one would keep an item that never came to be."""
    well(update(1, to="a"))
    well(remap(to="b"))
    before = cluster.brokers["a"].items(0)
    assert [each.bname for each in before] == ["a", "b"]
    well(remap(to="c"))
    assert cluster.leaders(0) == ["c"]
    assert cluster.brokers["a"].items(0) == before


def test_who_leads_one_queue_anew_and_holds_older_items_of_another_is_told_of_both_each_time(
    cluster: JavaCluster,
) -> None:
    """It is told twice under one epoch: where a queue is missing, a broker of Java's refuses the second."""
    well(update(2, to="a"))
    well(remap(to="b"))
    before = cluster.brokers["a"].items(1)
    well(remap(to="a,c"))
    whole(cluster, 2)
    assert [cluster.leaders(index) for index in range(2)] == [["a"], ["c"]]
    assert cluster.brokers["a"].items(1) == before
    well(update(3))
    assert cluster.brokers["a"].items(1) == cluster.brokers["c"].items(1)


def test_files_before_and_after_are_those_of_mqadmin_and_the_second_can_be_carried_out(
    cluster: JavaCluster, tmp_path: Path
) -> None:
    planned = update(3, "--dry-run")
    well(planned)
    assert all(each.config is None for each in cluster.brokers.values())
    lines = planned.stdout.splitlines()
    assert lines[0] == f"The old mapping data is written to file {tmp_path}/{TOPIC}-1700000000000.before"
    assert lines[1] == f"The new mapping data is written to file {tmp_path}/{TOPIC}-1700000000000.after"
    after = tmp_path / f"{TOPIC}-1700000000000.after"
    said = TopicRemappingDetailWrapper.decode(after.read_bytes())
    assert (said.type, said.topic, said.epoch) == ("CREATE_OR_UPDATE", TOPIC, 1_700_000_000_000)
    assert {*(said.broker_config_map or {})} == {"a", "b", "c"}
    well(run("updateStaticTopic", "-qn", "3", "-mf", str(after)))
    whole(cluster, 3)
    planned = remap("--dry-run", to="a")
    (moved,) = tmp_path.glob("*1700000001000.after")
    told = TopicRemappingDetailWrapper.decode(moved.read_bytes())
    assert (told.type, told.broker_to_map_in, told.broker_to_map_out) == ("REMAPPING", ["a"], ["b", "c"])
    well(run("remappingStaticTopic", "-mf", str(moved)))
    whole(cluster, 3)
    assert {*map(tuple, map(cluster.leaders, range(3)))} == {("a",)}


@pytest.mark.parametrize("cut", range(3))
def test_an_update_that_was_cut_is_finished_by_the_next(cluster: JavaCluster, cut: int) -> None:
    cluster.cut = cut
    assert isinstance(update(4).exception, CutOffError)
    cluster.cut = None
    well(update(4))
    whole(cluster, 4)
    cluster.cut = cluster.set_count + cut
    assert isinstance(update(9).exception, CutOffError)
    cluster.cut = None
    well(update(9))
    whole(cluster, 9)


@pytest.mark.parametrize("cut", range(6))
@pytest.mark.parametrize("then", ["same", "other", "grown"])
def test_a_remapping_that_was_cut_is_finished_by_the_next(cluster: JavaCluster, cut: int, then: str) -> None:
    """Nobody gives an offset twice, whoever takes messages between the two runs."""
    well(update(4, to="a,b"))
    brokers = cluster.brokers
    given: dict[int, list[int]] = {index: [] for index in range(4)}

    def send() -> None:
        for index in range(4):
            for name in cluster.leaders(index):
                given[index].append(brokers[name].send(index, 7))

    send()
    cluster.cut = cluster.set_count + cut
    interrupted = remap(to="b,c")
    assert isinstance(interrupted.exception, CutOffError) == (cut < 4)
    send()
    cluster.cut = None
    done = {"same": lambda: remap(to="b,c"), "other": lambda: remap(to="a"), "grown": lambda: update(6)}
    well(done[then]())
    whole(cluster, 6 if then == "grown" else 4)
    send()
    for index in range(4):
        decided = [each for each in given[index] if each != -1]
        assert decided == sorted(set(decided)), index
        items = brokers[cluster.leaders(index)[0]].items(index)
        for one, two in pairwise(items):
            end = (one.logic_offset or 0) + brokers[one.bname or ""].ends.get(one.queue_id or 0, 0)
            assert end <= (two.logic_offset or 0)


def test_a_file_sets_no_start_again_that_was_decided(cluster: JavaCluster, tmp_path: Path) -> None:
    well(update(1, to="a"))
    cluster.brokers["a"].send(0, 10)
    well(remap(to="b"))
    assert cluster.brokers["b"].items(0)[-1].logic_offset == 10_000
    cluster.brokers["a"].ends[0] = 6_000
    after = max(tmp_path.glob("*.after"))
    well(run("remappingStaticTopic", "-mf", str(after)))
    assert cluster.brokers["b"].items(0)[-1].logic_offset == 10_000


def test_an_older_file_is_refused(cluster: JavaCluster, tmp_path: Path) -> None:
    well(update(2))
    older = max(tmp_path.glob("*.after"))
    well(update(3))
    refused = run("updateStaticTopic", "-qn", "2", "-mf", str(older))
    assert refused.return_value == 1
    assert "has a mapping of epoch" in refused.stderr
    whole(cluster, 3)


def test_a_plain_topic_and_a_broker_that_is_away_are_refused(cluster: JavaCluster) -> None:
    well(update(2))
    cluster.silent = {"b"}
    refused = remap(to="a")
    assert (refused.return_value, refused.stderr) == (1, "replispec: b:10911: Connection refused\n")
    cluster.silent = set()
    for each in cluster.brokers.values():
        each.detail.hosted_queues = {}
    refused = remap(to="a")
    assert refused.return_value == 1
    assert "a broker is away" in refused.stderr
    for each in cluster.brokers.values():
        assert each.config is not None
        each.config.mapping_detail = None
    refused = update(3)
    assert refused.return_value == 1
    assert "is no static topic" in refused.stderr


def test_a_deleted_topic_is_gone_from_every_broker(cluster: JavaCluster) -> None:
    well(update(2))
    assert isinstance(run("deleteTopic", "-c", CLUSTER).exception, RefusedToAskError)
    assert run("deleteTopic", "-c", "other", "--yes").return_value == 1
    assert all(each.config is not None for each in cluster.brokers.values())
    well(run("deleteTopic", "-c", CLUSTER, "--yes"))
    assert all(each.config is None for each in cluster.brokers.values())


@pytest.mark.parametrize("unheard", ["a", "b", "c"])
def test_what_one_name_server_does_not_know_is_there(cluster: JavaCluster, unheard: str) -> None:
    """A broker that the first one has lost leads queues all the same: it is asked, told, and deletes."""
    well(update(3))
    cluster.unheard[NAME_SERVER] = {unheard}
    well(remap(to="b,c"))
    whole(cluster, 3)
    well(update(4))
    whole(cluster, 4)
    well(run("deleteTopic", "-c", CLUSTER, "--yes"))
    assert all(each.config is None for each in cluster.brokers.values())


def test_brokers_are_found_though_the_first_name_server_is_empty(cluster: JavaCluster) -> None:
    cluster.unheard[NAME_SERVER] = {"a", "b", "c"}
    well(update(2))
    whole(cluster, 2)
