"""What a member has to have done: persist, then send, then apply."""

from __future__ import annotations

from collections.abc import Sequence

from replispec.runtime.primitives.bindings import Call
from replispec.runtime.primitives.headers import Header
from replispec.runtime.primitives.immutable import immutable
from replispec.runtime.raft.snapshots import MemberSnapshot
from replispec.wire.raft.member import RaftEntry

Message = Call[Header]
"""What a member tells another one: the code of the command, its header, a body."""


@immutable
class DurableState:
    """What a member must remember of its votes, whatever becomes of its process."""

    term: int = 0
    voted_for: int | None = None


@immutable
class MemberReady:
    """What is to be done now, in this order: persist `state` (None: as before), `snapshot` (None: as before)
    and `entries`, each at its place, instead of all that the log has from the first of them on; send
    `messages` (member, message); apply `committed`; answer `reads` (ticket, place up to which is to be
    applied before). `unread` are tickets of questions that this member can no longer answer.

    A snapshot that `installs` comes from the leader: nothing of the log on the disk stays but the `entries`
    here, and the application becomes what the snapshot says before `committed` is applied to it. One that
    does not is the application's own, and entries before the place `kept_from` may be let go.
    """

    state: DurableState | None = None
    entries: Sequence[tuple[int, RaftEntry]] = ()
    messages: Sequence[tuple[int, Message]] = ()
    committed: Sequence[tuple[int, RaftEntry]] = ()
    reads: Sequence[tuple[int, int]] = ()
    unread: Sequence[int] = ()
    snapshot: MemberSnapshot | None = None
    installs: bool = False
    kept_from: int = 0

    @property
    def is_to_be_persisted(self) -> bool:
        """Whether anything is to be on the disk before the rest is done."""
        return self.state is not None or bool(self.entries) or self.snapshot is not None
