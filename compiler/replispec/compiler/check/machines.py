"""What makes a machine whole: one start, every state reached, one way out of every choice."""

from __future__ import annotations

from collections.abc import Sequence

from replispec.compiler.model.machine import MachineSpec, OverlaySpec, Pair, StateSpec, Transition
from replispec.compiler.model.message import Model, SpecificationError


def check_pair(pair: Pair, edges: Sequence[Transition]) -> None:
    """Refuse an order of edges in which one can never be taken, or none may fit."""
    state, event = pair
    *guarded, last = edges
    for edge in guarded:
        if edge.condition is None:
            raise SpecificationError(
                edge.place,
                f"{state} has two unguarded edges on {event}",
                "give all but the last an if, and the last else: true",
            )
    for edge in edges:
        if edge.otherwise and edge.condition is not None:
            raise SpecificationError(
                edge.place, f"{state} on {event}: an else with an if", "drop one of the two"
            )
    if last.condition is not None:
        raise SpecificationError(
            last.place,
            f"{state} on {event} has guards without else",
            "add an edge with else: true after them",
        )
    if last.otherwise and not guarded:
        raise SpecificationError(last.place, f"{state} on {event}: an else without an if", "drop else: true")
    if guarded and not last.otherwise:
        raise SpecificationError(
            last.place, f"{state} has an unguarded edge on {event} beside guarded ones", "mark it else: true"
        )


def check_overlays(overlays: Sequence[OverlaySpec]) -> None:
    """Refuse two overlays that change the same pair in the same release."""
    for number, one in enumerate(overlays):
        for other in overlays[:number]:
            common = sorted(set(one.table) & set(other.table))
            if common and one.versions.overlaps(other.versions):
                state, event = common[0]
                raise SpecificationError(
                    one.place,
                    f"{one.versions} and {other.versions} both change {state} on {event}",
                    "part the ranges",
                )


def check_machine(machine: MachineSpec, model: Model) -> None:
    """Refuse a machine with a missing start, unreached states, unused events or ambiguous messages."""
    initial = [state for state in machine.states.values() if state.initial]
    if len(initial) != 1:
        raise SpecificationError(
            machine.place, f"{machine.name} has {len(initial)} initial states", "mark one initial: true"
        )
    _check_enum(machine, model)
    for each in machine.transitions():
        for name in each.sources:
            if machine.states[name].final:
                raise SpecificationError(
                    each.place, f"an edge leaves the final state {name}", "drop final: true or the edge"
                )
    _check_deviations(machine)
    _check_reached(machine, initial[0])
    used = {each.event for each in machine.transitions()}
    for event in machine.events.values():
        if event.name not in used:
            raise SpecificationError(
                event.place, f"no edge takes the event {event.name}", "add an edge or drop the event"
            )
    _check_messages(machine)


def _check_deviations(machine: MachineSpec) -> None:
    """Of an edge one thing is said: that it is let pass, that it diverges, or who is to blame."""
    for edges in machine.table.values():
        for each in edges:
            if each.diverges:
                raise SpecificationError(
                    each.place, "an edge diverges from itself", "write diverges: on an edge of an overlay"
                )
    for each in machine.transitions():
        if bool(each.diverges) + bool(each.tolerated) + each.blames_peer > 1:
            raise SpecificationError(
                each.place,
                f"the edge on {each.event} is judged in two ways",
                "keep one of diverges, tolerated, blame",
            )


def _check_enum(machine: MachineSpec, model: Model) -> None:
    if not machine.enum:
        return
    known = {value.name for value in model.enums[machine.enum].values}
    for state in machine.states.values():
        if state.name not in known:
            raise SpecificationError(
                state.place,
                f"{machine.enum} has no value {state.name}",
                f"values: {', '.join(sorted(known))}",
            )


def _check_reached(machine: MachineSpec, initial: StateSpec) -> None:
    reached = {initial.name}
    while True:
        more = {each.to for each in machine.transitions() if reached.intersection(each.sources)} - reached
        if not more:
            break
        reached |= more
    for state in machine.states.values():
        if state.name not in reached and not state.unreached:
            raise SpecificationError(
                state.place,
                f"no path of edges leads to {state.name}",
                "add an edge, or say why under unreached:",
            )
        if state.name in reached and state.unreached:
            raise SpecificationError(
                state.place, f"edges lead to {state.name}, which is marked unreached", "drop unreached"
            )


def _check_messages(machine: MachineSpec) -> None:
    """Of several events of one message all but the last must say by `where` which ones they are."""
    seen: dict[tuple[str, bool], str] = {}
    for event in machine.events.values():
        for message in event.messages:
            key = (message, event.sends)
            if key in seen and event.where is None and machine.events[seen[key]].where is None:
                raise SpecificationError(
                    event.place,
                    f"{event.name} and {seen[key]} are both {message}",
                    "tell them apart by where:",
                )
            seen[key] = event.name
