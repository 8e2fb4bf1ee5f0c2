"""`replispec spec never-taken`: the edges that no exploration took, of all that were made."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

EXAMPLES = """\b
Examples:
  replispec spec explore cleaning --json one.json
  replispec spec explore cleaning --set removals=1 --json two.json
  replispec spec never-taken one.json two.json

\b
What is printed (shortened):
  broker_set: 23 of 61 edges taken by 2 explorations
    never UNKNOWN, alteration_asked: UNKNOWN
"""


@click.command(
    "never-taken",
    epilog=EXAMPLES,
    short_help="Name the edges of machines that no exploration took.",
    help="""Name the edges that none of several explorations took.

    FOUND is what `replispec spec explore --json` wrote. An edge counts as taken when any party of any of
    these systems took it. Such an edge wants a fault, an act or a system that is not there yet, or a reason
    why nothing of the kind can happen.""",
)
@click.argument(
    "found", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
def never_taken(found: tuple[Path, ...]) -> None:
    """Say it for each machine."""
    for line in lines_of([_read(each) for each in found]):
        click.echo(line)


def lines_of(explorations: Sequence[Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    """The machines of some explorations by name, each with the edges that none of them took."""
    machines = sorted({each["machine"] for coverage in explorations for each in coverage})
    for machine in machines:
        of_it = [
            [each for each in coverage if each["machine"] == machine]
            for coverage in explorations
            if any(each["machine"] == machine for each in coverage)
        ]
        parts = [part for coverage in of_it for part in coverage]
        taken = {edge for part in parts for edge in part["taken"]}
        every = dict.fromkeys(edge for part in parts for edge in (*part["taken"], *part["never"]))
        never = [edge for edge in every if edge not in taken]
        count = len(every) - len(never)
        explored = f"{len(of_it)} exploration{'s' * (len(of_it) != 1)}"
        yield f"{machine}: {count} of {len(every)} edges taken by {explored}"
        yield from (f"  never {edge}" for edge in never)


def _read(path: Path) -> Sequence[Mapping[str, Any]]:
    """What one exploration took. Raises ClickException."""
    try:
        coverage: Sequence[Mapping[str, Any]] = json.loads(path.read_text("utf-8"))["coverage"]
        for each in coverage:
            lists = each["taken"], each["never"]
            if not all(isinstance(edges, list) for edges in lists):
                raise TypeError
            if not all(isinstance(edge, str) for edge in (*lists[0], *lists[1], each["machine"])):
                raise TypeError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise click.ClickException(
            f"{path} is not what `replispec spec explore --json` writes: write it again"
        ) from None
    return coverage
