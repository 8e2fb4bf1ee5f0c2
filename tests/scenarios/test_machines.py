"""All machines of all families: told in stories, walked at random, and edited to see whether anybody notices.

`REWRITE=1` writes what happens in the stories again after a change of the specification; then read the diff:
it is what the change does.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from replispec.runtime.primitives.machines import Machine
from tests.runtime.walks import MACHINES, random_row, rules_of
from tests.scenarios.edits import edits
from tests.scenarios.interpreter import Interpreted, Taken
from tests.scenarios.telling import STORIES, Generated, Scene, document_of, kind_named, scenes, told

ALL = sorted(STORIES.glob("*.txt"))
# Edits that nobody can notice, by their name, with the reason.
EQUIVALENT: dict[str, dict[str, str]] = yaml.safe_load((STORIES / "equivalent_edits.yaml").read_text("utf-8"))
BEGINS_AGAIN = 0.5
WALKS_MIN, WALKS_MAX, STEPS, TRIES = 20, 1_500, 60, 40
machines = pytest.mark.parametrize("name", MACHINES)
# Rows by chance seldom hold entries that fit a log: tests/consensus walks whole groups of members.
WALKED_IN_GROUPS = {"member"}


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_a_story_tells_what_its_machines_do(path: Any) -> None:
    now = told(path.read_text("utf-8"))
    if os.environ.get("REWRITE"):
        path.write_text(now, "utf-8")
    assert now == path.read_text("utf-8")


@machines
def test_no_edit_of_a_machine_leaves_its_stories_as_they_are(name: str) -> None:
    """So every edge is told, with all that it does; the edits are of the YAML, and interpreted."""
    document: Any = document_of(name)
    lives = [each for path in ALL for each in scenes(path.read_text("utf-8")) if each.machine.name == name]
    before = [each.play(each.interpreted(document)) for each in lives]
    assert before == [each.play(each.generated()) for each in lives]
    unnoticed = {
        edit.name
        for edit in edits(document)
        if all(_is_told_alike(*each, edit.document) for each in _likely_first(edit.name, lives, before))
    }
    assert unnoticed == set(EQUIVALENT.get(name, {}))


def _likely_first(edit: str, lives: list[Scene], before: list[Any]) -> list[tuple[Scene, Any]]:
    """Lives with what came of them; those in which something happens that the edit names come first."""
    told = zip(lives, before, strict=True)
    return sorted(told, key=lambda each: all(event not in edit for _, event, _ in each[0].events))


def _is_told_alike(life: Scene, before: object, document: dict[str, Any]) -> bool:
    """Whether a life goes on as before in an edited document. What cannot be evaluated is noticed."""
    try:
        return life.play(life.interpreted(document)) == before
    except TypeError:
        return False


@pytest.mark.parametrize("name", [name for name in MACHINES if name not in WALKED_IN_GROUPS])
def test_random_walks_take_every_edge_and_end_where_the_specification_says(name: str) -> None:
    document = document_of(name)
    missed = {("transitions", number) for number, _ in enumerate(document["transitions"])}
    for overlay, what in document.get("overlays", {}).items():
        missed |= {(overlay, number) for number, _ in enumerate(what.get("add", ()))}
    for number, (machine, interpreted) in enumerate(_releases(name)):
        for taken in _walks(machine, interpreted, missed, random.Random(f"{name}, {number}")):
            missed.discard(taken.edge)
    assert missed == set()


def _releases(name: str) -> Iterator[tuple[Machine[Any, Any], Interpreted]]:
    """The machine as we walk it and as the first release of each overlay does: generated, and interpreted."""
    machine, document = MACHINES[name], document_of(name)
    names = tuple(document.get("overlays", {}))
    yield machine, Interpreted(document, rules_of(machine))
    for one in machine.overlays:
        release = one.releases.implementation, one.releases.first or ()
        held = [each.releases.holds(*release) for each in machine.overlays]
        overlays = tuple(name for name, holds in zip(names, held, strict=True) if holds)
        yield machine.for_release(*release), Interpreted(document, rules_of(machine), overlays)


def _walks(
    machine: Machine[Any, Any], interpreted: Interpreted, missed: set[tuple[str, int]], rng: random.Random
) -> Iterator[Taken]:
    """Steps of walks, until every edge was taken; both ways of walking agree on each step.

    A walk begins at the machine's beginning, or where an earlier one took an edge for the first time, there
    also with a process that begins again.
    """
    generated = Generated(machine)
    assert generated.initial == interpreted.initial
    beginnings = [(machine.initial.name, interpreted.initial)]
    seen = set()
    own = {place for edges in interpreted.table.values() for place, _ in edges}
    for number in range(WALKS_MAX):
        if number >= WALKS_MIN and not own & missed:
            return
        state, variables = rng.choice(beginnings)
        if machine.durable and not machine.is_logged and rng.random() < BEGINS_AGAIN:
            kept = {each: variables[each] for each in machine.durable}
            state, variables = machine.initial.name, {**interpreted.initial, **kept}
        for _ in range(STEPS):
            event, row = _drawn(machine, interpreted, state, variables, missed, rng)
            taken = interpreted.step(state, variables, event, row)
            assert taken == generated.step(state, variables, event, row)
            if taken is not None:
                yield taken
                state, variables = taken.state, dict(taken.variables)
                if taken.edge not in seen:
                    seen.add(taken.edge)
                    beginnings.append((state, variables))


def _drawn(
    machine: Machine[Any, Any],
    interpreted: Interpreted,
    state: str,
    variables: dict[str, Any],
    missed: set[tuple[str, int]],
    rng: random.Random,
) -> tuple[str, dict[str, Any]]:
    """An event with its fields: one that takes an edge which was missed so far, if a few tries find one."""
    every = [info.name for info in machine.events.values()]
    edges = {event: {place for place, _ in interpreted.table.get((state, event), ())} for event in every}
    wanted = [event for event in every if edges[event] & missed]
    for _ in range(TRIES if wanted else 0):
        event = rng.choice(wanted)
        row = _row(machine, event, variables, rng)
        taken = interpreted.step(state, variables, event, row)
        if taken is not None and taken.edge in missed:
            return event, row
    event = rng.choice(every)
    return event, _row(machine, event, variables, rng)


def _row(
    machine: Machine[Any, Any], event: str, variables: dict[str, Any], rng: random.Random
) -> dict[str, Any]:
    return vars(random_row(machine, kind_named(machine, event), rng, SimpleNamespace(**variables)))
