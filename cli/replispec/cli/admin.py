"""`replispec admin`: what whoever runs a broker set does by hand, now and then."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from replispec.cli.admin_found import found as found_group
from replispec.cli.admin_members import members
from replispec.cli.failures import EXIT_UNUSABLE
from replispec.cli.family_commands import FamilyGroup
from replispec.cli.peers_text import say
from replispec.cli.speaking import speaks

if TYPE_CHECKING:
    from replispec.cli.repairs import RepairFinding

EXIT_REFUSED = 1
LOOK_S = 1.0
EXAMPLES = """\b
Examples:
  replispec admin repair -c broker-2.properties --dry-run
  replispec admin repair -c broker-2.properties
  replispec admin repair -c broker-2.properties --discard     where the disk has no room for both

\b
When:
  a start is refused because the log, its epochs or a table are damaged
  the log was emptied, or a file of it is gone
  its master logs "replica wants deleted bytes": it was away for too long
Start the member afterwards with the same file: it copies everything, and joins the set by itself.

\b
Exit codes:
  0  done: only the identity is left in the store
  1  refused: nothing was changed, and the reason is said
  2  a configuration or a store that cannot be used
"""


@click.group(
    "admin",
    cls=FamilyGroup,
    short_help="Look after a running cluster, repair a member, found and change a group of controllers.",
    epilog="\b\nExamples:\n  replispec admin health -a 127.0.0.1:9878 -n 127.0.0.1:9876\n"
    "  replispec admin repair -c broker-2.properties --dry-run\n"
    "  replispec admin members list --at 127.0.0.1:9871",
)
def admin() -> None:
    """What whoever runs a cluster asks of it, and does by hand, now and then."""


admin.add_command(speaks(found_group))
admin.add_command(speaks(members))


@admin.command("repair", epilog=EXAMPLES, short_help="Have a damaged or emptied member copy its log again.")
@click.option(
    "-c",
    "--config",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The properties file of the stopped broker or learner.",
)
@click.option("--set", "settings", metavar="NAME=VALUE", multiple=True, help="Counts more than the file.")
@click.option(
    "--wait",
    metavar="SECONDS",
    type=click.FloatRange(0),
    default=90.0,
    show_default=True,
    help="How long to wait until the member is out of the SyncStateSet and nothing old can take it in.",
)
@click.option("--discard", is_flag=True, help="Delete what it has, instead of putting it into a folder.")
@click.option("--dry-run", is_flag=True, help="Say what would be done.")
def repair(config: Path, settings: tuple[str, ...], wait: float, *, discard: bool, dry_run: bool) -> int:
    """Let a stopped member of a broker set copy its log again, under the id that it has.

    The controller is asked first: another broker has to be master, and this one out of the SyncStateSet,
    for an empty log in it could be elected, and what the others have be lost. Then all files but the
    identity are put into a folder before-repair-N of the store, on the same disk, and nothing is deleted.
    """
    from replispec.cli.repairs import RepairRefused
    from replispec.runtime import families
    from replispec.runtime.configuration import ConfigurationError
    from replispec.runtime.storage import StorageFailed, Stores
    from replispec.runtime.storage.disk_shell import DiskStorage

    overrides = dict(pair.partition("=")[::2] for pair in settings)
    family = families.with_part("cli", "repair")[0]
    try:
        member = families.part("cli", family, "repair").StoppedMember(config.read_text("utf-8"), overrides)
        files = DiskStorage().files(member.root)
    except (ConfigurationError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{config}: {error}") from error
    except StorageFailed as error:
        say(f"replispec: {error}: stop the member first", err=True)
        return EXIT_UNUSABLE
    try:
        broker_id = member.identity(files)
        found = _waited(member, broker_id, wait)
        operations = member.given_up(files, keeps=not discard)
        if not dry_run:
            Stores(files).carry_out(operations)
    except RepairRefused as refusal:
        say(f"replispec: {refusal}. Nothing was changed", err=True)
        return EXIT_REFUSED
    except StorageFailed as error:
        say(f"replispec: {error}: run the same again", err=True)
        return EXIT_UNUSABLE
    finally:
        files.close()
    verb = "would be" if dry_run else "were"
    say(found.why)
    say(f"{len(operations)} files {verb} {'deleted' if discard else 'put aside'}; id {broker_id} stays")
    say(f"start it with {config}: it copies from {found.source}")
    return 0


def _waited(member: Any, broker_id: int, wait: float) -> "RepairFinding":
    """The first finding that it may, within so many seconds. Raises RepairRefused."""
    from replispec.cli.repairs import RepairRefused
    from replispec.runtime.net.ask_shell import until

    said = ""

    def look() -> "RepairFinding | None":
        nonlocal said
        found: RepairFinding = member.look(broker_id)
        if not found.may and not found.waits:
            raise RepairRefused(found.why)
        if not found.may and found.why != said:
            said = found.why
            say(f"waiting: {said}", err=True)
        return found if found.may else None

    found = until(look, wait_s=wait, pause_s=LOOK_S)
    if found is None:
        raise RepairRefused(said)
    return found
