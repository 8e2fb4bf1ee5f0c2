"""All that a capture tells of one topic with logical queues, and events about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final

from replispec.replay.events.observation import Acknowledged, Observation
from replispec.replay.events.queue_observations import Limit, Mapped, Position, Pulled, Subscribed
from replispec.replay.events.rocketmq.mappings import LOGICAL
from replispec.replay.events.rocketmq.queue_segments import Held, Topic
from replispec.replay.events.stream_event import StreamEvent
from replispec.wire.rocketmq.constants import MOCK_BROKER_PREFIX

Named = Mapping[str, str]
OF_TOPIC: Final = "topic "
"""What the groups of findings about topics begin with."""


@dataclass(frozen=True, slots=True)
class Where:
    """A logical queue, and by how much its offsets are greater than those that records have."""

    index: int
    delta: int


@dataclass
class SeenTopic:
    """Each kind of row in the order of the capture. `brokers`: names by addresses; `unseen`: addresses of
    which not all that they sent was seen; `unread`: brokers of which a registration was not read; `several`:
    addresses of brokers whose name another one has, too; `registrants`: which of them registers with which
    name server; `told`: all that is said of the mapping, `mapping`
    what it comes to; `wishes`: what groups say in heartbeats, of which one was not read where `silent`.
    `in_doubt`: some rows may be of another topic of the name, before or after this one."""

    name: str
    mapping: Topic
    brokers: Named
    unseen: frozenset[str]
    told: Sequence[Mapped] = ()
    unread: frozenset[str] = frozenset()
    several: frozenset[str] = frozenset()
    registrants: frozenset[tuple[str, str]] = frozenset()
    wishes: Sequence[Subscribed] = ()
    silent: bool = False
    in_doubt: bool = False
    pulled: list[Pulled] = field(default_factory=list)
    positions: list[Position] = field(default_factory=list)
    limits: list[Limit] = field(default_factory=list)
    sent: list[Acknowledged] = field(default_factory=list)

    def take(self, row: Observation) -> None:
        """Take what is told of it, but of its mapping."""
        if isinstance(row, Pulled):
            self.pulled.append(row)
        elif isinstance(row, Position):
            self.positions.append(row)
        elif isinstance(row, Limit):
            self.limits.append(row)
        elif isinstance(row, Acknowledged):
            self.sent.append(row)

    def event(self, stream: str, name: str, row: Observation, /, **told: Any) -> StreamEvent:
        """An event about the topic."""
        about = {"topic": self.name, "group": OF_TOPIC + self.name, "row": row}
        return StreamEvent(stream, name, SimpleNamespace(**told, **about))

    def is_logical(self, row: Pulled | Position | Limit) -> bool:
        """Whether a request means a logical queue of a static topic."""
        if self.mapping.form == LOGICAL or row.logical is False:
            return False
        said = row.logical or row.offset_delta is not None
        return said or (row.name or "").startswith(MOCK_BROKER_PREFIX)

    def held(self, row: Pulled | Position | Limit, offset: int | None) -> Held | None:
        """The segment that an offset of a physical queue lies in or behind, of which a request speaks."""
        broker = self.brokers.get(row.address or "")
        if broker is None or row.queue_id is None or offset is None:
            return None
        return self.mapping.held(broker, row.queue_id, offset)

    def where(self, row: Pulled) -> Where | None:
        """What the offsets of a pull mean; None where that is not known."""
        if row.queue_id is None:
            return None
        if self.is_logical(row):
            return None if row.offset_delta is None else Where(row.queue_id, row.offset_delta)
        held = self.held(row, row.asked)
        return None if held is None else Where(held.index, held.segment.delta)
