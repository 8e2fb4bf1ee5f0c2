"""A run of the conformance suite as text for a terminal or a log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from replispec.runtime.primitives.visible import visible

if TYPE_CHECKING:
    from replispec.conformance.results import CaseResult, RunResult
    from replispec.conformance.trace import TraceEntry

_COLOURS = {"pass": "green", "fail": "red", "error": "magenta", "unsupported": "yellow", "skipped": "cyan"}
_SHOWN_BYTES = 64
# What a subject sent is shown up to here; the JSON results hold it whole.
_SHOWN_CHARACTERS = 2000


def show_run(run: RunResult, *, strict: bool) -> None:
    """The findings, each with its reason and how to look closer, then one line of counts."""
    findings = run.findings(strict=strict)
    for case in findings:
        click.echo(f"{_word(case.verdict.value)} {case.id}  ({case.standing.value})")
        click.echo(f"    {case.requirement}")
        for line in _why(case):
            click.echo(f"    {visible(line, _SHOWN_CHARACTERS)}")
    for place in run.stale:
        click.echo(f"{_word('error')} {place}: the entry is stale, its case is not for release {run.release}")
    known = sum(case.standing.value == "expected failure" for case in run.results)
    warned = sum(case.standing.value == "warning" for case in run.results)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in run.counts().items() if count)
    subject = " ".join(filter(None, (run.implementation, run.release)))
    click.echo(f"{run.kind} at {run.target} ({subject}): {counts}; {run.took_s:g} s, seed {run.seed}")
    click.echo(f"{len(findings)} findings, {known} expected failures, {warned} failed recommendations")
    if not run.judged():
        click.secho("NOTHING WAS JUDGED: no case of the core came to a verdict", fg="red", bold=True)
    if findings and findings[0].trace:
        click.echo(
            f"Look closer: --case '{findings[0].id}' --trace; replispec conformance explain {findings[0].id}"
        )


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
