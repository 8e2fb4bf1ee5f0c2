"""Masters whose log begins late: as a replica each got it from somewhere on, as syncFromLastFile has it.

What was acknowledged below that place is in no such master's log, and cannot be compared with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from replispec.replay.events.capture_events import Columns
from replispec.replay.events.event_tables import Flags, split
from replispec.replay.events.observation import ObservationKind
from replispec.replay.events.rocketmq.tenures import Tenure

Beginnings = Mapping[str, Mapping[int, int]]
"""By group and masterEpoch where the log of its master begins, if not at 0."""


def beginnings(frames: Columns, tenures: Mapping[str, Mapping[int, Tenure]]) -> Beginnings:
    """Those that a connection shows on which a replica with an empty log got one; `frames` have groups."""
    found: dict[str, dict[int, int]] = defaultdict(dict)
    for (group, replica), begin in _first_bytes(frames).items():
        for epoch, tenure in tenures.get(group, {}).items():
            if replica in (tenure.master, tenure.address):
                found[group][epoch] = begin
    return found


def below(sends: Columns, begun: Beginnings) -> Flags:
    """Which messages lie below where the log of some later master begins."""
    found = np.zeros(len(sends), np.bool_)
    group, epoch = sends.coded("group"), sends.coded("epoch")
    offsets = sends.numbers("offset").numbers
    for _, rows in split(sends.alike("group", "epoch")):
        own = begun.get(str(group.values[group.codes[rows[0]]]), {})
        value = epoch.values[epoch.codes[rows[0]]]
        later = [begin for each, begin in own.items() if value is not None and each > value]
        found[rows] = offsets[rows] < max(later, default=0)
    return found


def _first_bytes(frames: Columns) -> dict[tuple[str, str], int]:
    """By group and replica the largest place above 0 from which it got a log when it had none."""
    found: dict[tuple[str, str], int] = {}
    shakes = frames.rows(np.flatnonzero(frames.are(ObservationKind.HANDSHAKE)))
    who = {row.connection: (str(row.group), row.text or str(row.broker_id)) for row in shakes}
    connection = frames.coded("connection")
    reported, sent = frames.numbers("max_offset").numbers, frames.numbers("offset").numbers
    is_report, is_run = frames.are(ObservationKind.REPORT), frames.are(ObservationKind.BATCH)
    for code, rows in split(connection.codes):
        replica = who.get(connection.values[code])
        reports, runs = rows[is_report[rows]], rows[is_run[rows]]
        if replica is not None and len(reports) and len(runs) and reported[reports].min() == 0:
            begin = int(sent[runs].min())
            if begin > 0:
                found[replica] = max(begin, found.get(replica, 0))
    return found
