"""What the rest of a controller sees of consensus, whichever engine is under it.

The engine touches nothing. Records are proposed, messages of other members stepped in, time given by ticks;
`ready` then says what to persist, what to send and what to apply, in this order: nothing is sent or applied
before what was to be persisted is on the disk. That may take a while: `persisted` or `refused` ends it, and
what is proposed meanwhile is handed out together after it. Source: the shape of etcd's RawNode.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from replispec.event.v1.event_pb2 import ControllerEvent
from replispec.runtime.primitives.immutable import immutable


class LogDamaged(Exception):
    """What lies on the disk is not what a controller writes: starting on it could break a promise."""


@immutable
class Entry:
    """One record of the log that the group has agreed on, at its place from 1."""

    index: int
    event: ControllerEvent


@immutable
class Ready:
    """What is to be done now: persist `records` (index, bytes) and `state`, send `messages` (member, bytes),
    apply `entries`, each in order."""

    records: Sequence[tuple[int, bytes]]
    state: bytes | None
    messages: Sequence[tuple[int, bytes]]
    entries: Sequence[Entry]


class Consensus(Protocol):
    """One member of the group."""

    @property
    def is_leader(self) -> bool:
        """Whether this member is the active one, and may propose."""
        ...

    @property
    def term(self) -> int:
        """The latest term that this member knows."""
        ...

    def propose(self, event: ControllerEvent) -> int:
        """Put a record at the end of the log and return the number of the proposal, which the record carries.

        Raises LocalProtocolError when this member is not the leader.
        """
        ...

    def step(self, message: bytes, now_ms: int) -> None:
        """Take a message of another member. Raises RemoteProtocolError when it is none."""
        ...

    def tick(self, now_ms: int) -> None:
        """Tell the time: elections and heartbeats of the group go by it."""
        ...

    def ready(self) -> Ready | None:
        """What is to be done since the last call; None when nothing is, or while something handed out is
        still being persisted. What needs no persisting is done by having been handed out."""
        ...

    def persisted(self) -> None:
        """What `ready` had persisted last is on the disk."""
        ...

    def refused(self) -> None:
        """There was no room, and nothing of it is on the disk: its entries count as never proposed, and are
        not to be applied."""
        ...
