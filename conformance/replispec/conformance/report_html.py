"""Runs of the suite as one HTML file that needs nothing else: no network, no script, light and dark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import jinja2

from replispec.conformance.compliance import label
from replispec.conformance.families import clauses
from replispec.conformance.results import (
    CaseResult,
    CaseVerdict,
    RunResult,
    Standing,
    by_clause,
    worst,
)
from replispec.conformance.trace import TraceEntry
from replispec.runtime.primitives.clauses import Clause
from replispec.runtime.primitives.visible import visible

# Longer texts come from a subject that writes novels; the JSON results hold them whole.
TEXT_CHARACTERS_MAXIMUM = 900
ROW_BYTES = 16
HEX_ROWS_MAXIMUM = 24
_ORDER = (
    Standing.UNEXPECTED,
    Standing.OTHER_SYMPTOM,
    Standing.UNEXPECTED_PASS,
    Standing.NOT_JUDGED,
    Standing.WARNING,
    Standing.EXPECTED,
    Standing.AS_IT_SHOULD,
)
_WORDS: Mapping[str, str] = {CaseVerdict.PASS.value: "passed", CaseVerdict.ERROR.value: "errors"}


class Cell(NamedTuple):
    """What one run found under one clause; `link` is the place of the first case that needs a look."""

    verdict: str
    text: str
    link: str = ""


class PageRow(NamedTuple):
    """One clause of the matrix."""

    clause: str
    requirement: str
    source: str
    cells: tuple[Cell, ...]


class PagePart(NamedTuple):
    """A part of the bar of a run: its colour, its words, and how many cases it stands for."""

    verdict: str
    words: str
    cases: int


class Shown(NamedTuple):
    """One run as the page shows it: `beside` is what is wrong with the run itself.

    `places` are the anchors of the cases that are not as they should be.
    """

    run: RunResult
    name: str
    place: str
    parts: tuple[PagePart, ...]
    findings: int
    beside: Sequence[str]
    results: tuple[CaseResult, ...]
    places: Mapping[str, str]


class HexRow(NamedTuple):
    """Sixteen bytes: their place, in hexadecimal, as text."""

    at: str
    digits: str
    text: str


def html_page(runs: Sequence[RunResult]) -> str:
    """The page as text; the same results give the same page."""
    shown = [_shown(run, f"run-{number}") for number, run in enumerate(runs, start=1)]
    kinds = sorted({run.kind for run in runs})
    return _template().render(
        runs=shown,
        matrices=[(kind, *_matrix([each for each in shown if each.run.kind == kind])) for kind in kinds],
        clauses={name: known.clause for name, known in clauses().items()},
        quiet=Standing.AS_IT_SHOULD,
        known=Standing.EXPECTED,
        shown_bytes=ROW_BYTES * HEX_ROWS_MAXIMUM,
    )


def _shown(run: RunResult, place: str) -> Shown:
    results = tuple(sorted(run.results, key=lambda each: (_ORDER.index(each.standing), each.id)))
    loud = [each.id for each in results if each.standing is not Standing.AS_IT_SHOULD]
    places = {name: f"{place}-case-{number}" for number, name in enumerate(loud, start=1)}
    findings = len(run.findings()) + len(run.stale)
    return Shown(run, label(run), place, tuple(_parts(run)), findings, run.beside(), results, places)


def _parts(run: RunResult) -> Iterator[PagePart]:
    """The counts of a run, failures that are known apart from the others; empty ones are left out."""
    known = sum(each.standing is Standing.EXPECTED for each in run.results)
    for verdict, count in run.counts().items():
        if verdict == CaseVerdict.FAIL:
            yield from (PagePart(verdict, "failed", count - known),) if count > known else ()
            yield from (PagePart("known", "failed as known", known),) if known else ()
        elif count:
            yield PagePart(verdict, _WORDS.get(verdict, verdict), count)


def _matrix(runs: Sequence[Shown]) -> tuple[list[str], list[PageRow]]:
    rows, known = [], clauses()
    for name, pairs in sorted(by_clause([each.run for each in runs]).items()):
        cells = tuple(_cell([found for run, found in pairs if run is each.run], each.places) for each in runs)
        if any(cell.verdict != CaseVerdict.SKIPPED for cell in cells):
            clause = known[name].clause if name in known else None
            rows.append(PageRow(name, clause.requirement if clause else "", _source(clause), cells))
    return [each.name for each in runs], rows


def _source(clause: Clause | None) -> str:
    """Where a clause is written, how binding it is, and on what it rests."""
    if clause is None:
        return ""
    return "; ".join(
        filter(None, (clause.document, clause.section, clause.severity, f"basis {clause.basis}"))
    )


def _cell(results: Sequence[CaseResult], places: Mapping[str, str]) -> Cell:
    judged = [each for each in results if each.verdict is not CaseVerdict.SKIPPED]
    if not judged:
        return Cell(CaseVerdict.SKIPPED.value, "-")
    link = next((places[each.id] for each in judged if each.id in places), "")
    verdict = worst(judged)
    failed = [each for each in judged if each.verdict is CaseVerdict.FAIL]
    if verdict is CaseVerdict.FAIL and all(each.standing is Standing.EXPECTED for each in failed):
        return Cell("known", _count(judged), link)
    return Cell(verdict.value, _count(judged), link)


def _count(judged: Sequence[CaseResult]) -> str:
    return f"{sum(each.verdict is CaseVerdict.PASS for each in judged)}/{len(judged)}"


def hex_rows(entry: TraceEntry) -> Iterator[HexRow]:
    """The bytes of an entry in rows, as far as they are shown."""
    data = bytes.fromhex(entry.data)[: ROW_BYTES * HEX_ROWS_MAXIMUM]
    for at in range(0, len(data), ROW_BYTES):
        piece = data[at : at + ROW_BYTES]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in piece)
        yield HexRow(f"{at:04x}", piece.hex(" "), text)


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("replispec.conformance"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    environment.filters["hex_rows"] = hex_rows
    environment.filters["source"] = _source
    return environment.get_template("report.html")


def _visible(value: Any) -> Any:
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return visible(value, TEXT_CHARACTERS_MAXIMUM)
    return value
