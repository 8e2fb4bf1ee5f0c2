"""What the roles of a whole set show: all that is declared, nothing else, and numbers that are so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from replispec.runtime.primitives.metrics import Gathered, Histogram
from replispec.runtime.world import Numbers
from replispec.wire.rocketmq import metrics
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.controller import GetReplicaInfoRequest
from replispec.wire.rocketmq.metrics import BY_ROLE
from tests.broker.simulated_set import CONTROLLER, OK, BrokerSet, wanted

FIRST = "10.0.1.1:10911"
Shown = Mapping[str, Mapping[tuple[str, ...], Any]]


def numbers() -> Numbers:
    """What the world would count."""
    took = Histogram(metrics.PROCESS_FSYNC_SECONDS.buckets)
    return Numbers(5, 1, 2, 3, 4, 0, 5, 6, 7, took, {"info": 1}, 0)


def shown(cluster: BrokerSet, process: str) -> Shown:
    """Everything that the node of a process shows, by name and by all labels but those of all metrics."""
    view: Any = cluster.world.processes[process].nodes[0].view  # type: ignore[attr-defined]
    found = Gathered().gather(view.samples(numbers()), view.shared())
    return {
        metric.name: {labels[len(metric.shared) :]: value for labels, value in series.items()}
        for metric, series in found.items()
    }


def is_ready(cluster: BrokerSet, process: str) -> dict[str, bool]:
    """The checks of a node."""
    view: Any = cluster.world.processes[process].nodes[0].view  # type: ignore[attr-defined]
    return {check.name: check.holds for check in view.checks()}


@pytest.fixture
def cluster() -> BrokerSet:
    """Two brokers in the set, a learner, and a message that was sent and pulled."""
    found = BrokerSet()
    first, _ = found.pair()
    found.add_learner(3)
    found.start("learner3")
    found.until(lambda: all(is_ready(found, "learner3").values()))
    assert found.send(first, b"hello")[0] == OK
    found.until(lambda: found.pull(first, 0)[0] == OK)
    return found


# What only comes about in a group of controllers, with clients that send heartbeats, with questions, or where
# somebody says when events begin, which the simulation does not.
ELSEWHERE = {
    "rocketmq_controller_member_lag",
    "rocketmq_consumer_connections",
    "rocketmq_consumer_lag_messages",
    "rocketmq_remoting_answers_total",
    "rocketmq_rpc_latency",
    "rocketmq_controller_request_latency",
}


@pytest.mark.parametrize(
    ("role", "process"),
    [
        ("controller", "controller"),
        ("nameserver", "nameserver"),
        ("broker", "broker1"),
        ("learner", "learner3"),
    ],
)
def test_a_role_shows_all_that_is_declared_of_it_and_nothing_else(
    cluster: BrokerSet, role: str, process: str
) -> None:
    declared = {metric.name for metric in BY_ROLE[role]}
    assert set(shown(cluster, process)) | ELSEWHERE & declared == declared


def test_what_is_shared_is_said_by_every_view(cluster: BrokerSet) -> None:
    for process in ("controller", "nameserver", "broker1", "learner3"):
        view: Any = cluster.world.processes[process].nodes[0].view  # type: ignore[attr-defined]
        for sample in view.samples(numbers()):
            missing = set(sample.metric.shared) - set(view.shared())
            assert not missing, f"{sample.metric.name} of {process} lacks {missing}"


def test_numbers_of_a_master_are_its_own(cluster: BrokerSet) -> None:
    found = shown(cluster, "broker1")
    end = cluster.broker(1).log_status().max_offset
    assert found["rocketmq_broker_role"][()] == 2
    assert found["rocketmq_messages_in_total"] == {("T", "normal", "false"): 1}
    assert found["rocketmq_throughput_in_total"] == {("T", "normal", "false"): end}
    assert found["rocketmq_messages_out_total"] == {("T", "g", "false", "false"): 1}
    assert found["rocketmq_throughput_out_total"] == {("T", "g", "false", "false"): end}
    assert found["rocketmq_log_end_offset"][()] == found["rocketmq_confirm_offset"][()] == end
    assert found["rocketmq_broker_replica_in_sync"][("2",)] == 1
    assert found["rocketmq_broker_replica_lag_bytes"][("2",)] == 0
    assert found["rocketmq_remoting_answers_total"]["SEND_MESSAGE_V2", "SUCCESS"] == 1


def test_latencies_of_a_broker_have_the_labels_of_apache(cluster: BrokerSet) -> None:
    view: Any = cluster.world.processes["broker1"].nodes[0].view  # type: ignore[attr-defined]
    view.latencies.began_s = 100.0
    held = cluster.asked(FIRST, RequestCode.PULL_MESSAGE, wanted("T", 0, 1, wait_ms=10_000))
    assert cluster.send(FIRST, b"there")[0] == OK
    cluster.until(lambda: bool(held))
    view.latencies.end(100.0025)
    found = shown(cluster, "broker1")["rocketmq_rpc_latency"]
    sent = found["remoting", "send_message_v2", "success", "false", "success"]
    pulled = found["remoting", "pull_message", "success", "true", "success"]
    for took in (sent, pulled):
        assert dict(took.cumulative()) == {
            edge: int(edge >= 3) for edge in (*metrics.RPC_LATENCY.buckets, float("inf"))
        }
    # What is counted here is still an answer: before, without a clock, there was another one.
    assert shown(cluster, "broker1")["rocketmq_remoting_answers_total"]["SEND_MESSAGE_V2", "SUCCESS"] == 2


def test_latencies_of_a_controller_are_one_for_each_request_whatever_it_was_answered(
    cluster: BrokerSet,
) -> None:
    view: Any = cluster.world.processes["controller"].nodes[0].view  # type: ignore[attr-defined]
    view.latencies.began_s = 100.0
    for name in ("broker-a", "nobody's"):
        cluster.ask(CONTROLLER, RequestCode.CONTROLLER_GET_REPLICA_INFO, GetReplicaInfoRequest(name))
    view.latencies.end(100.0)
    found = shown(cluster, "controller")["rocketmq_controller_request_latency"]
    assert dict(found[("CONTROLLER_GET_REPLICA_INFO",)].cumulative())[1] == 2


def test_sizes_of_messages_are_sorted_by_topic(cluster: BrokerSet) -> None:
    assert cluster.send(FIRST, b"x" * 5_000)[0] == OK
    sizes = shown(cluster, "broker1")["rocketmq_message_size"]["T", "normal", "false"]
    assert [count for _, count in sizes.cumulative()][:3] == [1, 1, 2]
    assert sizes.total == shown(cluster, "broker1")["rocketmq_throughput_in_total"]["T", "normal", "false"]


def test_numbers_of_a_controller_are_those_of_its_sets(cluster: BrokerSet) -> None:
    found = shown(cluster, "controller")
    of_set = ("C", "broker-a")
    assert found["rocketmq_controller_role"][()] == 3
    assert found["rocketmq_controller_sync_state_set_size"][of_set] == 2
    assert found["rocketmq_controller_active_broker_num"][of_set] == 2
    assert found["rocketmq_controller_brokers"][of_set] == 3
    assert found["rocketmq_controller_master_epoch"][of_set] == 1
    assert found["rocketmq_controller_election_total"][(*of_set, "new_master_elected")] == 1
    assert found["rocketmq_controller_elections_by_cause_total"]["broker_asked", "new_master_elected"] >= 1
    assert found["rocketmq_controller_commit_index"] == found["rocketmq_controller_apply_index"]


def test_a_fail_over_is_counted_by_its_cause_and_shown_on_the_page(cluster: BrokerSet) -> None:
    cluster.world.kill("broker1")
    cluster.until(lambda: cluster.broker(2).serves)
    found = shown(cluster, "controller")
    assert found["rocketmq_controller_elections_by_cause_total"]["master_silent", "new_master_elected"] == 1
    view: Any = cluster.world.processes["controller"].nodes[0].view  # type: ignore[attr-defined]
    (one,) = view.picture()["sets"]
    assert (one["name"], one["master"], one["master_epoch"]) == ("broker-a", 2, 2)
    assert [(each["id"], each["is_master"], each["in_sync"], each["alive"]) for each in one["brokers"]] == [
        (1, False, False, False),
        (2, True, True, True),
        (3, False, False, False),
    ]


def test_a_set_that_nobody_leads_is_an_error_and_a_lost_master_a_warning(cluster: BrokerSet) -> None:
    cluster.world.kill("broker2")
    cluster.until(lambda: cluster.members(1) == {1})
    cluster.notes.clear()
    cluster.world.kill("broker1")
    cluster.until(lambda: any(note.what == "master lost, nobody can follow" for _, note in cluster.notes))
    levels = {note.what: note.level.name for name, note in cluster.notes if name == "controller"}
    assert levels["master lost, nobody can follow"] == "ERROR"
    assert levels["broker lost"] == "WARNING"


def test_roles_are_ready_once_they_can_do_what_they_are_for() -> None:
    found = BrokerSet()
    found.add_broker(1)
    found.add_learner(3)
    found.world.kill("controller")
    found.start("broker1", "learner3")
    assert is_ready(found, "nameserver") == {"listens": True}
    assert is_ready(found, "broker1") == {"listens": True, "registered": False, "role": False, "store": True}
    assert is_ready(found, "learner3") == {"listens": True, "connected": False, "store": True}
    found.start("controller")
    assert all(is_ready(found, "controller").values())
    found.until(lambda: all(is_ready(found, "broker1").values()))
    found.until(lambda: all(is_ready(found, "learner3").values()))


def test_who_says_a_line_is_said_by_name_id_and_port(cluster: BrokerSet) -> None:
    views: dict[str, Any] = {
        name: cluster.world.processes[name].nodes[0].view  # type: ignore[attr-defined]
        for name in ("broker2", "controller", "nameserver")
    }
    assert views["broker2"].who() == {"broker_name": "broker-a", "broker_id": 2, "port": 10911}
    assert views["controller"].who() == {"member": "n0", "port": 9878}
    assert views["nameserver"].who() == {"port": 9876}
