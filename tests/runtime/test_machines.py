"""The machines of the specification, walked at random, and the two ways of walking them."""

from __future__ import annotations

import random
from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.primitives.machines import (
    CONFIGURATIONS_MAX,
    Configuration,
    Edge,
    Machine,
    Origin,
    distinct,
    everywhere,
    step,
    step_all,
)
from replispec.runtime.primitives.unknown import UNKNOWN, UnknownRead
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq.ha import HaEpochEntry, HaHandshakeAnswer, HaReport, HaTransferHeader
from replispec.wire.rocketmq.machines import ha_master, ha_replica
from tests.runtime.walks import MACHINES, module_of, random_event, random_row, rules_of

MachineRunner = ha_replica.State
machines = pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)


def start(machine: Machine[Any, Any]) -> Configuration[Any, Any]:
    return Configuration(machine.initial, machine.variables)


@machines
@given(seed=st.integers(0, 2**32))
def test_a_random_walk_stays_in_the_declared_states_and_blames_whoever_is_to_blame(
    machine: Machine[Any, Any], seed: int
) -> None:
    rng = random.Random(seed)
    now = start(machine)
    for _ in range(30):
        kind, row = random_event(machine, rng)
        if (now.state, kind) not in machine.transitions:
            is_peer = machine.events[kind].origin is Origin.PEER
            with pytest.raises(RemoteProtocolError if is_peer else LocalProtocolError, match=now.state.name):
                step(machine, now.state, now.variables, row, rules_of(machine), kind)
            continue
        taken = step(machine, now.state, now.variables, row, rules_of(machine), kind)
        assert taken.state in machine.states
        assert taken.state not in machine.unreached
        assert now.state not in machine.final
        assert taken.effects == taken.edge.do
        changed = {
            each.name
            for each in fields(now.variables)
            if getattr(now.variables, each.name) is not getattr(taken.variables, each.name)
        }
        assert changed <= set(taken.edge.assign)
        now = Configuration(taken.state, taken.variables)


@machines
@given(seed=st.integers(0, 2**32))
def test_whoever_knows_everything_ends_where_the_machine_does(machine: Machine[Any, Any], seed: int) -> None:
    """The walk over all possibilities always holds the machine's own state and variables."""
    rng = random.Random(seed)
    now = start(machine)
    possible: tuple[Configuration[Any, Any], ...] = (now,)
    blind = everywhere(machine)
    for _ in range(12):
        kinds = [kind for state, kind in machine.transitions if state is now.state]
        if not kinds:
            break
        kind = rng.choice(kinds)
        row = random_row(machine, kind, rng)
        taken = step(machine, now.state, now.variables, row, rules_of(machine), kind)
        now = Configuration(taken.state, taken.variables)
        if machine.events[kind].hidden:
            continue
        possible = step_all(machine, possible, row, rules_of(machine), kind)
        blind = step_all(machine, blind, row, rules_of(machine), kind)
        assert any(holds(each, now) for each in possible)
        assert any(holds(each, now) for each in blind)
        assert len(possible) <= CONFIGURATIONS_MAX


def test_where_too_much_is_possible_the_least_is_forgotten() -> None:
    """Addresses of no further use take all room; that each master has its epoch stays known."""
    first = start(MACHINES["broker_set"])
    many = [
        replace(
            first,
            variables=replace(
                first.variables, master=of, master_epoch=10 + of, cluster_name=str(at), next_broker_id=at % 40
            ),
        )
        for of in (1, 2)
        for at in range(CONFIGURATIONS_MAX)
    ]
    kept = distinct(many)
    assert len(kept) <= CONFIGURATIONS_MAX
    assert {(each.variables.master, each.variables.master_epoch) for each in kept} == {(1, 11), (2, 12)}
    assert all(each.variables.cluster_name is UNKNOWN for each in kept)
    assert all(any(holds(each, one) for each in kept) for one in many)


def holds(wide: Configuration[Any, Any], now: Configuration[Any, Any]) -> bool:
    """True when `now` is one of the possibilities of `wide`."""
    if wide.state is not now.state:
        return False
    pairs = [
        (getattr(wide.variables, each.name), getattr(now.variables, each.name))
        for each in fields(now.variables)
    ]
    return all(one is UNKNOWN or (other is not UNKNOWN and one == other) for one, other in pairs)


def test_an_event_of_another_machine_is_our_own_fault() -> None:
    with pytest.raises(LocalProtocolError, match="ha_replica has no event LogGrew"):
        step(ha_replica.MACHINE, ha_replica.State.READY, ha_replica.Variables(), ha_master.LogGrew(1), rules)


# ---- the replica, by its generated classes -------------------------------------------------------


def replica(state: ha_replica.State, variables: ha_replica.Variables, event: ha_replica.Event) -> Any:
    return step(ha_replica.MACHINE, state, variables, event, rules)


def test_a_replica_copies_what_continues_its_log() -> None:
    header = HaTransferHeader(offset=100, epoch=1, epoch_start_offset=0, confirm_offset=140, body=b"x" * 50)
    before = ha_replica.Variables(log_end=100, epochs=(HaEpochEntry(1, 0),))
    taken = replica(ha_replica.State.TRANSFER, before, ha_replica.BatchReceived(header))
    assert taken.state is ha_replica.State.TRANSFER
    assert taken.effects == ("note_epoch", "append", "advance_confirm_offset", "send_report")
    assert (taken.variables.log_end, taken.variables.confirm_offset) == (150, 140)


def test_a_replica_blames_a_master_that_leaves_a_gap() -> None:
    header = HaTransferHeader(offset=101, epoch=1, body=b"x")
    taken = replica(
        ha_replica.State.TRANSFER, ha_replica.Variables(log_end=100), ha_replica.BatchReceived(header)
    )
    assert taken.state is ha_replica.State.READY
    assert taken.edge.blames_peer
    assert taken.effects == ("close_connection",)


def test_a_replica_truncates_at_the_consistent_point() -> None:
    before = ha_replica.Variables(log_end=1000, epochs=(HaEpochEntry(0, 0), HaEpochEntry(1, 900)))
    answer = HaHandshakeAnswer(
        max_offset=1200, last_epoch=2, entries=[HaEpochEntry(0, 0), HaEpochEntry(2, 900)]
    )
    taken = replica(ha_replica.State.HANDSHAKE, before, ha_replica.HandshakeAnswered(answer))
    assert taken.state is ha_replica.State.TRANSFER
    assert (taken.variables.log_end, list(taken.variables.epochs)) == (900, [HaEpochEntry(0, 0)])
    assert taken.effects == ("truncate_log", "correct_epochs", "send_report")


def test_a_replica_that_shares_no_epoch_asks_for_an_operator() -> None:
    before = ha_replica.Variables(log_end=1000, epochs=(HaEpochEntry(3, 0),))
    answer = HaHandshakeAnswer(max_offset=1200, last_epoch=2, entries=[HaEpochEntry(2, 0)])
    taken = replica(ha_replica.State.HANDSHAKE, before, ha_replica.HandshakeAnswered(answer))
    assert taken.state is ha_replica.State.READY
    assert "ask_for_operator" in taken.effects


def test_only_apache_sends_its_handshake_twice() -> None:
    event = SimpleNamespace()
    args = (ha_replica.State.HANDSHAKE, ha_replica.Variables(), event, rules, ha_replica.HandshakeSent)
    with pytest.raises(LocalProtocolError, match="no edge from HANDSHAKE on handshake_sent"):
        step(ha_replica.MACHINE, *args)
    apache = ha_replica.MACHINE.for_release("apache", (5, 4, 0))
    assert step(apache, *args).edge.tolerated


def test_overlays_hold_for_their_releases_alone() -> None:
    def second_answer(implementation: str, *release: int) -> Edge[ha_replica.State]:
        machine = ha_replica.MACHINE.for_release(implementation, release)
        return machine.transitions[ha_replica.State.TRANSFER, ha_replica.HandshakeAnswered][0]

    assert second_answer("apache", 5, 0, 0).to is ha_replica.State.TRANSFER
    assert second_answer("apache", 5, 1, 0).tolerated
    assert second_answer("replispec", 0, 1).blames_peer


def test_messages_are_told_apart_by_name_direction_and_content() -> None:
    kind_of = ha_replica.MACHINE.kind_of
    assert kind_of("HaTransferHeader", SimpleNamespace(body_size=1), rules) is ha_replica.BatchReceived
    assert kind_of("HaTransferHeader", SimpleNamespace(body_size=0), rules) is ha_replica.HeartbeatReceived
    assert kind_of("HaReport", HaReport(), rules, sent=True) is ha_replica.ReportSent
    assert kind_of("HaReport", HaReport(), rules) is None


# ---- what was not seen ---------------------------------------------------------------------------


def test_a_guard_about_the_unseen_is_not_answered() -> None:
    unseen = ha_replica.Variables(log_end=UNKNOWN)
    event = ha_replica.BatchReceived(HaTransferHeader(offset=5, body=b"x"))
    with pytest.raises(UnknownRead):
        replica(ha_replica.State.TRANSFER, unseen, event)


def test_a_guard_about_the_unseen_goes_both_ways_and_what_is_seen_narrows_it() -> None:
    event = SimpleNamespace(offset=5, body_size=3, epoch=1, epoch_start_offset=0, confirm_offset=0)
    machine = ha_replica.MACHINE
    blind = [each for each in everywhere(machine) if each.state is ha_replica.State.TRANSFER]
    after = step_all(machine, blind, event, rules, ha_replica.BatchReceived)
    assert {each.state for each in after} == {ha_replica.State.TRANSFER, ha_replica.State.READY}
    copied = next(each for each in after if each.state is ha_replica.State.TRANSFER)
    assert copied.variables.log_end == 8
    assert copied.variables.epochs is UNKNOWN


def test_a_machine_of_which_nothing_was_seen_may_be_in_every_state_that_is_entered() -> None:
    assert [each.state.name for each in everywhere(ha_replica.MACHINE)] == [
        "READY",
        "HANDSHAKE",
        "TRANSFER",
        "SHUTDOWN",
    ]


def test_what_no_possibility_allows_is_blamed() -> None:
    report = (SimpleNamespace(max_offset=0), rules, ha_replica.ReportSent)
    with pytest.raises(LocalProtocolError, match="no edge from READY on report_sent"):
        step_all(ha_replica.MACHINE, [start(ha_replica.MACHINE)], *report)
    batch = SimpleNamespace(offset=0, body_size=1, epoch=1, epoch_start_offset=0, confirm_offset=0)
    with pytest.raises(RemoteProtocolError, match="no edge from READY on batch_received"):
        step_all(ha_replica.MACHINE, [start(ha_replica.MACHINE)], batch, rules, ha_replica.BatchReceived)


@machines
def test_the_generated_module_offers_what_the_machine_uses(machine: Machine[Any, Any]) -> None:
    event = module_of(machine).Event
    assert set(machine.events) == set(get_args(event) or (event,))
