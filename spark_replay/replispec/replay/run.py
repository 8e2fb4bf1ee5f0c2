"""A replay from capture files to an output folder: both engines, the same rows.

Output: frames.parquet, events.parquet and findings.parquet (of the local engine one file each, of
Spark a folder of parts), summary.json, report.html, and the log of Spark. See docs/replay.md.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from replispec.replay.capture_records import CaptureError
from replispec.replay.failovers import failovers
from replispec.replay.judge import FindingRow, LossRow, judge_capture
from replispec.replay.latencies import latencies
from replispec.replay.observation import from_table
from replispec.replay.report import write_report
from replispec.replay.report.fill import fill
from replispec.replay.report.model import FailOver, Latency, Switch, Timeline
from replispec.replay.rotation import Source, name_of, paths_of
from replispec.replay.story import switches, timelines
from replispec.replay.summary import CaptureRow, Summary

FRAMES_NAME, EVENTS_NAME, FINDINGS_NAME = "frames.parquet", "events.parquet", "findings.parquet"
SUMMARY_NAME, REPORT_NAME = "summary.json", "report.html"
SPARK_LOG_NAME = "spark.log"

FINDINGS = pa.schema(
    [
        ("file", pa.string()),
        ("group", pa.string()),
        ("invariant", pa.string()),
        ("verdict", pa.string()),
        ("evaluated", pa.int64()),
        ("evidence", pa.list_(pa.string())),
    ]
)
"""Columns of findings.parquet; evidence is one line of text a piece."""


class EngineName(StrEnum):
    """Where the work is done."""

    SPARK = "spark"
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Options:
    """What a user may say about captures that the bytes do not.

    `learners`: broker ids (or addresses, up to 5.1.0) that are learners; `ha_ports`: listeners of
    replication whatever their first bytes look like; `ha_5_0_0`: masters answer as release 5.0.0 does;
    `all_ack`: allAckInSyncStateSet is set on every broker; `bodies`: keep message bodies in frames.parquet;
    `split_bytes`: size of a Spark split.
    """

    learners: Collection[str] = ()
    ha_ports: Collection[int] = ()
    ha_5_0_0: bool = False
    all_ack: bool = False
    bodies: bool = False
    split_bytes: int = 32 << 20


@dataclass(slots=True)
class CaptureResult:
    """What one capture comes to, small enough to travel."""

    capture: CaptureRow
    findings: list[FindingRow] = field(default_factory=list)
    losses: list[LossRow] = field(default_factory=list)
    switches: list[Switch] = field(default_factory=list)
    timelines: list[Timeline] = field(default_factory=list)
    failovers: list[FailOver] = field(default_factory=list)
    latencies: list[Latency] = field(default_factory=list)


Progress = Callable[[str, int, int], None]
"""Told what is being done, how much is done (parts of captures, or stages) and of how much."""


class Engine(Protocol):
    """Decodes, observes and judges captures, and writes frames and events below a folder."""

    def results(
        self, captures: Sequence[Source], out: Path, options: Options, progress: Progress
    ) -> Iterator[CaptureResult]:
        """One result per capture, in order. Raises nothing for an unusable capture: its result says so."""
        ...


def replay(
    captures: Sequence[Source],
    out: Path,
    engine: EngineName,
    options: Options,
    progress: Progress | None = None,
) -> Summary:
    """Replay captures into the folder `out` (made when absent) and return what they come to.

    A capture is one file, or the files of a rotation together. Rows say which capture they are of by the
    name of its (first) file: raises ValueError when two share one.
    """
    if len({name_of(source) for source in captures}) < len(captures):
        raise ValueError("two captures share a name")
    out.mkdir(parents=True, exist_ok=True)
    for name in (FRAMES_NAME, EVENTS_NAME, FINDINGS_NAME):
        _remove(out / name)
    results = list(_engine(engine).results(captures, out, options, progress or (lambda *_: None)))
    summary = Summary(engine.value)
    for result in results:
        summary.captures.append(result.capture)
        summary.losses += result.losses
        summary.findings += result.findings
        summary.failovers += result.failovers
        summary.latencies += result.latencies
    _write(summary, results, out)
    return summary


def judged(capture: CaptureRow, observations: pa.Table, options: Options) -> CaptureResult:
    """Judge the observations of one capture (all of them) and tell its story."""
    judgement = judge_capture(
        capture.file, from_table(observations), options.learners, all_ack=options.all_ack
    )
    assert judgement.joined is not None
    span = (capture.first_time_ns or 0, capture.last_time_ns or 0)
    return CaptureResult(
        capture,
        judgement.findings,
        judgement.losses,
        switches(capture.file, judgement.joined),
        timelines(judgement.joined, span, capture.file, judgement.findings, judgement.losses),
        failovers(capture.file, judgement.joined),
        latencies(capture.file, judgement.joined.rows),
    )


def unusable(source: Source, fault: Exception) -> CaptureResult:
    """The result of a capture that is none or cannot be read; the reason names the file if not the first."""
    name, files = name_of(source), tuple(path.name for path in paths_of(source))
    reason = str(fault)
    if isinstance(fault, OSError) and fault.strerror:
        file = Path(fault.filename).name if fault.filename is not None else name
        reason = fault.strerror if file == name else f"{file}: {fault.strerror}"
    return CaptureResult(CaptureRow(name, error=reason, files=files))


UNUSABLE = (CaptureError, OSError)
"""What reading a capture may raise through no fault of ours."""


def _engine(name: EngineName) -> Engine:
    if name is EngineName.LOCAL:
        from replispec.replay.engine_local import LocalEngine

        return LocalEngine()
    from replispec.replay.engine_spark import SparkEngine

    return SparkEngine()


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _write(summary: Summary, results: Sequence[CaptureResult], out: Path) -> None:
    rows = [
        {
            "file": finding.file,
            "group": finding.group,
            "invariant": finding.invariant,
            "verdict": finding.verdict.value,
            "evaluated": finding.evaluated,
            "evidence": [proof.text for proof in finding.proofs],
        }
        for finding in summary.findings
    ]
    pq.write_table(pa.Table.from_pylist(rows, FINDINGS), out / FINDINGS_NAME)
    document = orjson.dumps(summary.document(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    (out / SUMMARY_NAME).write_bytes(document)
    switched = [switch for result in results for switch in result.switches]
    lived = [timeline for result in results for timeline in result.timelines]
    write_report(fill(summary, switched, lived), out / REPORT_NAME)
