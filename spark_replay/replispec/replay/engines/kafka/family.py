"""How captures are judged in which brokers and their store speak."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from replispec.replay.engines.family import JudgedFamily
from replispec.replay.engines.results import CaptureResult, Options
from replispec.replay.events.kafka.writes import Write
from replispec.replay.events.tables import Events
from replispec.replay.judges.kafka.judge import judge_partitions
from replispec.replay.report.kafka.failovers import failovers
from replispec.replay.report.model import LostSend
from replispec.replay.report.summary import CaptureRow

LOST_TOLD_MAX: Final = 1 << 16
"""How many lost records of a capture are told one by one; what a batch says that it holds has no end."""


def _judge(capture: CaptureRow, events: Events, options: Options) -> CaptureResult:  # noqa: ARG001 (nothing is asked)
    """Judge the partitions of one capture."""
    found = judge_partitions(capture.file, events)
    result = CaptureResult(capture, found.findings, found.losses, found.sends)
    result.lost = [*islice(_lost(capture.file, found.lost), LOST_TOLD_MAX)]
    result.failovers = failovers(capture.file, found.world)
    return result


def _lost(file: str, lost: Iterable[tuple[str, Write]]) -> Iterator[LostSend]:
    """Each lost record; of a batch all are acknowledged by one answer."""
    for group, each in lost:
        row = each.row
        place = file, row.connection, row.direction, row.sequence
        for offset in range(each.offset, each.last + 1):
            about = group, each.epoch, offset, row.address or "", row.time_ns, row.duration_ns
            yield LostSend(place, *about, topic=row.topic or "", queue=row.partition)


FAMILY = JudgedFamily(_judge)
