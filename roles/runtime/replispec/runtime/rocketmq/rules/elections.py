"""The choice of a master among the brokers of a set.

Source: RIP-44 "Elect Master"; apache/rocketmq DefaultElectPolicy; golden examples in
spec/vectors/rocketmq/elections.yaml.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from replispec.wire.rocketmq.constants import NO_PRIORITY


class Heartbeat(Protocol):
    """What a living broker last said about itself; the smaller election priority wins."""

    @property
    def broker_id(self) -> int | None:
        """The broker's persistent id."""
        ...

    @property
    def epoch(self) -> int | None:
        """Its last masterEpoch."""
        ...

    @property
    def max_offset(self) -> int | None:
        """The end of its commit log, in bytes."""
        ...

    @property
    def election_priority(self) -> int | None:
        """Its configured priority."""
        ...


def elect(
    members: frozenset[int],
    everyone: frozenset[int],
    heartbeats: Sequence[Heartbeat],
    old_master: int | None,
    preferred: int | None,
    *,
    unclean: bool,
) -> int | None:
    """The broker that becomes, or stays, master; None when no broker may.

    `heartbeats` are those of living brokers. Members come first; with `unclean`, everyone else after
    them, at the price of messages. If there is a `preferred` one, only it is eligible.
    """
    alive = {beat.broker_id: beat for beat in heartbeats if beat.broker_id is not None}
    for group in (members, everyone if unclean else frozenset()):
        chosen = _elect_among(group, alive, old_master, preferred)
        if chosen is not None:
            return chosen
    return None


def _elect_among(
    group: frozenset[int], alive: dict[int, Heartbeat], old_master: int | None, preferred: int | None
) -> int | None:
    living = [broker for broker in group if broker in alive]
    if preferred is not None:
        return preferred if preferred in living else None
    if old_master in living:
        return old_master
    return min(living, key=lambda broker: _rank(broker, alive[broker]), default=None)


def _rank(broker: int, beat: Heartbeat) -> tuple[int, int, int, int]:
    """Smaller is better: the later epoch, the longer log, the smaller priority, the smaller id."""
    priority = NO_PRIORITY if beat.election_priority is None else beat.election_priority
    return -(beat.epoch or 0), -(beat.max_offset or 0), priority, broker
