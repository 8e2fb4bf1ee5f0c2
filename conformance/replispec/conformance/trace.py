"""The byte trace of a case: what went out and came in, when, and what it says. Bounded."""

from __future__ import annotations

from dataclasses import dataclass, field

ENTRIES_MAXIMUM = 400
BYTES_MAXIMUM = 2048


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """One piece of a trace: `at_s` since the case began, `way` is > (sent), < (received) or -."""

    at_s: float
    on: str
    way: str
    says: str
    data: str = ""  # hexadecimal
    size: int = 0


@dataclass(slots=True)
class Trace:
    """Entries in order; what is beyond the bounds is counted, not kept."""

    began_s: float = 0.0
    entries: list[TraceEntry] = field(default_factory=list)
    left_out: int = 0

    def add(self, at_s: float, on: str, way: str, says: str, data: bytes = b"") -> None:
        """One more entry, its bytes cut to the bound."""
        if len(self.entries) >= ENTRIES_MAXIMUM:
            self.left_out += 1
            return
        kept = data[:BYTES_MAXIMUM].hex()
        self.entries.append(TraceEntry(round(at_s, 4), on, way, says[:BYTES_MAXIMUM], kept, len(data)))
