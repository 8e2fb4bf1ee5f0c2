"""`replispec admin members`: who a group of controllers is, and how that is changed while it serves."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from replispec.cli.peers_text import say

if TYPE_CHECKING:
    from replispec.cli.memberships import ShownGroup

EXIT_REFUSED = 1
LOOK_S = 0.2
EXAMPLES = """\b
Examples:
  replispec admin members list --at 127.0.0.1:9871
  replispec admin members add n4 127.0.0.1:9874 --at 127.0.0.1:9871
  replispec admin members remove n1 --at 127.0.0.1:9872
  replispec admin members transfer n2 --at 127.0.0.1:9871
  replispec admin members snapshot --at 127.0.0.1:9871

\b
--at names any members, several with ; between them; the leader is found through them.
One change at a time: the next one is refused until the one before is done.
docs/change-controllers.md goes through it step by step.

\b
Exit codes:
  0  done
  1  refused, or not done in time: the reason is said
  2  a wrong command line
"""


@click.group("members", epilog=EXAMPLES, short_help="Show and change the members of a group of controllers.")
def members() -> None:
    """Show and change who a group of controllers is, while it serves."""


def _at(command: Any) -> Any:
    return click.option(
        "--at", "at", required=True, metavar="HOST:PORT", help="Members, several with ; between them."
    )(command)


def _wait(command: Any) -> Any:
    return click.option(
        "--wait",
        metavar="SECONDS",
        type=click.FloatRange(0),
        default=60.0,
        show_default=True,
        help="How long to wait until it is done.",
    )(command)


@members.command("list", epilog="\b\nExamples:\n  replispec admin members list --at 127.0.0.1:9871")
@_at
def list_(at: str) -> int:
    """Say who the group is, who leads it, and who was removed."""
    family, addresses = _asked(at)
    group = _look(family, addresses, 0.0)
    if group is None:
        return EXIT_REFUSED
    say(f"group {group.name}, says {group.asked}")
    width = max((len(each.id) for each in group.members), default=0)
    for each in group.members:
        part = "leads" if each.id == group.leader else "votes" if each.votes else "learns the log"
        lag = f", lacks {each.lag} entries" if each.lag else ""
        say(f"  {each.id:<{width}}  {each.address or 'nowhere'}  {part}{lag}")
    if group.gone:
        say(f"removed for good: {', '.join(group.gone)}")
    if group.leader is None:
        say("nobody leads it")
    return 0


@members.command(
    "add", epilog="\b\nExamples:\n  replispec admin members add n4 127.0.0.1:9874 --at 127.0.0.1:9871"
)
@click.argument("member", metavar="ID")
@click.argument("address", metavar="HOST:PORT")
@_at
@_wait
def add(member: str, address: str, at: str, wait: float) -> int:
    """Have a controller join, under an id that no member ever had.

    It learns the log first and counts for nothing; it votes once it lacks little of it. Start it with
    controllerJoin, before or after.
    """
    family, addresses = _asked(at)

    def is_done(group: "ShownGroup") -> str:
        found = group.find(member)
        if found is not None and found.votes:
            return f"{member} votes: the group is {group.voters}"
        return ""

    return _change(
        family,
        addresses,
        wait,
        lambda group: family.add(group, member, address),
        is_done,
        f"{member} is added, and learns the log: it votes once it runs and has caught up",
        f"{member} is not added: nothing was changed",
    )


@members.command("remove", epilog="\b\nExamples:\n  replispec admin members remove n1 --at 127.0.0.1:9872")
@click.argument("member", metavar="ID")
@_at
@_wait
def remove(member: str, at: str, wait: float) -> int:
    """Have a controller leave, for good: its id is not given again.

    A leader has another one lead first. Refused when too few of those that stay are reached.
    """
    family, addresses = _asked(at)

    def is_done(group: "ShownGroup") -> str:
        if group.find(member) is None and member in group.gone:
            return f"{member} is no member any more: the group is {group.voters}"
        return ""

    return _change(
        family,
        addresses,
        wait,
        lambda group: family.remove(group, member),
        is_done,
        f"{member} is to leave, and has not yet",
        f"{member} is not removed: nothing was changed",
    )


@members.command(
    "transfer", epilog="\b\nExamples:\n  replispec admin members transfer n2 --at 127.0.0.1:9871"
)
@click.argument("member", metavar="ID")
@_at
@_wait
def transfer(member: str, at: str, wait: float) -> int:
    """Have another controller lead, as soon as it has the whole log."""
    family, addresses = _asked(at)
    return _change(
        family,
        addresses,
        wait,
        lambda group: family.transfer(group, member),
        lambda group: f"{member} leads" if group.leader == member else "",
        f"{member} does not lead yet",
        f"{member} does not lead: nobody was asked to let it",
        repeats=True,
    )


@members.command(
    "snapshot",
    epilog="\b\nExamples:\n  replispec admin members snapshot --at 127.0.0.1:9871",
    short_help="Have controllers keep what their records have made, now.",
)
@_at
def snapshot(at: str) -> int:
    """Have the controllers that are named by --at keep what their records have made instead of them, now."""
    from replispec.cli.memberships import MembersRefused

    family, addresses = _asked(at)
    code = 0
    for address in addresses:
        try:
            say(f"{address}: a snapshot of the records up to {family.snapshot(address)}")
        except MembersRefused as refusal:
            say(f"replispec: {refusal}", err=True)
            code = EXIT_REFUSED
    return code


def _asked(at: str) -> tuple[Any, Any]:
    """The family that has such groups, and whom to ask."""
    from replispec.runtime import families

    part = families.part("cli", families.with_part("cli", "members")[0], "members")
    try:
        addresses = part.addresses_in(at)
    except ValueError:
        addresses = ()
    if not addresses:
        raise click.UsageError(f"--at {at}: HOST:PORT is expected, several with ; between them")
    return part, addresses


def _look(family: Any, addresses: Any, wait: float) -> "ShownGroup | None":
    """The group, within so many seconds; None, with a word, when nobody says who it is."""
    from replispec.cli.memberships import MembersRefused
    from replispec.runtime.net.ask_shell import until

    why = ""

    def look() -> "ShownGroup | None":
        nonlocal why
        try:
            found: ShownGroup = family.look(addresses)
        except MembersRefused as refusal:
            why = str(refusal)
            return None
        return found

    found = until(look, wait_s=wait, pause_s=LOOK_S)
    if found is None:
        say(f"replispec: {why}", err=True)
    return found


def _change(
    family: Any,
    addresses: Any,
    wait: float,
    ask: Callable[["ShownGroup"], None],
    is_done: Callable[["ShownGroup"], str],
    not_yet: str,
    refused: str,
    *,
    repeats: bool = False,
) -> int:
    """Ask for a change, and wait until it is done."""
    from replispec.cli.memberships import MembersRefused
    from replispec.runtime.net.ask_shell import until

    is_taken = False
    known: Any = list(addresses)
    why = ""

    def step() -> int | None:
        nonlocal is_taken, known, why
        try:
            group = family.look(known)
            # Whoever was named may be the one that leaves.
            known = list(dict.fromkeys([*known, *(each.address for each in group.members if each.address)]))
            if is_taken and (said := is_done(group)):
                say(said)
                return 0
            if not is_taken or repeats:
                ask(group)
                is_taken = True
        except MembersRefused as refusal:
            why = str(refusal)
            if not refusal.again:
                say(f"replispec: {refusal}", err=True)
                return EXIT_REFUSED
        return None

    found = until(step, wait_s=wait, pause_s=LOOK_S)
    if found is not None:
        return found
    outcome = not_yet if is_taken else refused
    say(f"replispec: {outcome}{f' ({why})' if why else ''}", err=True)
    return EXIT_REFUSED
