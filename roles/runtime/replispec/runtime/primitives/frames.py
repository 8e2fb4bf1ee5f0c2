"""Whole frames out of bytes that arrive in any pieces.

Source of the forms: the generated streams of the specification; nothing here knows a protocol.
"""

from __future__ import annotations

from typing import Final

from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.primitives.streams import Stream, measure_of

SMALL_BYTES: Final = 16 * 1024
"""Pieces below this are put together while a frame is cut, so that many of them take no more room than their
bytes; a longer one is kept as it came, and copied once: when the frame is whole."""


class FrameBuffer:
    """Collects bytes of one direction of a connection and gives whole frames.

    `limit_bytes` bounds a single frame: a peer that announces a longer one is at fault at once, so
    that no peer makes room grow beyond the limit and the piece that was received last. The
    specification's own bounds hold in any case. After a fault the buffer takes nothing more.
    """

    def __init__(self, stream: Stream, *, limit_bytes: int | None = None) -> None:
        self._stream = stream
        self._measure = measure_of(stream.opening)
        self._of_others = measure_of(stream)
        self._limit = limit_bytes
        self._pieces: list[bytes | bytearray] = []
        self._waiting = 0
        # The size of the frame that is cut; 0 while its beginning does not tell.
        self._size = 0
        self._consumed = 0
        self._failed = False

    @property
    def waiting_bytes(self) -> int:
        """Bytes of a frame that is not whole yet."""
        return self._waiting

    def receive(self, data: bytes) -> list[bytes]:
        """Take the next bytes and return the frames that they complete, in order.

        Raises RemoteProtocolError when no frame of the stream starts like this or one is too long;
        frames before the fault are lost with the connection. Raises LocalProtocolError after that.
        """
        if self._failed:
            raise LocalProtocolError(f"bytes for {self._stream.name} after a fault")
        frames: list[bytes] = []
        at = 0
        if self._waiting:
            lacking = self._size - self._waiting
            if self._size and lacking > len(data):
                self._keep(data)
                return frames
            if self._size:
                frames.append(self._joined(memoryview(data)[:lacking]))
                self._measure = self._of_others
                self._consumed += self._size
                at = lacking
            else:
                data = self._joined(data)
        self._size, began = 0, at
        try:
            at = self._take(data, at, frames)
        except RemoteProtocolError as error:
            self._failed = True
            # Told by its place in these bytes, wanted by its place in all that was received.
            place = None if error.offset is None else self._consumed + error.offset - began
            raise RemoteProtocolError(error.reason, offset=place) from None
        self._consumed += at - began
        if at < len(data):
            self._keep(data[at:])
        return frames

    def _take(self, data: bytes, at: int, frames: list[bytes]) -> int:
        """Add the whole frames that begin at `at`; returns where they end."""
        end = len(data)
        size_of, limit = self._measure, self._limit
        while at < end:
            size = size_of(data, at, end)
            if limit is not None and size > limit:
                raise RemoteProtocolError(f"{size} bytes in one frame, {limit} allowed", offset=at)
            if size <= 0 or at + size > end:
                self._size = max(size, 0)
                break
            frames.append(data[at : at + size])
            at += size
            size_of = self._measure = self._of_others
        return at

    def _keep(self, data: bytes) -> None:
        """Keep bytes of a frame that is cut."""
        pieces = self._pieces
        self._waiting += len(data)
        if pieces and isinstance(pieces[-1], bytearray) and len(pieces[-1]) < SMALL_BYTES:
            pieces[-1] += data
        else:
            pieces.append(bytearray(data) if len(data) < SMALL_BYTES else data)

    def _joined(self, data: bytes | memoryview) -> bytes:
        """What was kept, and these bytes after it; nothing is kept any more."""
        whole = b"".join((*self._pieces, data))
        self._pieces.clear()
        self._waiting = 0
        return whole
