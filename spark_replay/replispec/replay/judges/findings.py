"""Findings about whole captures, as they are written and shown."""

from __future__ import annotations

from dataclasses import dataclass

from replispec.replay.judges.parts import PartFinding, Proof
from replispec.runtime.primitives.invariants import Verdict


@dataclass(frozen=True, slots=True)
class FindingRow:
    """The verdict of one invariant for one group of one file; `proofs` are at most EVIDENCE_MAX."""

    invariant: str
    verdict: Verdict
    group: str
    file: str
    evaluated: int
    counts: dict[str, int]
    proofs: tuple[Proof, ...] = ()

    @property
    def idle(self) -> bool:
        """Whether the capture held nothing of what the rule is about."""
        return self.verdict is Verdict.UNKNOWN and self.evaluated == 0

    @property
    def says(self) -> str:
        """The sentence of the first proof; empty for a plain ok."""
        return self.proofs[0].text if self.proofs else ""


def finding_of(file: str, group: str, rule: str, part: PartFinding) -> FindingRow:
    """What all parts of a capture together say of a group by one rule."""
    counts = {verdict.value: part.counts[verdict] for verdict in Verdict if part.counts[verdict]}
    return FindingRow(rule, part.verdict, group, file, part.counts.total(), counts, part.proofs)
