"""A member on its disk, with an application that remembers the order of what it applied."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

from replispec.runtime.raft.core import GroupMember, KnownGroup
from replispec.runtime.raft.log import MemberLog
from replispec.runtime.raft.ready import DurableState, MemberReady
from replispec.runtime.raft.snapshots import MemberSnapshot
from replispec.wire.raft.member import RaftEntry
from replispec.wire.raft.options import MemberOptions

OPTIONS = MemberOptions(
    entries_bytes_max=1,
    entries_in_flight_max=3,
    leader_heartbeat_interval_ms=300,
    snapshot_part_bytes=70,
    snapshot_keeps_entries=0,
    promotion_lag_max=1,
)


class Broken(Exception):
    """A promise of the group, by its name, and what broke it."""

    def __init__(self, promise: str, says: str) -> None:
        super().__init__(f"{promise}: {says}")
        self.promise = promise


@dataclass
class Disk:
    """What a process finds when it begins: its votes, a snapshot, and the entries after a place."""

    state: DurableState = field(default_factory=DurableState)
    base_index: int = 0
    base_term: int = 0
    entries: list[RaftEntry] = field(default_factory=list)
    snapshot: bytes | None = None

    def keep(self, ready: MemberReady) -> None:
        """Write what is to be persisted."""
        if ready.state is not None:
            self.state = ready.state
        if ready.snapshot is not None:
            self.snapshot = ready.snapshot.encode()
            if ready.installs:
                self.base_index, self.base_term = ready.snapshot.index, ready.snapshot.term
                self.entries = []
        for index, entry in ready.entries:
            del self.entries[index - 1 - self.base_index :]
            self.entries.append(entry)
        gone = ready.kept_from - 1 - self.base_index
        if gone > 0:
            self.base_index, self.base_term = ready.kept_from - 1, self.entries[gone - 1].term
            del self.entries[:gone]

    def log(self) -> MemberLog:
        """As a member begins with it."""
        snapshot = None if self.snapshot is None else MemberSnapshot.decode(self.snapshot)
        return MemberLog(self.entries, self.base_index, self.base_term, snapshot)

    def term_at(self, index: int) -> int:
        """The term of an entry that it has."""
        if index == self.base_index:
            return self.base_term
        return self.entries[index - 1 - self.base_index].term

    @property
    def end(self) -> int:
        """The place of the last entry."""
        return self.base_index + len(self.entries)


@dataclass
class Application:
    """What was applied: how many entries, and a sum of all of them in their order."""

    index: int = 0
    sum: int = 0

    def apply(self, entry: RaftEntry) -> None:
        """One more entry."""
        self.index += 1
        self.sum = zlib.crc32(b"%d %d %s" % (entry.term, entry.kind, entry.data), self.sum)

    def data(self) -> bytes:
        """What stands in a snapshot of it."""
        return b"%d %d of an application that has much to say" % (self.index, self.sum)

    @staticmethod
    def of(data: bytes) -> Application:
        """What a snapshot says."""
        index, total, *_ = data.split()
        return Application(int(index), int(total))


class Process:
    """A member on its disk: what it handed out waits until the schedule goes on with it."""

    def __init__(
        self, group: KnownGroup, chance: Callable[[int], int], options: MemberOptions = OPTIONS
    ) -> None:
        self.group, self._chance, self._options = group, chance, options
        self.disk = Disk()
        self.now_ms = 0
        self.start()

    def start(self) -> None:
        """Begin with what the disk holds."""
        log = self.disk.log()
        self.application = Application() if log.snapshot is None else Application.of(log.snapshot.data)
        self.core = GroupMember(self.group, self.disk.state, log, self._options, self._chance)
        self.core.begin(self.now_ms)
        self.waiting: MemberReady | None = None

    def snapshot(self) -> None:
        """What the application is replaces the log before."""
        self.core.compact(self.application.index, self.application.data())

    def apply(self, ready: MemberReady) -> None:
        """The application becomes what was handed out."""
        if ready.installs:
            assert ready.snapshot is not None, "a snapshot is installed that is not there"
            if ready.snapshot.index <= self.application.index:
                raise Broken("one state", f"{self.application.index} entries become {ready.snapshot.index}")
            self.application = Application.of(ready.snapshot.data)
        for index, entry in ready.committed:
            if index != self.application.index + 1:
                raise Broken("one state", f"{index} is applied after {self.application.index}")
            self.application.apply(entry)
