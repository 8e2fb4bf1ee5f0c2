"""A group of one: always the leader, agreed with itself once its disk has the record."""

from __future__ import annotations

from collections.abc import Sequence

from replispec.metastore.consensus.interface import LogEntry, LogReady


class Alone:
    """The only member of its group, made from the records on its disk; those up to `replaced` are no longer
    there."""

    def __init__(self, records: Sequence[tuple[int, bytes]], *, replaced: int = 0) -> None:
        self._recovered: Sequence[LogEntry] = [LogEntry(index, data) for index, data in records]
        self._index = replaced + len(records)
        self._proposal = 0
        self._waiting: list[tuple[int, bytes]] = []
        self._handed_out = 0

    @property
    def is_leader(self) -> bool:
        """Always: there is no other member."""
        return True

    def propose(self, data: bytes) -> int:
        """Put a record at the end of the log; one of the next `ready` has it."""
        self._proposal += 1
        self._waiting.append((self._proposal, data))
        return self._proposal

    def ready(self) -> LogReady | None:
        """All that was proposed and not handed out yet; at first what the disk held, as it is."""
        if self._recovered:
            recovered, self._recovered = self._recovered, ()
            return LogReady(recovered, is_to_be_persisted=False)
        if self._handed_out or not self._waiting:
            return None
        waiting, self._waiting = self._waiting, []
        self._handed_out = len(waiting)
        first = self._index + 1
        return LogReady([LogEntry(first + at, data, proposal) for at, (proposal, data) in enumerate(waiting)])

    def persisted(self) -> None:
        """What `ready` handed out last is on the disk."""
        assert self._handed_out, "nothing was handed out"
        self._index += self._handed_out
        self._handed_out = 0

    def refused(self) -> None:
        """Nothing of what `ready` handed out last is on the disk: it was never proposed."""
        assert self._handed_out, "nothing was handed out"
        self._handed_out = 0
