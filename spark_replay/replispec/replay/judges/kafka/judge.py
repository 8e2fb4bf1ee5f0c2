"""From the events of one capture to findings about its partitions, and what of them was lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from replispec.replay.events.capture_events import CaptureEvents
from replispec.replay.events.kafka.streams import partition_events
from replispec.replay.events.kafka.world import KINDS, Partition, World
from replispec.replay.events.kafka.writes import Logs, Write
from replispec.replay.events.observation import Observation
from replispec.replay.events.tables import Events
from replispec.replay.judges.findings import FindingRow, finding_of
from replispec.replay.judges.parts import PartFinding
from replispec.replay.judges.sends import LossRow, SendsRow
from replispec.replay.judges.streams import StreamJudges
from replispec.runtime.kafka import rules
from replispec.wire.kafka.invariants import INVARIANTS


@dataclass(slots=True)
class Judgement:
    """What is found of the partitions of a capture; `lost` names the partition of each lost batch."""

    world: World
    findings: list[FindingRow] = field(default_factory=list)
    losses: list[LossRow] = field(default_factory=list)
    sends: list[SendsRow] = field(default_factory=list)
    lost: list[tuple[str, Write]] = field(default_factory=list)


def judge_partitions(file: str, events: Events) -> Judgement:
    """The verdict of every rule on every partition of which something was seen."""
    own = {kind: events[kind] for kind in KINDS}
    if not any(table.num_rows for table in own.values()):
        return Judgement(World(()))
    return judge_rows(file, CaptureEvents(own).few)


def judge_rows(file: str, rows: Iterable[Observation]) -> Judgement:
    """The same of the rows of these kinds, which stand in the order of the capture."""
    judgement = Judgement(World(rows))
    listed = list(partition_events(judgement.world))
    found = StreamJudges(INVARIANTS, listed, rules, of_sends="").listed()
    for group in sorted({event.group for event in listed}):
        for rule in sorted(INVARIANTS):
            part = found.get((group, rule), PartFinding())
            judgement.findings.append(finding_of(file, group, rule, part))
        partition = judgement.world.partitions[group]
        writes = Logs(partition).writes
        judgement.losses += _losses(file, partition, writes)
        judgement.lost += [(group, each) for each in writes if each.lost_to is not None]
        judgement.sends += _sends(file, partition, writes)
    return judgement


def _losses(file: str, own: Partition, writes: Sequence[Write]) -> list[LossRow]:
    """The lost records by epoch, whatever acknowledged them."""
    lost: dict[int, list[Write]] = defaultdict(list)
    for each in writes:
        if each.lost_to is not None and each.epoch is not None:
            lost[each.epoch].append(each)
    return [
        LossRow(
            own.group,
            epoch,
            min(each.offset for each in some),
            max(each.last for each in some),
            sum(each.records for each in some),
            file,
        )
        for epoch, some in sorted(lost.items())
    ]


def _sends(file: str, own: Partition, writes: Sequence[Write]) -> list[SendsRow]:
    """How many records were acknowledged, and how many of them could be looked for in a later epoch."""
    if not writes:
        return []
    followed = sum(each.records for each in writes if each.followed)
    alone = sum(each.records for each in writes if not each.followed and each.lost_to is not None)
    unsure = sum(each.records for each in writes if each.epoch is None)
    total = sum(each.records for each in writes)
    return [SendsRow(own.group, file, total, followed, begun_anew=False, lost_alone=alone, unsure=unsure)]
