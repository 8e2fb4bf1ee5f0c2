"""Kafka's machines: a partition through fail-overs, and a broker that carries out commands."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import yaml

from replispec.runtime.kafka import rules
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.primitives.machines import step
from replispec.wire.kafka.design import DesignLeaderAndIsr, DesignPartition
from replispec.wire.kafka.folder import EpochStart
from replispec.wire.kafka.machines import partition, replica
from replispec.wire.kafka.rules import Rules

VECTORS = Path(__file__).parents[2] / "spec/vectors/kafka"
SOURCES: dict[str, Any] = {
    name: source
    for path in sorted(VECTORS.glob("*.yaml"))
    for name, source in yaml.safe_load(path.read_text("utf-8")).get("rules", {}).items()
}
EXAMPLES = [(name, source, vector) for name, source in SOURCES.items() for vector in source["vectors"]]
# The module offers what the generated protocol asks for: a type checker reads this line.
OFFERED: Rules = rules


def _value(kind: str, value: Any) -> Any:
    """A value of a vector as a rule takes it."""
    if kind == "list EpochStart":
        return [EpochStart(**each) for each in value]
    return frozenset(value) if kind.startswith("set ") else value


@pytest.mark.parametrize(
    ("name", "source", "vector"), EXAMPLES, ids=[f"{name}: {vector['name']}" for name, _, vector in EXAMPLES]
)
def test_a_golden_example_of_a_rule_holds(name: str, source: Any, vector: Any) -> None:
    kinds = source["parameters"]
    arguments = {each: _value(kinds[each], value) for each, value in vector["given"].items()}
    answer = getattr(rules, name)(**arguments)
    assert (sorted(answer) if isinstance(answer, frozenset) else answer) == vector["result"]


def test_every_rule_is_specified_with_its_parameters() -> None:
    offered = {name: list(inspect.signature(getattr(rules, name)).parameters) for name in rules.__all__}
    assert offered == {name: list(source["parameters"]) for name, source in sorted(SOURCES.items())}


# ---- the controller's view -----------------------------------------------------------------------


class Controller:
    """One partition, walked event by event."""

    def __init__(self) -> None:
        self.state, self.variables = partition.MACHINE.initial, partition.MACHINE.variables

    def take(self, event: partition.Event) -> tuple[str, ...]:
        """The effects of one event."""
        taken = step(partition.MACHINE, self.state, self.variables, event, rules)
        self.state, self.variables = taken.state, taken.variables
        return taken.effects

    def live(self, *brokers: int, unclean: bool = False) -> tuple[str, ...]:
        """The effects of these brokers, and no others, being alive."""
        return self.take(partition.BrokersChanged(frozenset(brokers), unclean))

    def record(self) -> tuple[int | None, set[int], int, int]:
        """Leader, ISR, epoch and version."""
        now = self.variables
        return now.leader, set(now.isr), now.leader_epoch, now.version


def led() -> Controller:
    """A partition of brokers 2, 1, 3, led by 2."""
    controller = Controller()
    controller.take(partition.AssignmentRead([2, 1, 3]))
    assert controller.live(1, 2, 3) == ("create_record", "send_leader_and_isr")
    assert controller.record() == (2, {1, 2, 3}, 0, 0)
    return controller


def test_the_preferred_survivor_of_the_isr_leads_after_a_failure() -> None:
    controller = led()
    assert controller.live(1, 3) == ("write_record", "send_leader_and_isr")
    assert controller.state is partition.State.ONLINE
    assert controller.record() == (1, {1, 3}, 1, 1)
    assert controller.live(1, 2, 3) == ()
    assert controller.record() == (1, {1, 3}, 1, 1)


def test_without_a_survivor_there_is_no_leader_until_one_returns() -> None:
    controller = led()
    controller.live(1)
    controller.live(2, 3)
    assert controller.state is partition.State.OFFLINE
    assert controller.record() == (None, {1}, 2, 2)
    assert controller.live(3) == ()
    controller.live(1, 3)
    assert (controller.state, controller.record()) == (partition.State.ONLINE, (1, {1}, 3, 3))


def test_an_unclean_election_is_noted() -> None:
    controller = led()
    controller.live(1)
    assert controller.live(2, 3, unclean=True)[0] == "note_unclean_election"
    assert controller.record() == (2, {2}, 2, 2)


def test_a_partition_whose_brokers_were_all_down_is_led_once_one_lives() -> None:
    controller = Controller()
    controller.take(partition.AssignmentRead([2, 1]))
    assert controller.live(3) == ("create_record",)
    assert (controller.state, controller.record()) == (partition.State.OFFLINE, (None, set(), 0, 0))
    controller.live(1, 3)
    assert controller.record() == (1, {1}, 1, 1)


def test_of_two_writers_of_the_record_one_wins() -> None:
    controller = led()
    assert controller.take(partition.IsrWritten(2, frozenset({2, 1}), 0)) == (
        "write_record",
        "answer_written",
    )
    assert controller.take(partition.IsrWritten(2, frozenset({2}), 0)) == ("answer_conflict",)
    assert controller.record() == (2, {1, 2}, 0, 1)


def test_a_deposed_leader_cannot_change_the_isr() -> None:
    controller = led()
    controller.live(1, 3)
    assert controller.take(partition.IsrWritten(2, frozenset({2}), 0)) == ("answer_conflict",)
    assert controller.take(partition.IsrWritten(2, frozenset({2}), 1)) == ("answer_refused",)


def test_a_deleted_topic_stops_its_replicas_and_may_come_again() -> None:
    controller = led()
    assert controller.take(partition.TopicDeleted()) == ("send_stop_replica", "delete_record")
    with pytest.raises(LocalProtocolError):
        controller.take(partition.TopicDeleted())
    controller.take(partition.AssignmentRead([3]))
    controller.live(3)
    assert controller.record() == (3, {3}, 0, 0)


# ---- the broker's view ---------------------------------------------------------------------------


class Broker:
    """The replica of one partition on broker 1."""

    def __init__(self) -> None:
        self.state, self.variables = replica.MACHINE.initial, replica.Variables(broker_id=1)

    def take(self, event: replica.Event) -> tuple[str, ...]:
        """The effects of one event."""
        taken = step(replica.MACHINE, self.state, self.variables, event, rules)
        self.state, self.variables = taken.state, taken.variables
        return taken.effects

    def told(self, leader: int, epoch: int, *isr: int) -> tuple[str, ...]:
        """The effects of a command of the controller."""
        command = DesignLeaderAndIsr(
            "t", 0, leader=leader, leader_epoch=epoch, isr=list(isr), zk_version=epoch
        )
        return self.take(replica.LeaderAndIsr(command))


def following() -> Broker:
    """A replica that follows broker 2 from offset 80 on, of a log that reached 100."""
    broker = Broker()
    broker.told(2, 5, 1, 2)
    assert broker.take(replica.Started(high_watermark=80, log_end=100)) == (
        "truncate_log",
        "start_fetching",
        "answer_done",
    )
    assert (broker.state, broker.variables.log_end) == (replica.State.FOLLOWER, 80)
    return broker


def test_a_follower_copies_what_continues_its_log_and_knows_what_is_committed() -> None:
    broker = following()
    assert broker.take(replica.Fetched(offset=80, size=20, high_watermark=90)) == ("append", "fetch_more")
    assert (broker.variables.log_end, broker.variables.high_watermark) == (100, 90)
    broker.take(replica.Fetched(offset=100, size=0, high_watermark=110))
    assert broker.variables.high_watermark == 100


def test_a_gap_in_what_was_fetched_is_blamed_on_the_leader() -> None:
    broker = following()
    taken = step(replica.MACHINE, broker.state, broker.variables, replica.Fetched(81, 1, 0), rules)
    assert taken.edge.blames_peer
    assert taken.variables == broker.variables


def test_a_new_leader_stops_fetching_before_it_commits() -> None:
    broker = following()
    assert broker.told(1, 6, 1, 2) == ("stop_fetching", "start_commits", "answer_done")
    assert broker.state is replica.State.LEADER
    assert broker.take(replica.AllFetched(95)) == ("acknowledge",)
    assert broker.told(1, 6, 1) == ("take_isr", "answer_done")
    assert list(broker.variables.isr) == [1]


def test_an_older_command_changes_nothing() -> None:
    broker = following()
    before = broker.variables
    assert broker.told(1, 4, 1) == ("answer_stale",)
    assert (broker.state, broker.variables) == (replica.State.FOLLOWER, before)


def test_a_command_that_says_nothing_new_does_not_interrupt_fetching() -> None:
    assert following().told(2, 5, 1, 2) == ("answer_done",)


def test_a_deposed_leader_truncates_to_what_was_committed() -> None:
    broker = following()
    broker.take(replica.Fetched(offset=80, size=20, high_watermark=90))
    broker.told(1, 6, 1, 2)
    assert broker.told(3, 7, 3) == ("stop_commits", "truncate_log", "start_fetching", "answer_done")
    assert broker.variables.log_end == 90


def test_a_replica_is_stopped_once_and_again() -> None:
    stop = replica.StopReplica(DesignPartition("t", 0))
    assert Broker().take(stop) == ("answer_done",)
    broker = following()
    assert broker.take(stop) == ("stop_fetching", "stop_checkpoints", "delete_directory")
    assert broker.take(stop) == ()
    assert broker.take(replica.DirectoryDeleted()) == ("answer_done",)
    assert broker.state is replica.State.DELETED
    with pytest.raises(RemoteProtocolError):
        broker.take(stop)


def test_a_partition_that_the_first_command_leaves_out_is_deleted() -> None:
    assert following().take(replica.LeftOut())[-1] == "delete_directory"
