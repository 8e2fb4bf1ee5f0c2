"""`replispec adapter`: our roles for a suite that starts, crashes and restarts what it judges."""

import sys

import click

EXAMPLES = """\b
Examples:
  replispec conformance run --kind controller --adapter 'replispec adapter'
"""


@click.command(epilog=EXAMPLES, short_help="Start and crash our roles for a conformance suite.")
@click.option("--family", metavar="NAME", help="Whose roles, where several families have them.")
def adapter(family: str | None) -> int:
    """Speak the adapter protocol on standard input and output: a suite starts our roles through it.

    A program for programs: requests are protobuf with their size in front, docs/adapter-protocol.md shows
    them byte by byte. What was started ends when standard input does.

    Exit codes: 0 the runner ended the run, 1 it broke the protocol.
    """
    from replispec.runtime.adapting.adapter_shell import serve
    from replispec.runtime.families import part, with_part

    there_are = with_part("cli", "adapter")
    chosen = there_are[0] if family is None and len(there_are) == 1 else family
    if chosen not in there_are:
        raise click.UsageError(f"--family: an adapter is one of {', '.join(there_are)}")
    if sys.stdin.isatty():
        raise click.UsageError("it is started by a suite: replispec conformance run --adapter ...")
    return serve(part("cli", chosen, "adapter").programs(), 0, 1, sys.stderr)
