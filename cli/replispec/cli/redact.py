"""`replispec redact`: a capture that can be shown."""

from __future__ import annotations

import os
from pathlib import Path

import click

from replispec.cli import capture_options
from replispec.cli.captures import given
from replispec.cli.overwriting import overwritten
from replispec.cli.places import NamedPath
from replispec.cli.progress import counting

EXAMPLES = """\b
Examples:
  replispec redact trace.pcap --out shown.pcap
  replispec redact trace.pcap trace.pcap1 --rotated --out shown.pcap
  head -c 32 /dev/urandom > key; replispec redact monday.pcap --out shown.pcap --key key
"""
NEW_KEY_BYTES = 32


@click.command(epilog=EXAMPLES, short_help="Replace all names, addresses and contents of a capture.")
@click.argument("captures", metavar="CAPTURE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out",
    metavar="FILE",
    required=True,
    type=NamedPath(dir_okay=False, path_type=Path),
    help="The capture to write, pcap or pcapng as the first CAPTURE; what it replaces is lost.",
)
@click.option(
    "--key",
    "key_file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="At least 16 secret bytes: the same key gives the same pseudonyms in every capture. "
    "Without it a key is made and forgotten.",
)
@capture_options.rotated
@capture_options.ha_ports
@capture_options.ha_5_0_0
@click.option("--quiet", "-q", is_flag=True, help="Say nothing but errors.")
def redact(
    captures: tuple[Path, ...],
    out: Path,
    key_file: Path | None,
    rotated: bool,
    ha_ports: tuple[int, ...],
    ha_5_0_0: bool,
    quiet: bool,
) -> None:
    """Write CAPTURE, a pcap or pcapng file, also compressed by gzip, with all replaced that
    tells whose it is.

    Addresses, host names, topics, groups, client ids, keys, tags, properties, names of clusters and brokers,
    remarks and the contents of messages become others of the same length, the same ones everywhere. Ports,
    times, lengths, offsets, epochs, ids of brokers and codes stay, so that `replispec replay` comes to the
    same verdicts and losses. Link layers, tunnels, comments and names of interfaces are left out; so is every
    packet that is not TCP. What is not understood becomes zeros, encrypted connections whole.

    Lengths of names, their kinds of characters and what is equal to what still show. Whoever has the key can
    find out whether a name that he guesses is in the capture.
    """
    from replispec.replay.frames.hints import Hints
    from replispec.replay.redact.run import SameAddressError
    from replispec.replay.redact.run import redact as replaced

    if len(captures) > 1 and not rotated:
        raise click.UsageError("several captures are redacted together only with --rotated: they become one")
    key = os.urandom(NEW_KEY_BYTES) if key_file is None else key_file.read_bytes()
    if said := overwritten([("--out", out)], [*captures, *filter(None, [key_file])]):
        raise click.UsageError(said[0])
    hints = Hints(ha_ports=frozenset(ha_ports), padded_answers=ha_5_0_0)
    with counting(f"redacting {captures[0].name}", 1, quiet=quiet), given(captures) as paths:
        try:
            done = replaced(paths if rotated else paths[0], out, key, hints)
        except SameAddressError as error:
            raise click.ClickException(str(error)) from error
        except ValueError as error:
            raise click.UsageError(f"{key_file}: {error}") from error
    if not quiet:
        left = f", {done.left_out} left out (not TCP, or cut)" if done.left_out else ""
        click.echo(
            f"replispec: {out}: {done.packets} packets{left}; {done.bytes_zero} of"
            f" {done.bytes_payload} bytes of payload are zero",
            err=True,
        )
