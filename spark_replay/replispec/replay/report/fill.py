"""From the outcome of a replay to what the report shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field

from replispec.replay.judges.findings import FindingRow
from replispec.replay.judges.parts import Proof
from replispec.replay.report.evidence import Located, connection_filter, place_of_proof
from replispec.replay.report.family import words_of
from replispec.replay.report.frame_rows import Place
from replispec.replay.report.lost_file import NOTHING_LOST, Lost
from replispec.replay.report.model import (
    Answers,
    CaptureInfo,
    Loss,
    LossCause,
    Overlap,
    ReportEvidence,
    ReportFinding,
    ReportModel,
    Sends,
    Switch,
    Timeline,
)
from replispec.replay.report.summary import CaptureRow, Summary
from replispec.replay.report.wire_words import wire_lines
from replispec.runtime.primitives.invariants import Verdict

# Every client's port may be translated; summary.json has all.
RENAMINGS_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Story:
    """What happened, beside what the summary says: of all captures, in their order."""

    switches: tuple[Switch, ...] = ()
    timelines: tuple[Timeline, ...] = ()
    causes: tuple[LossCause, ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    answers: tuple[Answers, ...] = ()
    lost: Lost = NOTHING_LOST
    located: Mapping[Place, Located] = field(default_factory=dict)


def fill(summary: Summary, story: Story) -> ReportModel:
    """The report's model of a whole replay."""
    holes = {row.file: row.holes for row in summary.captures}
    return ReportModel(
        engine=summary.engine,
        captures=tuple(_capture(row) for row in summary.captures),
        losses=tuple(Loss(**asdict(row)) for row in summary.losses),
        switches=story.switches,
        findings=tuple(_finding(row, story.located, holes.get(row.file, 0)) for row in summary.findings),
        timelines=story.timelines,
        failovers=tuple(summary.failovers),
        latencies=tuple(summary.latencies),
        sends=tuple(Sends(**asdict(row)) for row in summary.sends),
        answers=story.answers,
        causes=story.causes,
        overlaps=story.overlaps,
        provenance=summary.provenance,
        comparison=summary.comparison,
        asked=summary.asked,
        lost=story.lost.messages,
        lost_counts=story.lost.counts,
    )


def _capture(row: CaptureRow) -> CaptureInfo:
    return CaptureInfo(
        file=row.file,
        frames_remoting=row.frames_remoting,
        frames_ha=row.frames_ha,
        bytes_undecoded=row.bytes_undecoded,
        bytes_foreign=row.bytes_foreign,
        holes=row.holes,
        first_time_ns=row.first_time_ns,
        last_time_ns=row.last_time_ns,
        error=row.error or "; ".join(row.warnings),
        unusable=row.error,
        files=row.files,
        connections_tls=row.connections_tls,
        bytes_tls=row.bytes_tls,
        tls_at=row.tls_at,
        unread=row.unread,
        commands_unread=row.commands_unread,
        wire=(*wire_lines(row), *_merged_lines(row)),
    )


def _merged_lines(row: CaptureRow) -> Iterator[str]:
    """What was done to the captures that this one was merged from."""
    if row.clocks:
        yield f"merged from {len(row.clocks)} captures; {row.copies} packets are copies of others"
        yield from map(str, row.clocks[1:])
        yield from map(str, row.renamings[:RENAMINGS_SHOWN])
        if len(row.renamings) > RENAMINGS_SHOWN:
            yield f"{len(row.renamings) - RENAMINGS_SHOWN} more endpoints are renamed (see summary.json)"


def _finding(row: FindingRow, located: Mapping[Place, Located], holes: int) -> ReportFinding:
    words = words_of(row.invariant)
    not_ok = sum(count for verdict, count in row.counts.items() if verdict != Verdict.OK)
    return ReportFinding(
        invariant=row.invariant,
        verdict=row.verdict,
        group=row.group,
        file=row.file,
        evaluated=row.evaluated,
        evidence=tuple(
            _evidence(proof, located.get(place_of_proof(row.file, proof))) for proof in row.proofs
        ),
        says=row.says,
        evidence_total=not_ok,
        unknown=row.counts.get(Verdict.UNKNOWN, 0),
        about=words.about,
        needs=words.needs(row, holes),
    )


def _evidence(proof: Proof, located: Located | None) -> ReportEvidence:
    return ReportEvidence(
        time_ns=proof.time_ns,
        connection=_route(proof.connection, proof.direction),
        sequence=proof.sequence,
        text=proof.text,
        follow=connection_filter(proof.connection),
        number=None if located is None else located.number,
        packet_file="" if located is None else located.file,
    )


def _route(connection: str, direction: int) -> str:
    """Who sent to whom, in the connection of this number: "A<->B#1" backwards is "B > A #1"."""
    ends, _, number = connection.rpartition("#")
    first, _, second = ends.partition("<->")
    source, destination = (first, second) if direction == 0 else (second, first)
    return f"{source} > {destination} #{number}"
