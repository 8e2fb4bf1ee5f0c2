"""What decoding one message costs, against a bare orjson parse of the same header.

The bytes are those that generate_capture.py sends. Each case is repeated for a fixed time in several
bouts, all cases in turns; the best bout counts. The result is a table and out/bench/codec.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson

from benchmarks.generate_capture import Mix
from replispec.wire.rocketmq.broker import SendMessageV2Request
from replispec.wire.rocketmq.codes import LogMagic, SerializeType
from replispec.wire.rocketmq.ha import HaTransferHeader, HaTransferHeaderFixed
from replispec.wire.rocketmq.remoting import RemotingFrame, RemotingHeader
from replispec.wire.rocketmq.store import LogRecord

OUT = Path(__file__).parents[1] / "out/bench"
BASE = "orjson parse of the header"
BOUTS = 60
Case = Callable[[], object]


def cases() -> dict[str, tuple[Case, int]]:
    """What is measured, by name, with the bytes that it reads."""
    frame, transfer = _first_frames()
    header = RemotingFrame.decode(frame).header
    binary = RemotingHeader.decode_json(header).encode_binary()
    in_binary = RemotingFrame(SerializeType.ROCKETMQ, binary, RemotingFrame.decode(frame).body).encode()
    record, _ = LogRecord.decode_at(transfer.body, 0, len(transfer.body))
    record_bytes, transfer_bytes = record.encode(), transfer.encode()
    assert record.magic == LogMagic.MESSAGE_V1

    def generic() -> RemotingHeader:
        return RemotingHeader.decode_json(RemotingFrame.decode(frame).header)

    def typed() -> SendMessageV2Request:
        return SendMessageV2Request.from_ext_fields(generic().ext_fields or {})

    def generic_binary() -> RemotingHeader:
        return RemotingHeader.decode_binary(RemotingFrame.decode(in_binary).header)

    return {
        BASE: (lambda: orjson.loads(header), len(header)),
        "frame": (lambda: RemotingFrame.decode(frame), len(frame)),
        "frame, generic header (JSON)": (generic, len(frame)),
        "frame, generic and typed header (JSON)": (typed, len(frame)),
        "frame, generic header (binary)": (generic_binary, len(in_binary)),
        "HA transfer, fixed fields": (lambda: HaTransferHeaderFixed.decode(transfer_bytes), 36),
        "HA transfer with its body": (lambda: HaTransferHeader.decode(transfer_bytes), len(transfer_bytes)),
        "log record": (lambda: LogRecord.decode(record_bytes), len(record_bytes)),
    }


def _first_frames() -> tuple[bytes, HaTransferHeader]:
    """The first request and the first transfer of a generated capture."""
    request = transfer = None
    for burst in Mix(megabytes=1, seed=7).bursts():
        payloads = [packet.payload for packet in burst if packet.payload]
        if burst[-1].source[0].startswith("10.1."):
            # Everything between the handshake, its answer and first report, and the last report.
            transfer = transfer or HaTransferHeader.decode(b"".join(payloads[3:-1]))
        else:
            request = request or b"".join(payloads[:-1])
        if request and transfer:
            return request, transfer
    raise AssertionError("the mix has no end")


def bout(case: Case, seconds: float) -> float:
    """Microseconds of one call, in a run of about so many seconds."""
    count = 100
    while True:
        begun = time.perf_counter()
        for _ in range(count):
            case()
        took = time.perf_counter() - begun
        if took >= seconds:
            return took / count * 1e6
        count = max(count * 2, int(count * seconds / max(took, 1e-9)))


def measure(seconds: float) -> dict[str, float]:
    """Microseconds a call, by name."""
    found = cases()
    best = dict.fromkeys(found, float("inf"))
    for _ in range(BOUTS):
        for name, (case, _) in found.items():
            best[name] = min(best[name], bout(case, seconds))
    return best


def table(best: dict[str, float]) -> Iterator[str]:
    """The figures as lines of text."""
    sizes = {name: size for name, (_, size) in cases().items()}
    yield f"{'':40}{'bytes':>8}{'us':>9}{'ratio':>8}\n"
    for name, cost in best.items():
        yield f"{name:40}{sizes[name]:8}{cost:9.2f}{cost / best[BASE]:8.2f}\n"


def main() -> None:
    """Measure, print the table, write out/bench/codec.json."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seconds", type=float, default=0.005, help="length of one bout")
    arguments = parser.parse_args()
    best = measure(arguments.seconds)
    OUT.mkdir(parents=True, exist_ok=True)
    machine = {
        "system": platform.platform(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
    }
    document = {"machine": machine, "microseconds": best}
    (OUT / "codec.json").write_text(json.dumps(document, indent=1) + "\n")
    sys.stdout.write(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, best of {BOUTS} bouts\n")
    sys.stdout.writelines(table(best))


if __name__ == "__main__":
    main()
