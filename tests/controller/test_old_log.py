"""A log from before records were generated is read; what is recorded now has the same bytes."""

from __future__ import annotations

from pathlib import Path

from replispec.controller.rocketmq.node import ControllerNode
from replispec.event.v1.event_pb2 import ControllerEvent
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq.machines.broker_set import State, Variables
from replispec.wire.rocketmq.machines.broker_set_wire import event_of_record, record_of
from tests.controller import conversation

# A start; three brokers get ids, and one of another set, which is elected there; an address changes; an
# election, an alteration, an election by an operator, another alteration, a cleaning, a loss that nobody can
# follow; another start, at which the master is missed.
RECORDS = Path(__file__).with_name("old_log.txt").read_text("ascii").split()
STATE = "080110021800"


def old_journal() -> conversation.StoredJournal:
    """A journal that holds the old log."""
    journal = conversation.StoredJournal()
    journal.kept = [(index, bytes.fromhex(each)) for index, each in enumerate(RECORDS, start=1)]
    journal.value = bytes.fromhex(STATE)
    return journal


def test_an_old_log_gives_what_it_recorded() -> None:
    node = conversation.controller(old_journal()).node
    assert isinstance(node, ControllerNode)
    assert {each.name: (each.state, each.variables) for each in node._sets} == {
        "broker-a": (
            State.LED,
            Variables(
                master=3,
                master_epoch=3,
                sync_state_set=frozenset({3}),
                sync_state_set_epoch=5,
                broker_ids=frozenset({2, 3}),
                next_broker_id=4,
                cluster_name="DefaultCluster",
                addresses={2: "127.0.0.1:40000", 3: "127.0.0.1:30930"},
                check_codes={2: "127.0.0.1:30920;1700000000000", 3: "127.0.0.1:30930;1700000000000"},
            ),
        ),
        "broker-b": (
            State.LEADERLESS,
            Variables(
                master_epoch=2,
                sync_state_set=frozenset({1}),
                sync_state_set_epoch=1,
                broker_ids=frozenset({1}),
                next_broker_id=2,
                cluster_name="DefaultCluster",
                addresses={1: "127.0.0.1:30910"},
                check_codes={1: "127.0.0.1:30910;1700000000000"},
            ),
        ),
    }


def test_what_is_recorded_now_has_the_bytes_of_the_old_log() -> None:
    """Each old record, read as an event and recorded again, is itself but for number, term and time."""
    known = Variables(cluster_name=conversation.CLUSTER)
    for text in RECORDS:
        old = ControllerEvent.FromString(bytes.fromhex(text))
        event = event_of_record(old, known)
        if event is None:
            assert not old.broker_name
            continue
        new = ControllerEvent(**record_of(old.broker_name, event, known, rules))
        for name in ("format", "proposal", "term", "proposed_time_ns"):
            setattr(new, name, getattr(old, name))
        assert new.SerializeToString(deterministic=True).hex() == text


def test_a_log_of_a_later_format_is_refused_by_name() -> None:
    journal = old_journal()
    later = ControllerEvent.FromString(journal.kept[1][1])
    later.format = 2
    journal.kept[1] = (2, later.SerializeToString(deterministic=True))
    talk = conversation.controller(journal)
    assert talk.halted() == (
        "the log of the controller cannot be read: record 2 of the log is of format 2, this release reads 1"
    )
