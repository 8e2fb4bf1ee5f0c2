"""When a broker that had been replaced still acted as master, as the point of capture saw it."""

from __future__ import annotations

from itertools import pairwise

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.stream_events import Judged
from replispec.replay.events.rocketmq.tenures import Tenure
from replispec.replay.report.model import Overlap

# What only a master sends.
_TRANSFERS = (ObservationKind.BATCH, ObservationKind.HEARTBEAT)


def overlaps(file: str, judged: Judged) -> list[Overlap]:
    """What each replaced master did after the fact that named another one, by group and masterEpoch."""
    found = []
    for group in sorted(judged.history.tenures):
        rows = [row for row in judged.rows if row.group == group]
        tenures = sorted(judged.history.tenures[group].items())
        for (before_epoch, before), (epoch, after) in pairwise(tenures):
            if before.master != after.master and before.address is not None:
                until_ns = min(
                    (each.time_ns for _, each in tenures if each.time_ns > after.time_ns), default=None
                )
                acts = [row for row in rows if _acts(row, before, after, until_ns, judged.groups.main)]
                if acts:
                    found.append(_overlap(file, group, before, after, (before_epoch, epoch), acts))
    return found


def _acts(
    row: Observation, before: Tenure, after: Tenure, until_ns: int | None, main: dict[str, str]
) -> bool:
    """Whether the old master acted as master with it, after it was replaced and before the next one was."""
    if row.kind != ObservationKind.ACKNOWLEDGED and row.kind not in _TRANSFERS:
        return False
    if row.time_ns <= after.time_ns or (until_ns is not None and row.time_ns >= until_ns):
        return False
    return row.address is not None and main.get(row.address, row.address) == before.address


def _overlap(
    file: str, group: str, before: Tenure, after: Tenure, epochs: tuple[int, int], acts: list[Observation]
) -> Overlap:
    acknowledged = sum(row.kind == ObservationKind.ACKNOWLEDGED for row in acts)
    return Overlap(
        group=group,
        file=file,
        from_ns=after.time_ns,
        to_ns=max(row.time_ns for row in acts),
        old_master=f"broker {before.master}",
        new_master=f"broker {after.master}",
        old_epoch=epochs[0],
        new_epoch=epochs[1],
        acknowledged=acknowledged,
        transfers=len(acts) - acknowledged,
    )
