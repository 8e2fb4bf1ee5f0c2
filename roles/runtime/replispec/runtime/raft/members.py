"""Who a group is, as an entry of its log or a snapshot says it."""

from __future__ import annotations

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.immutable import immutable
from replispec.wire.raft.codes import EntryKind
from replispec.wire.raft.constants import MEMBERS_MAX
from replispec.wire.raft.member import RaftEntry, RaftMembers


@immutable
class GroupMembers:
    """Who votes, who only learns the log, and who of these is to vote once it has caught up."""

    voters: frozenset[int]
    learners: frozenset[int] = frozenset()
    joining: frozenset[int] = frozenset()

    def encode(self) -> bytes:
        """What is written of them, in ascending order."""
        return RaftMembers(sorted(self.voters), sorted(self.learners), sorted(self.joining)).encode()

    @staticmethod
    def decode(data: bytes) -> GroupMembers:
        """What was written. Raises RemoteProtocolError when it is no group."""
        message = RaftMembers.decode(data)
        found = GroupMembers(
            frozenset(message.voters), frozenset(message.learners), frozenset(message.joining)
        )
        is_group = found.voters and not found.voters & found.learners and found.joining <= found.learners
        if not is_group or len(found.voters) + len(found.learners) > MEMBERS_MAX:
            raise RemoteProtocolError(f"these are the members of no group: {message}")
        return found


def said_by(entry: RaftEntry) -> GroupMembers | None:
    """Who the group is from this entry on; None when it says nothing of it.

    Raises RemoteProtocolError when it says it in bytes that cannot be read.
    """
    return GroupMembers.decode(entry.data) if entry.kind == EntryKind.MEMBERS else None
