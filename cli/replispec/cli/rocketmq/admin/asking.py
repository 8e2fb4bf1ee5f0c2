"""What the commands share: addresses, one plan carried out, a typed word before something is destroyed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from replispec.administrator.rocketmq.node import AdministratorNode
from replispec.administrator.rocketmq.plans import NotAsWantedError, Plan
from replispec.cli.peers_text import say, spelt_out
from replispec.cli.rocketmq.signing import sealing, signer
from replispec.cli.speaking import current
from replispec.runtime.net.visit_shell import visit

T = TypeVar("T")
NOBODY: Final = "no cluster (-c) or broker (-b) is named"


class RefusedToAskError(click.ClickException):
    """What was wanted cannot be had: one line."""

    def show(self, file: Any = None) -> None:
        """One line on standard error."""
        click.echo(f"replispec: {spelt_out(self.message)}", err=True, file=file)


class Addresses(click.ParamType[tuple[str, ...]]):
    """ADDRESS:PORT, several of them with `;`."""

    name = "addresses"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> tuple[str, ...]:
        """A tuple of them."""
        if isinstance(value, tuple):
            return value
        found = tuple(each.strip() for each in str(value).split(";") if each.strip())
        for each in found:
            host, _, port = each.rpartition(":")
            if not host or not port.isdecimal():
                self.fail(f"{each!r} is no ADDRESS:PORT", parameter, context)
        return found or self.fail("no address is named", parameter, context)


ADDRESSES: Final = Addresses()
controllers_option = click.option(
    "-a",
    "--controllerAddress",
    "controllers",
    metavar="ADDRESS:PORT[;...]",
    type=ADDRESSES,
    required=True,
    help="Controllers of one group.",
)
any_controllers_option = click.option(
    "-a",
    "--controllerAddress",
    "controllers",
    metavar="ADDRESS:PORT[;...]",
    type=ADDRESSES,
    default=(),
    help="Controllers of one group; else those that the brokers are configured with.",
)
name_servers_option = click.option(
    "-n",
    "--namesrvAddr",
    "name_servers",
    metavar="ADDRESS:PORT[;...]",
    type=ADDRESSES,
    envvar="NAMESRV_ADDR",
    default=(),
    help="Name servers; else those of NAMESRV_ADDR.",
)
cluster_option = click.option("-c", "--clusterName", "cluster", metavar="NAME", help="All of this cluster.")
broker_option = click.option(
    "-b", "--brokerAddr", "broker", metavar="ADDRESS:PORT", help="This broker alone."
)
yes_option = click.option("--yes", is_flag=True, help="Do not ask for a typed word: for scripts.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Say what would be asked for, and end.")


def ask(plan: Plan[T]) -> T:
    """Carry a plan out. Raises RefusedToAskError."""
    speaking = current()
    node = AdministratorNode(plan, sign=signer(speaking))
    visit(node, sealing(speaking))
    try:
        return node.result()
    except NotAsWantedError as error:
        raise RefusedToAskError(str(error)) from error


def confirmed(what: str, word: str, *, yes: bool) -> None:
    """Go on only after the word was typed. Raises RefusedToAskError."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise RefusedToAskError(f"{what}: nobody is there to confirm it; --yes goes on without")
    say(what, err=True)
    typed = click.prompt(f"Type {word} to go on", err=True, default="", show_default=False)
    if typed != word:
        raise RefusedToAskError("not confirmed: nothing was changed")


def named(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command that is about a cluster or one broker."""
    with_broker: Callable[..., Any] = broker_option(function)
    with_cluster: Callable[..., Any] = cluster_option(with_broker)
    with_both: Callable[..., Any] = name_servers_option(with_cluster)
    return with_both
