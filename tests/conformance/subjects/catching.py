"""Which cases catch which fault: a table, and what of the suite is played to check it.

The table names for every fault the cases that must fail because of it, and the clauses whose other cases may.
A case of any other clause has nothing to do with the fault and must not fail; it may be one that cannot be
prepared. To play everything takes minutes, so a usual run plays the cases of the table and a few others,
chosen by the fault's name; with REPLISPEC_FAULTS=all in the environment (`make test-full`) every case meets
every fault.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml

from replispec.conformance.model import Case
from replispec.conformance.results import CaseResult, CaseVerdict, RunResult, Standing
from tests.conformance.subjects.against import applicable

FOLDER = Path(__file__).parents[1] / "caught"
GONE = "the subject is gone"
OTHERS = 2
"""How many cases of other clauses are played against each fault in a usual run."""


@dataclass(frozen=True, slots=True)
class Catch:
    """What is known to happen when the suite meets one fault.

    `everywhere`: no case has nothing to do with it. `at_the_door`: the subject does not speak its protocol at
    all, which is said before any case is played.
    """

    caught_by: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    everywhere: bool = False
    at_the_door: bool = False

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Self:
        """A line of the table."""
        return cls(
            caught_by=tuple(entry.get("caught_by", ())),
            beside=tuple(entry.get("beside", ())),
            everywhere=bool(entry.get("everywhere")),
            at_the_door=bool(entry.get("at_the_door")),
        )

    def concerns(self, clause: str) -> bool:
        """Whether a case of this clause may fail because of the fault."""
        named = {name.split("/")[2] for name in self.caught_by} | set(self.beside)
        return self.everywhere or clause in named


def table(kind: str) -> dict[str, Catch]:
    """The table of a kind, by the names of faults."""
    entries = yaml.safe_load((FOLDER / f"{kind}.yaml").read_text())
    return {name: Catch.read(entry) for name, entry in entries.items()}


def played(cases: Sequence[Case], fault: str, catch: Catch) -> list[Case]:
    """The cases to play against a fault: those of the table, and others."""
    fitting = [case for case in cases if applicable(case)]
    if os.environ.get("REPLISPEC_FAULTS") == "all":
        return fitting
    unrelated = [case for case in fitting if not catch.concerns(case.clause) and not case.alone]
    others = random.Random(fault).sample(unrelated, min(OTHERS, len(unrelated)))
    wanted = {*catch.caught_by, *(case.id for case in others)}
    return [case for case in fitting if case.id in wanted]


def complaints(result: RunResult, catch: Catch) -> list[str]:
    """How a run differs from the table; nothing when it does not."""
    by_id = {each.id: each for each in result.results}
    found = [f"{name} is not played: does it exist?" for name in catch.caught_by if name not in by_id]
    for each in result.results:
        if each.id in catch.caught_by:
            if not catches(each):
                found.append(f"{each.id} does not catch it: {each.verdict}, {each.reason or 'as it should'}")
        elif each.verdict is CaseVerdict.ERROR:
            found.append(f"{each.id} ends in an error of the suite: {each.reason}")
        elif each.verdict is CaseVerdict.FAIL and not catch.concerns(each.clause):
            found.append(f"{each.id} has nothing to do with it, and fails: {each.symptom}")
    return found


def catches(result: CaseResult) -> bool:
    """Whether a case tells of the fault: it fails, or it found that the subject did not survive it."""
    gone = result.verdict is CaseVerdict.SKIPPED and result.standing is Standing.NOT_JUDGED
    return result.verdict is CaseVerdict.FAIL or (gone and result.symptom == GONE)


def not_applicable(result: CaseResult) -> bool:
    """Whether a case is for another situation of the subject: a master without a log, for instance."""
    return result.verdict is CaseVerdict.SKIPPED and result.standing is Standing.AS_IT_SHOULD


def differing_names(known: Mapping[str, object], faults: Mapping[str, object]) -> set[str]:
    """Faults without a line in the table, and lines without a fault."""
    return set(known) ^ set(faults)
