"""What a proxy puts before the first frame of a connection, and nobody needs: a header of the PROXY protocol.

Source: the PROXY protocol, versions 1 and 2 (haproxy/haproxy, doc/proxy-protocol.txt).
"""

from __future__ import annotations

from typing import Final

from replispec.replay.frames.framing import Decoded

_TEXT: Final = (b"PROXY ", b"\r\n")
_SIGNATURE: Final = b"\r\n\r\n\0\r\nQUIT\n"
_FIXED: Final = 16
"""Bytes of the second version's head; the last two of them count what follows."""
BYTES_MAXIMUM: Final = 1024


def preface_size(decoded: Decoded) -> int:
    """Bytes of such a header when it is all that stands before the first frame, else 0."""
    if not decoded.direction.from_syn or not decoded.positions or decoded.space.chains:
        return 0
    size = decoded.positions[0]
    if not 0 < size <= BYTES_MAXIMUM or decoded.space.first != 0 or decoded.space.run_end(0) < size:
        return 0
    at = decoded.space.window(0, size)
    data = decoded.space.buffer[at : at + size]
    begin, end = _TEXT
    is_text = data.startswith(begin) and data.find(end) == size - len(end)
    is_binary = data.startswith(_SIGNATURE) and size == _FIXED + int.from_bytes(data[14:_FIXED], "big")
    return size if is_text or is_binary else 0
