"""All kinds of observations: the class of each, and the columns of its table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from replispec.replay.events import observation as seen
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.partition_observations import (
    Appended,
    EpochEnd,
    Fetched,
    Hidden,
    Node,
    Ordered,
)
from replispec.replay.events.queue_observations import Limit, Mapped, Position, Pulled, Subscribed

_ALL: Final[tuple[type[Observation], ...]] = (
    seen.Controller, seen.Broker, seen.Alive, seen.Closed, seen.Leader,
    seen.Registration, seen.Start, seen.Decision,
    seen.Granted, seen.Cleaned, seen.Fact, seen.Alteration, seen.Acknowledged, seen.Epochs,
    seen.Opened, seen.Gap, seen.Handshake, seen.Answer, seen.Report, seen.Batch, seen.Heartbeat,
    seen.Paired, seen.Mispaired, seen.Unseen, seen.Latency, seen.Undecodable,
    seen.Member,
    Mapped, Pulled, Position, Limit, Subscribed,
    Node, Appended, Fetched, Ordered, EpochEnd, Hidden,
)  # fmt: skip
KINDS: Final[Mapping[ObservationKind, type[Observation]]] = {
    each.kind: each for each in sorted(_ALL, key=lambda each: each.kind)
}
"""The class of each kind, by its name."""


def of_kind(kind: ObservationKind, *place: Any, **told: Any) -> Observation:
    """An observation of a kind that is known only now. Raises TypeError for a field that it has not."""
    return KINDS[kind](*place, **told)


def names_of(kind: ObservationKind) -> tuple[str, ...]:
    """The fields of a kind that its table has as columns, in their order."""
    return tuple(each.name for each in fields(KINDS[kind]) if not each.metadata)
