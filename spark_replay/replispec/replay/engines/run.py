"""A replay from capture files to an output folder: both engines, the same rows.

Output: frames.parquet, events/KIND.parquet and findings.parquet (of the local engine one file each, of
Spark a folder of parts), summary.json, report.html, and the log of Spark. See docs/replay.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from threading import Thread
from typing import Protocol, TypeVar

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from replispec.replay.engines.chosen import asked_by, of_groups
from replispec.replay.engines.replacing import replaced
from replispec.replay.engines.results import (
    FINDINGS_NAME,
    FRAMES_NAME,
    LOST_NAME,
    REPORT_NAME,
    SUMMARY_NAME,
    CaptureResult,
    Options,
    Progress,
)
from replispec.replay.hosts.told import Merged
from replispec.replay.report import write_report
from replispec.replay.report.compare import compare
from replispec.replay.report.document import document
from replispec.replay.report.evidence import Located, locate, proven
from replispec.replay.report.evidence_file import write_evidence
from replispec.replay.report.family import lost_messages
from replispec.replay.report.fill import Story, fill
from replispec.replay.report.frame_rows import Place
from replispec.replay.report.lost_file import write_lost
from replispec.replay.report.model import Provenance
from replispec.replay.report.places import with_places
from replispec.replay.report.provenance import provenance
from replispec.replay.report.summary import CaptureRow, Summary
from replispec.replay.tcp.rotation import Source, name_of

_Result = TypeVar("_Result")
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
    evidence: Path | None = None,
    merged: Merged | None = None,
) -> Summary:
    """Replay captures into the folder `out` (made when absent) and return what they come to.

    A capture is one file, or the files of a rotation together. Rows say which capture they are of by the
    name of its (first) file: raises ValueError when two share one. `evidence`: where the packets of the
    frames in findings are written as a capture of their own, if anywhere. `merged`: what the one capture was
    merged from. Raises NoGroupError when no group
    fits one of `options.groups`, NoSummaryError when `options.compared` is the content of something else.
    Whatever is raised, an older result in `out` is there as it was: it is replaced when the new one is whole.
    """
    if len({name_of(source) for source in captures}) < len(captures):
        raise ValueError("two captures share a name")
    with replaced(out) as fresh:
        origin = _beside(lambda: _origin(captures, options, merged))
        results = list(_engine(engine).results(captures, fresh, options, progress or (lambda *_: None)))
        return told(captures, results, fresh, engine.value, options, evidence, merged, origin())


def _origin(captures: Sequence[Source], options: Options, merged: Merged | None) -> Provenance:
    return provenance(captures if merged is None else [merged.paths], options.command)


def _beside(work: Callable[[], _Result]) -> Callable[[], _Result]:
    """Begin some work in a thread that nobody waits for when the replay fails; what it gives comes to what
    the work gave. Digests take a second a GB, in which an engine's driver waits for others."""
    found: list[_Result] = []
    thread = Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()

    def result() -> _Result:
        thread.join()
        return found[0]

    return result


def told(
    captures: Sequence[Source],
    results: list[CaptureResult],
    out: Path,
    engine: str,
    options: Options,
    evidence: Path | None = None,
    merged: Merged | None = None,
    origin: Provenance | None = None,
) -> Summary:
    """Write what captures came to below `out`, where their frames and events are already, and return it.

    Raises as `replay`; `engine` is who did it, `origin` what it was made from, if that is known already.
    """
    asked = asked_by(options)
    if asked.groups:
        results = of_groups(results, asked)
    if merged is not None:
        for result in results:
            result.capture = _with_origin(result.capture, merged)
    summary = Summary(engine, provenance=origin or _origin(captures, options, merged), asked=asked)
    for result in results:
        summary.captures.append(result.capture)
        summary.losses += with_places(result.losses, result.lost)
        summary.sends += result.sends
        summary.findings += result.findings
        summary.failovers += result.failovers
        summary.latencies += result.latencies
    said = proven(summary.findings)
    numbered = {result.capture.file: result.numbered for result in results}
    located = locate(captures, said, out / FRAMES_NAME, numbered)
    if options.compared is not None:
        summary.comparison = compare(options.compared, summary.document())
    _write(summary, results, located, out)
    if evidence is not None:
        write_evidence(captures, located, said, evidence, options.window)
    return summary


def _with_origin(row: CaptureRow, merged: Merged) -> CaptureRow:
    """The figures of a capture with what it was merged from."""
    return replace(
        row,
        files=tuple(path.name for path in merged.paths),
        clocks=merged.clocks,
        renamings=merged.renamings,
        copies=merged.copies,
        connections_doubtful=merged.doubtful,
        warnings=(*row.warnings, *merged.warnings),
        unread=(*row.unread, *merged.unread),
    )


def _engine(name: EngineName) -> Engine:
    if name is EngineName.LOCAL:
        from replispec.replay.engines.local import LocalEngine

        return LocalEngine()
    from replispec.replay.engines.spark import SparkEngine

    return SparkEngine()


def _write(
    summary: Summary, results: Sequence[CaptureResult], located: Mapping[Place, Located], out: Path
) -> None:
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
    content = orjson.dumps(document(summary), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    (out / SUMMARY_NAME).write_bytes(content)
    sends = [send for result in results for send in result.lost]
    lost = write_lost(lost_messages(out / FRAMES_NAME, sends), out / LOST_NAME)
    story = Story(
        switches=tuple(each for result in results for each in result.switches),
        timelines=tuple(each for result in results for each in result.timelines),
        causes=tuple(each for result in results for each in result.causes),
        overlaps=tuple(each for result in results for each in result.overlaps),
        answers=tuple(each for result in results for each in result.answers),
        lost=lost,
        located=located,
    )
    write_report(fill(summary, story), out / REPORT_NAME)
