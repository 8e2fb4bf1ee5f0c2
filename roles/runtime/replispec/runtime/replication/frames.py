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
        """Name and bytes of each message that these bytes complete, in order; the bytes are good until
        the next one is asked for.

        Raises RemoteProtocolError when no message starts like this. The connection must end then.
        """
        piece, at = memoryview(data), 0
        while self._cut and at < len(piece):
            missing = self._missing()
            taken = piece[at : at + missing]
            self._cut += taken
            at += len(taken)
            if len(taken) == missing and self._missing() == 0:
                whole, self._cut = self._cut, bytearray()
                yield self._named(memoryview(whole))
        while at < len(piece):
            size = self._stream.measure(piece, at, len(piece))
            if size <= 0 or at + size > len(piece):
                self._cut += piece[at:]
                return
            yield self._named(piece[at : at + size])
            at += size

    def _missing(self) -> int:
        """How many bytes are needed, at least, before more can be said of the message that is cut."""
        have = len(self._cut)
        size = self._stream.measure(self._cut, 0, have)
        return abs(size) - have

    def _named(self, frame: memoryview) -> tuple[str, memoryview]:
        form = self._stream.form_at(frame, 0, len(frame))
        assert not isinstance(form, int), "a whole message has a form"
        return form.message, frame
