"""The moments of a fail-over."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class MomentKind(StrEnum):
    """What happened at a moment of a fail-over, in the order in which it usually comes."""

    LAST_FRAME = "last_frame"
    CLOSED = "closed"
    SESSION_ENDED = "session_ended"
    RECORDED = "recorded"
    ORDERED = "ordered"
    TAKEN = "taken"
    ELECTED = "elected"
    NOTIFIED = "notified"
    ACCEPTED = "accepted"
    RETURNED = "returned"
    REPORTED = "reported"


@dataclass(frozen=True, slots=True)
class Moment:
    """One moment of a fail-over."""

    kind: MomentKind
    time_ns: int
