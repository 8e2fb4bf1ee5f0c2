"""`replispec spec what-if`: what an edit of the specification does to a system's promises."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from replispec.cli.compiling import ask_for_compiler, compiled_into

EXIT_BROKEN = 1
Found = Mapping[str, Any]
"""What `replispec spec explore --json` writes."""
EXAMPLES = """\b
Examples:
  replispec spec what-if sync_state_set --spec ../mine    a folder with spec/ in it, or that folder
  replispec spec what-if sync_state_set --spec HEAD~3     a revision of the git repository here
  replispec spec what-if sync_state_set --spec ../mine --set lost=0 --messages 3
"""


@click.command(
    "what-if",
    epilog=EXAMPLES,
    short_help="Say which promises an edit of the specification breaks or mends.",
    help="""Explore a system before and after an edit of the specification, and say what changed.

    Before is what this command was installed with; after is the specification that --spec names, which is
    compiled into a temporary folder and explored in a process of its own. Each is explored within its own
    bounds, unless --set, --count and --messages say others for both; to the end where a promise is broken
    on one side that the other has not come to.

    Exit codes: 0 no promise is broken after the edit that was not before, 1 one is, 2 what cannot be
    compiled or explored.""",
)
@click.argument("system")
@click.option("--spec", "edited", metavar="FOLDER", required=True, help="The edited specification.")
@click.option("--set", "budgets", metavar="NAME=N", multiple=True, help="How often something may happen.")
@click.option("--count", "counts", metavar="PARTY=N", multiple=True, help="How many instances there are.")
@click.option("--messages", type=int, help="How many messages are on their way at once.")
@click.option("--states", type=int, help="End each exploration after this many states.")
@click.option("--seconds", type=float, help="End each exploration after this time.")
@click.option("--to-the-end", is_flag=True, help="Find all broken promises, not only the nearest.")
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the page of the exploration after the edit.",
)
def what_if(
    system: str,
    edited: str,
    budgets: tuple[str, ...],
    counts: tuple[str, ...],
    messages: int | None,
    states: int | None,
    seconds: float | None,
    html: Path | None,
    *,
    to_the_end: bool,
) -> int:
    """Compare two explorations."""
    ask_for_compiler()
    asked = [*(f"--set={each}" for each in budgets), *(f"--count={each}" for each in counts)]
    limits = {"messages": messages, "states": states, "seconds": seconds}
    asked += [f"--{name}={value}" for name, value in limits.items() if value is not None]
    asked += ["--to-the-end"] * to_the_end
    with tempfile.TemporaryDirectory(prefix="replispec-what-if-") as folder:
        place = Path(folder)
        compiled_into(edited, place / "generated")
        page = [] if html is None else [f"--html={html}"]
        before, after = _both(system, asked, page, place)
        if not to_the_end and not _comparable(before, after):
            before, after = _both(system, [*asked, "--to-the-end"], page, place)
    for line in _lines(before, after):
        click.echo(line)
    return EXIT_BROKEN if set(_broken(after)) - set(_broken(before)) else 0


def _both(system: str, asked: Sequence[str], page: Sequence[str], place: Path) -> tuple[Found, Found]:
    before = _explored(system, asked, place, "before the edit")
    return before, _explored(system, [*asked, *page], place, "after the edit", place / "generated")


def _comparable(before: Found, after: Found) -> bool:
    """Whether no promise is broken on one side that the other left open at its first broken promise, which
    leaves open what other events have no edge."""
    from replispec.explorer.report import NO_EDGE

    if any(story["promise"] == NO_EDGE for found in (before, after) for story in found["stories"]):
        return False
    ended_early = [
        set(_broken(other)) & set(found["open"])
        for found, other in ((before, after), (after, before))
        if found["stories"]
    ]
    return not any(ended_early)


def _explored(
    system: str, asked: Sequence[str], folder: Path, when: str, generated: Path | None = None
) -> Found:
    """What is found by a process of its own, which looks for modules in `generated` first."""
    out = folder / "found.json"
    out.unlink(missing_ok=True)
    paths = [str(generated)] * (generated is not None) + [os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-m", "replispec.cli", "spec", "explore", f"--json={out}", *asked, system]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if not out.is_file():
        said = done.stderr.strip().splitlines() or [f"it ended with code {done.returncode}"]
        raise click.ClickException(f"{when}: {said[-1].removeprefix('Error: ')}")
    found: Found = json.loads(out.read_text("utf-8"))
    return found


def _broken(found: Found) -> dict[str, Found]:
    """Stories by the name of what is broken: each event without an edge is a fault of its own."""
    from replispec.explorer.report import NO_EDGE

    return {
        f"{NO_EDGE}: {each['about']}" if each["promise"] == NO_EDGE else each["promise"]: each
        for each in found["stories"]
    }


def _promise(name: str) -> str:
    """The promise of what is broken."""
    return name.partition(": ")[0]


def _lines(before: Found, after: Found) -> Iterator[str]:
    """What changed, for people."""
    from replispec.cli.explore_text import story_lines
    from replispec.explorer.report import story_from

    for when, found in (("before", before), ("after", after)):
        end = "all of them" if found["finished"] else "not to the end"
        states = f"{found['states']:,} states, {end}; {found['depth']} steps deep"
        yield f"{when + ':':<8}{found['system']}: {states}"
    if before["bounds"] != after["bounds"]:
        yield f"        bounds: {_bounds(before)} before, {_bounds(after)} after"
    yield from left_out(before, after)
    yield from _fates(before, after)
    was, now = _broken(before), _broken(after)
    for name, story in now.items():
        if name not in was:
            yield from story_lines(story_from(story))
            if _promise(name) in before["open"]:
                yield "      Before the edit it was open: whether the edit broke it is not known."
    yield from said_otherwise(before, after)
    yield from _acts(before, after)
    yield from _edges(before, after)


def said_otherwise(before: Found, after: Found) -> Iterator[str]:
    """Promises and acts that the edit words otherwise: what holds then may be less than what was asked."""
    for key, what in (("promised", "is promised"), ("acted", "may happen")):
        for name, text in after[key].items():
            if name in before[key] and before[key][name] != text:
                yield f"other   {name} {what} otherwise after the edit"


def left_out(before: Found, after: Found) -> Iterator[str]:
    """What neither exploration looked at, of both when one has any."""
    for key, what in (("cut", "steps left out for want of room"), ("outside", "states outside of within")):
        if before[key] or after[key]:
            yield f"        {what}: {before[key]:,} before, {after[key]:,} after"


def _fates(before: Found, after: Found) -> Iterator[str]:
    """What became of each promise that is not broken for the first time."""
    from replispec.cli.explore_text import NEVER_DUE

    was, now = _broken(before), _broken(after)
    known = (*after["kept"], *after["open"], *map(_promise, now))
    for name in (*before["kept"], *before["open"], *was):
        if _promise(name) not in known:
            broken = ", and it was broken" if name in was else ""
            yield f"gone    {name}: nothing promises it after the edit{broken}"
    for name in was:
        if name in now:
            yield f"still   {name}: broken before and after"
        elif name in after["never_due"] and name in after["kept"]:
            yield f"undue   {name}: broken before, and never due after: its `whenever` held in no state"
        elif _promise(name) in after["kept"] or (_promise(name) in map(_promise, now) and after["finished"]):
            yield f"mended  {name}"
        elif _promise(name) in known:
            yield f"open    {name}: broken before, and holds as far as was explored after"
    for name in (*after["kept"], *after["open"]):
        if name not in map(_promise, was):
            undue = NEVER_DUE * (name in after["never_due"] and name in after["kept"])
            yield f"{'holds' if name in after['kept'] else 'open':<8}{name}{_how(name, before)}{undue}"


def _how(name: str, before: Found) -> str:
    return "" if name in (*before["kept"], *before["open"]) else ": promised only after the edit"


def _bounds(found: Found) -> str:
    bounds = found["bounds"]
    return ", ".join(
        f"{name} {value}"
        for name, value in (*bounds["instances"].items(), *bounds["budgets"].items(), *_others(bounds))
    )


def _others(bounds: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "messages", bounds["messages"]
    if bounds["within"]:
        yield "within", bounds["within"]


def _acts(before: Found, after: Found) -> Iterator[str]:
    """Which acts never happened after the edit, and which happened on one side alone."""
    never = ", ".join(after["never_happened"]) or "none"
    if after["never_happened"] or before["happened"] != after["happened"]:
        yield f"acts    that never happened after the edit: {never}"
        yield from _one_sided(before["happened"], after["happened"])


def _edges(before: Found, after: Found) -> Iterator[str]:
    """How many edges of each machine were never taken before and after, and which are taken in one alone."""
    from replispec.cli.explore_text import by_name
    from replispec.explorer.report import EdgesTaken

    was, now = (by_name([EdgesTaken(**each) for each in found["coverage"]]) for found in (before, after))
    for name, each in now.items():
        old = was.get(name, EdgesTaken(each.party, each.part, each.machine, (), ()))
        yield f"edges   {name}: {len(old.never)} never taken before, {len(each.never)} after"
        yield from _one_sided(old.taken, each.taken)
    for name, each in was.items():
        if name not in now:
            of = len(each.taken) + len(each.never)
            yield f"edges   {name}: gone after the edit; {len(each.taken)} of {of} were taken before"


def _one_sided(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    yield from (f"  only before  {text}" for text in before if text not in after)
    yield from (f"  only after   {text}" for text in after if text not in before)
