"""Systems that nobody needs are explored right: names that collide, instances that differ, what is due.

Each says what is broken in it; plain sets say the same, and reach the same states.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from replispec.cli.explore_text import report_lines
from replispec.explorer.report import Extent, explored
from replispec.runtime.primitives.systems import System
from tests.explorer.lamps.compiled import SYSTEMS, compiled
from tests.explorer.plain import Plain, broken_plainly

BROKEN = {
    "names": {"first_lamp_stays_dark", "nothing_breaks", "a_fan_turns_or_a_lamp_is_dark"},
    "told": {"nothing_is_sold"},
    "due": {"whoever_waits_has_light"},
    "twice": {"is_asked"},
    "newest": {"asked_once"},
    "crowd": {"sold_to_both"},
}


@pytest.fixture(scope="module", autouse=True)
def _lamps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with compiled(tmp_path_factory.mktemp("lamps")):
        yield


def system(name: str) -> System:
    found: System = import_module(f"replispec.wire.lamps.systems.{name}").SYSTEM
    return found


def findings(name: str) -> Any:
    return explored(system(name), Extent(to_the_end=True), lambda: 0.0)[0]


@pytest.mark.parametrize("name", SYSTEMS)
def test_what_is_broken_is_found_and_nothing_else(name: str) -> None:
    found = findings(name)
    assert found.finished
    assert {story.promise for story in found.stories} == BROKEN[name]


@pytest.mark.parametrize("name", SYSTEMS)
def test_plain_sets_find_the_same(name: str) -> None:
    plain, found = Plain(system(name)), findings(name)
    assert found.states == len(plain.states)
    assert {story.promise for story in found.stories} == broken_plainly(plain)


def test_what_was_due_is_told_from_when_it_was() -> None:
    (story,) = findings("due").stories
    assert [step.says.partition(":")[0] for step in story.steps] == ["lamp is waited for", "lamp is left"]


def test_what_was_never_tried_is_said() -> None:
    found = findings("due")
    assert found.never_due == ("never_asked_for",)
    assert found.never_happened == ("is_mended",)
    lines = list(report_lines(found, never=False))
    assert "holds   never_asked_for: it was never due, its `whenever` held in no state" in lines
    assert "acts    that never happened: is_mended" in lines
