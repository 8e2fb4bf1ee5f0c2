"""Documents one after another on a pipe or in a file, each with its size in front.

The size is an unsigned varint: what protobuf calls delimited, and what the runtimes of most languages
write and read themselves. Source: protobuf's encoding document; writeDelimitedTo of its Java runtime.
"""

from __future__ import annotations

from typing import Final

from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError

# The default bound of one document in bytes. Whoever expects less says so.
DOCUMENT_BYTES_MAXIMUM: Final = 4 * 1024 * 1024
# A size of up to 35 bits; no sensible limit needs more.
_SIZE_BYTES_MAXIMUM: Final = 5


def delimited(document: bytes) -> bytes:
    """`document` with its size in front."""
    size, head = len(document), bytearray()
    while size > 0x7F:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    head.append(size)
    return bytes(head) + document


class DocumentBuffer:
    """Collects bytes and gives whole documents, not yet decoded.

    `limit_bytes` bounds one document. A longer one is the sender's fault as soon as it is announced, so
    the buffer never holds more than one document and the piece that came last. After a fault it takes
    nothing more: sizes are the only borders that the bytes have.
    """

    def __init__(self, *, limit_bytes: int = DOCUMENT_BYTES_MAXIMUM) -> None:
        self._limit = limit_bytes
        self._buffer = bytearray()
        self._consumed = 0
        self._failed = False

    @property
    def waiting_bytes(self) -> int:
        """Bytes of a document that is not whole yet, its size included."""
        return len(self._buffer)

    def receive(self, data: bytes) -> list[bytes]:
        """Take the next bytes and return the documents that they complete, in order.

        Raises RemoteProtocolError when a document is too long or its size is no size; documents before
        the fault are lost with the stream. Raises LocalProtocolError after that.
        """
        if self._failed:
            raise LocalProtocolError("bytes for documents after a fault")
        self._buffer += data
        try:
            return self._documents()
        except RemoteProtocolError:
            self._failed = True
            self._buffer.clear()
            raise

    def finish(self) -> None:
        """Say that no more bytes come. Raises RemoteProtocolError when they ended inside a document."""
        if self._buffer:
            place = self._consumed + len(self._buffer)
            raise RemoteProtocolError("the bytes end inside a document", offset=place)

    def _documents(self) -> list[bytes]:
        documents: list[bytes] = []
        at, end = 0, len(self._buffer)
        while at < end:
            found = self._size(at, end)
            if found is None or found[1] + found[0] > end:
                break
            size, start = found
            documents.append(bytes(self._buffer[start : start + size]))
            at = start + size
        del self._buffer[:at]
        self._consumed += at
        return documents

    def _size(self, at: int, end: int) -> tuple[int, int] | None:
        """Size of the document announced at `at` and where it starts; None when more bytes are needed."""
        size = 0
        for number in range(min(_SIZE_BYTES_MAXIMUM, end - at)):
            byte = self._buffer[at + number]
            size |= (byte & 0x7F) << (7 * number)
            if size > self._limit:
                raise RemoteProtocolError(
                    f"{size} bytes or more in one document, {self._limit} allowed", offset=self._consumed + at
                )
            if byte < 0x80:
                return size, at + number + 1
        if end - at >= _SIZE_BYTES_MAXIMUM:
            raise RemoteProtocolError("the size of a document does not end", offset=self._consumed + at)
        return None
