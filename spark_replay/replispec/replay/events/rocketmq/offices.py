"""Who was master of which epoch by the masters' own words, and what became of what they had confirmed.

A master answers a replica's handshake with its epochs; the last one is its own, unless nothing was written in
it. Its replication address is joined to its main address by what it told a name server. So epochs of which no
controller was captured have masters as well.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import SimpleNamespace

import numpy as np

from replispec.replay.events.capture_events import Columns
from replispec.replay.events.event_tables import combined, split
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.groups import BrokerGroups
from replispec.replay.events.rocketmq.runs import main_address
from replispec.runtime.primitives.unknown import UNKNOWN

Offices = dict[int, tuple[str, Observation]]
"""By epoch: the master's main address, and the row that tells it first."""


def masters_by_handshake(rows: Iterable[Observation], groups: BrokerGroups) -> dict[str, Offices]:
    """The masters of each group; none of an epoch that two brokers call their last."""
    found: dict[str, Offices] = defaultdict(dict)
    disputed: set[tuple[str, int]] = set()
    for row in rows:
        if row.kind != ObservationKind.ANSWER or not row.epochs or row.group is None:
            continue
        main = main_address(groups, row) if row.address in groups.main else None
        epoch = row.epochs[-1]["epoch"]
        if main is not None and found[row.group].setdefault(epoch, (main, row))[0] != main:
            disputed.add((row.group, epoch))
    for group, epoch in disputed:
        del found[group][epoch]
    return found


def filled(named: Mapping[int, str | None], told: Offices, epochs: Collection[int]) -> Offices:
    """Those of `told` that can be taken for true beside the masters that controllers `named`.

    When a replica shakes hands says little about when its master took office. So a broker must hold one
    office alone, and every later one of the `epochs` that are known must have its master.
    """
    known = {epoch: address for epoch, (address, _) in told.items()} | dict(named)
    times = Counter(known.values())
    unknown = max((epoch for epoch in epochs if epoch not in known), default=-1)
    return {
        epoch: office
        for epoch, office in told.items()
        if epoch not in named and times[office[0]] == 1 and epoch > unknown
    }


Masters = Mapping[str, Mapping[int, str | None]]
"""By group and epoch: the master's main address."""


def followed(
    frames: Columns,
    groups: BrokerGroups,
    masters: Masters,
    starts: Mapping[str, Mapping[int, int]],
    unseen: Mapping[str, int],
    *,
    all_ack: bool,
) -> Iterator[SimpleNamespace]:
    """The events of the stream `offices`, of the last office of each broker.

    `frames` are those of replication, with their groups; `starts`: where the epochs of each group begin, as
    far as known; `unseen`: the latest of them of which nothing tells that for sure.
    """
    held: dict[str, dict[str, int]] = defaultdict(dict)
    for group, own in masters.items():
        for epoch, address in own.items():
            if address is not None:
                broker = groups.identities.broker(group, address)
                held[group][broker] = max(epoch, held[group].get(broker, epoch))
    for (group, epoch), row in sorted(_confirmed(frames, groups, held).items(), key=lambda each: each[0]):
        later = [start for each, start in starts.get(group, {}).items() if each > epoch]
        if later:
            sure = unseen.get(group, -1) <= epoch or (row.confirm_offset or 0) > min(later)
            yield SimpleNamespace(
                row=row,
                group=group,
                epoch=epoch,
                confirmed=row.confirm_offset,
                next_start=min(later) if sure else UNKNOWN,
                all_ack=all_ack,
            )


def _confirmed(
    frames: Columns, groups: BrokerGroups, held: Mapping[str, Mapping[str, int]]
) -> dict[tuple[str, int], Observation]:
    """The first frame with the largest confirmOffset of each group and epoch, in words of its master.

    Bytes are labelled with the epoch they are of, confirmOffset is the one of the master's present office: a
    broker that was master twice tells of both with one label. `held`: the last office of each broker.
    """
    confirms, offsets = frames.numbers("confirm_offset"), frames.numbers("offset").numbers
    told = frames.are(ObservationKind.BATCH, ObservationKind.HEARTBEAT)
    rows = np.flatnonzero(told & (offsets >= 0) & (confirms.absent == 0))
    names = ("group", "epoch", "address")
    group, epoch, address = (frames.coded(name).take(rows) for name in names)
    best: dict[tuple[str, int], int] = {}
    for _, own in split(combined(group.codes, epoch.codes, address.codes)):
        name, number, where = (each.values[each.codes[own[0]]] for each in (group, epoch, address))
        broker = groups.identities.broker(name, groups.main.get(where or "", where or ""))
        if number is None or held.get(name, {}).get(broker) != number:
            continue
        first = int(rows[own[np.argmax(confirms.numbers[rows[own]])]])
        before = best.setdefault((name, number), first)
        if (~confirms.numbers[first], first) < (~confirms.numbers[before], before):
            best[name, number] = first
    found = frames.rows(np.array(list(best.values()), np.int64))
    return dict(zip(best, found, strict=True))
