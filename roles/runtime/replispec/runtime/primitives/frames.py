"""Whole frames out of bytes that arrive in any pieces.

Source of the forms: the generated streams of the specification; nothing here knows a protocol.
"""

from __future__ import annotations

from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.primitives.streams import Stream, measure_of


class FrameBuffer:
    """Collects bytes of one direction of a connection and gives whole frames.

    `limit_bytes` bounds a single frame: a peer that announces a longer one is at fault at once, so
    that no peer makes room grow beyond the limit and the piece that was received last. The
    specification's own bounds hold in any case. After a fault the buffer takes nothing more.
    """

    def __init__(self, stream: Stream, *, limit_bytes: int | None = None) -> None:
        self._stream = stream
        self._measure = measure_of(stream)
        self._limit = limit_bytes
        self._buffer = bytearray()
        self._consumed = 0
        self._failed = False

    @property
    def waiting_bytes(self) -> int:
        """Bytes of a frame that is not whole yet."""
        return len(self._buffer)

    def receive(self, data: bytes) -> list[bytes]:
        """Take the next bytes and return the frames that they complete, in order.

        Raises RemoteProtocolError when no frame of the stream starts like this or one is too long;
        frames before the fault are lost with the connection. Raises LocalProtocolError after that.
        """
        if self._failed:
            raise LocalProtocolError(f"bytes for {self._stream.name} after a fault")
        buffer = self._buffer
        if buffer:
            buffer += data
        try:
            frames, taken = self._frames(buffer or data)
        except RemoteProtocolError as error:
            self._failed = True
            buffer.clear()
            # Told by its place in the buffer, wanted by its place in all that was received.
            place = None if error.offset is None else self._consumed + error.offset
            raise RemoteProtocolError(error.reason, offset=place) from None
        self._consumed += taken
        if buffer:
            del buffer[:taken]
        elif taken < len(data):
            buffer += memoryview(data)[taken:]
        return frames

    def _frames(self, buffer: bytes | bytearray) -> tuple[list[bytes], int]:
        """The whole frames at the start of `buffer`, and how many bytes they are."""
        frames: list[bytes | bytearray] = []
        at, end = 0, len(buffer)
        size_of, limit = self._measure, end if self._limit is None else self._limit
        while at < end:
            size = size_of(buffer, at, end)
            if size > limit and self._limit is not None:
                raise RemoteProtocolError(f"{size} bytes in one frame, {self._limit} allowed", offset=at)
            if size <= 0 or at + size > end:
                break
            frames.append(buffer[at : at + size])
            at += size
        return [bytes(each) for each in frames], at
