"""`replispec status`: how a cluster is, at a glance."""

from __future__ import annotations

import click

from replispec.cli.shown import Display, show, with_formats
from replispec.cli.speaking import speaks

EXAMPLES = """\b
Examples:
  replispec status 127.0.0.1:9878
  replispec status '127.0.0.1:9871;127.0.0.1:9872' --set broker-a
  replispec status --namesrv 127.0.0.1:9876 --watch 1
  replispec status --namesrv 127.0.0.1:9876 --format json | jq '.[] | select(.alive | not)'

\b
Whether something is wrong says `replispec admin health`, by its exit code.
"""


@speaks
@click.command("status", epilog=EXAMPLES, short_help="Broker sets, masters, epochs, who is in sync, lag.")
@click.argument("controllers", metavar="[CONTROLLER[;...]]", required=False, default="")
@click.option(
    "-n",
    "--namesrv",
    metavar="ADDRESS:PORT[;...]",
    default="",
    envvar="NAMESRV_ADDR",
    help="Name servers; else those of NAMESRV_ADDR.",
)
@click.option("--set", "names", metavar="NAME", multiple=True, help="This broker set; may be said again.")
@with_formats
def status(controllers: str, namesrv: str, names: tuple[str, ...], form: str, interval: float | None) -> int:
    """Show every broker set: its members, who is master in which masterEpoch, who is in the SyncStateSet,
    where each log ends and how far it is behind the master's.

    CONTROLLER are the controllers of one group, ADDRESS:PORT with ; between them. With --namesrv alone they
    are those that the brokers are configured with. Who answers may be any release that speaks the protocol.
    """
    from replispec.runtime import families

    family = families.with_part("cli", "status")[0]
    look = families.part("cli", family, "status").look

    def found() -> Display:
        shown: Display = look(controllers, namesrv, names)
        return shown

    return show(found, form, interval)
