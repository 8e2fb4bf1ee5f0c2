"""What the rest of a metastore sees of consensus, whichever engine is under it.

The engine touches nothing and knows no record: it is given bytes and gives them back. `ready` says what to
persist and then to apply, in this order: nothing is applied before it is on the disk. `persisted` or
`refused` ends that; what is proposed meanwhile is handed out together after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from replispec.runtime.primitives.immutable import immutable


@immutable
class LogEntry:
    """One record of the log that is agreed on, at its place from 1. `proposal`: the number under which this
    member proposed it, if it did."""

    index: int
    data: bytes
    proposal: int | None = None


@immutable
class LogReady:
    """Persist the `entries`, if they are to be, and then apply them in order."""

    entries: Sequence[LogEntry]
    is_to_be_persisted: bool = True


class LogConsensus(Protocol):
    """One member of the group that agrees on the log."""

    @property
    def is_leader(self) -> bool:
        """Whether this member may propose."""
        ...

    def propose(self, data: bytes) -> int:
        """Put a record at the end of the log and return the number of the proposal."""
        ...

    def ready(self) -> LogReady | None:
        """What is to be done since the last call; None when nothing is, or while something that was handed
        out is still being persisted."""
        ...

    def persisted(self) -> None:
        """What `ready` had persisted last is on the disk."""
        ...

    def refused(self) -> None:
        """There was no room and nothing of it is on the disk: it counts as never proposed."""
        ...
