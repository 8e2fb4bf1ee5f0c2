"""What is found in the folder of a broker's store: neutral, as `replispec.cli.<family>.store` tells it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from replispec.runtime.storage import Operation

WHOLE = "whole"
TORN = "torn"
DAMAGED = "damaged"


@dataclass(slots=True)
class StoredFile:
    """One file: its size, what it holds, and what is wrong with it, a line each."""

    name: str
    size: int
    holds: str
    damage: list[str] = field(default_factory=list)


@dataclass(slots=True)
class StoreReport:
    """A store: `whole`, with a `torn` tail that a start cuts by itself, or `damaged`: a start is refused.

    `end`: where a start would let the log end; `noted`: up to where it once was on the disk, None when
    nothing says so; `behind`: messages that are whole and lie behind the first damage. `accepted`: what makes
    a start take the log as it ends, and lose what follows.
    """

    kind: str
    verdict: str
    end: int
    noted: int | None
    messages: int
    behind: int
    files: list[StoredFile]
    advice: list[str]
    accepted: Sequence[Operation] = ()
