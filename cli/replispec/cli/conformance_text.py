"""A run of the conformance suite as text for a terminal or a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from replispec.runtime.primitives.visible import visible

if TYPE_CHECKING:
    from replispec.conformance.causes import Cause
    from replispec.conformance.results import CaseResult, RunResult
    from replispec.conformance.trace import TraceEntry

_COLOURS = {"pass": "green", "fail": "red", "error": "magenta", "unsupported": "yellow", "skipped": "cyan"}
_SHOWN_BYTES = 64
_SHOWN_OTHERS = 5
# What a subject sent is shown up to here; the JSON results hold it whole.
_SHOWN_CHARACTERS = 2000


def show_run(run: RunResult) -> None:
    """The findings by cause, each with its reason and how to look closer, then lines of counts."""
    from replispec.conformance.causes import causes

    for note in run.notes:
        click.echo(visible(note, _SHOWN_CHARACTERS))
    findings = run.findings()
    found = causes(findings)
    for cause in found:
        _show_cause(cause)
    known = sum(case.standing.value == "expected failure" for case in run.results)
    warned = sum(case.standing.value == "warning" for case in run.results)
    for line in _not_judged(run):
        click.echo(line)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in run.counts().items() if count)
    counts = counts or "nothing was played"
    subject = " ".join(filter(None, (run.implementation, run.release)))
    click.echo(f"{run.kind} at {run.target} ({subject}): {counts}; {run.took_s:g} s, seed {run.seed}")
    of = f" of {len(found)} {'cause' if len(found) == 1 else 'causes'}" if len(found) < len(findings) else ""
    click.echo(f"{len(findings)} findings{of}, {known} expected failures, {warned} failed recommendations")
    for line in _by_basis(run, findings):
        click.echo(line)
    for wrong in run.beside():
        click.secho(visible(wrong, _SHOWN_CHARACTERS), fg="red", bold=True)
    if found and found[0].findings[0].trace:
        first = found[0].findings[0].id
        click.echo(f"Look closer: --case '{first}' --trace; replispec conformance explain {first}")


def _show_cause(cause: Cause) -> None:
    """The finding that tells the most, whole, and the names of the others."""
    first, *others = cause.findings
    click.echo(f"{_word(first.verdict.value)} {first.id}  ({first.standing.value})")
    click.echo(f"    {first.requirement}")
    for line in _why(first):
        click.echo(f"    {visible(line, _SHOWN_CHARACTERS)}")
    if others:
        named = ", ".join(each.id for each in others[:_SHOWN_OTHERS])
        more = f" and {len(others) - _SHOWN_OTHERS} more" if len(others) > _SHOWN_OTHERS else ""
        click.echo(f"    {visible(cause.says, _SHOWN_CHARACTERS)}: {len(others)} more findings")
        click.echo(f"    {named}{more}")


def _not_judged(run: RunResult) -> Iterator[str]:
    """Why cases that are no finding came to no verdict, the reason of most of them first."""
    verdicts = ("skipped", "unsupported")
    quiet = [
        each
        for each in run.results
        if each.verdict.value in verdicts and each.standing.value == "as it should"
    ]
    reasons = Counter(each.reason or each.verdict.value for each in quiet).most_common()
    for reason, count in reasons[:_SHOWN_OTHERS]:
        yield f"{count} not judged: {visible(reason, _SHOWN_CHARACTERS)}"
    left = sum(count for _, count in reasons[_SHOWN_OTHERS:])
    if left:
        yield f"{left} not judged for other reasons: --json tells each"


def _by_basis(run: RunResult, findings: list[CaseResult]) -> Iterator[str]:
    """How many findings each basis has, of the cases that came to a verdict."""
    judged = Counter(each.basis for each in run.results if each.verdict.value in ("pass", "fail"))
    found = Counter(each.basis for each in findings)
    parts = [f"{basis} {found[basis]} of {judged[basis]}" for basis in dict.fromkeys([*judged, *found])]
    if parts:
        yield f"findings by what they rest on: {', '.join(parts)}"


def _why(case: CaseResult) -> Iterator[str]:
    yield case.reason or case.verdict.value
    if case.expected:
        yield f"expected: {case.expected}"


def show_case(case: CaseResult) -> None:
    """One case with its byte trace: seconds, connection, direction, words, the first bytes."""
    click.echo(f"{_word(case.verdict.value)} {case.id}  {visible(case.reason, _SHOWN_CHARACTERS)}")
    for entry in case.trace:
        click.echo(f"  {entry.at_s:8.3f} {entry.on:<8} {entry.way} {_says(entry)}".rstrip())
        if entry.data:
            more = f" ... {entry.size} bytes" if entry.size > _SHOWN_BYTES else ""
            click.echo(f"{'':21}{bytes.fromhex(entry.data)[:_SHOWN_BYTES].hex(' ')}{more}")
    if case.trace_left_out:
        click.echo(f"  {case.trace_left_out} more entries were left out")


def _says(entry: TraceEntry) -> str:
    return visible(entry.says, _SHOWN_CHARACTERS)


def _word(verdict: str) -> str:
    return click.style(f"{verdict:<11}", fg=_COLOURS.get(verdict))
