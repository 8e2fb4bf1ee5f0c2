"""TLS told from its first record: encrypted streams are named, not searched for frames.

Source: RFC 8446, sections 4 and 5.1; RFC 5246, section 6.2.1. No other protocol here begins like this: read
as a remoting frame the first bytes would be a length of more than 300 MB, as replication a state far out
of range.
"""

from __future__ import annotations

from replispec.replay.tcp.space import SequenceSpace

TLS = "tls"

_HEAD_BYTES = 6
_HANDSHAKE_RECORD = 22
_VERSION_MAJOR, _VERSIONS_MINOR = 3, range(5)
_CLIENT_HELLO, _SERVER_HELLO = 1, 2
# What a hello takes at least, handshake header included, and a record at most, in bytes.
_HELLO_MINIMUM, _RECORD_MAXIMUM = 4 + 2 + 32, 1 << 14


def begins_tls(space: SequenceSpace, position: int) -> bool:
    """Whether a record with a ClientHello or a ServerHello starts at `position`.

    Raises NeedsBytes when the bytes lie in a chain.
    """
    at = space.window(position, _HEAD_BYTES)
    head = space.buffer[at : at + _HEAD_BYTES]
    if len(head) < _HEAD_BYTES:
        return False
    record, major, minor, *length, message = head
    return (
        record == _HANDSHAKE_RECORD
        and major == _VERSION_MAJOR
        and minor in _VERSIONS_MINOR
        and _HELLO_MINIMUM <= int.from_bytes(bytes(length), "big") <= _RECORD_MAXIMUM
        and message in (_CLIENT_HELLO, _SERVER_HELLO)
    )
