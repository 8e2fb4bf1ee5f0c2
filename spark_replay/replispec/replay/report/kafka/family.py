"""The words of partitions in a report."""

from __future__ import annotations

from replispec.replay.judges.findings import FindingRow
from replispec.replay.report.family import ReportFamily, RuleWords
from replispec.runtime.primitives.invariants import Verdict
from replispec.wire.kafka.invariants import INVARIANTS


def _words(rule: str) -> RuleWords | None:
    """The words of a rule of the family."""
    if rule not in INVARIANTS:
        return None
    return RuleWords(INVARIANTS[rule].about, INVARIANTS[rule].evaluated, _needs)


def _needs(finding: FindingRow, holes: int) -> str:
    """What would let it be judged, or judged further; empty where it was. `holes`: of its capture."""
    if finding.verdict is not Verdict.UNKNOWN:
        return ""
    if not finding.evaluated:
        what = INVARIANTS[finding.invariant].evaluated
        return f"It judges {what}: none was captured. Capture the ports of every broker and of the store."
    said = f"{finding.counts.get(Verdict.UNKNOWN, 0):,} of {finding.evaluated:,} could not be judged."
    if holes:
        return f"{said} The capture has holes: one without lost packets would tell."
    return f"{said} A capture from before the brokers start, of every broker and the store, would tell."


FAMILY = ReportFamily(_words, lambda *_: iter(()))
