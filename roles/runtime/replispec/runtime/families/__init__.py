"""Families of protocols: which there are, and where each room keeps what belongs to one.

A family is what the compiler made of one folder of the specification: the package `replispec.wire.<family>`.
Rooms are neutral: they know messages, machines, roles and cases, and no family by name. What a room needs
to know of one lies in the folder `<family>` inside the room, as one small object of a type that the room
declares:

    replispec.conformance.<family>.family   FAMILY, a replispec.conformance.family.Family
    replispec.broker.<family>.process       members, which makes the nodes of the role

A family of another distribution needs no place in these rooms: its parts lie in the namespace package
`replispec.families.<family>`, a module of the room's name for each, as `replispec.families.toy.conformance`.
Every part is imported when it is first asked for, so that nobody pays for what is not used.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

WIRE = "replispec.wire"
ELSEWHERE = "replispec.families"


class FamilyError(Exception):
    """A family that does not exist, lacks a part or contradicts another: `PLACE: what is wrong: advice`."""


def names() -> tuple[str, ...]:
    """Every family that was compiled, in alphabetical order."""
    return _compiled_in(tuple(import_module(WIRE).__path__))


@cache
def _compiled_in(folders: tuple[str, ...]) -> tuple[str, ...]:
    """The families of these folders: asked for thousands of times, and no process adds one to a folder."""
    return tuple(sorted(each.name for each in pkgutil.iter_modules(folders) if each.ispkg))


def wire(family: str, module: str) -> ModuleType:
    """A generated module of a family, such as its `clauses`. Raises FamilyError."""
    _known(family)
    return _loaded(f"{WIRE}.{family}.{module}", "run `make generate` on its specification")


def part(room: str, family: str, module: str = "family") -> ModuleType:
    """The module that holds what a room needs of a family. Raises FamilyError when there is none."""
    _known(family)
    inside = _inside(room, family, module)
    place = inside if _exists(inside) else f"{ELSEWHERE}.{family}.{room}"
    return _loaded(place, f"write {inside}, or {place} in a distribution of its own")


def with_part(room: str, module: str = "family") -> tuple[str, ...]:
    """The families that have a part in a room."""
    return tuple(
        family
        for family in names()
        if _exists(_inside(room, family, module)) or _exists(f"{ELSEWHERE}.{family}.{room}")
    )


def _inside(room: str, family: str, module: str) -> str:
    return f"replispec.{room}.{family}.{module}"


def _known(family: str) -> None:
    if family not in names():
        raise FamilyError(f"{WIRE}.{family}: no such family: there are {', '.join(names())}")


def _loaded(place: str, advice: str) -> ModuleType:
    if not _exists(place):
        raise FamilyError(f"{place}: the family lacks this part: {advice}")
    return import_module(place)


def _exists(place: str) -> bool:
    """Whether a module can be found; the packages around it are imported, itself it is not."""
    package = place.rpartition(".")[0]
    if package and not _exists(package):
        return False
    return find_spec(place) is not None
