"""Machines as tables, with walks that take every edge and events that every state refuses."""

from __future__ import annotations

import enum
import inspect
from collections import deque
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, NamedTuple

from replispec.runtime.primitives.machines import Edge, Machine, Origin, Transitions

AnyMachine = Machine[Any, Any]


class Taken(NamedTuple):
    """One edge of a table: where it starts, its event, and its place among the edges of that pair."""

    before: enum.Enum
    event: type
    at: int


def machine_vectors(module: ModuleType) -> dict[str, Any]:
    """The machine of a generated module: states, events, guards, edges, overlays, walks, refused events."""
    machine: AnyMachine = module.MACHINE
    return {
        "name": machine.name,
        "initial": machine.initial.name,
        "states": [
            {
                "name": state.name,
                "final": state in machine.final,
                "entered": state not in machine.unreached,
            }
            for state in machine.states
        ],
        "events": [_event(machine, kind) for kind in machine.events],
        "guards": _guards(module),
        "edges": list(_edges(machine, machine.transitions)),
        "overlays": [
            {
                "releases": str(overlay.releases),
                "edges": list(_edges(machine, overlay.transitions)),
                "removed": [
                    {"from": state.name, "event": machine.events[kind].name}
                    for (state, kind), edges in overlay.transitions.items()
                    if not edges
                ],
            }
            for overlay in machine.overlays
        ],
        "walks": list(_walks(machine)),
        "refused": list(_refused(machine)),
    }


def _event(machine: AnyMachine, kind: type) -> dict[str, Any]:
    info = machine.events[kind]
    return {
        "name": info.name,
        "origin": info.origin.value,
        "messages": list(info.messages),
        "sent": info.sends,
        "timer": info.timer or None,
        "default_ms": info.default_ms,
    }


def _guards(module: ModuleType) -> dict[str, str]:
    """What each guard with a name means, its expression last."""
    found = inspect.getmembers(module, inspect.isfunction)
    own = {name: inspect.getdoc(each) for name, each in found if each.__module__ == module.__name__}
    # What stands under `let` is no guard, and is not explained.
    return {name: about for name, about in own.items() if about}


def _edges(machine: AnyMachine, transitions: Transitions[Any]) -> Iterator[dict[str, Any]]:
    """In the order in which guards are asked: the first edge of a pair whose guard holds is taken."""
    for (state, kind), edges in transitions.items():
        for edge in edges:
            yield {
                "from": state.name,
                "event": machine.events[kind].name,
                "guard": edge.condition or None,
                "to": edge.to.name,
                "effects": list(edge.do),
                "clauses": list(edge.clauses),
                "blames_peer": edge.blames_peer,
                "tolerated": edge.tolerated or None,
                "diverges": edge.diverges or None,
            }


def paths(machine: AnyMachine) -> Mapping[enum.Enum, tuple[Taken, ...]]:
    """The shortest way to every state that edges lead to, guards taken to hold."""
    found: dict[enum.Enum, tuple[Taken, ...]] = {machine.initial: ()}
    waiting = deque([machine.initial])
    while waiting:
        state = waiting.popleft()
        for (before, kind), edges in machine.transitions.items():
            for at, edge in enumerate(edges):
                if before is state and edge.to not in found:
                    found[edge.to] = (*found[state], Taken(state, kind, at))
                    waiting.append(edge.to)
    return found


def _walks(machine: AnyMachine) -> Iterator[dict[str, Any]]:
    """One walk for every edge: the shortest way to where it starts, and the edge."""
    ways = paths(machine)
    for (state, kind), edges in machine.transitions.items():
        for at, edge in enumerate(edges):
            if state in ways:
                steps = [_step(machine, taken) for taken in (*ways[state], Taken(state, kind, at))]
                name = f"{state.name} on {machine.events[kind].name} to {edge.to.name}"
                yield {"name": f"{name}, edge {at + 1} of {len(edges)}", "steps": steps}


def _step(machine: AnyMachine, taken: Taken) -> dict[str, Any]:
    edges = machine.transitions[taken.before, taken.event]
    edge: Edge[Any] = edges[taken.at]
    return {
        "event": machine.events[taken.event].name,
        "before": taken.before.name,
        "guard": edge.condition or None,
        "guards_that_fail": [each.condition for each in edges[: taken.at]],
        "after": edge.to.name,
        "effects": list(edge.do),
    }


def _refused(machine: AnyMachine) -> Iterator[dict[str, Any]]:
    """Events without an edge, in every state that is reached: whose fault they are, and a way there."""
    for state, way in paths(machine).items():
        for kind, info in machine.events.items():
            if not machine.transitions.get((state, kind)):
                yield {
                    "name": f"{state.name} on {info.name}",
                    "steps": [_step(machine, taken) for taken in way],
                    "state": state.name,
                    "event": info.name,
                    "fault_of": "peer" if info.origin is Origin.PEER else "this side",
                    "refused": True,
                }
