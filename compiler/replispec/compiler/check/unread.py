"""What makes a variable worth its line: somebody reads it, and not to give it its own next value alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass

from replispec.compiler.model import expressions as ex
from replispec.compiler.model.faults import attempt
from replispec.compiler.model.machine import MachineSpec, Transition
from replispec.compiler.model.message import SpecificationError
from replispec.compiler.model.system import SystemSpec

_OF_A_PART = 3
"""INSTANCE.MACHINE.VARIABLE."""


def check_read(machines: Collection[MachineSpec], systems: Collection[SystemSpec]) -> None:
    """Refuse variables that no guard, other variable, message, answer, record, system or role reads."""
    in_systems: dict[str, set[str]] = {}
    for system in systems:
        for machine, names in _read_of_parts(system).items():
            in_systems.setdefault(machine, set()).update(names)
    for each in machines:
        read = _read_in(each) | in_systems.get(each.name, set())
        for variable in each.variables.values():
            if variable.name not in read:
                with attempt():
                    raise SpecificationError(
                        variable.place,
                        f"nobody reads {variable.name}",
                        "read it in a guard or a message, or leave it out",
                    )


def _read_in(machine: MachineSpec) -> set[str]:
    """The variables that a machine reads; one that only becomes its own next value is not."""
    found = _names((machine.guards, machine.events, machine.bindings))
    for edge in machine.transitions():
        found |= _names(edge.condition)
        for name, value in edge.assign.items():
            found |= _names(value) - {name}
    return found


def _read_of_parts(system: SystemSpec) -> dict[str, set[str]]:
    """What a system reads of its machines, by machine."""
    found: dict[str, set[str]] = {}
    parts = [part for party in system.parties.values() for part in party.parts.values()]
    for node in _nodes((*system.parties.values(), system.acts, system.properties, system.within)):
        if isinstance(node, ex.PartName) and len(node.names) == _OF_A_PART:
            for part in parts:
                if part.name == node.names[1]:
                    found.setdefault(part.machine.name, set()).add(node.names[2])
    return found


def _names(value: object) -> set[str]:
    return {node.name for node in _nodes(value) if isinstance(node, ex.Variable)}


def _nodes(value: object) -> Iterator[ex.Expression]:
    """Every node of every expression in a value, however deep; a machine in it reads for itself."""
    if isinstance(value, ex.Expression):
        yield from ex.walk(value)
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _nodes(each)
    elif isinstance(value, tuple | list | frozenset):
        for each in value:
            yield from _nodes(each)
    elif is_dataclass(value) and not isinstance(value, type | MachineSpec | Transition):
        for field in fields(value):
            yield from _nodes(getattr(value, field.name))
