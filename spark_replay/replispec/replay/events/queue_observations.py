"""What was seen of logical queues: mappings, and what is read, kept and asked of their queues.

Queue ids and offsets are those that a request or an answer names; whether they are logical the request says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from replispec.replay.events.observation import ObservationKind, Told


@dataclass(frozen=True, slots=True)
class Mapped(Told):
    """What somebody says of the mapping of a topic at the broker `name`; `said_by` is a word of `SaidBy`.

    `address`: who says it. `form`: "ST" for a static topic, "LQ" for logical queues of RIP-21. `leads`: its
    physical queues by the logical ones that it leads, where that is said; `segments` where these are.
    `own_name`: what the broker calls itself that registers. `forced`: without checks. `hosts`: where
    a route says that brokers are. A registration without a topic is one that was not read.
    """

    kind = ObservationKind.MAPPED
    topic: str | None = None
    said_by: str | None = None
    form: str | None = None
    name: str | None = None
    own_name: str | None = None
    address: str | None = None
    language: str | None = None
    mapping_epoch: int | None = None
    total: int | None = None
    forced: bool | None = None
    leads: Sequence[dict[str, int]] | None = None
    segments: Sequence[dict[str, Any]] | None = None
    hosts: Sequence[dict[str, str | None]] | None = None
    request_order: int | None = None


@dataclass(frozen=True, slots=True)
class _OfQueue(Told):
    """What the broker at `address` answers about a queue; `code` is that of the answer.

    `logical`: the request says so, None where it does not say. `name`: the broker that it names.
    """

    topic: str | None = None
    queue_id: int | None = None
    name: str | None = None
    address: str | None = None
    code: int | None = None
    language: str | None = None
    logical: bool | None = None
    request_order: int | None = None


@dataclass(frozen=True, slots=True)
class Pulled(_OfQueue):
    """A pull of `consumer_group` from `asked` on; the messages are in `pulled`, None where the body was not
    read. `filtered`: the consumer does not want all messages, None where the request does not say, and
    `sub_version` is that of what its group says in heartbeats; `tag_codes`: hashes of the tags that it wants,
    None where it does not filter by tags; `carried`: the position that it commits; `redirected`: another
    segment's broker shall be asked."""

    kind = ObservationKind.PULLED
    consumer_group: str | None = None
    asked: int | None = None
    next_begin: int | None = None
    min_offset: int | None = None
    end_offset: int | None = None
    offset_delta: int | None = None
    filtered: bool | None = None
    sub_version: int | None = None
    tag_codes: Sequence[int] | None = None
    redirected: bool | None = None
    carried: int | None = None
    pulled: Sequence[dict[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class Position(_OfQueue):
    """How far `consumer_group` has read: what it commits (`committed`), or what it is told. `code` is None of
    a commit that is not answered."""

    kind = ObservationKind.POSITION
    consumer_group: str | None = None
    queue_offset: int | None = None
    committed: bool | None = None


@dataclass(frozen=True, slots=True)
class Limit(_OfQueue):
    """The first or the last offset of a queue; `asked_code` is that of the request, and `committed` whether
    it asks for the end of what is confirmed."""

    kind = ObservationKind.LIMIT
    asked_code: int | None = None
    queue_offset: int | None = None
    committed: bool | None = None


@dataclass(frozen=True, slots=True)
class Subscribed(Told):
    """What `consumer_group` wants of a topic, as a heartbeat of a member says it; `wanted` is a word of
    `Wanted`. `tag_codes`: hashes of the tags, none where it filters otherwise or wants all. A row without a
    group is a heartbeat that was not read."""

    kind = ObservationKind.SUBSCRIBED
    topic: str | None = None
    consumer_group: str | None = None
    wanted: str | None = None
    sub_version: int | None = None
    tag_codes: Sequence[int] | None = None
