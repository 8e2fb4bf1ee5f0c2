"""What makes a variable worth its line: somebody reads it, and not to give it its own next value alone."""

from __future__ import annotations

from collections.abc import Collection

from replispec.compiler.model import expressions as ex
from replispec.compiler.model.faults import attempt
from replispec.compiler.model.machine import MachineSpec
from replispec.compiler.model.message import SpecificationError
from replispec.compiler.model.system import SystemSpec, nodes_in


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
    for name, read in system.read_of_machines():
        for part in parts:
            if part.name == name:
                found.setdefault(part.machine.name, set()).add(read)
    return found


def _names(value: object) -> set[str]:
    return {node.name for node in nodes_in(value) if isinstance(node, ex.Variable)}
