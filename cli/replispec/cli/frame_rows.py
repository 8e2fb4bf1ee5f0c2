"""The rows of a decoded capture in the order in which they are printed, and its figures."""

from collections.abc import Iterator

import pyarrow.compute as pc

from replispec.cli.frame_text import Row
from replispec.replay.engines.decoding import DecodedCapture
from replispec.replay.events.observe import REMOTING

# Rows that are turned into Python objects at a time.
ROWS = 1000
BY_TIME = [("time_ns", "ascending"), ("record_offset", "ascending"), ("sequence", "ascending")]


def rows(decoded: DecodedCapture, *, by_time: bool) -> Iterator[Row]:
    """Every frame, by the time of its last packet, or connection by connection as in the table."""
    frames = decoded.frames
    if by_time:
        frames = frames.take(pc.sort_indices(frames, BY_TIME))
    for batch in frames.to_batches(max_chunksize=ROWS):
        yield from batch.to_pylist()


def first_time_ns(decoded: DecodedCapture) -> int:
    """When the first packet of any stream was captured; 0 when there is none."""
    return int(pc.min(decoded.streams["first_time_ns"]).as_py() or 0)


def totals(decoded: DecodedCapture) -> str:
    """How much was decoded, in one line."""
    remoting = pc.sum(pc.equal(decoded.frames["protocol"], REMOTING)).as_py() or 0
    replication = len(decoded.frames) - decoded.frames["message"].null_count
    others = decoded.frames.num_rows - remoting - replication
    undecoded = pc.sum(decoded.streams["bytes_undecoded"]).as_py() or 0
    return (
        f"{remoting} remoting frames, {replication} replication frames, "
        f"{f'{others} others, ' if others else ''}"
        f"{undecoded} bytes undecoded, {decoded.holes.num_rows} holes"
    )
