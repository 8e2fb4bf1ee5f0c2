"""What was done to captures when they were merged, in plain values for summaries and reports."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class HostClock:
    """The clock of one capture beside that of another one: see `clocks.Clock`. Empty `reference`: there was
    none to compare with. `drift_ppm` is None where it could not be told."""

    file: str
    reference: str = ""
    offset_ns: int = 0
    uncertainty_ns: int = 0
    drift_ppm: float | None = None
    copies: int = 0
    both_ways: bool = False

    def __str__(self) -> str:
        if not self.reference:
            return f"the times of {self.file} are its own: no packet of it is in a capture before it"
        ahead = "ahead of" if self.offset_ns >= 0 else "behind"
        drift = "drift not told" if self.drift_ppm is None else f"drift {self.drift_ppm:+.2f} ppm"
        ways = "" if self.both_ways else ", one direction only: the packets' way is part of it"
        offset, width = abs(self.offset_ns) / 10**6, self.uncertainty_ns / 10**6
        return (
            f"the clock of {self.file} is {offset:.3f} ms (+-{width:.3f} ms) {ahead} that of"
            f" {self.reference}, {drift}, by {self.copies} packets that both hold{ways}"
        )


@dataclass(frozen=True, slots=True)
class Renaming:
    """An endpoint (ADDRESS:PORT) that a capture has under another name, on so many connections."""

    file: str
    seen: str
    shown: str
    connections: int

    def __str__(self) -> str:
        return f"{self.seen} in {self.file} is shown as {self.shown} ({self.connections} connections)"


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merged capture was made of. `copies`: packets left out because another capture, or another
    interface, holds them too; `doubtful`: pairs of connections that may be one, and count as two. `unread`:
    what of these captures was not read, or dropped while they were taken; warnings hold it, too."""

    paths: tuple[Path, ...]
    clocks: tuple[HostClock, ...]
    renamings: tuple[Renaming, ...]
    copies: int
    doubtful: int
    warnings: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
