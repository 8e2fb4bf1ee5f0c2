"""`replispec spec explore`: every order in which messages, timers and faults may come, within bounds."""

from __future__ import annotations

import json
import string
import sys
from collections.abc import Callable
from pathlib import Path

import click

from replispec.cli.explore_text import report_lines

EXIT_BROKEN = 1
EXAMPLES = """\b
Examples:
  replispec spec explore                               which systems there are
  replispec spec explore sync_state_set                explore one, within its own bounds
  replispec spec explore sync_state_set --set lost=1 --set silences=1
  replispec spec explore sync_state_set --count broker=3 --messages 5 --seconds 600
  replispec spec explore sync_state_set --json found.json --html story.html --script story.json
  replispec spec explore cleaning --case mine --mended HEAD   a story of an edit, judged by what it was before

\b
A broken promise, as it is printed (shortened):
  BROKEN counts_with_the_set: The master counts an acknowledgement with at least ...
    1. broker 2 polls: It is time to ask who is master.
         sends broker 2 to controller: GetReplicaInfoRequest (brokerName=brokers)
    ...
   13. arrives: controller to broker 2: notify_brokers (masterBrokerId=2, ...)
         broker 2: role.proposed {1, 2} -> {}
"""


@click.command(
    epilog=EXAMPLES,
    short_help="Explore what composed machines can do, and which promises they break.",
    help="""Explore what composed machines can do, and which promises they break.

    SYSTEM is one of spec/systems; without it, all are listed. Every state within the bounds is reached,
    the nearest first, so that the story of a broken promise is one of the shortest. Bounds are the system's,
    unless --set, --count and --messages say others; more of anything multiplies the states.

    Exit codes: 0 no promise is broken in what was explored, 1 one is, 2 what cannot be explored.""",
)
@click.argument("system", required=False)
@click.option("--set", "budgets", metavar="NAME=N", multiple=True, help="How often something may happen.")
@click.option(
    "--count", "counts", metavar="PARTY=N", multiple=True, help="How many instances of a party there are."
)
@click.option("--messages", type=click.IntRange(1, 16), help="How many messages are on their way at once.")
@click.option(
    "--states",
    type=click.IntRange(1),
    default=5_000_000,
    show_default=True,
    help="End after this many states.",
)
@click.option(
    "--seconds", type=click.FloatRange(0.1), default=120.0, show_default=True, help="End after this time."
)
@click.option("--to-the-end", is_flag=True, help="Go on after the first broken promise, to find all of them.")
@click.option("--never", is_flag=True, help="Name every edge that was never taken, not only how many.")
@click.option(
    "--json", "out", type=click.Path(dir_okay=False, path_type=Path), help="Write what was found as JSON."
)
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a page to step through the stories, and to choose what happens instead.",
)
@click.option(
    "--script",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the first story as a script that the simulation plays on real nodes.",
)
@click.option(
    "--case",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Write the first story as a case of the suite, for --add-cases; asks for --mended.",
)
@click.option("--mended", metavar="FOLDER", help="The specification that says what --case expects.")
def explore(
    system: str | None,
    budgets: tuple[str, ...],
    counts: tuple[str, ...],
    messages: int | None,
    states: int,
    seconds: float,
    out: Path | None,
    html: Path | None,
    script: Path | None,
    case: Path | None,
    mended: str | None,
    *,
    to_the_end: bool,
    never: bool,
) -> int:
    """Explore a system, or list all."""
    from replispec.cli.story_case import write_case
    from replispec.explorer.errors import ExplorationError
    from replispec.explorer.page import page_of
    from replispec.explorer.report import Extent, explored, system_named, to_plain
    from replispec.explorer.script import script_of
    from replispec.runtime.net.clock import now_s

    if (case is None) != (mended is None):
        raise click.ClickException(
            "--case and --mended go together: what is right, a story alone does not say"
        )
    if system is None:
        _list()
        return 0
    _check_outputs(out, html, script)
    asked = Extent(_numbers(counts), _numbers(budgets), messages, states, seconds, to_the_end)
    try:
        report, search = explored(system_named(system), asked, now_s, _progress())
        page = None if html is None else page_of(report, search)
    except ExplorationError as error:
        raise click.ClickException(str(error)) from None
    except MemoryError:
        raise click.ClickException(
            f"{system}: no memory is left for more states: ask for fewer by --states, --messages or --set"
        ) from None
    # Before anything is printed: whoever reads no more than its first lines has the files, too.
    if out is not None:
        out.write_text(json.dumps(to_plain(report), indent=1, ensure_ascii=False) + "\n", "utf-8")
    if html is not None and page is not None:
        html.write_text(page, "utf-8")
    for line in report_lines(report, never=never):
        click.echo(line)
    if script is not None:
        if not search.broken:
            raise click.ClickException("no promise is broken: there is no story to write as a script")
        script.write_text(json.dumps(script_of(search, search.broken[0]), indent=1) + "\n", "utf-8")
    if case is not None and mended is not None:
        click.echo(f"written: {write_case(search, mended, case)}")
    return EXIT_BROKEN if report.stories else 0


def _list() -> None:
    from replispec.explorer.report import system_named, systems

    for name, family in systems().items():
        click.echo(f"{name} ({family}): {system_named(name).about}")


def _numbers(given: tuple[str, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or value not in tuple(string.digits):
            raise click.ClickException(f"{each!r} is no NAME=N: give a number from 0 to 9")
        if name in found:
            raise click.ClickException(f"{name} is given twice, as {found[name]} and {value}: leave one out")
        found[name] = int(value)
    return found


def _check_outputs(*written: Path | None) -> None:
    """Refuse, before anything is explored, to write below a folder that is not there."""
    for path in written:
        if path is not None and not path.parent.is_dir():
            raise click.ClickException(f"{path}: there is no folder {path.parent}: make it first")


def _progress() -> Callable[[int, int, int], None]:
    """Tells where somebody watches how deep and how far the search is."""
    if not sys.stderr.isatty():
        return lambda _depth, _states, _waiting: None

    def said(depth: int, states: int, waiting: int) -> None:
        sys.stderr.write(f"\r{depth} steps deep, {states:,} states, {waiting:,} to go on from \x1b[K")
        sys.stderr.flush()

    return said
