"""What the rest of a controller sees of consensus, whichever engine is under it.

The engine touches nothing. Records are proposed, messages of other members stepped in, time given by ticks;
`ready` then says what to persist, what to send, what to apply and who may read, in this order: nothing is
sent or applied before what was to be persisted is on the disk. That may take a while: `persisted` or
`refused` ends it, and what is proposed meanwhile is handed out together after it. Source: the shape of etcd's
RawNode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from replispec.event.v1.event_pb2 import ControllerEvent
from replispec.runtime.primitives.bindings import Call
from replispec.runtime.primitives.headers import Header
from replispec.runtime.primitives.immutable import immutable

Message = Call[Header]
"""What a member tells another one: the code of the command, its header, a body."""


class LogDamaged(Exception):
    """What lies on the disk is not what this controller writes: starting on it could break a promise."""


@immutable
class Entry:
    """One record of the log that the group has agreed on, at its place from 1.

    `proposal`: the number under which this member proposed it, if it still leads as it did then. `is_told`:
    it is for this member to tell others what comes of it.
    """

    index: int
    event: ControllerEvent
    proposal: int | None = None
    is_told: bool = False


@immutable
class Snapshot:
    """What stands for the records up to the one at `index`, which is of `term`: `data` is what they have
    made, as the rest of a controller writes it, and `kept` all that is put on the disk.

    One that `installs` comes from another member: this one lacks some of these records, and becomes it.
    `members` are the numbers of the members of the group then.
    """

    index: int
    term: int
    data: bytes
    kept: bytes
    installs: bool = False
    members: frozenset[int] = frozenset()


@immutable
class Ready:
    """What is to be done now: persist `records` (index, bytes; the first replaces whatever the log has from
    there on), `state` and `snapshot` together, send `messages` (id of the member, message), become a snapshot
    that installs, apply `entries`, each in order; then what was asked with the tickets `reads` may be
    answered. A member that leads no more answers none of its tickets.

    A snapshot takes the place of the records up to its index, and one that installs of all but these
    `records`."""

    records: Sequence[tuple[int, bytes]] = ()
    state: bytes | None = None
    messages: Sequence[tuple[str, Message]] = ()
    entries: Sequence[Entry] = ()
    reads: Sequence[int] = ()
    snapshot: Snapshot | None = None

    @property
    def is_to_be_persisted(self) -> bool:
        """Whether anything is to be on the disk before the rest is done."""
        return bool(self.records) or self.state is not None or self.snapshot is not None


class Consensus(Protocol):
    """One member of the group."""

    @property
    def is_leader(self) -> bool:
        """Whether this member is the active one, and may propose."""
        ...

    @property
    def leader(self) -> str | None:
        """The id of whom this member takes for the leader."""
        ...

    @property
    def term(self) -> int:
        """The latest term that this member knows."""
        ...

    def propose(self, event: ControllerEvent) -> int:
        """Put a record at the end of the log and return the number of the proposal, which the record carries.

        What a member proposes that does not lead comes to nothing.
        """
        ...

    def read(self) -> int:
        """Ask to answer from what is agreed on up to now, and return a ticket that a later `Ready` names.

        Raises LocalProtocolError when this member does not lead.
        """
        ...

    def compact(self, index: int, data: bytes) -> None:
        """Keep what all records up to one that was applied have made, instead of them: a later `Ready` has it
        persisted. Raises LocalProtocolError when it is too large, and from a member that is alone."""
        ...

    def leave(self) -> None:
        """This member ends soon: if it leads, another one is to, at once."""
        ...

    def step(self, code: int, ext_fields: Mapping[str, str | None], body: bytes) -> None:
        """Take a message of another member. Raises RemoteProtocolError when it is none of this group."""
        ...

    def begin(self, now_ms: int) -> None:
        """The time at which the member starts."""
        ...

    def tick(self, now_ms: int) -> None:
        """Tell the time: elections and heartbeats of the group go by it."""
        ...

    def deadline_ms(self) -> int | None:
        """When `tick` has something to do."""
        ...

    def ready(self) -> Ready | None:
        """What is to be done since the last call; None when nothing is, or while something handed out is
        still being persisted. What needs no persisting is done by having been handed out. Raises LogDamaged
        for an agreed record that this release cannot read."""
        ...

    def persisted(self) -> None:
        """What `ready` had persisted last is on the disk."""
        ...

    def refused(self) -> None:
        """There was no room, and nothing of it is on the disk: nothing of that `Ready` is to be done."""
        ...
