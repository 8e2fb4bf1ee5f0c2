"""The messages of members of a group: commands in the streams of whoever listens there, some with entries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from replispec.replay.frames.digests import digest
from replispec.replay.frames.family import FramesFamily, HeldBodies
from replispec.replay.frames.readers import Entry
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.raft.codes import RequestCode
from replispec.wire.raft.member import RaftEntries, RaftEntriesRequest

REMOTING: Final = "remoting"
"""The framing of the family, and the kind of streams in which it is found."""
_ENTRIES: Final = int(RequestCode.ENTRIES)


def _holding(messages: Sequence[Any]) -> Iterable[int]:
    codes = [message.code for message in messages]
    return (at for at, code in enumerate(codes) if code == _ENTRIES) if _ENTRIES in codes else ()


def _read(message: Any, buffer: bytes, begin: int, end: int) -> Sequence[Entry] | None:
    """The entries of a message; None when header or body cannot be read."""
    try:
        follow = RaftEntriesRequest.from_ext_fields(message.ext_fields or {}).prev_index
        entries = RaftEntries.decode(buffer, begin, end).entries
    except RemoteProtocolError:
        return None
    if follow is None:
        return None
    return [(follow + at, each.term, digest(each.encode())) for at, each in enumerate(entries, 1)]


FAMILY = FramesFamily(
    readers=lambda _: {},
    kinds=lambda _: (),
    told=lambda *_: (),
    peers={},
    columns=(),
    held=(HeldBodies(REMOTING, "entries", _holding, _read),),
)
