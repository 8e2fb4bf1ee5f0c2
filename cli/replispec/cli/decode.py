"""`replispec decode`: every frame of a capture, one line each."""

import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.compute as pc

from replispec.cli.frame_text import Row, json_line, text_line
from replispec.cli.output import standard_output
from replispec.cli.progress import working
from replispec.replay.classify import Hints
from replispec.replay.local import DecodedCapture, decode_capture

# Rows that are turned into Python objects at a time.
ROWS = 1000
ORDERS = {
    "time": [("time_ns", "ascending"), ("record_offset", "ascending"), ("sequence", "ascending")],
    "connection": [],
}
EXAMPLES = """\b
Examples:
  replispec decode trace.pcap | grep ELECT_MASTER
  replispec decode trace.pcapng.gz --format json | jq .ext_fields
"""


@click.command(epilog=EXAMPLES)
@click.argument("capture", type=click.Path(exists=True, dir_okay=False, path_type=Path))
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
    type=click.Choice(list(ORDERS)),
    default="time",
    show_default=True,
    help="By time of capture, or connection by connection.",
)
@click.option(
    "--ha-port",
    "ha_ports",
    type=click.IntRange(1, 65535),
    multiple=True,
    help="A port on which masters replicate, where the bytes alone do not tell. May be repeated.",
)
def decode(capture: Path, shape: str, order: str, ha_ports: tuple[int, ...]) -> None:
    """Print every frame of CAPTURE, a pcap or pcapng file, also compressed by gzip.

    Text shows seconds since the first packet, who sent to whom, the command with its fields or the
    replication message, and the size of a body. JSON has every column of the frames table that applies.
    """
    with working(f"decoding {capture.name}"):
        decoded = decode_capture(capture, Hints(ha_ports=frozenset(ha_ports)))
    for warning in decoded.warnings:
        click.echo(f"replispec: {warning}", err=True)
    start_ns = pc.min(decoded.streams["first_time_ns"]).as_py() or 0
    with standard_output() as out:
        for row in _rows(decoded.frames, order):
            out.write(json_line(row) if shape == "json" else f"{text_line(row, start_ns)}\n".encode())
    if sys.stderr.isatty():
        click.echo(_totals(decoded), err=True)


def _rows(frames: pa.Table, order: str) -> Iterator[Row]:
    if ORDERS[order]:
        frames = frames.take(pc.sort_indices(frames, ORDERS[order]))
    for batch in frames.to_batches(max_chunksize=ROWS):
        yield from batch.to_pylist()


def _totals(decoded: DecodedCapture) -> str:
    remoting = pc.sum(pc.equal(decoded.frames["protocol"], "remoting")).as_py() or 0
    undecoded = pc.sum(decoded.streams["bytes_undecoded"]).as_py() or 0
    return (
        f"{remoting} remoting frames, {decoded.frames.num_rows - remoting} replication frames, "
        f"{undecoded} bytes undecoded, {decoded.holes.num_rows} holes"
    )
