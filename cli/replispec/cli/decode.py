"""`replispec decode`: every frame of a capture, one line each."""

import sys
from pathlib import Path

import click

from replispec.cli import capture_options
from replispec.cli.captures import given
from replispec.cli.output import standard_output
from replispec.cli.progress import counting

EXAMPLES = """\b
Examples:
  replispec decode trace.pcap | grep ELECT_MASTER
  replispec decode trace.pcapng.gz --format json | jq .ext_fields
"""


@click.command(epilog=EXAMPLES, short_help="Print every frame of a capture, one line each.")
@click.argument("capture", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option(
    "--format",
    "shape",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="One line of text or one JSON object for each frame.",
)
@click.option(
    "--order",
    type=click.Choice(["time", "connection"]),
    default="time",
    show_default=True,
    help="By time of capture, or connection by connection.",
)
@capture_options.ha_ports
def decode(capture: Path, shape: str, order: str, ha_ports: tuple[int, ...]) -> None:
    """Print every frame of CAPTURE, a pcap or pcapng file, also compressed by gzip; - is standard input.

    Text shows seconds since the first packet, who sent to whom, the command with its fields or the
    replication message, and the size of a body. JSON has every column of the frames table that applies.
    """
    from replispec.cli.family import wordings
    from replispec.cli.frame_rows import first_time_ns, rows, totals
    from replispec.cli.frame_text import json_line, text_line
    from replispec.replay.engines.decoding import decode_capture
    from replispec.replay.frames.hints import Hints

    with counting(f"decoding {capture.name}", 1), given([capture]) as (path,):
        decoded = decode_capture(path, Hints(ha_ports=frozenset(ha_ports)))
    for warning in decoded.warnings:
        click.echo(f"replispec: {warning}", err=True)
    start_ns, words = first_time_ns(decoded), wordings()
    with standard_output() as out:
        for row in rows(decoded, by_time=order == "time"):
            if shape == "json":
                out.write(json_line(row))
            else:
                out.write(f"{text_line(row, start_ns, words[row['protocol']])}\n".encode())
    if sys.stderr.isatty():
        click.echo(totals(decoded), err=True)
