"""Where the log of a master ended before its office, by its own words: there its epoch starts.

A master that starts again within its epoch tells that this starts at the end of its log by then, and whether
it did start again the capture may not show. But a broker that follows reports how long its log is, and
everyone says it in heartbeats, with the epoch that he knows. Offsets are bytes of the commit log.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from replispec.replay.events.capture_events import Columns
from replispec.replay.events.event_tables import split
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.groups import BrokerGroups
from replispec.replay.events.rocketmq.tenures import Tenure

_OF_MASTERS = (ObservationKind.ANSWER, ObservationKind.BATCH, ObservationKind.HEARTBEAT)


@dataclass(frozen=True, slots=True)
class EarlierEnds:
    """What the master of an epoch had said of its log before.

    `said`: all ends in heartbeats and last reports; `reported`: the last one that it reported while it
    followed the master before, None where it did not, or where it was master itself after that.
    """

    said: Collection[int] = ()
    reported: int | None = None


NOTHING_SAID = EarlierEnds()


@dataclass(slots=True)
class _Following:
    """A connection on which a replica followed: who, the epochs that its master told, and its last report."""

    replicas: Collection[str] = ()
    epoch: int | None = None
    reported: int | None = None


@dataclass(slots=True)
class Words:
    """What the brokers of one group said of their logs."""

    heartbeats: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    connections: dict[str, _Following] = field(default_factory=lambda: defaultdict(_Following))

    def before(
        self, epoch: int, tenures: Mapping[int, Tenure], addresses: Collection[str | None]
    ) -> EarlierEnds:
        """Of the master of an epoch, which was at these addresses."""
        said = {
            end
            for address in addresses
            for each, end in self.heartbeats.get(address or "", {}).items()
            if each < epoch
        }
        followed = [
            (each.epoch, each.reported)
            for each in self.connections.values()
            if each.epoch is not None and each.epoch < epoch and each.reported is not None
            if not set(addresses).isdisjoint(each.replicas)
        ]
        if not followed:
            return EarlierEnds(said)
        last, reported = max(followed)
        own = any(last <= each < epoch and tenure.address in addresses for each, tenure in tenures.items())
        return EarlierEnds({*said, *(end for _, end in followed)}, None if own else reported)


def words_of(
    told: Iterable[Observation], witnesses: Iterable[Observation], frames: Columns, groups: BrokerGroups
) -> dict[str, Words]:
    """By group; `told`: what is rare, `witnesses`: the headers of transfers with all epochs that were told,
    `frames`: all of replication, or those that tell as much of it. All with their groups."""
    found: dict[str, Words] = defaultdict(Words)
    for row in (*told, *witnesses):
        if row.group is None:
            continue
        own = found[row.group]
        if row.kind == ObservationKind.ALIVE and row.epoch is not None and row.max_offset is not None:
            before = own.heartbeats[row.address or ""]
            before[row.epoch] = max(row.max_offset, before.get(row.epoch, 0))
        elif row.kind == ObservationKind.HANDSHAKE:
            own.connections[row.connection].replicas = _replicas(row, groups)
        elif row.kind in _OF_MASTERS:
            each = own.connections[row.connection]
            epochs = (number for number in (each.epoch, *_epochs(row)) if number is not None)
            each.epoch = max(epochs, default=None)
    for row in _last_reports(frames):
        if row.group is not None and groups.is_told(row):
            found[row.group].connections[row.connection].reported = row.max_offset
    return found


def _replicas(row: Observation, groups: BrokerGroups) -> Collection[str]:
    """The addresses that the broker may have which names itself in a handshake."""
    if row.text:
        return (groups.main.get(row.text, row.text),)
    return groups.identities.with_id(str(row.group), row.broker_id)


def _epochs(row: Observation) -> Iterator[int | None]:
    if row.kind == ObservationKind.ANSWER:
        yield from (entry["epoch"] for entry in row.epochs or ())
    else:
        yield row.epoch


def _last_reports(frames: Columns) -> list[Observation]:
    """The last word of its own log on every connection."""
    rows = np.flatnonzero(frames.are(ObservationKind.REPORT))
    last = [rows[own[-1]] for _, own in split(frames.alike("connection")[rows])]
    return frames.rows(np.sort(np.array(last, np.int64)))
