"""Batches of a master that follow each other without a gap: together they are one run of its log."""

from __future__ import annotations

from typing import Final

from replispec.wire.rocketmq.ha import HaTransferHeaderFixed
from replispec.wire.rocketmq.streams import HA_MASTER

_TRANSFER: Final = HA_MASTER.form("HaTransferHeader")
HEADER_BYTES: Final = _TRANSFER.fixed


class Run:
    """Batches of one epoch, each of which begins where the one before ends, as the one batch as which the
    master might have sent them: what is done once for a batch is done once for all of them. It is never
    longer than a batch may be."""

    __slots__ = ("_bodies", "_first", "_last", "size")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self._first: HaTransferHeaderFixed | None = None
        self._last: HaTransferHeaderFixed | None = None
        self._bodies: list[memoryview] = []
        self.size = 0

    def goes_on_with(self, header: HaTransferHeaderFixed) -> bool:
        """Whether a frame with this header is the next batch of the run; a heartbeat is none."""
        first = self._first
        return (
            first is not None
            and 0 < header.body_size <= _TRANSFER.maximum - self.size
            and header.offset == first.offset + self.size
            and header.epoch == first.epoch
            and header.epoch_start_offset == first.epoch_start_offset
        )

    def put(self, header: HaTransferHeaderFixed, frame: memoryview) -> None:
        """The next batch; the first one may be any."""
        if self._first is None:
            self._first = header
        self._last = header
        self._bodies.append(frame[HEADER_BYTES:])
        self.size += header.body_size

    def take(self) -> tuple[HaTransferHeaderFixed, bytes | memoryview] | None:
        """Header and bytes of the one batch, with what the last one says is confirmed; None without any."""
        first, last, bodies, size = self._first, self._last, self._bodies, self.size
        if first is None or last is None:
            return None
        self.clear()
        if len(bodies) == 1:
            return first, bodies[0]
        return first._replace(body_size=size, confirm_offset=last.confirm_offset), b"".join(bodies)
