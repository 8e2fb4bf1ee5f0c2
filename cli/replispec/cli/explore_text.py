"""What an exploration found, in lines for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from replispec.explorer.report import EdgesTaken, Findings
    from replispec.explorer.stories import Story, StoryStep

NEVER_DUE: Final = ": it was never due, its `whenever` held in no state"
"""What is said of a promise that holds of nothing."""


def report_lines(report: Findings, *, never: bool) -> Iterator[str]:
    """The whole report; `never` names every edge that was not taken."""
    rate = report.states / max(report.seconds, 1e-9)
    end = "all of them" if report.finished else "not to the end"
    took = f"in {report.seconds:.1f} s ({rate:,.0f} a second)"
    yield f"{report.system}: {report.states:,} states, {end}, {took}"
    yield f"  {report.depth} steps deep; {_bounds(report)}"
    if report.cut:
        yield f"  {report.cut:,} steps are left out that would put more messages on their way"
    if report.outside:
        yield f"  {report.outside:,} states lie outside of: {report.bounds['within']}"
    for name in report.kept:
        yield f"holds   {name}{NEVER_DUE * (name in report.never_due)}"
    for name in report.open:
        yield f"open    {name}: holds as far as was explored"
    for story in report.stories:
        yield from story_lines(story)
    if report.never_happened:
        yield f"acts    that never happened: {', '.join(report.never_happened)}"
    for name, each in by_name(report.coverage).items():
        edges = f"{len(each.taken)} of {len(each.taken) + len(each.never)} taken"
        yield f"edges   {name}: {edges}"
        if never:
            yield from (f"  never {text}" for text in each.never)


def by_name(coverage: Sequence[EdgesTaken]) -> dict[str, EdgesTaken]:
    """The machines of parties by what people call them; two alike in one party by their own names, too."""
    alike = Counter((each.party, each.machine) for each in coverage)
    return {
        f"{each.machine} of {each.party}{f' ({each.part})' * (alike[each.party, each.machine] > 1)}": each
        for each in coverage
    }


def _bounds(report: Findings) -> str:
    counts = ", ".join(f"{count} {name}" for name, count in report.bounds["instances"].items())
    budgets = ", ".join(f"{name} {count}" for name, count in report.bounds["budgets"].items())
    return f"{counts}; at most {report.bounds['messages']} messages on their way; {budgets}"


def story_lines(story: Story) -> Iterator[str]:
    """A broken promise with its story."""
    yield f"BROKEN  {story.promise}: {story.about}"
    for number, step in enumerate(story.steps, 1):
        yield from _step_lines(step, f"{number:>4}. ")
    if story.circle:
        yield "      and from here on, again and again:"
        for step in story.circle:
            yield from _step_lines(step, "    - ")
    last = story.steps[-1].instances if story.steps else story.start
    yield "      In the end:"
    for name, facts in last.items():
        known = ", ".join(
            f"{fact} {value}" for fact, value in facts.items() if value not in ("", "{}", "none")
        )
        yield f"        {name}: {known}"


def _step_lines(step: StoryStep, head: str) -> Iterator[str]:
    yield f"{head}{step.says}"
    yield from (f"        {change}" for change in step.changes)
    yield from (f"        sends {said}" for said in step.sends)
