"""One event of a stream, as it is listed for the invariants that are judged event by event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """The stream that an event belongs to, its kind there, and the object with its attributes."""

    stream: str
    name: str
    event: Any

    @property
    def group(self) -> str:
        """The group that the event is about."""
        return str(self.event.group)
