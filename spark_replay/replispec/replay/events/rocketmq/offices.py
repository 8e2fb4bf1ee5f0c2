"""Who was master of which epoch by the masters' own words, and what became of what they had confirmed.

A master answers a replica's handshake with its epochs; the last one is its own, unless nothing was written in
it. Its replication address is joined to its main address by what it told a name server. So epochs of which no
controller was captured have masters as well.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import SimpleNamespace

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.groups import BrokerGroups

Offices = dict[int, tuple[str, Observation]]
"""By epoch: the master's main address, and the row that tells it first."""


def masters_by_handshake(rows: Iterable[Observation], groups: BrokerGroups) -> dict[str, Offices]:
    """The masters of each group; none of an epoch that two brokers call their last."""
    found: dict[str, Offices] = defaultdict(dict)
    disputed: set[tuple[str, int]] = set()
    for row in rows:
        if row.kind != ObservationKind.ANSWER or not row.epochs or row.group is None:
            continue
        main = groups.main.get(row.address or "")
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
    rows: Iterable[Observation],
    groups: BrokerGroups,
    masters: Masters,
    starts: Mapping[str, Mapping[int, int]],
    *,
    all_ack: bool,
) -> Iterator[SimpleNamespace]:
    """The events of the stream `offices`, of the last office of each broker.

    `starts`: where the epochs of each group begin, as far as known.
    """
    confirmed: dict[tuple[str, int], Observation] = {}
    for row in rows:
        if row.kind not in (ObservationKind.BATCH, ObservationKind.HEARTBEAT) or (row.offset or 0) < 0:
            continue
        if row.group is None or row.epoch is None or row.confirm_offset is None:
            continue
        address = groups.main.get(row.address or "", row.address)
        # Bytes are labelled with the epoch they are of, confirmOffset is the one of the master's present
        # office: a broker that was master twice tells of both with one label.
        held = [epoch for epoch, master in masters.get(row.group, {}).items() if master == address]
        if held and max(held) == row.epoch:
            best = confirmed.setdefault((row.group, row.epoch), row)
            if row.confirm_offset > (best.confirm_offset or 0):
                confirmed[row.group, row.epoch] = row
    for (group, epoch), row in sorted(confirmed.items(), key=lambda each: each[0]):
        later = [start for each, start in starts.get(group, {}).items() if each > epoch]
        if later:
            yield SimpleNamespace(
                row=row,
                group=group,
                epoch=epoch,
                confirmed=row.confirm_offset,
                next_start=min(later),
                all_ack=all_ack,
            )
