"""What happens to a node. Every event carries the time at which it happened.

`now_ms` is milliseconds since 1970-01-01T00:00:00Z by a clock that never goes back: the wall clock at the
start of the process, carried on by its monotonic clock. A connection is a number: positive when the peer
opened it (given by the world), negative when this node did (given by the node, `Outbox.dial`). It is never
used again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from replispec.runtime.primitives.immutable import immutable


@immutable
class Started:
    """The process runs; its listeners accept from now on. The first event, and it happens once.

    `addresses`: where each listener really listens, ADDRESS:PORT by its name; who asked for port 0 learns
    here which one it got.
    """

    now_ms: int
    addresses: Mapping[str, str] = field(default_factory=dict)


@immutable
class Ticked:
    """The time that `Node.deadline_ms` named has come; it may be late, and it may come without need."""

    now_ms: int


@immutable
class Accepted:
    """A peer opened a connection to one of this node's listeners; `peer` is its ADDRESS:PORT."""

    connection: int
    listener: str
    peer: str
    now_ms: int


@immutable
class Connected:
    """The connection that a Dial asked for is open; `local` is our own ADDRESS:PORT on it, `peer` that of
    whoever listens there, in numbers; empty where that is not known."""

    connection: int
    local: str
    now_ms: int
    peer: str = ""


@immutable
class Received:
    """The next bytes of a connection, at most `net.RECEIVE_BYTES_MAX`, cut anywhere; never empty."""

    connection: int
    data: bytes
    now_ms: int


@immutable
class Writable:
    """Everything that was sent on a connection before a `Send` with `tell` has left this process."""

    connection: int
    now_ms: int


@immutable
class Closed:
    """A connection is gone: the peer ended it, it broke, it could not be opened, or it took nothing of
    what was sent for too long. It does not come for connections that this node closed itself."""

    connection: int
    reason: str
    now_ms: int


@immutable
class Persisted:
    """All that a Persist asked for is on the disk for good."""

    token: int
    now_ms: int


@immutable
class PersistFailed:
    """The disk refused one operation of a Persist; those before it are on the disk, those after it were not
    begun. `is_full`: there was no room, nothing of the refused one is there, and the same may be asked
    again; else nobody knows what of it is there."""

    token: int
    reason: str
    is_full: bool
    now_ms: int


@immutable
class FileRead:
    """A file that the node is told of (`Member.watched`) holds this: it comes once soon after the start, and
    each time it has changed. `data` None: it cannot be read."""

    name: str
    data: bytes | None
    now_ms: int


@immutable
class Stopping:
    """The process is asked to end. What the node sends now still leaves, and what it wants written still
    is; it gets no further event."""

    now_ms: int


Event = (
    Started
    | Ticked
    | Accepted
    | Connected
    | Received
    | Writable
    | Closed
    | Persisted
    | PersistFailed
    | FileRead
    | Stopping
)
