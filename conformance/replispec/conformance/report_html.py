"""Runs of the suite as one HTML file that needs nothing else: no network, no script, light and dark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import jinja2

from replispec.conformance.compliance import label
from replispec.conformance.results import (
    CaseResult,
    RunResult,
    Standing,
    Verdict,
    by_clause,
    worst,
)
from replispec.conformance.trace import Entry
from replispec.runtime.primitives.clauses import Clause
from replispec.runtime.primitives.visible import visible
from replispec.wire.rocketmq.clauses import CLAUSES

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


class Cell(NamedTuple):
    """What one run found under one clause."""

    verdict: str
    text: str


class Row(NamedTuple):
    """One clause of the matrix."""

    clause: str
    requirement: str
    cells: tuple[Cell, ...]


class HexRow(NamedTuple):
    """Sixteen bytes: their place, in hexadecimal, as text."""

    at: str
    digits: str
    text: str


def html_page(runs: Sequence[RunResult]) -> str:
    """The page as text; the same results give the same page."""
    kinds = sorted({run.kind for run in runs})
    return _template().render(
        runs=[(run, label(run), _sorted(run.results)) for run in runs],
        matrices=[(kind, *_matrix([run for run in runs if run.kind == kind])) for kind in kinds],
        verdicts=[verdict.value for verdict in Verdict],
        quiet=Standing.AS_IT_SHOULD,
        known=Standing.EXPECTED,
    )


def _sorted(results: Sequence[CaseResult]) -> list[CaseResult]:
    return sorted(results, key=lambda each: (_ORDER.index(each.standing), each.id))


def _matrix(runs: Sequence[RunResult]) -> tuple[list[str], list[Row]]:
    rows = []
    for name, pairs in sorted(by_clause(runs).items()):
        cells = tuple(_cell([found for run, found in pairs if run is each]) for each in runs)
        if any(cell.verdict != Verdict.SKIPPED for cell in cells):
            clause: Clause | None = CLAUSES.get(name)
            rows.append(Row(name, clause.requirement if clause else "", cells))
    return [label(run) for run in runs], rows


def _cell(results: Sequence[CaseResult]) -> Cell:
    judged = [each for each in results if each.verdict is not Verdict.SKIPPED]
    if not judged:
        return Cell(Verdict.SKIPPED.value, "-")
    verdict = worst(judged)
    if verdict is Verdict.FAIL and all(
        each.standing is Standing.EXPECTED for each in judged if each.verdict is Verdict.FAIL
    ):
        return Cell("known", _count(judged))
    return Cell(verdict.value, _count(judged))


def _count(judged: Sequence[CaseResult]) -> str:
    return f"{sum(each.verdict is Verdict.PASS for each in judged)}/{len(judged)}"


def hex_rows(entry: Entry) -> Iterator[HexRow]:
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
    return environment.get_template("report.html")


def _visible(value: Any) -> Any:
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return visible(value, TEXT_CHARACTERS_MAXIMUM)
    return value
