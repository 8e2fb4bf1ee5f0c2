"""Brokers of releases before 5.1.1 and later ones under one controller of ours."""

from __future__ import annotations

from dataclasses import replace

import pytest
import trio

from replispec.conformance.cases import load
from replispec.conformance.rocketmq.names import VOCABULARY
from tests.conformance.subjects.against import plan
from tests.controller import test_suite
from tests.jumping import jumping_clock

FIRST_GENERATION = "first-generation"
ALONE = "BID-COMPAT-3"
"""What a controller of the earlier generation refuses to the later one, and ours serves."""


@pytest.mark.parametrize("release", [(5, 0, 0), (5, 1, 0)], ids=str)
def test_ours_passes_the_suite_of_the_first_generation(
    release: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_suite, "plan", lambda *given: replace(plan(*given), release=release))
    cases = [
        case
        for case in load("controller")
        if VOCABULARY.holds(case.releases, release) and f"/{ALONE}/" not in case.id
    ]
    result = trio.run(test_suite.judged, cases, clock=jumping_clock())
    played = [each for each in result.results if f"/{FIRST_GENERATION}/" in each.id]
    assert len(played) >= 35
    wrong = [(each.id, each.symptom) for each in result.results if each.verdict.value != "pass"]
    assert not wrong, "\n".join(map(str, wrong))
