"""From the events of one capture to findings and losses.

The invariants are the specification's; this module only feeds them. A finding exists for every
(file, group, invariant), ok included; losses are what breaks the survival of acknowledged sends.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.stream_events import Judged, StreamEvent, join
from replispec.replay.judges.sends import LossRow, Sends, SendsRow
from replispec.replay.machines.rocketmq.findings import machine_findings
from replispec.replay.machines.steps import MachineFinding
from replispec.replay.pairing.pairs import EVERYTHING, PAIRING
from replispec.replay.tcp.pieces import WORDS
from replispec.runtime.primitives.invariants import EVIDENCE_MAX, Evidence, Invariant, Judge, Verdict, worst
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq.invariants import INVARIANTS
from replispec.wire.rocketmq.machines import WATCHED

SURVIVAL = "acknowledged-send-survives"
# Events that only tell others what they mean: a group of which nothing else is known has no findings.
_CONTEXT = ("epoch_started", "epoch_named")


@dataclass(frozen=True, slots=True)
class Proof:
    """One frame that proves a finding: when and where it was seen, and what it says."""

    time_ns: int
    connection: str
    direction: int
    sequence: int
    text: str
    verdict: str = ""


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
    def says(self) -> str:
        """The sentence of the first proof; empty for a plain ok."""
        return self.proofs[0].text if self.proofs else ""


@dataclass(slots=True)
class Judgement:
    """The result of one capture."""

    file: str
    findings: list[FindingRow] = field(default_factory=list)
    losses: list[LossRow] = field(default_factory=list)
    sends: list[SendsRow] = field(default_factory=list)
    joined: Judged | None = None


def judge_capture(
    file: str, observations: Sequence[Observation], learners: Collection[str] = (), *, all_ack: bool = False
) -> Judgement:
    """Judge the observations of one capture by every invariant and machine of the specification.

    `learners` and `all_ack` as in stream_events.join.
    """
    joined = join(observations, learners, all_ack=all_ack)
    judgement = Judgement(file, joined=joined)
    walked = machine_findings(joined.rows, joined.groups, learners)
    seen = {event.group for event in joined.events if event.name not in _CONTEXT}
    names = sorted(seen | {group for group, _ in walked})
    by_group: dict[tuple[str, str], list[StreamEvent]] = defaultdict(list)
    for event in joined.events:
        by_group[event.stream, event.group].append(event)
    for name in names:
        sends = Sends(name, file)
        for invariant in INVARIANTS.values():
            if invariant.id != PAIRING:
                events = by_group[invariant.stream, name]
                judgement.findings.append(_finding(file, name, invariant, events, sends))
        judgement.losses += sends.losses()
        if sends.acknowledged:
            judgement.sends.append(sends.row(begun_anew=joined.groups.has_ended(name)))
        for machine in WATCHED:
            found = walked.get((name, machine), MachineFinding())
            judgement.findings.append(_machine_finding(file, name, machine, found))
    judgement.findings.append(_pairing(file, joined.rows))
    judgement.findings.sort(key=lambda row: (row.group == EVERYTHING, row.group, row.invariant))
    return judgement


def _finding(
    file: str, group: str, invariant: Invariant, events: Iterable[StreamEvent], sends: Sends
) -> FindingRow:
    observer: Callable[[Evidence], None] | None = sends.note if invariant.id == SURVIVAL else None
    judge = Judge(invariant, rules, (group,), observer=observer)
    for event in events:
        judge.feed(event.name, event.event)
    finding = judge.finding()
    counts = {verdict.value: count for verdict, count in finding.counts.items() if count}
    proofs = tuple(proof for evidence in finding.evidence for proof in _proofs(evidence))
    return FindingRow(invariant.id, finding.verdict, group, file, finding.evaluated, counts, proofs)


def _machine_finding(file: str, group: str, machine: str, found: MachineFinding) -> FindingRow:
    counts = {verdict.value: count for verdict, count in found.counts.items()}
    proofs = tuple(_proof(fault.row, fault.says, fault.verdict) for fault in found.faults)
    return FindingRow(machine, found.verdict, group, file, found.counts.total(), counts, proofs)


def _proof(row: Observation, text: str, verdict: Verdict) -> Proof:
    if row.kind in (ObservationKind.UNSEEN, ObservationKind.GAP) and row.text in WORDS:
        text = f"{text}; bytes here were {WORDS[row.text]}"
    return Proof(row.time_ns, row.connection, row.direction, row.sequence, text, verdict.value)


def _proofs(evidence: Evidence) -> Iterable[Proof]:
    """The frame that an evaluation is about, and the one that it contradicts."""
    text = evidence.says
    if evidence.divergence:
        text = f"{text} ({evidence.divergence})"
    for event in (evidence.event, evidence.other):
        row: Observation | None = getattr(event, "row", None)
        if row is not None:
            yield _proof(row, text, evidence.verdict)


def _pairing(file: str, rows: Iterable[Observation]) -> FindingRow:
    """The finding about all pairs of a capture, which were judged connection by connection."""
    counts: Counter[str] = Counter()
    proofs: list[Proof] = []
    for row in rows:
        if row.kind == ObservationKind.PAIRED and row.verdict is not None:
            counts[row.verdict] += row.evaluated or 0
        elif row.kind == ObservationKind.MISPAIRED:
            place = (row.time_ns, row.connection, row.direction, row.sequence)
            proofs.append(Proof(*place, row.text or "", row.verdict or ""))
    proofs.sort(key=lambda proof: -Verdict(proof.verdict).rank)
    verdict = worst(Verdict(name) for name in counts)
    return FindingRow(
        PAIRING, verdict, EVERYTHING, file, counts.total(), dict(counts), tuple(proofs[:EVIDENCE_MAX])
    )
