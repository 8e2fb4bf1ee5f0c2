"""`replispec admin inspect`: what a store says of itself while nobody runs on it."""

from __future__ import annotations

from pathlib import Path

import click

from replispec.cli.peers_text import of_peers
from replispec.cli.progress import counting
from replispec.cli.rocketmq.admin.asking import RefusedToAskError
from replispec.cli.rocketmq.admin.java_text import moment
from replispec.cli.rocketmq.admin.store_facts import StoreFacts, facts
from replispec.cli.shown import Display, form_option, show
from replispec.runtime.storage import StorageFailed

EXIT_DAMAGED = 1
EXAMPLES = """\b
Examples:
  replispec admin inspect broker-2-store
  replispec admin inspect copy-of-a-store --format json
  replispec admin inspect large-store --progress > found.txt

\b
Exit codes:
  0  all of it can be read
  1  something cannot, or the log is damaged (`replispec check-store` tells more)
  2  it is no store
"""


@click.command("inspect", epilog=EXAMPLES, short_help="Identity, epochs and log of a store, offline.")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@form_option
@click.option(
    "--progress", is_flag=True, help="A line for each tenth of the log that was read, where nobody watches."
)
def command(folder: Path, form: str, *, progress: bool) -> int:
    """Show whose store a FOLDER (storePathRootDir) is: identity, epochs, where the log begins and ends, what
    was noted beside it. Nothing is changed; of a broker that runs, take a copy.

    All of the log is read. On a terminal it shows how far it is."""
    try:
        with counting(f"reading {folder}", 1, tenths=progress) as tell:
            found = facts(folder, tell)
    except StorageFailed as error:
        raise RefusedToAskError(f"{folder}: {error}") from error
    if found is None:
        raise RefusedToAskError(f"{folder}: no store of a broker or learner")
    return show(lambda: shown(found), form, None)


@of_peers
def shown(found: StoreFacts) -> Display:
    """As text, and as one row."""
    who = found.identity
    lines = [
        f"cluster      {who.cluster_name if who else '-'}",
        f"broker set   {who.broker_name if who else '-'}",
        f"broker id    {who.broker_id if who else '- (none was granted)'}",
    ]
    if found.applied is not None:
        lines.append(f"applied for  id {found.applied.broker_id}, {found.applied.register_check_code}")
    lines += [
        f"log          [{found.first}, {found.end}), {found.messages} messages",
        f"on the disk  up to {'- (not noted)' if found.noted is None else found.noted}",
    ]
    starts = [each.start_offset for each in found.epochs]
    ends = [*starts[1:], found.end]
    epochs = [
        {"epoch": each.epoch, "start_offset": each.start_offset, "end_offset": end}
        for each, end in zip(found.epochs, ends, strict=False)
    ]
    lines += [f"epoch {each['epoch']:<6} [{each['start_offset']}, {each['end_offset']})" for each in epochs]
    note = found.checkpoint
    if note is not None:
        lines.append(
            f"checkpoint   log {moment(note.physic_msg_timestamp)}, "
            f"queues {moment(note.logics_msg_timestamp)}, "
            f"master flushed {note.master_flushed_offset}, confirmed {note.confirm_phy_offset}"
        )
    row = {
        "cluster_name": who.cluster_name if who else None,
        "broker_name": who.broker_name if who else None,
        "broker_id": who.broker_id if who else None,
        "first": found.first,
        "end": found.end,
        "messages": found.messages,
        "noted": found.noted,
        "epochs": epochs,
        "confirm_offset": note.confirm_phy_offset if note is not None else None,
        "faults": list(found.faults),
    }
    code = EXIT_DAMAGED if found.faults else 0
    return Display("".join(f"{line}\n" for line in lines), [row], code, found.faults)
