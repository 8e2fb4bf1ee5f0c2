"""How the logs of one folder grow and age."""

from __future__ import annotations

from replispec.runtime.primitives.immutable import immutable


@immutable
class PartitionLogSettings:
    """What a broker's parameters say of its logs; times in milliseconds, None: without a bound."""

    segment_bytes: int
    """A segment that would become longer is followed by another one."""
    roll_ms: int
    """So is one whose first record is older."""
    index_interval_bytes: int
    """An index has an entry for so many bytes of a segment."""
    retention_ms: int | None
    """A segment goes when its newest record is older."""
    retention_bytes: int | None
    """The oldest segments go while those after them hold as much."""
    appends_time: bool
    """Records get the time at which they are appended; else they keep that of their producer."""
