"""Whether a replication connection carried the log in which a message was stored, told by causes alone.

A master that starts again may have lost the end of its log, and writes other messages there within its
masterEpoch: what was carried at a place before is none of what is acknowledged at it afterwards, and neither
that start nor the acknowledgements of what was lost have to be in the capture. Where the connections of its
host with the controllers are, and whole, such a start would be seen. Else other messages tell.

A connection ends with its broker, so that one connection is of one run, in which the log of an epoch only
grows. So two connections, one that carries log bytes and one on which messages were acknowledged, are

- of one run, when the first one carried a message of the second that lies behind where the log ended when
  the replica was answered: it was written while the first connection was there;
- of one log up to a message of the second that the first one carried: whatever came before it in the
  second's run is in that log.

What is told by its body is a message that no other one of the epoch is like.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from replispec.replay.events.event_tables import INT64_MAX, Codes, Flags, Numbers, combined
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.log_falls import Tenures
from replispec.replay.events.rocketmq.wholeness import Met, host_of

_NOWHERE: Final = -1


class OneLog(NamedTuple):
    """What tells whether two connections saw one log. `begins`: by replication connection where the log ended
    when its replica was answered; `watched`: the epochs of groups in which a start of the master is seen."""

    begins: Mapping[str, int]
    watched: Collection[tuple[str, int]]


def one_log(rows: Sequence[Observation], tenures: Tenures) -> OneLog:
    """Of the rare rows of a capture, with their groups."""
    return OneLog(_begins(rows), {*_watched(rows, tenures)})


def _watched(rows: Sequence[Observation], tenures: Tenures) -> Iterator[tuple[str, int]]:
    met = Met.of(rows)
    answering = {row.controller or "" for row in rows if row.kind == ObservationKind.FACT} - {""}
    for group, own in tenures.items():
        for epoch, office in own.items():
            hosts = {host_of(office.address or "")} - {""}
            if hosts and answering and all(met.whole(hosts, each) for each in answering):
                yield group, epoch


def _begins(rows: Iterable[Observation]) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in rows:
        if row.kind == ObservationKind.ANSWER and row.max_offset is not None:
            found[row.connection] = max(row.max_offset, found.get(row.connection, 0))
    return found


def of_one_log(carried_on: Codes, sent_on: Codes, places: Numbers, begins: Numbers, is_known: Flags) -> Flags:
    """Which messages of one masterEpoch surely lie in the log that a replication connection carried.

    One row is a message and a run of log bytes with a record at its place: the codes of both connections, the
    place, where the log ended when the one with the run began, and whether the record is the message surely.
    """
    carrying, sending = (np.unique(each, return_inverse=True)[1] for each in (carried_on, sent_on))
    count, others = int(carrying.max(initial=-1)) + 1, int(sending.max(initial=-1)) + 1
    is_written = is_known & (begins <= places)
    pairs = np.unique(carrying[is_written] * others + sending[is_written])
    of = _joined(count + others, [(pair // others, count + pair % others) for pair in pairs.tolist()])
    logs = combined(carrying, of[sending + count])
    reach = np.full(int(logs.max(initial=-1)) + 1, _NOWHERE)
    np.maximum.at(reach, logs[is_known], places[is_known])
    found: Flags = (of[carrying] == of[sending + count]) | (reach[logs] > places)
    return found


def begins_of(connections: Codes, names: Iterable[str | None], ends: Mapping[str, int]) -> Numbers:
    """For each row where the log ended when its connection began; the largest place where nothing tells."""
    known = np.array([ends.get(name or "", INT64_MAX) for name in names], np.int64)
    found: Numbers = known[connections]
    return found


def _joined(count: int, pairs: Iterable[tuple[int, int]]) -> Codes:
    """For each of so many things the least one that pairs join it to."""
    parent = list(range(count))

    def first(each: int) -> int:
        while parent[each] != each:
            parent[each] = parent[parent[each]]
            each = parent[each]
        return each

    for one, other in pairs:
        least, most = sorted((first(one), first(other)))
        parent[most] = least
    return np.array([first(each) for each in range(count)], np.int64)
