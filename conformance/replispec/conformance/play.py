"""Playing one case against a subject, again where a group moved in the middle of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from replispec.conformance.judged import JudgedSubject
from replispec.conformance.model import Case
from replispec.conformance.player import Player
from replispec.conformance.results import CaseResult, CaseVerdict

MOVES_BORNE = 2
"""So often a case is played anew because another member of a group came to lead in the middle of it."""
UNDECIDED = (CaseVerdict.FAIL, CaseVerdict.SKIPPED)


async def play(
    case: Case,
    subject: JudgedSubject,
    seed: str,
    now_ms: int,
    told: Callable[[CaseResult], None] | None = None,
) -> CaseResult:
    """Play one case from its first to its last step. Never raises for what a subject does. `told` has the
    result before what was started is ended, which an adapter may fail at.

    A case that ends with the word that another member leads is played anew, `MOVES_BORNE` times at most:
    a group may move at any time, and that it did so then is no fault of it.
    """
    for at in range(MOVES_BORNE + 1):
        player = Player(case, subject, f"{seed}:{at}" if at else seed, now_ms)
        with contextlib.closing(player.stage):
            result = await player.result()
            moved = at < MOVES_BORNE and result.verdict in UNDECIDED and player.is_led_elsewhere()
            if told is not None and not moved:
                told(result)
            await player.stage.leave()
        if not moved:
            break
    return result
