"""Stories of machines: text files in which each event stands above what came of it.

    # Comments say what happens, and why the machine does what it does.
    machine ha_replica of apache 5.4.0
    begin TRANSFER log_end=100
    batch_received offset=100 body_size=50
        TRANSFER: append, send_report; log_end=150

Without `of` the machine is walked as we do, otherwise as that release of an implementation does. `begin`
gives it another beginning than its own.

Values: 7, true, none, text, {1,2} for a set, {1:a,2:b} for a map, {a,b} for one of empty messages, [1,2] for
a list, [1:0,2:900] for epochs with the offsets where they start, [3@2:100] for heartbeats (broker 3, whose
log ends at 100 in epoch 2), [1,1,2] for the entries of a log by their terms, [0@a:0,1@b/2:] for items of a
static topic (the second, queue 2 of broker b, begins nobody knows where), b1:0 for a segment of a logical
queue. Fields that are not named are 0, false, empty or none.
"""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

import yaml

from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.primitives.machines import Machine, Origin, step
from replispec.wire.raft.member import RaftEntry
from replispec.wire.rocketmq.client import KeptObject, SubscriptionGroup, TopicStatsTable
from replispec.wire.rocketmq.constants import UNDECIDED
from replispec.wire.rocketmq.controller import BrokerHeartbeatRequest
from replispec.wire.rocketmq.ha import HaEpochEntry
from replispec.wire.rocketmq.logical_queue import LogicalQueueSegment
from replispec.wire.rocketmq.message_queue import MessageQueue
from replispec.wire.rocketmq.static_topic import LogicQueueMappingItem
from tests.runtime.walks import MACHINES, attributes, module_of, rules_of
from tests.scenarios.interpreter import Document, Interpreted, Taken

SPEC = Path(__file__).parents[2] / "spec/statemachines"
STORIES = Path(__file__).parent / "stories"
Row = Mapping[str, Any]
OUTCOME = "    "


class Player(Protocol):
    """Whoever can say what a machine remembers at its beginning, and what an event comes to."""

    @property
    def initial(self) -> dict[str, Any]:
        """All variables."""
        ...

    def step(self, state: str, variables: Row, event: str, row: Row) -> Taken | None:
        """What it comes to; None when no edge is for it."""
        ...


@dataclass(frozen=True)
class Generated:
    """The machine as the compiler made it, for one release of an implementation or for all (ours)."""

    machine: Machine[Any, Any]

    @property
    def initial(self) -> dict[str, Any]:
        """What the machine remembers at its beginning."""
        return {
            each.name: getattr(self.machine.variables, each.name) for each in fields(self.machine.variables)
        }

    def step(self, state: str, variables: Row, event: str, row: Row) -> Taken | None:
        """Walk with `step`, the walker of the roles."""
        machine = self.machine
        kind = kind_named(machine, event)
        now = type(machine.variables)(**variables)
        try:
            taken = step(machine, machine.states[state], now, SimpleNamespace(**row), rules_of(machine), kind)
        except blamed(machine, kind):
            return None
        after = {each.name: getattr(taken.variables, each.name) for each in fields(taken.variables)}
        edge = taken.edge
        timing = frozenset(edge.arms), frozenset(edge.cancels)
        judged = edge.blames_peer, edge.tolerated, edge.diverges
        return Taken(taken.state.name, after, taken.effects, *judged, *timing)


def kind_named(machine: Machine[Any, Any], event: str) -> type:
    """The class of the events of this name."""
    return next(kind for kind, info in machine.events.items() if info.name == event)


def blamed(machine: Machine[Any, Any], kind: type) -> type[Exception]:
    """The error of an event that no edge is for: the peer's fault, or that of this side."""
    return RemoteProtocolError if machine.events[kind].origin is Origin.PEER else LocalProtocolError


@functools.cache
def document_of(name: str) -> Document:
    """The YAML of a machine."""
    family = module_of(MACHINES[name]).__name__.split(".")[2]
    document: Document = yaml.safe_load((SPEC / family / f"{name}.yaml").read_text("utf-8"))
    return document


@dataclass(frozen=True)
class Scene:
    """One life of one machine in a story: the state and variables that it begins with (others as at the
    machine's own beginning), and its events with the lines on which they stand."""

    machine: Machine[Any, Any]
    release: tuple[str, tuple[int, ...]] | None
    state: str
    variables: dict[str, Any]
    events: Sequence[tuple[int, str, Row]]

    def generated(self) -> Generated:
        """The machine as the compiler made it."""
        return Generated(self.machine.for_release(*self.release) if self.release else self.machine)

    def interpreted(self, document: Document) -> Interpreted:
        """The machine as a document says it, with the overlays that hold for the release."""
        names = tuple(document.get("overlays", {}))
        held = [self.release and each.releases.holds(*self.release) for each in self.machine.overlays]
        overlays = tuple(name for name, holds in zip(names, held, strict=True) if holds)
        return Interpreted(document, rules_of(self.machine), overlays)

    def play(self, player: Player) -> list[tuple[int, Taken | None]]:
        """What came of each event, by its line."""
        state: str = self.state
        variables: Row = player.initial | self.variables
        found = []
        for line, event, row in self.events:
            taken = player.step(state, variables, event, row)
            found.append((line, taken))
            if taken is not None:
                state, variables = taken.state, taken.variables
        return found


def scenes(text: str) -> list[Scene]:
    """The lives that a story tells."""
    found: list[Scene] = []
    machine, release = next(iter(MACHINES.values())), None
    events: list[tuple[int, str, Row]] = []
    for number, line in enumerate(text.splitlines()):
        if not line.strip() or line.startswith(("#", OUTCOME)):
            continue
        first, *words = line.split()
        if first == "machine":
            machine, release = MACHINES[words[0]], _release(words[1:])
        if first in {"machine", "begin"}:
            state, named = (words[0], words[1:]) if first == "begin" else (machine.initial.name, [])
            hints = typing.get_type_hints(type(machine.variables))
            events = []
            found.append(Scene(machine, release, state, _values(named, hints), events))
            continue
        kind = kind_named(machine, first)
        hints = attributes(kind)
        row = {name: _nothing(hint) for name, hint in hints.items()} | _values(words, hints)
        where = machine.events[kind].where
        assert where is None or where(machine.variables, SimpleNamespace(**row), None), line
        events.append((number, first, row))
    return found


def told(text: str) -> str:
    """The story with what the generated machines make of it."""
    outcomes = {
        line: _outcome(scene, scene.events[number], taken, _before(scene, played, number))
        for scene in scenes(text)
        for played in [scene.play(scene.generated())]
        for number, (line, taken) in enumerate(played)
    }
    lines = []
    for number, line in enumerate(text.splitlines()):
        if not line.startswith(OUTCOME):
            lines.append(line)
        if number in outcomes:
            lines.append(OUTCOME + outcomes[number])
    return "\n".join(lines) + "\n"


def _before(scene: Scene, played: Sequence[tuple[int, Taken | None]], number: int) -> Row:
    earlier = [taken for _, taken in played[:number] if taken is not None]
    return earlier[-1].variables if earlier else scene.generated().initial | scene.variables


def _outcome(scene: Scene, event: tuple[int, str, Row], taken: Taken | None, before: Row) -> str:
    if taken is None:
        is_peer = blamed(scene.machine, kind_named(scene.machine, event[1])) is RemoteProtocolError
        return f"no edge: {'the peer' if is_peer else 'this side'} is to blame"
    timing = [f"arm {name}" for name in sorted(taken.arms)]
    timing += [f"cancel {name}" for name in sorted(taken.cancels)]
    parts = [f"{taken.state}: {', '.join([*taken.effects, *timing]) or 'nothing to do'}"]
    changes = [f"{name}={shown(value)}" for name, value in taken.variables.items() if value != before[name]]
    parts += [" ".join(changes)] if changes else []
    parts += ["the peer is to blame"] if taken.blames_peer else []
    parts += [f"tolerated: {taken.tolerated}"] if taken.tolerated else []
    parts += [f"diverges: {taken.diverges}"] if taken.diverges else []
    return "; ".join(parts)


def _release(words: Sequence[str]) -> tuple[str, tuple[int, ...]] | None:
    if not words:
        return None
    _of, implementation, release = words
    return implementation, tuple(int(each) for each in release.split("."))


# ---- values --------------------------------------------------------------------------------------


def shown(value: Any) -> str:
    """A value as stories write it."""
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case str():
            return value or "''"
        case bytes():
            return value.decode()
        case frozenset():
            return "{" + ",".join(map(shown, sorted(value))) + "}"
        case dict():
            return "{" + ",".join(f"{shown(key)}:{shown(each)}" for key, each in sorted(value.items())) + "}"
        case list() | tuple():
            return "[" + ",".join(map(shown, value)) + "]"
        case _:
            return _shown_message(value)


def _shown_message(value: Any) -> str:
    match value:
        case HaEpochEntry():
            return f"{value.epoch}:{value.start_offset}"
        case BrokerHeartbeatRequest():
            return f"{value.broker_id}@{value.epoch}:{value.max_offset}"
        case LogicQueueMappingItem():
            start = "" if value.logic_offset == UNDECIDED else str(value.logic_offset)
            queue = f"/{value.queue_id}" if value.queue_id else ""
            return f"{value.gen}@{value.bname}{queue}:{start}"
        case LogicalQueueSegment(message_queue=MessageQueue() as queue):
            begins = value.logical_queue_delta
            said = "" if begins is None or begins == UNDECIDED else f"@{begins}"
            return f"{queue.broker_name}:{queue.queue_id}{said}"
        case RaftEntry():
            return str(value.term)
        case _:
            return str(value)


def _heartbeat(text: str) -> BrokerHeartbeatRequest:
    broker, _, log = text.partition("@")
    epoch, _, end = log.partition(":")
    return BrokerHeartbeatRequest(broker_id=int(broker), epoch=int(epoch), max_offset=int(end))


def _epoch(text: str) -> HaEpochEntry:
    epoch, _, start = text.partition(":")
    return HaEpochEntry(epoch=int(epoch), start_offset=int(start))


def _item(text: str) -> LogicQueueMappingItem:
    generation, _, place = text.partition("@")
    physical, _, start = place.partition(":")
    broker, _, queue = physical.partition("/")
    offset = int(start) if start else UNDECIDED
    return LogicQueueMappingItem(
        bname=broker, gen=int(generation), logic_offset=offset, queue_id=int(queue) if queue else None
    )


def _segment(text: str) -> LogicalQueueSegment:
    place, _, start = text.partition("@")
    broker, _, queue = place.partition(":")
    decided = int(start) if start else None
    held = MessageQueue(broker, int(queue), "T")
    return LogicalQueueSegment(logical_queue_delta=decided, message_queue=held)


def _of_term(text: str) -> RaftEntry:
    return RaftEntry(term=int(text))


def _entry(text: str) -> tuple[int, str]:
    key, _, value = text.partition(":")
    return int(key), value


def _numbers(text: str) -> tuple[int, int]:
    key, _, value = text.partition(":")
    return int(key), int(value)


_READERS: dict[Any, Callable[[str], Any]] = {
    int: int,
    bool: lambda text: {"true": True, "false": False}[text],
    str: lambda text: "" if text == "''" else text,
    bytes: str.encode,
    frozenset[int]: lambda text: frozenset(map(int, _items(text))),
    Mapping[int, str]: lambda text: dict(map(_entry, _items(text))),
    Mapping[int, int]: lambda text: dict(map(_numbers, _items(text))),
    Mapping[str, SubscriptionGroup]: lambda text: {each: SubscriptionGroup() for each in _items(text)},
    Mapping[str, KeptObject]: lambda text: {each: KeptObject() for each in _items(text)},
    Sequence[int]: lambda text: tuple(map(int, _items(text))),
    Sequence[str]: lambda text: tuple(_items(text)),
    Sequence[HaEpochEntry]: lambda text: tuple(map(_epoch, _items(text))),
    Sequence[LogicQueueMappingItem]: lambda text: tuple(map(_item, _items(text))),
    LogicalQueueSegment: _segment,
    TopicStatsTable: lambda _text: TopicStatsTable(),
    Sequence[RaftEntry]: lambda text: tuple(map(_of_term, _items(text))),
    Sequence[BrokerHeartbeatRequest]: lambda text: tuple(map(_heartbeat, _items(text))),
}


def _items(text: str) -> list[str]:
    return [each for each in text[1:-1].split(",") if each]


def _options(hint: Any) -> list[Any]:
    is_union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    return list(typing.get_args(hint)) if is_union else [hint]


def _nothing(hint: Any) -> Any:
    options = _options(hint)
    if type(None) in options:
        return None
    empty: dict[Any, Any] = {int: 0, bool: False, str: "", bytes: b"", TopicStatsTable: TopicStatsTable()}
    origins: dict[Any, Any] = {frozenset: frozenset(), Mapping: {}}
    return empty.get(options[0], origins.get(typing.get_origin(options[0]), ()))


def _values(words: Sequence[str], hints: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for word in words:
        name, _, text = word.partition("=")
        options = [each for each in _options(hints[name]) if each is not type(None)]
        found[name] = None if text == "none" else _READERS[options[0]](text)
    return found
