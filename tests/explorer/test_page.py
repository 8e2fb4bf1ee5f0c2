"""What is on the page of an exploration, and where it is cut."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from replispec.explorer.errors import ExplorationError
from replispec.explorer.neighbourhood import NO_ROOM, neighbourhood_of
from replispec.explorer.page import page_of
from replispec.explorer.report import Extent, Findings, explored, system_named
from replispec.explorer.search import Search
from replispec.runtime.primitives.systems import Read

SYSTEM = "sync_state_set"
SMALL = Extent({"broker": 1}, {"lost": 1}, messages=3)
LARGE = Extent(messages=4, states=20_000)


def search_of(bounds: Extent) -> tuple[Findings, Search]:
    """An exploration that no clock ends."""
    return explored(system_named(SYSTEM), bounds, lambda: 0.0)


@pytest.fixture(scope="module")
def large() -> tuple[Findings, Search]:
    return search_of(LARGE)


def data_of(page: str) -> dict[str, object]:
    """What the page's script reads."""
    text = page.partition('<script type="application/json" id="data">')[2].partition("</script>")[0]
    found: dict[str, object] = json.loads(text)
    return found


def test_a_small_system_is_on_its_page_as_a_whole() -> None:
    report, search = search_of(SMALL)
    found = neighbourhood_of(search, steps=1_000)
    assert found.whole
    assert report.finished
    assert len(found.rows) == report.states
    assert f"All {report.states:,} states that can be reached are on this page." in page_of(
        report, search, steps=1_000
    )


@pytest.mark.parametrize("states", [0, 7, 300])
def test_every_state_lists_all_that_can_happen_however_few_states_are_on_the_page(
    large: tuple[Findings, Search], states: int
) -> None:
    found = neighbourhood_of(large[1], steps=1_000, states=states)
    assert len(found.rows) == states + 1
    assert not found.whole
    for number, row in enumerate(found.rows):
        if number in found.outside:
            continue
        after = [each for some in found.moves.all_from(row[None, :]) for each in some.rows]
        room = [each for some in found.moves.all_from(row[None, :]) for each in some.cut]
        assert len(room) == len([each for each in found.choices[number] if each.barred == NO_ROOM])
        wanted = sorted(-1 if (known := found.known(each)) is None else known for each in after)
        assert (
            sorted(-1 if each.to is None else each.to for each in found.choices[number] if not each.barred)
            == wanted
        )


def test_what_has_no_room_for_its_messages_is_listed_with_this_reason() -> None:
    _, search = search_of(Extent(messages=1))
    found = neighbourhood_of(search)
    assert search.cut
    assert NO_ROOM in {each.barred for listed in found.choices for each in listed}


def test_states_come_from_the_nearest_on(large: tuple[Findings, Search]) -> None:
    found = neighbourhood_of(large[1], steps=1_000, states=300)
    near = neighbourhood_of(large[1], steps=found.nearest, states=300)
    assert len(near.rows) + found.further == len(found.rows)
    assert {row.tobytes() for row in near.rows} <= {row.tobytes() for row in found.rows}


def test_a_page_stays_within_its_bytes_and_says_where_it_was_cut(large: tuple[Findings, Search]) -> None:
    whole, cut = page_of(*large), page_of(*large, bytes_max=100_000)
    assert len(cut.encode()) <= 100_000 < len(whole.encode()) <= 5_000_000
    states = data_of(cut)["states"]
    assert isinstance(states, list)
    assert f"{len(states):,} states are on this page: all of the start and all within" in cut
    assert "Here it was cut" in cut


def test_stories_too_long_for_a_page_are_refused(large: tuple[Findings, Search]) -> None:
    with pytest.raises(ExplorationError, match="more than 1,000 bytes: write --json"):
        page_of(*large, bytes_max=1_000)


def test_what_lies_outside_of_the_bounds_of_a_system_has_no_choices() -> None:
    within = Read(
        lambda world: world.controller[0].set.variables.master_epoch == 0, ("world",), ("controller",)
    )
    _, search = explored(replace(system_named(SYSTEM), within=within), LARGE, lambda: 0.0)
    found = neighbourhood_of(search)
    inside = found.moves.holds(within, np.stack(found.rows))
    assert found.outside == set(np.flatnonzero(~inside).tolist())
    assert 0 < len(found.outside) < len(found.rows)
    for number, listed in enumerate(found.choices):
        assert bool(listed) is (number not in found.outside)
