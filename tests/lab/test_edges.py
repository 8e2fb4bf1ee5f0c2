"""`make edges` names each edge that no case takes, and each exception is an edge and has its reason."""

from __future__ import annotations

from collections import Counter
from importlib import import_module

import pytest
import yaml

from lab.rocketmq.edges import EXCEPTIONS, JUDGED, SOURCES, Taken, edges, never
from lab.rocketmq.family import FAMILY
from replispec.runtime.primitives import machines
from replispec.runtime.rocketmq import rules

assert FAMILY.edited is not None
NAMES = FAMILY.edited.machines


def every(name: str) -> dict[str, list[tuple[str, str, int]]]:
    document = yaml.safe_load((SOURCES / f"{name}.yaml").read_text("utf-8"))
    return {called: list(places) for called, places in edges(document).items()}


@pytest.mark.parametrize("name", NAMES)
def test_every_edge_of_the_compiled_machine_has_its_name(name: str) -> None:
    machine = import_module(f"replispec.wire.rocketmq.machines.{name}").MACHINE
    compiled = {
        (state.name, machine.events[kind].name): len(found)
        for (state, kind), found in machine.transitions.items()
    }
    places = [place for found in every(name).values() for place in found]
    assert Counter((state, event) for state, event, _ in places) == compiled
    assert len(set(places)) == len(places)


def test_what_is_named_is_an_edge_and_has_a_reason() -> None:
    excepted = yaml.safe_load(EXCEPTIONS.read_text("utf-8"))
    assert set(excepted) <= set(JUDGED)
    assert set(NAMES) - set(JUDGED) == {"logical_queue_migration", "static_topic_remapping"}
    assert {name: set(found) - set(every(name)) for name, found in excepted.items()} == {
        name: set() for name in excepted
    }
    assert all(reason for found in excepted.values() for reason in found.values())


def test_an_edge_that_is_taken_in_one_of_its_states_is_taken() -> None:
    places = {"A/B on gone": [("A", "gone", 0), ("B", "gone", 1)], "A on heard": [("A", "heard", 0)]}
    assert never(places, {("B", "gone", 1)}) == ["A on heard"]
    assert never(places, {("B", "gone", 0)}) == ["A/B on gone", "A on heard"]


def test_what_is_taken_is_written_down_by_its_place() -> None:
    module = import_module("replispec.wire.rocketmq.machines.replicas_manager")
    machine, taken = module.MACHINE, Taken()
    edge = taken.edge_of(machine, machine.initial, machine.variables, module.RetryDue(), rules)
    assert edge is machines.edge_of(machine, machine.initial, machine.variables, module.RetryDue(), rules)
    assert taken.places == {"replicas_manager": {("INITIAL", "retry_due", 0)}}
