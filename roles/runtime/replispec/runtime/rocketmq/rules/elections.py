"""The choice of a master among the brokers of a set.

Source: RIP-44 "Elect Master"; apache/rocketmq DefaultElectPolicy; golden examples in
spec/vectors/rocketmq/elections.yaml.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from replispec.wire.rocketmq.constants import JAVA_LOGS_APART_MAX, JAVA_TIED_IDS_MAX, NO_PRIORITY


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


def untold(heartbeats: Sequence[Heartbeat]) -> frozenset[int]:
    """Living candidates of which nobody can tell afterwards whom Java's controller elected; none where that
    is certain: it takes the first that it comes to of equals, and cuts differences of logs to 32 bits."""
    ranks = sorted(_rank(beat.broker_id, beat) for beat in heartbeats if beat.broker_id is not None)
    newest = [each for each in ranks if each[0] == ranks[0][0]]
    if not newest:
        return frozenset()
    first, last = newest[0], newest[-1]
    equals = {each[3] for each in newest if each[:3] == first[:3]}
    found = equals if len(equals) > 1 and max(equals) > JAVA_TIED_IDS_MAX else set[int]()
    if last[1] - first[1] > JAVA_LOGS_APART_MAX:
        found = found | {first[3], last[3]}
    return frozenset(found)
