"""When a broker that had been replaced still acted as master, as the point of capture saw it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from replispec.replay.events.capture_events import Columns
from replispec.replay.events.event_tables import Numbers
from replispec.replay.events.observation import ObservationKind
from replispec.replay.events.rocketmq.stream_events import Judged
from replispec.replay.events.rocketmq.tenures import Tenure
from replispec.replay.report.model import Overlap

# What only a master sends.
_TRANSFERS = (ObservationKind.BATCH, ObservationKind.HEARTBEAT)
_STORED = (ObservationKind.ACKNOWLEDGED,)


def overlaps(file: str, judged: Judged) -> list[Overlap]:
    """What each replaced master did after the fact that named another one, by group and masterEpoch."""
    found = []
    for group in sorted(judged.history.tenures):
        own = judged.of_group(group)
        tenures = sorted(judged.history.tenures[group].items())
        for (before_epoch, before), (epoch, after) in pairwise(tenures):
            if before.master != after.master and before.address is not None:
                until_ns = min(
                    (each.time_ns for _, each in tenures if each.time_ns > after.time_ns), default=None
                )
                span = after.time_ns, until_ns
                sends, transfers = (
                    _acts(events, kinds, before, span, judged.groups.main)
                    for events, kinds in ((own.sends, _STORED), (own.frames, _TRANSFERS))
                )
                if len(sends) or len(transfers):
                    found.append(
                        _overlap(file, group, (before, after), (before_epoch, epoch), (sends, transfers))
                    )
    return found


def added(parts: Iterable[Overlap]) -> list[Overlap]:
    """What parts of one capture tell, together."""
    found: dict[tuple[str, int, int], Overlap] = {}
    for part in parts:
        key = part.group, part.old_epoch, part.new_epoch
        before = found.get(key)
        found[key] = part if before is None else _sum(before, part)
    return [found[key] for key in sorted(found, key=lambda each: (each[0], each[1]))]


def _sum(one: Overlap, other: Overlap) -> Overlap:
    return replace(
        one,
        to_ns=max(one.to_ns, other.to_ns),
        acknowledged=one.acknowledged + other.acknowledged,
        transfers=one.transfers + other.transfers,
    )


def _acts(
    events: Columns,
    kinds: Sequence[ObservationKind],
    before: Tenure,
    span: tuple[int, int | None],
    main: Mapping[str, str],
) -> Numbers:
    """When the old master acted as master, after it was replaced and before the next one was (`span`)."""
    addresses, times = events.coded("address"), events.numbers("time_ns").numbers
    known = [each for each in addresses.values if each is not None]
    own = addresses.where(*(each for each in known if main.get(each, each) == before.address))
    inside = (times > span[0]) & (True if span[1] is None else times < span[1])
    return times[events.are(*kinds) & own & inside]


def _overlap(
    file: str,
    group: str,
    masters: tuple[Tenure, Tenure],
    epochs: tuple[int, int],
    acts: tuple[Numbers, Numbers],
) -> Overlap:
    before, after = masters
    return Overlap(
        group=group,
        file=file,
        from_ns=after.time_ns,
        to_ns=int(np.concatenate(acts).max()),
        old_master=f"broker {before.master}",
        new_master=f"broker {after.master}",
        old_epoch=epochs[0],
        new_epoch=epochs[1],
        acknowledged=len(acts[0]),
        transfers=len(acts[1]),
    )
