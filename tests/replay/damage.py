"""A very small piece of a real capture, what each of its bytes means, and what a replay makes of it.

The piece holds a controller's and a replication connection from their first packets on: a registration
with its answers, a heartbeat, a replication handshake, transfers and reports.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replispec.replay.capture.records import CaptureError
from replispec.replay.engines.decoding import DecodedCapture, decode_capture
from replispec.replay.engines.family import judged
from replispec.replay.engines.local import capture_row, hints
from replispec.replay.engines.results import Options
from replispec.replay.events.observe import observe
from replispec.replay.report.summary import CaptureRow

SOURCE = Path(__file__).parents[2] / "spark_replay/captures/c_syncstateset.pcap"
# (port, port) -> how many packets are taken from the start of that connection.
TAKEN = {(39871, 53470): 17, (30912, 55818): 16}
OPTIONS = Options(bodies=True)
FILE_HEADER, RECORD_HEADER, ETHERNET, IPV4, TCP = 24, 16, 14, 20, 20

# Field names with sizes in bytes, in the order of the file.
FILE_FIELDS = (("magic", 4), ("major", 2), ("unread", 14), ("link type", 4))
RECORD_FIELDS = (("time", 8), ("captured length", 4), ("wire length", 4))
PACKET_FIELDS = (
    ("mac", 12), ("ether type", 2),
    ("ip version", 1), ("ip service", 1), ("ip length", 2), ("ip id", 2), ("ip fragment", 2), ("ip ttl", 1),
    ("ip protocol", 1), ("ip checksum", 2), ("ip addresses", 8),
    ("ports", 4), ("sequence", 4), ("acknowledgment", 4), ("tcp offset", 1), ("tcp flags", 1), ("window", 2),
    ("tcp checksum", 2), ("urgent", 2),
)  # fmt: skip
# Nothing of a replay depends on these; TCP's checksum is not filled in on a loopback interface.
MEANINGLESS = {"unread", "wire length", "mac", "window", "tcp checksum", "urgent", "tcp options"}
# These say nothing themselves, but the header's checksum covers them: the packet is left out.
COVERED = {"ip service", "ip id", "ip ttl", "ip checksum"}


@dataclass(frozen=True, slots=True)
class Byte:
    """What one byte of the file is: its field, its record's file offset (-1: the file header).

    For payload, `source` sent it and `position` is its place in that direction; `is_last`: its packet
    is the last of its direction with payload, so that nothing later tells of its bytes.
    """

    field: str
    record: int
    source: str = ""
    position: int = -1
    is_last: bool = False


def small_capture() -> bytes:
    """The piece as a pcap file of some 5 kB."""
    data = SOURCE.read_bytes()
    left = dict(TAKEN)
    parts = [data[:FILE_HEADER]]
    for at, end in records(data):
        low, high = sorted(struct.unpack_from("!HH", data, at + RECORD_HEADER + ETHERNET + IPV4))
        if left.get((low, high), 0):
            left[low, high] -= 1
            parts.append(data[at:end])
    return b"".join(parts)


def records(data: bytes) -> list[tuple[int, int]]:
    """[start, end) of each record of a sound little-endian pcap file."""
    found = []
    at = FILE_HEADER
    while at < len(data):
        end = at + RECORD_HEADER + int.from_bytes(data[at + 8 : at + 12], "little")
        found.append((at, end))
        at = end
    return found


def meanings(data: bytes) -> list[Byte]:
    """What each byte of the piece is."""
    found = [Byte(name, -1) for name, size in FILE_FIELDS for _ in range(size)]
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for at, end in records(data):
        tcp = at + RECORD_HEADER + ETHERNET + IPV4
        port, _, sequence = struct.unpack_from("!HHI", data, tcp)
        payload = tcp + (data[tcp + 12] >> 4) * 4
        source = f"127.0.0.1:{port}"
        first.setdefault(source, sequence + 1)
        if payload < end:
            last[source] = at
        fields = (*RECORD_FIELDS, *PACKET_FIELDS, ("tcp options", payload - tcp - TCP))
        found += [Byte(name, at, source) for name, size in fields for _ in range(size)]
        position = sequence - first[source]
        found += [Byte("payload", at, source, position + place) for place in range(end - payload)]
    return [
        Byte(byte.field, byte.record, byte.source, byte.position, last.get(byte.source) == byte.record)
        for byte in found
    ]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a replay makes of a file: `error`, or rows of the tables and the capture's figures.

    `judge` gives the findings as (group, invariant, verdict, evaluated), and must not raise.
    """

    error: CaptureError | None
    frames: list[dict[str, Any]]
    holes: list[dict[str, Any]]
    streams: list[dict[str, Any]]
    figures: CaptureRow
    judge: Callable[[], list[tuple[str, str, str, int]]]

    @property
    def reported(self) -> bool:
        """Whether the summary says that something was missing or odd, or a row that it is not whole."""
        row = self.figures
        odd = row.error or row.warnings or row.holes or row.bytes_undecoded or row.bytes_foreign
        parts = not all(frame["complete"] for frame in self.frames)
        return bool(odd) or parts or not all(stream["from_start"] for stream in self.streams)


def outcome(path: Path, data: bytes) -> Outcome:
    """Replay a file of these bytes, written to `path`, in this process. Raises nothing but our own faults."""
    path.write_bytes(data)
    try:
        decoded = decode_capture(path, hints(OPTIONS))
    except CaptureError as fault:
        return Outcome(fault, [], [], [], CaptureRow(path.name, error=str(fault)), list)
    row = capture_row(path.name, decoded)
    tables = (decoded.frames, decoded.holes, decoded.streams)
    rows = [table.to_pylist() for table in tables]
    return Outcome(None, rows[0], rows[1], rows[2], row, lambda: findings(decoded, row))


def findings(decoded: DecodedCapture, row: CaptureRow) -> list[tuple[str, str, str, int]]:
    """The findings about a decoded capture."""
    result = judged(row, observe(decoded.frames, decoded.holes, decoded.streams), OPTIONS)
    return [(item.group, item.invariant, item.verdict.value, item.evaluated) for item in result.findings]


def without(rows: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    """The rows without these columns."""
    return [{key: value for key, value in row.items() if key not in names} for row in rows]
