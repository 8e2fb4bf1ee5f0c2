"""What walking a machine over a capture comes to: the verdicts of its steps, and the faults among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from types import SimpleNamespace

from replispec.replay.events.observation import Observation
from replispec.replay.machines.walks import Walk
from replispec.runtime.primitives.invariants import EVIDENCE_MAX, Verdict, worst


@dataclass(frozen=True, slots=True)
class Fault:
    """One step that was not ok, and the row that shows it."""

    verdict: Verdict
    says: str
    row: Observation


@dataclass(slots=True)
class MachineFinding:
    """What one machine comes to in one group; `faults` are at most EVIDENCE_MAX, the worst first."""

    counts: Counter[Verdict] = field(default_factory=Counter)
    kept: list[Fault] = field(default_factory=list)

    def note(self, verdict: Verdict, says: str, row: Observation) -> None:
        """One event was stepped."""
        self.counts[verdict] += 1
        same = sum(1 for each in self.kept if each.verdict is verdict)
        if verdict is not Verdict.OK and same < EVIDENCE_MAX:
            self.kept.append(Fault(verdict, says, row))

    @property
    def verdict(self) -> Verdict:
        """The verdict of all steps; unknown when there was none."""
        return worst(verdict for verdict, count in self.counts.items() if count)

    @property
    def faults(self) -> list[Fault]:
        """The steps that were not ok."""
        return sorted(self.kept, key=lambda each: -each.verdict.rank)[:EVIDENCE_MAX]


Findings = MutableMapping[tuple[str, str], MachineFinding]
"""Findings by (group, id)."""


def step(
    walk: Walk,
    row: Observation,
    facts: SimpleNamespace,
    finding: MachineFinding,
    *,
    sent: bool,
    message: str | None = None,
    whole: bool = True,
) -> None:
    """Step one row, if it is an event of the machine; `message` is the row's own unless given.

    Unless the `whole` of what the instance does was seen, a step that is not allowed may follow from the
    rest.
    """
    kind = walk.kind_of(message or row.message or "", facts, sent=sent)
    if kind is not None:
        judged = walk.step(kind, facts)
        verdict = judged.verdict
        if verdict is Verdict.VIOLATED and not whole:
            verdict = Verdict.UNKNOWN
        finding.note(verdict, judged.says, row)
