"""What producers and consumers of partitions were told, and what of it can never be true."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.sim.history import Moment

PartitionName = tuple[str, int]
"""The topic and the number of a partition."""


class RecordPlace(NamedTuple):
    """Where a record is: its partition, the topic's generation (the zxid that made it), the offset."""

    key: PartitionName
    generation: int
    offset: int


@dataclass(frozen=True, slots=True)
class SentRecord:
    """A record that was sent once: it is in a log once at most."""

    key: PartitionName
    generation: int
    acks: int


@dataclass
class PartitionsHistory:
    """Everything that clients were told. Records are their values."""

    sent: dict[str, SentRecord] = field(default_factory=dict)
    acknowledged: dict[str, RecordPlace] = field(default_factory=dict)
    """With acks=all."""
    read: dict[RecordPlace, str] = field(default_factory=dict)
    errors: dict[int, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    ends: dict[tuple[PartitionName, int], int] = field(default_factory=dict)
    """Behind the last acknowledged record, by partition and generation."""
    tell: Callable[[Moment], None] = lambda _: None
    told: Callable[[RecordPlace], None] = lambda _: None
    """Is handed each place that was acknowledged."""

    def acknowledge(self, value: str, offset: int) -> None:
        """A leader said that all of the ISR have a record."""
        sent = self.sent[value]
        place = RecordPlace(sent.key, sent.generation, offset)
        self.acknowledged[value] = place
        which = (sent.key, sent.generation)
        self.ends[which] = max(self.ends.get(which, 0), offset + 1)
        self.told(place)
        self.tell(Moment.ACKNOWLEDGED)

    def refuse(self, error: int) -> None:
        """A broker answered with an error."""
        self.errors[error] = self.errors.get(error, 0) + 1

    def see(self, place: RecordPlace, value: str) -> bool:
        """A consumer got a record; False when it had got another one there."""
        if place not in self.read:
            self.tell(Moment.READ)
        return self.read.setdefault(place, value) == value
