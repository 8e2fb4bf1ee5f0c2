"""The way to a broken promise as a story that people read: what happens, who changes how, what is said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from itertools import pairwise
from typing import Any

from replispec.explorer.composed import Composed
from replispec.explorer.moves import ACT, DELIVER, EXPIRE, LATE, LOST, Moves
from replispec.explorer.packets import Packet, PacketKind
from replispec.explorer.search import Broken, Search, Waypoint
from replispec.runtime.primitives.machines import Configuration

Facts = dict[str, str]
"""What there is to say of an instance: `MACHINE` -> state, `MACHINE.VARIABLE` and what it keeps -> value."""


@dataclass(frozen=True, slots=True)
class StoryStep:
    """One step: what happens, what changes by it, what is sent, and all that is then on its way."""

    says: str
    changes: tuple[str, ...]
    sends: tuple[str, ...]
    instances: Mapping[str, Facts]
    waiting: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Story:
    """A broken promise with the way to it; `circle` are the steps that then come again and again."""

    promise: str
    about: str
    start: Mapping[str, Facts]
    steps: tuple[StoryStep, ...]
    circle: tuple[StoryStep, ...] = ()


def story_of(search: Search, broken: Broken) -> Story:
    """The story of a broken promise."""
    way = search.way_of(broken)
    moves = search.moves
    steps = list(_steps(moves, way))
    circle: tuple[StoryStep, ...] = ()
    if broken.circle:
        back = broken.circle.index(broken.circle[-1])
        round_about = search.walked(way[-1], broken.circle[1:])
        after = list(_steps(moves, round_about))
        steps, circle = [*steps, *after[:back]], tuple(after[back:])
    if broken.move is not None:
        row = way[-1].row
        steps.append(
            StoryStep(move_text(moves, row, broken.move), (broken.text,), (), facts_of(moves, row), ())
        )
    return Story(broken.promise, broken.text, facts_of(moves, way[0].row), tuple(steps), circle)


def _steps(moves: Moves, way: list[Waypoint]) -> Iterator[StoryStep]:
    for before, after in pairwise(way):
        assert after.move is not None, "only the start has no move before it"
        known, now = facts_of(moves, before.row), facts_of(moves, after.row)
        left = list(moves.packets_in(before.row))
        sent = []
        for packet in moves.packets_in(after.row):
            if packet in left:
                left.remove(packet)
            else:
                sent.append(packet)
        yield StoryStep(
            move_text(moves, before.row, after.move),
            (*_changes(known, now), *_told(moves, sent, are_silences=True)),
            tuple(_told(moves, sent, are_silences=False)),
            now,
            tuple(packet_text(moves.composed, each) for each in moves.packets_in(after.row)),
        )


def _told(moves: Moves, packets: list[Packet], *, are_silences: bool) -> Iterator[str]:
    """Messages in a line each; or what is none, that nobody will answer any more, as nobody sends it."""
    for packet in packets:
        if (packet.kind is PacketKind.SILENCE) == are_silences:
            yield packet_text(moves.composed, packet)


def facts_of(moves: Moves, row: Any) -> dict[str, Facts]:
    """What there is to say of every instance in a state."""
    return {
        moves.composed.places[place].name: dict(_facts(value))
        for place, value in moves.values_in(row).items()
    }


def _facts(value: Any) -> Iterator[tuple[str, str]]:
    for each in fields(value):
        held = getattr(value, each.name)
        if each.name == "number":
            continue
        if isinstance(held, Configuration):
            yield from _facts_of_machine(each.name, held)
        elif isinstance(held, tuple) and held and isinstance(held[0], Configuration):
            for number, one in enumerate(held, start=1):
                yield from _facts_of_machine(f"{each.name}[{number}]", one)
        else:
            yield each.name, value_text(held)


def _facts_of_machine(name: str, held: Configuration[Any, Any]) -> Iterator[tuple[str, str]]:
    yield name, held.state.name
    for variable in fields(held.variables):
        yield f"{name}.{variable.name}", value_text(getattr(held.variables, variable.name))


def value_text(value: Any) -> str:
    """A value in a few words."""
    if isinstance(value, frozenset | set):
        return f"{{{', '.join(map(value_text, sorted(value)))}}}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {value_text(each)}' for key, each in sorted(value.items()))}}}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(value_text, value))}]"
    if isinstance(value, bytes):
        return value.hex(" ") or "empty"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    if is_dataclass(value):
        said = ((each.name, getattr(value, each.name)) for each in fields(value))
        # What a message leaves out, and what it has beside its keys, is not told.
        return f"({', '.join(f'{name} {value_text(each)}' for name, each in said if each not in (None, {}))})"
    return f"{value}"


def _changes(before: Mapping[str, Facts], after: Mapping[str, Facts]) -> Iterator[str]:
    for name, facts in after.items():
        changed = [
            f"{fact} {before[name].get(fact, '')} -> {value}"
            for fact, value in facts.items()
            if before[name].get(fact) != value
        ]
        if changed:
            yield f"{name}: {', '.join(changed)}"


def packet_text(composed: Composed, packet: Packet) -> str:
    """A message in one line: who says what to whom."""
    sender, to = composed.places[packet.sender].name, composed.places[packet.to].name
    if packet.kind is PacketKind.SILENCE:
        return f"{to} waits for an answer to {packet.name} in vain"
    if packet.kind is PacketKind.END:
        return f"{sender} to {to}: the end of the connection"
    said = packet.said()
    what = f"answer to {packet.name}" if packet.kind is PacketKind.ANSWER else packet.name
    is_heard = packet.waited or packet.kind in (PacketKind.NOTICE, PacketKind.FRAME)
    unheard = "" if is_heard else ", for whose answer nobody waits"
    code = f" {packet.code}" if packet.kind is PacketKind.ANSWER else ""
    return f"{sender} to {to}: {what}{code}{f' ({said})' if said else ''}{unheard}"


def move_text(moves: Moves, row: Any, move: Any) -> str:
    """What happens by a move from a state."""
    composed = moves.composed
    if move.kind == ACT:
        occasion = composed.occasions[move.act]
        names = {name: composed.places[place].name for name, place in occasion.instances.items()}
        others = [f"{name} {each}" for name, each in names.items() if name != "self"]
        beside = f" ({', '.join(others)})" if others else ""
        return f"{names['self']} {occasion.act.name.replace('_', ' ')}{beside}: {occasion.act.about}"
    packet = moves.packet_at(row, move.slot)
    text = packet_text(composed, packet)
    match move.kind:
        case str() as kind if kind == DELIVER:
            return f"arrives: {text}"
        case str() as kind if kind == EXPIRE:
            return f"{composed.places[packet.to].name} gives up waiting for an answer to {packet.name}"
        case str() as kind if kind == LOST:
            return f"is lost: {text}"
        case str() as kind if kind == LATE:
            return f"is late, so that its sender gives up: {text}"
    raise AssertionError(f"no kind of move: {move.kind}")
