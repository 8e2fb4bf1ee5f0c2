"""How far the logs of a broker group were, as the wire tells it: curves over time, and the lag at the end.

Offsets are bytes of the commit log, times int64 ns UTC.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.report.model import Curve, CurveKind, Lag

# One point per curve and this part of the capture's time: more cannot be seen.
MOMENTS = 800


def curves(rows: list[Observation], span_ns: tuple[int, int]) -> tuple[Curve, ...]:
    """The curves of one group from its observations in the order of the capture; kinds in their order.

    `span_ns`: first and last packet of the capture.
    """
    names, replicas = _names(rows), _replicas(rows)
    found: dict[tuple[CurveKind, str], dict[int, tuple[int, int]]] = defaultdict(dict)
    for row in rows:
        for kind, owner, offset in _points(row, replicas):
            moment = (row.time_ns - span_ns[0]) * MOMENTS // max(span_ns[1] - span_ns[0], 1)
            found[kind, names.get(owner, owner)][moment] = (row.time_ns, offset)
    order = list(CurveKind)
    return tuple(
        Curve(kind, owner, tuple(found[kind, owner].values()))
        for kind, owner in sorted(found, key=lambda each: (order.index(each[0]), each[1]))
    )


def lags(rows: list[Observation]) -> tuple[Lag, ...]:
    """How far each replica's last report was behind what its master had sent it by the end of the capture."""
    names, replicas = _names(rows), _replicas(rows)
    sent: dict[str, int] = {}
    reported: dict[str, int] = {}
    masters: dict[str, tuple[str, str]] = {}
    for row in rows:
        for kind, owner, offset in _points(row, replicas):
            if kind is CurveKind.SENT:
                sent[row.connection] = offset
            elif kind is CurveKind.REPORTED and row.address is not None:
                reported[row.connection] = offset
                masters[owner] = (row.connection, names.get(row.address, row.address))
    return tuple(
        Lag(replica, master, sent[connection], reported[connection])
        for replica, (connection, master) in sorted(masters.items())
        if connection in sent
    )


def _points(row: Observation, replicas: dict[str, str]) -> Iterator[tuple[CurveKind, str, int]]:
    """What an observation tells of logs: the curve, the broker that it is about, and the offset.

    An offset below 0 is that of a broker without data.
    """
    if row.kind in (ObservationKind.BATCH, ObservationKind.HEARTBEAT) and row.address is not None:
        if row.offset is not None and row.offset >= 0:
            yield CurveKind.SENT, row.address, row.offset + (row.body_size or 0)
        if row.confirm_offset is not None and row.confirm_offset >= 0:
            yield CurveKind.CONFIRMED, row.address, row.confirm_offset
    elif row.kind == ObservationKind.REPORT and row.max_offset is not None and row.max_offset >= 0:
        yield CurveKind.REPORTED, replicas.get(row.connection, row.connection), row.max_offset
    elif row.kind == ObservationKind.ACKNOWLEDGED and row.address is not None and row.offset is not None:
        yield CurveKind.ACKNOWLEDGED, row.address, row.offset


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
