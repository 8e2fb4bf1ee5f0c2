"""Made-up lives of the machines: events drawn from a seed, told by who could see them.

The events are made here, from small numbers and from what the machine remembers, never from its table:
the same seed meets another specification with the same draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.primitives.machines import Edge, Machine, step
from replispec.runtime.rocketmq import rules
from replispec.runtime.sim import Chance
from replispec.wire.rocketmq.controller import BrokerHeartbeatRequest
from replispec.wire.rocketmq.ha import (
    HaEpochEntry,
    HaHandshakeAnswer,
    HaHandshakeId,
    HaReport,
    HaTransferHeader,
)
from replispec.wire.rocketmq.machines import broker_set, ha_master, ha_replica

Draw = Callable[[Chance, Any], Any]


@dataclass(frozen=True)
class Life:
    """One machine, what may happen to it, and how many lives of how many events are told."""

    machine: Machine[Any, Any]
    draws: tuple[Draw, ...]
    lives: int
    events: int


@dataclass
class Told:
    """The lines of all lives, and the edges that they took."""

    lines: list[str]
    edges: list[Edge[Any]]


def tell(life: Life) -> Told:
    """Every event of every life: what the machine was, what happened, what it is and does then."""
    told = Told([], [])
    for number in range(life.lives):
        told.lines.append(f"life {number}")
        told.lines.extend(_lines(life, Chance(number), told.edges))
    return told


def _lines(life: Life, chance: Chance, edges: list[Edge[Any]]) -> Iterator[str]:
    machine, state, variables = life.machine, life.machine.initial, life.machine.variables
    for _ in range(life.events):
        event = chance.one_of(life.draws)(chance, variables)
        told = f"  {state.name} {_event(event)}"
        try:
            taken = step(machine, state, variables, event, rules)
        except (LocalProtocolError, RemoteProtocolError) as error:
            blamed = "peer" if isinstance(error, RemoteProtocolError) else "us"
            yield f"{told}: no edge, blames {blamed}"
            continue
        edges.append(taken.edge)
        changes = [
            f"{each.name}={_value(getattr(taken.variables, each.name))}"
            for each in fields(variables)
            if getattr(taken.variables, each.name) != getattr(variables, each.name)
        ]
        blame = " blames peer" if taken.edge.blames_peer else ""
        what = f"{told} -> {taken.state.name} [{', '.join(taken.effects)}]{blame} {' '.join(changes)}"
        yield what.rstrip()
        state, variables = taken.state, taken.variables
        if state in machine.final:
            state, variables = machine.initial, machine.variables


def _event(event: Any) -> str:
    values = [f"{each.name}={_value(getattr(event, each.name))}" for each in fields(event)]
    return f"{type(event).__name__}({', '.join(values)})"


def _value(value: Any) -> str:
    match value:
        case frozenset():
            return "{" + ",".join(map(str, sorted(value))) + "}"
        case BrokerHeartbeatRequest():
            return f"{value.broker_id}@{value.epoch}:{value.max_offset}"
        case HaEpochEntry():
            return f"{value.epoch}-{value.start_offset}"
        case list() | tuple():
            return "[" + " ".join(map(_value, value)) + "]"
        case HaHandshakeId():
            return f"id {value.broker_id} last={value.sync_from_last_file} learner={value.async_learner}"
        case HaHandshakeAnswer():
            return f"{_value(value.entries)} to {value.max_offset}"
        case HaTransferHeader():
            start = f"{value.epoch}-{value.epoch_start_offset}"
            return f"{len(value.body)} from {value.offset} of {start} confirms {value.confirm_offset}"
        case HaReport():
            return str(value.max_offset)
        case _:
            return str(value)


def _some(chance: Chance, highest: int = 3) -> frozenset[int]:
    return frozenset(number for number in range(1, highest + 1) if chance.happens(600))


def _heartbeats(chance: Chance) -> list[BrokerHeartbeatRequest]:
    return [
        BrokerHeartbeatRequest(broker_id=each, epoch=chance.below(3), max_offset=chance.below(4) * 100)
        for each in sorted(_some(chance))
    ]


def _near(chance: Chance, value: int) -> int:
    return value + chance.one_of((0, 0, 0, 1, -1))


def _applied(chance: Chance, known: broker_set.Variables) -> broker_set.IdApplied:
    wanted = chance.one_of((known.next_broker_id, known.next_broker_id, 1, 2, 5))
    owner = chance.one_of(("mine", "theirs")) if wanted in known.broker_ids else None
    return broker_set.IdApplied(wanted, "mine", owner)


def _altered(chance: Chance, known: broker_set.Variables) -> broker_set.AlterationAsked:
    return broker_set.AlterationAsked(
        known.master if known.master is not None and chance.happens(800) else 1,
        _near(chance, known.master_epoch),
        _near(chance, known.sync_state_set_epoch),
        chance.one_of((known.broker_ids, known.sync_state_set, _some(chance, 4))),
        chance.one_of((known.broker_ids, known.broker_ids, _some(chance))),
    )


BROKER_SET = Life(
    broker_set.MACHINE,
    (
        lambda *_: broker_set.NextIdAsked(),
        _applied,
        _applied,
        lambda chance, _: broker_set.Registered(chance.between(1, 3), "a:1"),
        lambda *_: broker_set.InfoAsked(),
        lambda chance, _: broker_set.ElectionAsked(
            chance.between(1, 3),
            chance.one_of((None, None, 1, 2, 3)),
            _heartbeats(chance),
            chance.happens(200),
        ),
        lambda chance, known: broker_set.MasterLost(
            chance.one_of((known.master or 1, 2)), _heartbeats(chance), chance.happens(200)
        ),
        lambda chance, known: broker_set.MasterMissed(
            chance.one_of((known.master or 1, 2)), _heartbeats(chance), chance.happens(400)
        ),
        _altered,
        _altered,
        lambda chance, _: broker_set.CleaningAsked(
            chance.one_of((None, _some(chance), frozenset({2}), frozenset({3}))),
            _some(chance) if chance.happens(300) else frozenset(),
            chance.happens(400),
        ),
    ),
    lives=60,
    events=60,
)


def _sent(chance: Chance, known: ha_master.Variables, size: int) -> HaTransferHeader:
    offset = max(known.next_offset, 0)
    return HaTransferHeader(
        offset=offset, epoch=1, epoch_start_offset=0, confirm_offset=chance.below(3) * 50, body=bytes(size)
    )


HA_MASTER = Life(
    ha_master.MACHINE,
    (
        lambda chance, _: ha_master.HandshakeReceived(
            HaHandshakeId(chance.happens(300), chance.happens(300), chance.between(1, 3))
        ),
        lambda chance, _: ha_master.AnswerSent(HaHandshakeAnswer(chance.below(3) * 100, 1, [])),
        lambda chance, known: ha_master.ReportReceived(
            HaReport(chance.one_of((0, known.log_end, known.log_end // 2, known.log_end + 1, -1)))
        ),
        lambda chance, known: ha_master.ReportReceived(HaReport(chance.one_of((0, known.log_end)))),
        lambda chance, known: ha_master.BatchSent(_sent(chance, known, 50)),
        lambda chance, known: ha_master.HeartbeatSent(_sent(chance, known, 0)),
        lambda *_: ha_master.HeartbeatDue(),
        lambda chance, known: ha_master.LogGrew(known.log_end + chance.between(1, 3) * 100),
        lambda *_: ha_master.EpochBegan(),
        lambda chance, _: chance.one_of((ha_master.Silence(), ha_master.Closed(), ha_master.Stop())),
    ),
    lives=30,
    events=30,
)


def _answer(chance: Chance, _: Any) -> ha_replica.HandshakeAnswered:
    entries = chance.one_of(
        ([HaEpochEntry(1, 0)], [HaEpochEntry(1, 0), HaEpochEntry(2, 100)], [HaEpochEntry(3, 70)])
    )
    return ha_replica.HandshakeAnswered(HaHandshakeAnswer(chance.below(4) * 100, 2, list(entries)))


def _came(chance: Chance, known: ha_replica.Variables, size: int) -> HaTransferHeader:
    epoch = chance.between(1, 3)
    return HaTransferHeader(
        offset=known.log_end + chance.one_of((0, 0, 0, 10)),
        epoch=epoch,
        epoch_start_offset=(epoch - 1) * 100,
        confirm_offset=known.log_end + chance.one_of((0, -10, 200)),
        body=bytes(size),
    )


HA_REPLICA = Life(
    ha_replica.MACHINE,
    (
        lambda *_: ha_replica.DialDue(),
        lambda chance, known: ha_replica.TailCut(max(0, known.log_end - chance.below(2) * 10)),
        lambda *_: ha_replica.Connected(),
        lambda *_: ha_replica.HandshakeSent(HaHandshakeId(broker_id=2)),
        lambda *_: ha_replica.HandshakeSent(HaHandshakeId(broker_id=2)),
        _answer,
        _answer,
        lambda chance, known: ha_replica.BatchReceived(_came(chance, known, 50)),
        lambda chance, known: ha_replica.BatchReceived(_came(chance, known, 50)),
        lambda chance, known: ha_replica.HeartbeatReceived(_came(chance, known, 0)),
        lambda *_: ha_replica.ReportDue(),
        lambda _, known: ha_replica.ReportSent(HaReport(known.log_end)),
        lambda chance, _: (
            ha_replica.Stop()
            if chance.happens(200)
            else chance.one_of((ha_replica.Silence(), ha_replica.Closed()))
        ),
    ),
    lives=40,
    events=60,
)
