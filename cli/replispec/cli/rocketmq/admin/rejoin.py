"""`replispec admin rejoin`: what a replica would cut of its log if it followed a master."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from replispec.administrator.rocketmq.brokers import epochs
from replispec.administrator.rocketmq.rejoin import EpochLog, Rejoining, log_of, rejoining
from replispec.cli.rocketmq.admin import store_facts
from replispec.cli.rocketmq.admin.asking import RefusedToAskError, ask
from replispec.cli.shown import Display, form_option, show

EXIT_APART = 1
EXAMPLES = """\b
Examples:
  replispec admin rejoin --dry-run --store broker-2-store --master 127.0.0.1:10911
  replispec admin rejoin --dry-run --broker 127.0.0.1:10921 --master 127.0.0.1:10911

\b
Exit codes:
  0  it would follow, and the text says what it would cut
  1  the logs share no epoch: it would neither cut nor copy
  2  one of them cannot be had, or a wrong command line
"""


@click.command("rejoin", epilog=EXAMPLES, short_help="What a replica would cut if it followed a master.")
@click.option("--dry-run", is_flag=True, help="Needed: a broker that starts does it by itself.")
@click.option(
    "--store", type=click.Path(exists=True, file_okay=False, path_type=Path), help="The replica's folder."
)
@click.option("--broker", metavar="ADDRESS:PORT", help="The replica, where it runs.")
@click.option("--master", metavar="ADDRESS:PORT", required=True, help="The master, where it runs.")
@form_option
def command(store: Path | None, broker: str | None, master: str, form: str, *, dry_run: bool) -> int:
    """Say what a replica would cut of its log, and copy anew, if it followed a master; nothing is changed.

    The epochs of both logs decide, as they do when it really follows. The log of --store ends where it is
    known to be on the disk, or where its last whole record does.
    """
    if not dry_run:
        raise click.UsageError("only --dry-run is offered: a broker that starts follows its master by itself")
    if (store is None) == (broker is None):
        raise click.UsageError("one of --store and --broker is needed")
    found = ask(epochs([each for each in (broker, master) if each is not None]))
    logs: Mapping[str, EpochLog] = {address: log_of(cache) for address, cache in found.items()}
    replica = store_facts.log(store) if store is not None else logs[broker or ""]
    if replica is None:
        raise RefusedToAskError(f"{store}: no store of a broker or learner")
    return show(lambda: _shown(rejoining(replica, logs[master])), form, None)


def _shown(found: Rejoining) -> Display:
    row = {
        "agree": found.agree,
        "end": found.end,
        "master_end": found.master_end,
        "cut": found.cut,
        "copied": found.copied,
    }
    if found.agree is None:
        text = (
            f"the logs share no epoch that begins at the same offset: nothing of [0, {found.end}) would be "
            "cut, and nothing copied, until the replica is repaired (`replispec admin repair`)\n"
        )
        return Display(text, [row], EXIT_APART)
    cut = f"[{found.agree}, {found.end}): {found.cut} bytes" if found.cut else "nothing"
    text = (
        f"both logs agree up to {found.agree}\nwould be cut:    {cut}\n"
        f"would be copied: [{found.agree}, {found.master_end}): {found.copied} bytes\n"
    )
    return Display(text, [row])
