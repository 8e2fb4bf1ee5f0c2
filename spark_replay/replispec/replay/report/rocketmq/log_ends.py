"""How far the logs of a broker group were, as the wire tells it: curves over time, and the lag at the end.

Offsets are bytes of the commit log, times int64 ns UTC.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from replispec.replay.events.capture_events import Columns
from replispec.replay.events.event_tables import Coded, Numbers, Rows, coded, split
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.judged_groups import GroupEvents
from replispec.replay.report.model import Curve, CurveKind, Lag

# One point per curve and this part of the capture's time: more cannot be seen.
MOMENTS = 800
# So many bits of a time and those of MOMENTS are a number of 64 bits.
_EXACT_BITS = 63 - MOMENTS.bit_length()


@dataclass(frozen=True, slots=True)
class _Points:
    """What some events (`rows`, ascending) tell of logs: the broker that each is about, and the offset."""

    kind: CurveKind
    events: Columns
    rows: Rows
    owners: Coded
    offsets: Numbers


def curves(own: GroupEvents, span_ns: tuple[int, int]) -> tuple[Curve, ...]:
    """The curves of one group; kinds in their order. `span_ns`: first and last packet of the capture."""
    names = _names(own.rows)
    found = []
    for each in _points(own):
        of_owner: dict[str, list[Rows]] = defaultdict(list)
        for code, at in split(each.owners.codes):
            owner = each.owners.values[code]
            of_owner[names.get(owner, owner)].append(at)
        times = each.events.numbers("time_ns").numbers[each.rows]
        for owner, parts in sorted(of_owner.items()):
            at = np.sort(np.concatenate(parts))
            found.append(Curve(each.kind, owner, _thinned(times[at], each.offsets[at], span_ns)))
    return tuple(found)


def moments(events: Columns, span_ns: tuple[int, int]) -> Numbers:
    """The moment of the curves that each event is of."""
    return _moments(events.numbers("time_ns").numbers, span_ns)


def _moments(times: Numbers, span_ns: tuple[int, int]) -> Numbers:
    lasted = max(span_ns[1] - span_ns[0], 1)
    # Of a capture of months, or of a clock that was set within it, the last bits are left out: products fit.
    less = max(lasted.bit_length() - _EXACT_BITS, 0)
    return np.asarray(((times - span_ns[0]) >> less) * MOMENTS // (lasted >> less))


def _thinned(times: Numbers, offsets: Numbers, span_ns: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """The last point of each moment; moments by their first points."""
    each = _moments(times, span_ns)
    _, first = np.unique(each, return_index=True)
    _, from_end = np.unique(each[::-1], return_index=True)
    last = (len(times) - 1 - from_end)[np.argsort(first)]
    return tuple(zip(times[last].tolist(), offsets[last].tolist(), strict=True))


def lags(own: GroupEvents) -> tuple[Lag, ...]:
    """How far each replica's last report was behind what its master had sent it by the end of the capture."""
    names = _names(own.rows)
    connections, addresses = (own.frames.coded(name) for name in ("connection", "address"))
    told = {each.kind: each for each in _points(own)}
    sent, reports = told[CurveKind.SENT], told[CurveKind.REPORTED]
    last_sent = {code: sent.offsets[at[-1]] for code, at in split(connections.codes[sent.rows])}
    reported = np.flatnonzero(~addresses.where(None)[reports.rows])
    found = {}
    for code, at in split(reports.owners.codes[reported]):
        last = reported[at[-1]]
        row = reports.rows[last]
        address = addresses.values[addresses.codes[row]]
        if connections.codes[row] in last_sent:
            ends = int(last_sent[connections.codes[row]]), int(reports.offsets[last])
            found[reports.owners.values[code]] = names.get(address, address), *ends
    return tuple(Lag(replica, *ends) for replica, ends in sorted(found.items()))


def _points(own: GroupEvents) -> list[_Points]:
    """The points of all kinds, in their order. An offset below 0 is that of a broker without data."""
    sends, frames, replicas = own.sends, own.frames, _replicas(own.rows)
    transfers = frames.are(ObservationKind.BATCH, ObservationKind.HEARTBEAT)
    transfers &= ~frames.coded("address").where(None)
    stored = sends.numbers("offset")
    begins = frames.numbers("offset")
    ends = begins.plus(frames.numbers("body_size").numbers)
    speaking = frames.coded("connection")
    owners = coded([replicas.get(name, name) for name in speaking.values])
    replica = Coded(owners.codes[speaking.codes], owners.values)
    reports = frames.are(ObservationKind.REPORT) & (frames.numbers("max_offset").numbers >= 0)
    named = ~sends.coded("address").where(None)
    kinds = (
        (CurveKind.ACKNOWLEDGED, sends, named, sends.coded("address"), stored),
        (CurveKind.SENT, frames, transfers & (begins.numbers >= 0), frames.coded("address"), ends),
        (
            CurveKind.CONFIRMED,
            frames,
            transfers & (frames.numbers("confirm_offset").numbers >= 0),
            frames.coded("address"),
            frames.numbers("confirm_offset"),
        ),
        (CurveKind.REPORTED, frames, reports, replica, frames.numbers("max_offset")),
    )
    found = []
    for kind, events, chosen, owner, offsets in kinds:
        rows = np.flatnonzero(chosen & (offsets.absent == 0))
        found.append(_Points(kind, events, rows, owner.take(rows), offsets.numbers[rows]))
    return sorted(found, key=lambda each: list(CurveKind).index(each.kind))


def _names(rows: list[Observation]) -> dict[str, str]:
    """The name of the broker behind each of its addresses, that of its replication too."""
    names: dict[str, str] = {}
    mains: dict[str, str] = {}
    for row in rows:
        if row.kind in (ObservationKind.BROKER, ObservationKind.ALIVE) and row.address is not None:
            if row.broker_id is not None:
                names[row.address] = f"broker {row.broker_id}"
            if row.ha_address is not None:
                mains[row.ha_address] = row.address
    return names | {address: names.get(main, main) for address, main in mains.items()}


def _replicas(rows: list[Observation]) -> dict[str, str]:
    """The replica that speaks on each replication connection, as it named itself."""
    return {
        row.connection: row.text if row.text is not None else f"broker {row.broker_id}"
        for row in rows
        if row.kind == ObservationKind.HANDSHAKE
    }
