"""Whole messages out of the bytes of a replication connection, without copying those that came whole."""

from __future__ import annotations

from collections.abc import Iterator

from replispec.runtime.primitives.streams import Stream


class Frames:
    """Cuts one direction of a connection into messages. Only one that lies in several pieces is copied;
    its size is bounded by the specification, so no peer makes room grow beyond that."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._cut = bytearray()

    def receive(self, data: bytes) -> Iterator[tuple[str, memoryview]]:
        """Name and bytes of each message that these bytes complete, in order; the bytes stay as
        they are.

        Raises RemoteProtocolError when no message starts like this. The connection must end then.
        """
        piece, at = memoryview(data), 0
        while self._cut:
            form, size = self._stream.form_and_size(self._cut, 0, len(self._cut))
            if form is not None and size == len(self._cut):
                whole, self._cut = self._cut, bytearray()
                yield form.message, memoryview(whole)
                break
            if at == len(piece):
                return
            taken = piece[at : at + abs(size) - len(self._cut)]
            self._cut += taken
            at += len(taken)
        while at < len(piece):
            form, size = self._stream.form_and_size(piece, at, len(piece))
            if form is None or at + size > len(piece):
                self._cut += piece[at:]
                return
            yield form.message, piece[at : at + size]
            at += size
