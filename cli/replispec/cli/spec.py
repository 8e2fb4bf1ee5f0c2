"""`replispec spec`: what changed between two specifications, and who is hurt by it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from replispec.cli.compiling import ask_for_compiler
from replispec.cli.explore import explore
from replispec.cli.never_taken import never_taken
from replispec.cli.what_if import what_if

if TYPE_CHECKING:
    from replispec.compiler.evolution.report import Report

EXIT_BREAKS = 1
EXAMPLES = """\b
Examples:
  replispec spec diff v1.0.0                      the last release and what is in this folder
  replispec spec diff v1.0.0 v1.1.0               two releases
  replispec spec diff ../mine/spec spec           two folders
  replispec spec diff HEAD --format json          for scripts
  replispec spec check                            what `make spec-check` asks
  replispec spec explore                          which systems of machines there are

\b
One change, as it is printed:
  breaks the wire: FAMILY GetReplicaInfoRequest.broker_name  (every release)
      field key: brokerName -> brokerNameX
      a peer of any release that sends "brokerName" is no longer read, and one that
      looks for it finds "brokerNameX"
      proto/replispec/FAMILY/v1/controller.proto:97
      clauses   RIP44-REPLICAINFO-1
      cases     controller/replica-info/RIP44-REPLICAINFO-1/1, and 9 more
"""
KINDS = """\
    Every change is of one kind. "breaks the wire": bytes that one side sends are refused or misread by the
    other. "changes behaviour": the bytes stay readable, and something else is done, answered, waited for or
    judged. "compatible": whoever follows the old specification notices nothing. "only words": nothing but
    prose. What the command does not know is said to change behaviour, never left out."""


@click.group(
    epilog=EXAMPLES, no_args_is_help=True, short_help="Say whom a change of the specification hurts."
)
def spec() -> None:
    """Say what a change of the specification does to others, and what its machines can do together.

    Exit codes: 0 nothing is broken, 1 something is, 2 input that cannot be used.
    """


spec.add_command(explore)
spec.add_command(what_if)
spec.add_command(never_taken)


@spec.command(
    epilog=EXAMPLES,
    short_help="Compare two specifications, change by change.",
    help=f"""Compare two specifications, change by change.

    OLD and NEW are folders (with proto/ and statemachines/, or with spec/ in them) or revisions of the git
    repository here; NEW is this folder when it is left out. A name that is both is the folder.

{KINDS}

    Exit codes: 0 nothing breaks the wire, 1 something does, 2 input that cannot be used.""",
)
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="[NEW]", default=".")
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For whom.",
)
@click.option("--all", "everything", is_flag=True, help="Name every case and document, however many.")
@click.option("--strict", is_flag=True, help="Exit code 1 for a change of behaviour, too.")
def diff(old: str, new: str, style: str, *, everything: bool, strict: bool) -> int:
    """Compare two specifications."""
    report = _compared(old, new)
    _show(report, style, everything=everything)
    changed = report.counts()["changes behaviour"] if strict else 0
    return EXIT_BREAKS if report.breaks() or changed else 0


@spec.command(
    epilog=EXAMPLES,
    short_help="Refuse a break of the wire that no line of the changelog names.",
    help="""Compare this folder with the last tag; refuse a break of the wire that its changelog omits.

    A line of CHANGELOG.md names a break with the word breaks: and the id that `replispec spec diff` prints,
    as in `breaks: FAMILY GetReplicaInfoRequest.broker_name`; several ids stand between commas. Lines that
    the changelog of the tag holds already do not count. Without a tag nothing was released that could break.

    Exit codes: 0 every break is named, 1 some are not, 2 input that cannot be used.""",
)
@click.option("--against", metavar="REVISION", help="Compare with this instead of the last tag.")
def check(against: str | None) -> int:
    """Compare with the last tag."""
    ask_for_compiler()
    from replispec.compiler.evolution.revisions import last_tag

    old = against or last_tag(Path())
    if old is None:
        click.echo("spec-check: no tag here, so nothing was released that a change could break")
        return 0
    report = _compared(old, ".")
    for entry in report.unnamed():
        click.echo(f"{entry.change.id}: {entry.change.says} ({entry.change.place})", err=True)
    counts = ", ".join(f"{count} {kind}" for kind, count in report.counts().items() if count)
    click.echo(
        f"spec-check: since {old}: {counts or 'no change'}; {len(report.unnamed())} breaks are not named"
    )
    if report.unnamed():
        ids = ", ".join(dict.fromkeys(entry.change.id for entry in report.unnamed()))
        click.echo(f"Keep what peers follow, or name it in CHANGELOG.md: `breaks: {ids}`", err=True)
        return EXIT_BREAKS
    return 0


def _compared(old: str, new: str) -> Report:
    """The report. The compiler is imported here: the core install has not what it needs."""
    ask_for_compiler()
    from replispec.compiler.evolution.report import compare_sides
    from replispec.compiler.evolution.revisions import Unreadable

    try:
        return compare_sides(old, new, repository=Path())
    except Unreadable as fault:
        raise click.ClickException(str(fault)) from None


def _show(report: Report, style: str, *, everything: bool) -> None:
    from replispec.compiler.evolution.report import to_lines, to_plain

    if style == "json":
        click.echo(json.dumps(to_plain(report), indent=1, ensure_ascii=False))
    else:
        for line in to_lines(report, everything=everything):
            click.echo(line)
