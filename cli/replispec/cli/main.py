"""The command `replispec`: its commands, and what every one of them does about errors and pipes.

Exit codes: 0 nothing violated or lost, 1 violated or lost (or a role that failed), 2 unusable input or a
wrong command line.
"""

import resource
import signal
import sys
from contextlib import suppress
from typing import NoReturn

import click

from replispec.cli import pandas_unused
from replispec.cli.adapter import adapter
from replispec.cli.admin import admin
from replispec.cli.capture import capture
from replispec.cli.check_store import check_store
from replispec.cli.completion import VARIABLE, completion
from replispec.cli.conformance import conformance
from replispec.cli.consume import consume
from replispec.cli.cut_captures import name_cut_captures
from replispec.cli.decode import decode
from replispec.cli.explain import explain
from replispec.cli.failures import EXIT_UNUSABLE, describe
from replispec.cli.output import ReaderGone, drop_output, hear_no_complaints, supply_outputs
from replispec.cli.pack import pack
from replispec.cli.produce import produce
from replispec.cli.redact import redact
from replispec.cli.replay import replay
from replispec.cli.roles import COMMANDS as ROLES
from replispec.cli.spec import spec
from replispec.cli.status import status
from replispec.cli.stopping import SIGNALLED
from replispec.cli.watch import watch

EXAMPLES = """\b
Examples:
  replispec decode trace.pcap                     every frame, one line each
  replispec decode trace.pcap --format json       the same for scripts
  replispec replay trace.pcap --out result        losses, broken rules, report
  replispec watch captures/ --out result           the same while captures are written
  replispec redact trace.pcap --out shown.pcap    the same without names and contents
  replispec explain one-master-per-epoch          what a name in a report means
  replispec broker -c broker.properties           a broker; see docs/run-a-cluster.md
  replispec status 127.0.0.1:9878                 masters, epochs, who is in sync, of a running cluster
"""


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXAMPLES,
    no_args_is_help=True,
)
@click.version_option(package_name="replispec", message="%(prog)s %(version)s")
def command_line() -> None:
    """Judge replicated brokers by the specification, from captured traffic or on the wire, and run them.

    Captured traffic is what tcpdump or Wireshark wrote (pcap or pcapng) between brokers, their controllers,
    clients and tools. Nothing has to be installed on the captured machines. The roles that can be run are
    controller, nameserver, broker and learner.
    """


@command_line.command("version", epilog="\b\nExamples:\n  replispec version")
@click.pass_context
def show_version(context: click.Context) -> None:
    """Show the version, as --version does."""
    # No other command needs it, and to import it takes a quarter of a role's start.
    from importlib.metadata import version

    click.echo(f"{context.find_root().info_name} {version('replispec')}")


@command_line.command("help", epilog="\b\nExamples:\n  replispec help conformance run")
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
@click.pass_context
def show_help(context: click.Context, words: tuple[str, ...]) -> None:
    """Show the help of a command, as --help does."""
    here, inside = context.find_root(), context.find_root().command
    for word in words:
        found = inside.get_command(here, word) if isinstance(inside, click.Group) else None
        if found is None:
            raise click.UsageError(f"No such command {' '.join(words)!r}.", here)
        here, inside = click.Context(found, parent=here, info_name=word), found
    click.echo(inside.get_help(here))


command_line.add_command(adapter)
command_line.add_command(admin)
command_line.add_command(capture)
command_line.add_command(check_store)
command_line.add_command(completion)
command_line.add_command(conformance)
command_line.add_command(consume)
command_line.add_command(decode)
command_line.add_command(explain)
command_line.add_command(pack)
command_line.add_command(produce)
command_line.add_command(redact)
command_line.add_command(replay)
command_line.add_command(spec)
command_line.add_command(status)
command_line.add_command(watch)
for _role in ROLES:
    command_line.add_command(_role)


def _clean_up_when_ended() -> None:
    """Let SIGTERM and a closed terminal end a command as an error does: copies of captures are removed."""

    def end(number: int, _frame: object) -> None:
        sys.exit(SIGNALLED + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, end)


def _open_many_files() -> None:
    """Take as many files as the system lets this process open: all files of a rotation are open at once, and
    where shells start with 1,024 a day of files is more."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main() -> NoReturn:
    """Run the command line and leave the process with its exit code.

    A reader that closes the pipe (`replispec decode ... | head`) ends the command without a word.
    """
    supply_outputs()
    if sys.stderr is sys.__stderr__:
        # Not where another program calls this, with a standard error of its own.
        hear_no_complaints()
        _clean_up_when_ended()
        name_cut_captures()
        pandas_unused.leave_out()
        _open_many_files()
    try:
        code = command_line(standalone_mode=False, complete_var=VARIABLE)
    except ReaderGone:
        sys.exit(0)
    except click.ClickException as error:
        error.show()
        sys.exit(EXIT_UNUSABLE)
    except click.exceptions.Abort:
        click.echo("replispec: interrupted", err=True)
        sys.exit(130)
    except Exception as error:
        text = describe(error)
        if text is None:
            raise
        click.echo(f"replispec: {text}", err=True)
        drop_output()
        sys.exit(EXIT_UNUSABLE)
    sys.exit(code if isinstance(code, int) else 0)
