"""What was seen of partitions and of the store that says who leads them.

Offsets count records. A partition is a topic and a number; `address` is where the broker listens that was
asked. What is asked and what is answered are one row, at the place of the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from replispec.replay.events.observation import Observation, ObservationKind, Told


@dataclass(frozen=True, slots=True)
class Node(Told):
    """What an answer of a store, or what it told without a request, says of the node at `path`.

    `how` is a word of `How`. `version` is the one of its data and `zxid` the number of the change that the
    answer shows: of a node that was read that of its newest one. `session` is that of whoever asked, where
    its beginning was seen.
    """

    kind = ObservationKind.NODE
    path: str | None = None
    how: str | None = None
    data: bytes | None = None
    children: Sequence[str] | None = None
    version: int | None = None
    zxid: int | None = None
    session: int | None = None
    request_order: int | None = None


@dataclass(frozen=True, slots=True)
class _OfPartition(Told):
    """What the broker at `address` answers about a partition; `code` is its error."""

    topic: str | None = None
    partition: int | None = None
    address: str | None = None
    code: int | None = None
    request_order: int | None = None


@dataclass(frozen=True, slots=True)
class Appended(_OfPartition):
    """Batches that somebody wrote with `acks`, where they lie in the log, the first one at `offset`."""

    kind = ObservationKind.APPENDED
    acks: int | None = None
    offset: int | None = None
    batches: Sequence[dict[str, int]] | None = None


@dataclass(frozen=True, slots=True)
class Fetched(_OfPartition):
    """What `member` (a broker's id, -1: a reader of what is committed) was given from offset `asked` on;
    `epoch` is the one that it believes in, where it says so. A question without an answer has no `code`, and
    stands at the request; `asked` is None where the answer is to a session that names no partition again."""

    kind = ObservationKind.FETCHED
    member: int | None = None
    asked: int | None = None
    epoch: int | None = None
    high_watermark: int | None = None
    min_offset: int | None = None
    batches: Sequence[dict[str, int]] | None = None


@dataclass(frozen=True, slots=True)
class EpochEnd(_OfPartition):
    """Where the log of the broker at `address` ends in `epoch`, which was asked for as `asked`."""

    kind = ObservationKind.EPOCH_END
    member: int | None = None
    asked: int | None = None
    epoch: int | None = None
    end_offset: int | None = None


@dataclass(frozen=True, slots=True)
class Ordered(_OfPartition):
    """A command of a controller about a partition, at the place of its answer; of one without an answer
    `code` is None, and it stands at the request. `message` is the name of the request, `version` that of the
    record it tells of."""

    kind = ObservationKind.ORDERED
    message: str | None = None
    controller_id: int | None = None
    controller_epoch: int | None = None
    leader: int | None = None
    epoch: int | None = None
    isr: Sequence[int] | None = None
    replicas: Sequence[int] | None = None
    version: int | None = None
    brokers: Sequence[dict[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class Hidden(Observation):
    """Bytes of a connection with a broker or a store that were not seen, or are no frame; `text`: why."""

    kind = ObservationKind.HIDDEN
    address: str | None = None
    text: str | None = None
