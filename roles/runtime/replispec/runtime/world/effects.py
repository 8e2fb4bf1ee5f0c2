"""What a node asks the world to do. The order of effects is the order in which they are carried out."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import field

from replispec.runtime.primitives.immutable import immutable
from replispec.runtime.storage.operations import Operation

Buffer = bytes | bytearray | memoryview


class Level(enum.IntEnum):
    """How much a note matters; the numbers are those of the standard library's logging."""

    DEBUG = 10
    INFO = 20
    WARNING = 30
    ERROR = 40


@immutable
class Dial:
    """Open a connection to ADDRESS:PORT. Answered by Connected or by Closed. `plain`: without TLS, also in a
    process that opens connections with it."""

    connection: int
    address: str
    plain: bool = False


@immutable
class Send:
    """Send bytes, after those sent before. A memoryview is sent without a copy: its bytes stay as they
    are until Writable or Closed. With `tell`, Writable follows when all of it has left."""

    connection: int
    data: Buffer
    tell: bool = False


@immutable
class Close:
    """End a connection once what was sent on it has left; it is not waited for longer than a moment."""

    connection: int


@immutable
class Pause:
    """Take no more bytes from a connection until Resume, so that its peer's sends come to a stand.

    At most one Received that was under way still arrives. Twice is as good as once.
    """

    connection: int


@immutable
class Resume:
    """Take bytes from a connection again."""

    connection: int


@immutable
class Persist:
    """Write, off the node's way: these operations in order, none after one that fails. Answered once, by
    Persisted or by PersistFailed. What one node asks for is carried out in the order in which it asked, one
    Persist at a time; a node that has more to write while one is under way keeps it for the next."""

    token: int
    operations: Sequence[Operation]


@immutable
class Note:
    """One line of the log: what happened (lower case, no values in it), and its values by name. One that is
    to be there `always` is never left out for those that say the same."""

    level: Level
    what: str
    values: Mapping[str, object] = field(default_factory=dict)
    always: bool = False


@immutable
class Halt:
    """End the process at once, as failed: going on could break a promise. What is still to be written is
    not; a write under way may be on the disk or not."""

    reason: str


Effect = Dial | Send | Close | Pause | Resume | Persist | Note | Halt
