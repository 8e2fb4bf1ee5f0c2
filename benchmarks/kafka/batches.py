"""How many batches a leader takes a second, beside what no reader can do without.

    python -m benchmarks.kafka.batches [--seconds 1] [--rounds 5]

Both in turns, in one process: `ours` finds a batch, judges it and places it; `floor` is a checksum and three
numbers that are read and written with `struct`, which judge nothing.
"""

from __future__ import annotations

import argparse
import statistics
import struct
import sys
import time
from collections.abc import Callable
from typing import Final

import google_crc32c

from replispec.runtime.kafka.batches import batch_of, batches_in, fault_of, place
from replispec.wire.kafka.codes import ErrorCode
from replispec.wire.kafka.records import RecordBatchFixed

SIZES: Final = (100, 1_000, 100_000, 1_000_000)
_PLACES: Final = RecordBatchFixed.places()
_BEFORE: Final = struct.Struct(">qii")
_CRC: Final = struct.Struct(">I")


def ours(data: bytearray) -> None:
    """A batch is judged and placed where it lies."""
    assert fault_of(data) is ErrorCode.NONE
    (batch,) = batches_in(data, may_be_cut=False)
    place(data, batch, 7, 3)


def floor(data: bytearray) -> None:
    """The least that reads and writes the same bytes."""
    _, length, _ = _BEFORE.unpack_from(data, 0)
    (crc,) = _CRC.unpack_from(data, _PLACES["crc"][0])
    assert google_crc32c.value(bytes(memoryview(data)[_PLACES["attributes"][0] :])) == crc
    _BEFORE.pack_into(data, 0, 7, length, 3)


def rate(work: Callable[[bytearray], None], data: bytearray, seconds: float) -> float:
    """Calls a second."""
    done, began = 0, time.perf_counter()
    while True:
        for _ in range(50):
            work(data)
        done += 50
        spent = time.perf_counter() - began
        if spent >= seconds:
            return done / spent


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each, in turns (%(default)s)")
    options = parser.parse_args()
    sys.stdout.write("bytes of the batch | ours, batches/s | MB/s | floor, batches/s | ours / floor" + "\n")
    for size in SIZES:
        data = bytearray(batch_of([(1_000, None, bytes(size))]))
        pairs = [
            (rate(ours, data, options.seconds), rate(floor, data, options.seconds))
            for _ in range(options.rounds)
        ]
        mine, least = (statistics.median(column) for column in zip(*pairs, strict=True))
        ratio = statistics.median(one / other for one, other in pairs)
        sys.stdout.write(
            f"{len(data):,} | {mine:,.0f} | {mine * len(data) / 1e6:,.0f} | {least:,.0f} | {ratio:.2f}" + "\n"
        )


if __name__ == "__main__":
    main()
