"""Messages of any family's streams out of a capture, and machines watched over them.

Nothing here knows a family: who opened a connection writes one stream of the specification, who accepted it
another, and messages follow one another without an envelope. A direction is read up to its first hole.
Messages stand in the order in which the capturing host saw their last byte, so several connections are told
in one order only when they were captured at the host that accepted them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from replispec.replay.machines.walks import JudgedStep, Walk
from replispec.replay.tcp.directions import Direction, directions
from replispec.replay.tcp.ground import standing_alone
from replispec.replay.tcp.rotation import open_rotation
from replispec.replay.tcp.sides import read_connections
from replispec.replay.tcp.space import SequenceSpace
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.frames import FrameBuffer
from replispec.runtime.primitives.machines import Machine
from replispec.runtime.primitives.streams import Stream

PIECE_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class SeenMessage:
    """A message with its place: the capture's time of its last byte, and its first byte in the direction.

    `value` is the decoded message; a string says why the rest of the direction could not be read.
    """

    time_ns: int
    connection: str
    position: int
    by_opener: bool
    value: object


@dataclass(frozen=True, slots=True)
class JudgedMessage:
    """A message and what the machine says of it."""

    seen: SeenMessage
    judged: JudgedStep


def read_messages(path: Path, streams: tuple[Stream, Stream], kinds: Mapping[str, Any]) -> list[SeenMessage]:
    """All messages of a capture in the order in which they were complete.

    `streams` are those of who opened a connection and of who accepted it; `kinds` the classes of their
    messages by name. Raises CaptureError and OSError for a file that is no capture.
    """
    found: list[SeenMessage] = []
    with open_rotation(path) as capture:
        data = capture.data
        for incarnation in read_connections(data, standing_alone(data, capture.packets())):
            for direction in directions(incarnation):
                if direction is not None and direction.initiator is not None:
                    stream = streams[0] if direction.initiator else streams[1]
                    space = SequenceSpace(data, direction.pieces)
                    found.extend(_messages(direction, space, stream, kinds))
    return sorted(found, key=lambda each: (each.time_ns, each.connection, each.position))


def _messages(
    direction: Direction, space: SequenceSpace, stream: Stream, kinds: Mapping[str, Any]
) -> Iterator[SeenMessage]:
    buffer, position, taken = FrameBuffer(stream), 0, 0

    def seen(end: int, value: object) -> SeenMessage:
        row = int(np.searchsorted(direction.pieces.end, end - 1, side="right"))
        time_ns = int(direction.pieces.time_ns[row])
        return SeenMessage(time_ns, direction.connection, position, bool(direction.initiator), value)

    end = space.run_end(0) if space.first == 0 else 0
    while taken < end:
        at = space.window(taken, 1)
        piece = space.buffer[at : at + min(PIECE_BYTES, end - taken)]
        taken += len(piece)
        try:
            for frame in buffer.receive(bytes(piece)):
                form = stream.form_at(frame, 0, len(frame))
                value = kinds[form.message].decode(frame) if not isinstance(form, int) else ""
                yield seen(position + len(frame), value)
                position += len(frame)
        except RemoteProtocolError as fault:
            yield seen(taken, f"no message of {stream.name}: {fault}")
            return


def judge_messages(
    machine: Machine[Any, Any], messages: Iterable[SeenMessage], rules: object
) -> list[JudgedMessage]:
    """Each message as a step of the machine of who accepted the connections, from its beginning."""
    walk = Walk(machine, None, rules)
    walk.begin()
    found = []
    for seen in messages:
        name = type(seen.value).__name__
        kind = walk.kind_of(name, seen.value, sent=not seen.by_opener)
        if kind is not None:
            found.append(JudgedMessage(seen, walk.step(kind, kind(seen.value))))
    return found
