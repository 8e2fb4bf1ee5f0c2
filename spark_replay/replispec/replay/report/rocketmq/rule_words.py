"""What each rule says, in a sentence, and what would let it be judged where it could not be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from replispec.replay.judges.findings import FindingRow
from replispec.replay.judges.rocketmq.judge import SURVIVAL
from replispec.replay.report.family import RuleWords
from replispec.runtime.primitives.invariants import Verdict
from replispec.wire.rocketmq.invariants import INVARIANTS
from replispec.wire.rocketmq.machines import WATCHED

_HINTS: Final[Mapping[str, str]] = {
    SURVIVAL: "Capture the port that producers send to, on every broker.",
    "confirm-covers-set": "Say --all-ack-in-sync-state-set if the brokers run with that setting.",
    "heartbeats-reach-leader": "Capture at every controller.",
    "learner-machine": "Say --learner ID if a broker is a learner.",
    "same-bytes": "Capture the replication of two replicas, or of one that connects again.",
    "acknowledged-body-is-stored": "Capture the ports of producers and of replication on every broker.",
    "acknowledged-is-read": "Capture the ports that producers and consumers speak to, on every broker.",
    "answers-are-translated": "Capture what brokers ask each other.",
    "routes-tell-what-is-registered": "Capture the port of every name server.",
    "segment-ends-stay": "Static topics of Java have no such ends.",
    "ha-master-machine": "Capture the replication port of the brokers.",
    "ha-replica-machine": "Capture the replication port of the brokers.",
}


def words(rule: str) -> RuleWords | None:
    """The words of an invariant or a machine of the family."""
    if rule in INVARIANTS:
        return RuleWords(INVARIANTS[rule].about, INVARIANTS[rule].evaluated, _needs)
    if rule in WATCHED:
        about = f"What is seen is a way through the machine {WATCHED[rule].name} of the specification."
        return RuleWords(about, WATCHED[rule].evaluated, _needs)
    return None


def _needs(finding: FindingRow, holes: int) -> str:
    """What would let it be judged, or judged further; empty where it was. `holes`: of its capture."""
    if finding.verdict is not Verdict.UNKNOWN:
        return ""
    if not finding.evaluated:
        rules = WATCHED if finding.invariant in WATCHED else INVARIANTS
        what = rules[finding.invariant].evaluated
        hint = _HINTS.get(finding.invariant, "")
        return f"It judges {what}: none was captured. {hint}".rstrip()
    open_questions = finding.counts.get(Verdict.UNKNOWN, 0)
    said = f"{open_questions:,} of {finding.evaluated:,} could not be judged."
    if holes:
        return f"{said} The capture has holes: one without lost packets would tell."
    return f"{said} A capture that begins earlier, or also holds the other connections, would tell."
