"""How a node is seen from outside while it runs: read, and never changed by that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from replispec.runtime.primitives.immutable import immutable
from replispec.runtime.primitives.latencies import Latencies
from replispec.runtime.primitives.metrics import Histogram, Sample


@immutable
class ReadyCheck:
    """One condition of being ready, and why it is as it is."""

    name: str
    holds: bool
    reason: str


@immutable
class Numbers:
    """What the world counts of one node. `refused`: connections that its transport did not take."""

    now_ms: int
    start_ms: int
    events: int
    accepted: int
    dialled: int
    refused: int
    unsent_bytes: int
    writes_waiting: int
    write_failures: int
    write_seconds: Histogram
    lines: Mapping[str, int]
    lines_left_out: int


class RoleView(Protocol):
    """What a node shows. Nothing that is secret is among it: whoever reaches the port may read all of it."""

    @property
    def write_buckets(self) -> Sequence[float]:
        """Into which spans of time, in seconds, writes are sorted."""
        ...

    @property
    def latencies(self) -> Latencies | None:
        """How long its requests take, if it shows that: told when each event begins and is over."""
        ...

    def who(self) -> Mapping[str, object]:
        """What every line of the log carries: who says it."""
        ...

    def began(self) -> Mapping[str, object]:
        """With what the node began: for the line at the start."""
        ...

    def shared(self) -> Mapping[str, str]:
        """The values of the labels that all of its metrics share."""
        ...

    def samples(self, numbers: Numbers) -> Iterable[Sample]:
        """All numbers, as they are now."""
        ...

    def checks(self) -> Sequence[ReadyCheck]:
        """Whether the node can do what it is there for: it is ready when all hold."""
        ...

    @property
    def has_picture(self) -> bool:
        """Whether there is a page of it."""
        ...

    def picture(self) -> Mapping[str, object]:
        """What the page shows, as JSON."""
        ...
