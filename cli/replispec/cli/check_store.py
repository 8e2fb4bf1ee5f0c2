"""`replispec check-store`: what a broker's store holds, where its log ends, and what is damaged."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from replispec.cli.failures import EXIT_UNUSABLE

if TYPE_CHECKING:
    from replispec.cli.stores import StoreReport

EXIT_DAMAGED = 1
EXAMPLES = """\b
Examples:
  replispec check-store broker-store
  replispec check-store broker-store --json | jq .verdict
  replispec check-store broker-store --accept-loss

\b
Verdicts and exit codes:
  whole    0  nothing is wrong
  torn     0  a crash left a part of the last records, which nobody was told of: a start cuts it by itself
  damaged  1  something changed that once was on the disk: a start is refused, and nothing is cut
           2  the folder holds no store, or cannot be read

\b
What to do with a damaged store:
  1. Ask the controller who is master. Is it another broker of the set: `replispec admin repair -c FILE`,
     then start. The broker keeps its id and copies everything.
  2. Is no other broker master, but one has a longer whole log: make that one serve first.
  3. Is this the only copy: keep one of the folder, then run --accept-loss. The log ends before the first
     damage from then on, and the messages behind it are lost. Then start.
"""


@click.command("check-store", epilog=EXAMPLES, short_help="Tell a torn tail of a store from damage.")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of text.")
@click.option(
    "--accept-loss",
    is_flag=True,
    help="Note that the log ends before the first damage: the only change.",
)
def check_store(folder: Path, *, as_json: bool, accept_loss: bool) -> int:
    """Check the store of a stopped broker or learner in FOLDER (storePathRootDir), without changing it.

    A crash may take what was not flushed yet, and nothing else. All before the mark that is kept beside
    the log was on the disk and has a checksum: what differs there is damage of the disk or of a hand. Stores
    of other implementations have no mark; there what is followed by whole records counts as damage.
    """
    from replispec.runtime import families
    from replispec.runtime.storage import StorageFailed
    from replispec.runtime.storage.looking_shell import LookedAtFiles

    files = LookedAtFiles(folder)
    try:
        reports = [
            families.part("cli", each, "store").check(files) for each in families.with_part("cli", "store")
        ]
    except StorageFailed as error:
        click.echo(f"replispec: {folder}: {error}", err=True)
        return EXIT_UNUSABLE
    report: StoreReport | None = next((each for each in reports if each is not None), None)
    if report is None:
        click.echo(f"replispec: {folder}: no store of a broker or learner", err=True)
        return EXIT_UNUSABLE
    click.echo(_json(report) if as_json else _text(report))
    if not accept_loss:
        return EXIT_DAMAGED if report.verdict == "damaged" else 0
    return _accept(folder, report)


def _accept(folder: Path, report: "StoreReport") -> int:
    from replispec.runtime.storage import StorageFailed, Stores
    from replispec.runtime.storage.disk_shell import DiskFiles

    if not report.accepted:
        click.echo("replispec: nothing to accept: the log has no damage that it could end before", err=True)
        return EXIT_DAMAGED if report.verdict == "damaged" else 0
    try:
        files = DiskFiles(folder)
        Stores(files).carry_out(report.accepted)
        files.close()
    except StorageFailed as error:
        click.echo(f"replispec: {error}", err=True)
        return EXIT_UNUSABLE
    click.echo(f"accepted: the log ends at {report.end}; a start cuts what follows", err=True)
    return 0


def _json(report: "StoreReport") -> str:
    values = asdict(report)
    del values["accepted"]
    return json.dumps(values)


def _text(report: "StoreReport") -> str:
    noted = "nothing says up to where it was on the disk"
    if report.noted is not None:
        noted = f"it was on the disk up to {report.noted}"
    lines = [f"{report.verdict}: {report.kind}; the log ends at {report.end}, {noted}"]
    lines.append(f"{report.messages} messages before the end, {report.behind} whole ones behind a damage")
    for file in report.files:
        lines.append(f"  {file.name}  {file.size} bytes  {file.holds}")
        lines += [f"    DAMAGED: {each}" for each in file.damage]
    return "\n".join([*lines, *(f"advice: {each}" for each in report.advice)])
