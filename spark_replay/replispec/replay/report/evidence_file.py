"""The packets of the frames that prove findings, as a capture of their own, each with what it proves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from replispec.replay.capture.pcapng_writer import WrittenPacket, write_pcapng
from replispec.replay.capture.records import ALL_TIME, Integers, Window
from replispec.replay.report.evidence import Located
from replispec.replay.report.frame_rows import Place
from replispec.replay.tcp.directions import Direction, directions
from replispec.replay.tcp.ground import standing_alone
from replispec.replay.tcp.rotation import Rotation, Source, name_of, open_rotation
from replispec.replay.tcp.sides import read_connections
from replispec.runtime.primitives.visible import visible

REMARK_CHARACTERS_MAXIMUM = 1_000


def write_evidence(
    sources: Sequence[Source],
    located: Mapping[Place, Located],
    said: Mapping[Place, str],
    path: Path,
    window: Window = ALL_TIME,
) -> int:
    """Write the packets that carried these frames, in the order of time; how many they are.

    `said`: what is said of each frame, which the packet that completed it is given as its remark. Packets
    that other frames share are there once. `window` is that of the replay. Raises OSError, CaptureError.
    """
    packets: list[WrittenPacket] = []
    for source in sources:
        mine = {place: found.size for place, found in located.items() if place[0] == name_of(source)}
        if mine:
            packets += _packets(source, mine, said, window)
    packets.sort(key=lambda packet: packet.time_ns)
    write_pcapng(packets, path)
    return len(packets)


def _packets(
    source: Source, sizes: Mapping[Place, int], said: Mapping[Place, str], window: Window
) -> list[WrittenPacket]:
    wanted: dict[tuple[str, int], list[Place]] = defaultdict(list)
    for place in sizes:
        wanted[place[1], place[2]].append(place)
    remarks: dict[int, list[str]] = {}
    with open_rotation(source, window) as rotation:
        for incarnation in read_connections(rotation.data, standing_alone(rotation.data, rotation.packets())):
            for direction in directions(incarnation):
                if direction is not None:
                    for place in wanted.get((direction.connection, direction.number), ()):
                        _note(direction, place, sizes[place], said.get(place, ""), remarks)
    # Packets are counted from the beginning of the file, wherever the window begins.
    with open_rotation(source) as rotation:
        return [packet for file in range(len(rotation.files)) for packet in _written(rotation, file, remarks)]


def _note(direction: Direction, place: Place, size: int, said: str, remarks: dict[int, list[str]]) -> None:
    """Put down the positions in the capture that hold a byte of the frame; the last packet gets the words."""
    pieces, start = direction.pieces, place[3]
    rows = np.flatnonzero((pieces.start < start + size) & (pieces.end > start))
    for row in rows.tolist():
        remarks.setdefault(int(pieces.payload_offset[row]), [])
    if len(rows) and said:
        last = rows[np.argmax(pieces.record_offset[rows])]
        remarks[int(pieces.payload_offset[last])].append(said)


def _written(rotation: Rotation, number: int, remarks: Mapping[int, list[str]]) -> list[WrittenPacket]:
    """The packets of one file that hold any of these positions."""
    file = rotation.files[number]
    records = file.records()
    base = file.whole.base
    starts: Integers = records.data_offset + base
    own: dict[int, list[str]] = {}
    for position, words in remarks.items():
        row = int(np.searchsorted(starts, position, "right")) - 1
        if row >= 0 and position < starts[row] + records.captured[row]:
            own.setdefault(row, []).extend(words)
    found = []
    for row, words in sorted(own.items()):
        at, size = int(records.data_offset[row]), int(records.captured[row])
        remark = f"frame {row + 1} of {file.whole.name}" + "".join(f"; {each}" for each in words)
        found.append(
            WrittenPacket(
                int(records.time_ns[row]),
                int(records.link_type[row]),
                file.data[at : at + size],
                int(records.wire[row]),
                visible(remark, REMARK_CHARACTERS_MAXIMUM),
            )
        )
    return found
