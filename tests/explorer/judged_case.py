"""Judges our controller, in this process, by the cases of a folder alone.

    python -m tests.explorer.judged_case FOLDER

It writes a line a case: its verdict and its symptom. The controller is the one of the specification that this
process imports.
"""

from __future__ import annotations

import sys
from pathlib import Path

import trio

from replispec.conformance.cases import load
from replispec.conformance.results import RunResult
from tests.controller.test_suite import judged
from tests.jumping import jumping_clock

KIND = "controller"


def verdicts(folder: Path) -> RunResult:
    """What the suite says of our controller."""
    shipped = {case.id for case in load(KIND)}
    cases = [case for case in load(KIND, None, folder) if case.id not in shipped]
    return trio.run(judged, cases, clock=jumping_clock())


if __name__ == "__main__":
    for each in verdicts(Path(sys.argv[1])).results:
        sys.stdout.write(f"{each.verdict.value}: {each.symptom}\n")
