"""`replispec controller`, `nameserver`, `broker`, `learner`, `metastore`: run one role as a process."""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from replispec.cli.admin_found import found

if TYPE_CHECKING:
    from replispec.runtime.storage import Storage
    from replispec.runtime.world import Member

EXAMPLE_FILES = {
    "controller": ("listenPort=9878", "storePathRootDir=controller-store"),
    "nameserver": ("listenPort=9876",),
    "broker": (
        "brokerName=broker-a",
        "listenPort=10911",
        "namesrvAddr=127.0.0.1:9876",
        "controllerAddr=127.0.0.1:9878",
        "storePathRootDir=broker-store",
        "allAckInSyncStateSet=true",
    ),
    "learner": (
        "brokerName=broker-a",
        "listenPort=10921",
        "namesrvAddr=127.0.0.1:9876",
        "controllerAddr=127.0.0.1:9878",
        "storePathRootDir=learner-store",
        "exportPath=messages.jsonl",
    ),
    "metastore": ("clientPort=2181", "dataDir=metastore-store"),
}
ABOUT = {
    "controller": "Run a controller: it registers brokers, keeps their SyncStateSets and elects masters.",
    "nameserver": "Run a name server: brokers tell it their topics, clients ask it for routes.",
    "broker": "Run a broker in controller mode: it keeps messages, as master or as replica.",
    "learner": "Run a learner: it follows a broker set's log and never becomes part of the set.",
    "metastore": "Run a metastore: a tree of small nodes that clients share, change by version and watch.",
}
DETAILS = """\
    Prints one line of JSON when it listens, with the process id and the real addresses; logs to standard
    error, a line of JSON each. Ends on SIGTERM or SIGINT. Exit code 0 after a signal, 1 when it failed, 2 for
    a configuration that cannot be used. docs/configuration.md leads to all parameters."""


def make_command(role: str) -> click.Command:
    """The command that runs one role."""

    @click.command(
        role,
        help=f"{ABOUT[role]}\n\n{DETAILS}",
        short_help=ABOUT[role],
        epilog=_epilog(role),
    )
    @click.option(
        "-c",
        "--config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="A properties file with the role's parameters.",
    )
    @click.option("--set", "settings", metavar="NAME=VALUE", multiple=True, help="Counts more than the file.")
    @click.option(
        "--log-format",
        type=click.Choice(("text", "json")),
        help="How lines of the log are written; as --set logFormat=.",
    )
    @click.option(
        "--log-level",
        type=click.Choice(("debug", "info", "warning", "error")),
        help="The least that is logged; as --set logLevel=.",
    )
    @click.option("--print-config", is_flag=True, help="Print every parameter with its value, and end.")
    @click.option("--family", metavar="NAME", help="Whose role it is, where several families have one.")
    @click.pass_context
    def command(
        context: click.Context,
        config: Path | None,
        settings: tuple[str, ...],
        family: str | None,
        log_format: str | None,
        log_level: str | None,
        *,
        print_config: bool,
    ) -> int:
        if context.invoked_subcommand is not None:
            return 0
        named = (("logFormat", log_format), ("logLevel", log_level))
        said = [f"{name}={value.upper()}" for name, value in named if value]
        return _run(role, family, config, (*settings, *said), print_config=print_config)

    return _with_import(command) if role == "controller" else command


def _with_import(command: click.Command) -> click.Command:
    """The same, and below it what founds a group, where whoever comes from other controllers looks for it."""
    group = click.Group(
        command.name,
        callback=command.callback,
        params=command.params,
        help=command.help,
        short_help=command.short_help,
        epilog=command.epilog,
        invoke_without_command=True,
    )
    group.add_command(found, "import")
    return group


def _epilog(role: str) -> str:
    lines = "\n".join(f"  {line}" for line in EXAMPLE_FILES[role])
    file = f"{role}.properties"
    return f"\b\nExamples:\n  replispec {role} -c {file}\n\n\b\nA file that is enough:\n{lines}"


def _run(
    role: str, family: str | None, config: Path | None, settings: tuple[str, ...], *, print_config: bool
) -> int:
    from replispec.runtime import families
    from replispec.runtime.configuration import ConfigurationError, parse
    from replispec.runtime.net.launch_shell import launch
    from replispec.runtime.net.sealing import SealingError
    from replispec.runtime.primitives.properties import write_properties

    place = str(config) if config is not None else "configuration"
    overrides = {}
    for pair in settings:
        name, separator, value = pair.partition("=")
        if not separator:
            raise click.UsageError(f"--set {pair}: NAME=VALUE is expected")
        overrides[name] = value
    try:
        text = config.read_text(encoding="utf-8") if config is not None else ""
        chosen = _family(role, family, text, overrides)
        parsed = parse(text, families.wire(chosen, "parameters").ROLES[role], overrides=overrides)
        if print_config:
            click.echo(write_properties(parsed.properties()), nl=False)
            return 0
        options = parsed.options
        make = partial(_maker(role, chosen), options)
        tls, notes = getattr(options, "tls", None), parsed.notes
        return launch(role, options.process, make, tls=tls, notes=notes, out=sys.stdout, errors=sys.stderr)
    except (ConfigurationError, SealingError) as error:
        raise click.ClickException(f"{place}: {error}") from error
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{place}: not UTF-8 (at byte {error.start})") from error


def _family(role: str, wanted: str | None, text: str, overrides: Mapping[str, str]) -> str:
    """The family whose role is run: the one that was asked for, else the one that is configured.

    Of several that have this role it is the one that knows most of the names that are given, and whose
    parameters without a default are among them.
    """
    from replispec.runtime.families import wire, with_part
    from replispec.runtime.primitives.properties import read_properties

    there_are = with_part(role, "process")
    if wanted is None and len(there_are) > 1:
        given = {*read_properties(text)[0], *overrides}
        roles = {each: wire(each, "parameters").ROLES[role] for each in there_are}
        told = {each: (known.has_demanded(given), known.knows(given)) for each, known in roles.items()}
        best = max(told.values())
        there_are = tuple(each for each in there_are if told[each] == best)
    if wanted is None and len(there_are) == 1:
        return there_are[0]
    if wanted not in with_part(role, "process"):
        raise click.UsageError(f"--family: a {role} is one of {', '.join(with_part(role, 'process'))}")
    return wanted


def _maker(role: str, family: str) -> "Callable[[Any, Storage, int], Sequence[Member]]":
    """What makes the nodes of a role; imported when it is run, so that the others need not load it."""
    from replispec.runtime.families import part

    make: Callable[[Any, Storage, int], Sequence[Member]] = part(role, family, "process").members
    return make


COMMANDS = tuple(map(make_command, ("controller", "nameserver", "broker", "learner", "metastore")))
