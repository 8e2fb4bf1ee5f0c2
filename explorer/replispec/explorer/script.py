"""A story as a script: what happens, step by step, for whoever plays it on something that runs.

A script names acts, instances and messages as the system does. It has no bytes and no times: whoever plays it
waits for each message, and lets it arrive, be lost or come late.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from replispec.explorer.moves import ACT, DELIVER, EXPIRE, LATE, LOST, Moves
from replispec.explorer.packets import Packet
from replispec.explorer.search import Broken, Search, Waypoint

_HAPPENS = {DELIVER: "arrives", EXPIRE: "silence", LOST: "lost", LATE: "late"}


def script_of(search: Search, broken: Broken) -> dict[str, Any]:
    """The script of a broken promise as plain data; `circle` are the steps that then come again and again."""
    system = search.moves.composed.system
    way, circle = search.way_of(broken), list[dict[str, Any]]()
    steps = list(_steps(search.moves, way))
    if broken.circle:
        back = broken.circle.index(broken.circle[-1])
        after = list(_steps(search.moves, search.walked(way[-1], broken.circle[1:])))
        steps, circle = [*steps, *after[:back]], after[back:]
    if broken.move is not None:
        steps.append(_step(search.moves, way[-1], broken.move))
    promise = next((each for each in system.properties if each.name == broken.promise), None)
    return {
        "system": system.name,
        "family": system.family,
        "promise": broken.promise,
        "shape": "always" if promise is None else promise.shape,
        "about": broken.text,
        "instances": {party.name: party.count for party in system.parties},
        "steps": steps,
        "circle": circle,
    }


def _steps(moves: Moves, way: list[Waypoint]) -> Iterator[dict[str, Any]]:
    for before, after in pairwise(way):
        yield _step(moves, before, after.move)


def _step(moves: Moves, before: Waypoint, move: Any) -> dict[str, Any]:
    if move.kind != ACT:
        return {"happens": _HAPPENS[move.kind], **_message(moves, moves.packet_at(before.row, move.slot))}
    occasion = moves.composed.occasions[move.act]
    names = {name: moves.composed.places[place].name for name, place in occasion.instances.items()}
    return {"happens": "act", "act": occasion.act.name, "by": names.pop("self"), "with": names}


def _message(moves: Moves, packet: Packet) -> dict[str, Any]:
    """A message by who says it to whom; of an answer, `asked` is the code of its request."""
    places = moves.composed.places
    return {
        "from": places[packet.sender].name,
        "to": places[packet.to].name,
        "kind": packet.kind.name.lower(),
        "name": packet.name,
        "code": packet.code,
        "asked": packet.asked,
        "fields": dict(packet.fields),
    }
