"""`replispec admin found`: make the first member of a new group of controllers of what there is."""

from pathlib import Path

import click

from replispec.cli.failures import EXIT_UNUSABLE
from replispec.cli.foundings import FoundingRefused, FoundingSource

EXIT_REFUSED = 1
EXAMPLES = """\b
Examples:
  replispec admin found -c controller-1.properties --dry-run
  replispec admin found -c controller-1.properties
  replispec admin found -c controller-1.properties --from-controller 127.0.0.1:9878 \\
      --cluster DefaultCluster --broker-set broker-a
  replispec admin found -c controller-1.properties --from-folder old-controller-store --dry-run

\b
The file is that of the new group's first member: controllerDLegerPeers names it alone, controllerStorePath is
its store. The controller that was alone is stopped. Then:
  replispec controller -c controller-1.properties
and others join, one after the other; see docs/change-controllers.md.

\b
Exit codes:
  0  done
  1  refused: nothing was changed, and the reason is said
  2  a configuration or a store that cannot be used
"""


@click.command(
    "found", epilog=EXAMPLES, short_help="Make the first member of a group of controllers of what there is."
)
@click.option(
    "-c",
    "--config",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The properties file of the group's first member.",
)
@click.option("--set", "settings", metavar="NAME=VALUE", multiple=True, help="Counts more than the file.")
@click.option(
    "--from-controller", "controller", metavar="HOST:PORT", default="", help="Begin with what this one tells."
)
@click.option("--cluster", metavar="NAME", default="", help="The cluster of these broker sets.")
@click.option(
    "--broker-set", "broker_sets", metavar="NAME", multiple=True, help="A broker set that it is asked for."
)
@click.option(
    "--from-folder",
    "folder",
    metavar="FOLDER",
    default="",
    help="Begin with what a stopped controller of another make has here, its store path.",
)
@click.option(
    "--beyond",
    type=click.Choice(["leave", "take"]),
    help="What to do with entries of which that folder does not say whether they are committed.",
)
@click.option(
    "--from-brokers",
    "brokers",
    metavar="HOST:PORT;...",
    default="",
    help="Begin with what living brokers tell, all of their broker sets, where no controller is left.",
)
@click.option(
    "--master-id",
    "masters",
    metavar="BROKERSET=ID",
    multiple=True,
    help="The id of a master, which it does not tell: see brokerIdentity in its store.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be on record, and write nothing.")
def found(
    config: Path,
    settings: tuple[str, ...],
    controller: str,
    cluster: str,
    broker_sets: tuple[str, ...],
    folder: str,
    beyond: str | None,
    brokers: str,
    masters: tuple[str, ...],
    *,
    dry_run: bool,
) -> int:
    """Carry the records of a controller that was alone over to a group of which it is the first member.

    Its store becomes that of a member, in one write: all of it or nothing. There is no way back but a copy
    of the folder that was made before.

    With --from-controller the store is empty, and begins with what living controllers tell, of whatever make:
    of the broker sets that are named, their ids, masters, epochs and SyncStateSets. With --from-folder it
    begins with all broker sets that a stopped controller of another make has in its folder. With
    --from-brokers, where nothing else is left, with what living brokers tell of themselves.
    """
    from replispec.runtime import families
    from replispec.runtime.configuration import ConfigurationError
    from replispec.runtime.storage import StorageFailed

    source = FoundingSource(
        controller,
        cluster,
        tuple(dict.fromkeys(broker_sets)),
        folder,
        beyond or "",
        tuple(dict.fromkeys(each.strip() for each in brokers.split(";") if each.strip())),
        dict(map(_master, masters)),
    )
    _check_together(source)
    overrides = dict(pair.partition("=")[::2] for pair in settings)
    family = families.with_part("cli", "founding")[0]
    part = families.part("cli", family, "founding")
    try:
        made = part.found(config.read_text("utf-8"), overrides, dry_run=dry_run, source=source)
    except (ConfigurationError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{config}: {error}") from error
    except FoundingRefused as refusal:
        click.echo(f"replispec: {refusal}. Nothing was changed", err=True)
        return EXIT_REFUSED
    except StorageFailed as error:
        click.echo(f"replispec: {error}: is its controller stopped?", err=True)
        return EXIT_UNUSABLE
    for line in made.lines:
        click.echo(line)
    for note in made.notes:
        click.echo(f"note: {note}", err=True)
    verb = "would be" if dry_run else "is"
    click.echo(f"{made.store} {verb} the store of the only member of the group {made.name}")
    return 0


def _check_together(source: FoundingSource) -> None:
    """Whether what was given says one thing. Raises UsageError."""
    if bool(source.controller) != bool(source.broker_sets) or bool(source.controller) != bool(source.cluster):
        raise click.UsageError("--from-controller, --cluster and --broker-set are given together")
    if sum(map(bool, (source.controller, source.folder, source.brokers))) > 1:
        raise click.UsageError("--from-controller, --from-folder and --from-brokers: give one")
    if source.beyond and not source.folder:
        raise click.UsageError("--beyond belongs to --from-folder")
    if source.master_ids and not source.brokers:
        raise click.UsageError("--master-id belongs to --from-brokers")


def _master(text: str) -> tuple[str, int]:
    name, _, number = text.rpartition("=")
    if not name or not number.isdecimal() or not int(number):
        raise click.UsageError(f"--master-id {text}: BROKERSET=ID is expected")
    return name, int(number)
