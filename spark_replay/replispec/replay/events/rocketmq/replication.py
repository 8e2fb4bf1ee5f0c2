"""From replication frames to observations: one HA connection, both directions in one order.

The master's replication address names the connection until the addresses are joined. A hole between
two frames is an observation of its own, as everything learnt before it is then in doubt.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from replispec.replay.events.observation import (
    Answer,
    Batch,
    Gap,
    Handshake,
    Heartbeat,
    Observation,
    Opened,
    Place,
    Report,
)
from replispec.replay.pairing.delivery import Delivered, column
from replispec.wire.rocketmq import ha

MASTER = "ha_master"
_PLACE = ("capture", "time_ns", "connection", "direction", "sequence", "index")
_FIELDS = (
    "protocol source destination size complete message sync_from_last_file async_learner broker_id"
    " broker_address max_offset epochs offset epoch epoch_start_offset confirm_offset body_size body_digest"
)
_COLUMNS = (*_PLACE, *_FIELDS.split())
_ANSWERS = (ha.HaHandshakeAnswer.__name__, ha.HaHandshakeAnswerPadded.__name__)
_HANDSHAKES = (ha.HaHandshakeId.__name__, ha.HaHandshakeAddress.__name__)


# Where the holes of each direction (connection, direction) end, ascending, and of which kind they are.
Reasons = Mapping[tuple[str, int], Sequence[tuple[int, str]]]


@dataclass(frozen=True, slots=True)
class _Row:
    """One replication frame; the columns of FRAMES that matter."""

    order: int
    values: dict[str, Any]

    @property
    def direction(self) -> tuple[str, int]:
        """The connection and the direction in it."""
        return (self.values["connection"], self.values["direction"])

    @property
    def end(self) -> int:
        """The position after the frame's last byte."""
        return int(self.values["sequence"] + self.values["size"])

    @property
    def is_torn_answer(self) -> bool:
        """Whether it is a handshake's answer of which bytes are missing."""
        return self.values["message"] in _ANSWERS and not self.values["complete"]

    @property
    def place(self) -> Place:
        """Where the frame is."""
        v = self.values
        return Place(
            v["capture"], self.order, v["time_ns"], v["connection"], v["direction"], v["sequence"], v["index"]
        )

    @property
    def master(self) -> str:
        """The master's replication address."""
        return str(self.values["source" if self.values["protocol"] == MASTER else "destination"])


def observe_replication(
    frames: Delivered,
    whole: Collection[tuple[str, int]],
    cut_short: Collection[tuple[str, int]],
    reasons: Reasons,
) -> Iterator[Observation]:
    """Observations of replication frames (rows of FRAMES, all replication).

    `whole` names the directions (connection, direction) that were seen from their first byte, `cut_short`
    those in which bytes after the last frame were lost. A gap stands directly after the frame before
    it: whatever the other direction says after that moment may answer what was lost. Where a direction
    was not seen from its first byte, one stands before its first frame. `reasons`: why bytes are missing.
    """
    rows = list(_rows(frames.frames, frames.order.tolist()))
    lost_after = _lost_after(rows, cut_short)
    opened: set[str] = set()
    begun: set[tuple[str, int]] = set()
    for row, lost in zip(rows, lost_after, strict=True):
        connection, place, master = row.values["connection"], row.place, row.master
        before, after = place._replace(number=place.number - 1), place._replace(sequence=row.end)
        if connection not in opened:
            opened.add(connection)
            if {(connection, 0), (connection, 1)} <= set(whole):
                yield Opened(*before, address=master)
        if row.direction not in begun:
            begun.add(row.direction)
            if row.direction not in whole:
                yield Gap(*before, address=master)
        yield _observation(row)
        if row.is_torn_answer:
            # The missing end may have come at any time up to the next frame.
            yield Gap(*after, address=master, text=_reason(reasons, row, place.sequence))
        elif lost:
            yield Gap(*after, address=master, text=_reason(reasons, row, row.end))


def _reason(reasons: Reasons, row: _Row, position: int) -> str | None:
    """Why bytes behind a position are missing; None when none is: they are no frame."""
    ends = reasons.get(row.direction, [])
    at = bisect_right(ends, (position, "~"))
    return ends[at][1] if at < len(ends) else None


def _lost_after(rows: list[_Row], cut_short: Collection[tuple[str, int]]) -> list[bool]:
    """For each frame: were bytes lost between it and the next one of its direction?"""
    following: dict[tuple[str, int], int] = {}
    lost = []
    for row in reversed(rows):
        start = following.get(row.direction)
        lost.append(row.direction in cut_short if start is None else start != row.end)
        following[row.direction] = row.values["sequence"]
    return lost[::-1]


def _rows(frames: pa.Table, orders: list[int]) -> Iterator[_Row]:
    columns = [column(frames, name) for name in _COLUMNS]
    for order, *values in zip(orders, *columns, strict=True):
        yield _Row(order, dict(zip(_COLUMNS, values, strict=True)))


def _observation(row: _Row) -> Observation:
    v, place, master = row.values, row.place, row.master
    message = v["message"]
    if message in _HANDSHAKES:
        return Handshake(
            *place,
            address=master,
            message=message,
            broker_id=v["broker_id"],
            text=v["broker_address"],
            sync_from_last_file=v["sync_from_last_file"],
            async_learner=v["async_learner"],
        )
    if message in _ANSWERS:
        return Answer(*place, address=master, message=message, max_offset=v["max_offset"], epochs=v["epochs"])
    if message == ha.HaReport.__name__:
        return Report(*place, address=master, message=message, max_offset=v["max_offset"])
    kind = Batch if v["body_size"] else Heartbeat
    return kind(
        *place,
        address=master,
        message=message,
        offset=v["offset"],
        body_size=v["body_size"],
        epoch=v["epoch"],
        epoch_start_offset=v["epoch_start_offset"],
        confirm_offset=v["confirm_offset"],
        body_digest=v["body_digest"],
    )
