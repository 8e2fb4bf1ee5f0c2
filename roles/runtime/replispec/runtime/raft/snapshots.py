"""A snapshot instead of the beginning of a log, and how it travels in parts."""

from __future__ import annotations

from dataclasses import dataclass

from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.primitives.immutable import immutable
from replispec.runtime.raft.members import GroupMembers
from replispec.wire.raft.constants import SNAPSHOT_DATA_BYTES_MAX, SNAPSHOT_VERSION
from replispec.wire.raft.member import RaftSnapshot, RaftSnapshotContent


@immutable
class MemberSnapshot:
    """What the application was when it had applied the entry at the place `index`, which is of `term`.

    `members` are who the group was then, `data` is the application's own.
    """

    index: int
    term: int
    members: GroupMembers
    data: bytes

    def check_size(self) -> None:
        """Raises LocalProtocolError when it is too large to be sent."""
        if len(self.data) > SNAPSHOT_DATA_BYTES_MAX:
            raise LocalProtocolError(
                f"a snapshot of {len(self.data)} bytes; a group takes {SNAPSHOT_DATA_BYTES_MAX} at most"
            )

    def encode(self) -> bytes:
        """As it travels and as it lies on a disk."""
        content = RaftSnapshotContent(self.index, self.term, self.members.encode(), self.data)
        return RaftSnapshot(version=SNAPSHOT_VERSION, content=content.encode()).encode()

    @staticmethod
    def decode(whole: bytes) -> MemberSnapshot:
        """Raises RemoteProtocolError when it is cut, of another version, or not what its checksum says."""
        outer = RaftSnapshot.decode(whole)
        if outer.version != SNAPSHOT_VERSION:
            raise RemoteProtocolError(
                f"a snapshot of version {outer.version}; this release reads version {SNAPSHOT_VERSION}"
            )
        if not outer.body_crc_holds:
            raise RemoteProtocolError("a snapshot is not what its checksum says")
        content = RaftSnapshotContent.decode(outer.content)
        return MemberSnapshot(content.index, content.term, GroupMembers.decode(content.members), content.data)


@dataclass(slots=True)
class SentSnapshot:
    """A snapshot on its way to a follower. `whole` are its bytes, of which those from `offset` on have been
    sent and are not known to have come; `sent_ms` is when."""

    index: int
    term: int
    whole: bytes
    offset: int = 0
    sent_ms: int = 0

    def part(self, size_max: int) -> bytes:
        """What is to be sent now."""
        return self.whole[self.offset : self.offset + size_max]

    def wants(self, index: int, offset: int) -> bool:
        """Whether the follower can be sent the next part, for it has what was sent.

        Whoever has less than what was sent is sent it from there when nothing is heard for a while: an answer
        that comes late says the same.
        """
        if index != self.index or not 0 <= offset < len(self.whole):
            return False
        is_further = offset > self.offset
        self.offset = offset
        return is_further
