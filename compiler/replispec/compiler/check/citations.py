"""Where clauses are cited, and that every cited clause is defined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from replispec.compiler.model.clause import ClauseSpec
from replispec.compiler.model.example import Example
from replispec.compiler.model.faults import attempt
from replispec.compiler.model.invariant import InvariantSpec
from replispec.compiler.model.machine import MachineSpec
from replispec.compiler.model.message import Model, Place, SpecificationError
from replispec.compiler.model.path import PathSpec
from replispec.compiler.model.rule import RuleSource
from replispec.compiler.model.system import SystemSpec


def check_citations(
    clauses: Mapping[str, ClauseSpec],
    model: Model,
    machines: Mapping[str, MachineSpec],
    rules: Mapping[str, RuleSource],
    invariants: Mapping[str, InvariantSpec],
    examples: Sequence[Example] = (),
    systems: Mapping[str, SystemSpec] = MappingProxyType({}),
    paths: Mapping[str, PathSpec] = MappingProxyType({}),
) -> dict[str, list[str]]:
    """Where each clause is cited. Raises SpecificationError when a cited clause is not defined."""
    uses: dict[str, list[str]] = {name: [] for name in clauses}
    for name, where, place in (
        *_citations(model, machines, rules, invariants),
        *((name, f"example: {each.name}", each.place) for each in examples for name in each.clauses),
        *_of_systems(systems),
        *(
            (name, f"path {each.layout} {each.name}", each.place)
            for each in paths.values()
            for name in each.clauses
        ),
    ):
        if name not in uses:
            with attempt(name):
                raise SpecificationError(
                    place, f"the clause {name!r} is not defined", "define it under spec/clauses"
                )
        elif where not in uses[name]:
            uses[name].append(where)
    return uses


def _citations(
    model: Model,
    machines: Mapping[str, MachineSpec],
    rules: Mapping[str, RuleSource],
    invariants: Mapping[str, InvariantSpec],
) -> Iterator[tuple[str, str, Place]]:
    """(clause, where it is cited, place)."""
    for cited, where, place in (*_of_messages(model), *_of_machines(machines)):
        for name in cited:
            yield name, where, place
    for rule in rules.values():
        for name in rule.clauses:
            yield name, f"rule {rule.name}", rule.place
    for invariant in invariants.values():
        for name in invariant.clauses:
            yield name, f"invariant {invariant.id}", invariant.place


def _of_systems(systems: Mapping[str, SystemSpec]) -> Iterator[tuple[str, str, Place]]:
    for system in systems.values():
        for promise in system.properties:
            for name in promise.clauses:
                yield name, f"promise {system.name}.{promise.name}", promise.place


_Cited = tuple[tuple[str, ...], str, Place]


def _of_messages(model: Model) -> Iterator[_Cited]:
    for message in model.messages.values():
        yield message.clauses, f"message {message.name}", message.place
        for field in message.fields:
            yield field.clauses, f"field {message.name}.{field.name}", field.place
    for enum in model.enums.values():
        for value in enum.values:
            yield value.clauses, f"value {enum.name}.{value.name}", value.place


def _of_machines(machines: Mapping[str, MachineSpec]) -> Iterator[_Cited]:
    for machine in machines.values():
        for edge in machine.transitions():
            yield edge.clauses, f"edge {machine.name}: {'/'.join(edge.sources)} on {edge.event}", edge.place
        for guard in machine.guards.values():
            yield guard.clauses, f"guard {machine.name}.{guard.name}", guard.place
