"""A broker may ask again what was answered too late: while a case is prepared it is answered as before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replispec.conformance.model import Case
from replispec.conformance.results import CaseVerdict, Standing
from tests.conformance.subjects.registering import APPLY, GET, REGISTER, Wrong
from tests.conformance.test_played_kinds import cases, played

PASSED = (CaseVerdict.PASS, "")
ALL = frozenset({GET, APPLY, REGISTER})
APPLYING, GRANTED, MOVED = "crash/BID-STATE-2/1", "crash/BID-STATE-4/3", "crash/BID-KEY-1/1"


@pytest.mark.parametrize("name", ["register/BID-REGISTER-1/1", APPLYING, MOVED])
def test_who_asks_again_for_the_next_id_has_the_case_prepared(name: str) -> None:
    result, _ = played(name, Wrong(late=frozenset({GET})))
    assert (result.verdict, result.reason) == PASSED


@pytest.mark.parametrize("name", [GRANTED, MOVED])
def test_whatever_is_asked_again_while_a_case_is_prepared_is_answered_as_before(name: str) -> None:
    result, _ = played(name, Wrong(late=frozenset({GET, APPLY})))
    assert (result.verdict, result.reason) == PASSED


@pytest.mark.parametrize("name", [GRANTED, MOVED])
def test_what_is_asked_twice_before_it_is_answered_is_answered_twice(name: str) -> None:
    result, _ = played(name, Wrong(twice=frozenset({GET, APPLY})))
    assert (result.verdict, result.reason) == PASSED


@pytest.mark.parametrize("name", [GRANTED, MOVED])
def test_who_starts_over_while_a_case_is_prepared_is_led_the_same_way_again(name: str) -> None:
    result, _ = played(name, Wrong(starts_over=True))
    assert (result.verdict, result.reason) == PASSED


def test_what_is_asked_again_for_ever_leaves_the_case_unprepared() -> None:
    result, _ = played(APPLYING, Wrong(never_content=GET))
    assert (result.verdict, result.standing) == (CaseVerdict.SKIPPED, Standing.NOT_JUDGED)
    assert f"{GET} instead of {APPLY}" in result.reason


def test_what_an_earlier_life_asked_and_nobody_took_is_no_word_of_the_next() -> None:
    result, _ = played(MOVED, Wrong(twice=ALL))
    assert (result.verdict, result.reason) == PASSED


def test_who_lives_again_repeats_nothing_that_was_asked_before() -> None:
    """A broker that lost its identity asks for another: that is no repetition, though a case is prepared."""
    result, _ = played(MOVED, Wrong(forgets=True), case=_prepared_to_the_end(cases()[MOVED]))
    assert result.verdict is CaseVerdict.SKIPPED
    assert f"{GET} instead of {REGISTER}" in result.reason


def test_what_is_judged_is_not_asked_twice() -> None:
    result, _ = played("register/BID-REGISTER-1/1", Wrong(late=frozenset({APPLY})))
    assert (result.verdict, result.symptom) == (
        CaseVerdict.FAIL,
        f"step 2: {APPLY} instead of {REGISTER}",
    )


def _prepared_to_the_end(case: Case) -> Case:
    return replace(case, steps=tuple(replace(step, prepares=True) for step in case.steps))
