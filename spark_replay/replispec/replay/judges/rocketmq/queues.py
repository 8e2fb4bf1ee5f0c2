"""From what is told of logical queues in one capture to findings about each topic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from replispec.replay.events.observation import Observation
from replispec.replay.events.rocketmq.queue_streams import queue_events
from replispec.replay.judges.findings import FindingRow, finding_of
from replispec.replay.judges.parts import PartFinding
from replispec.replay.judges.streams import StreamJudges
from replispec.runtime.primitives.invariants import Invariant
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq.invariants import INVARIANTS

QUEUE_RULES: Final[Mapping[str, Invariant]] = {
    name: each for name, each in INVARIANTS.items() if each.group == ("topic",)
}
"""The rules about topics with logical queues."""


def judge_queues(file: str, rows: Iterable[Observation]) -> list[FindingRow]:
    """The verdict of every rule on every topic that has logical queues; `rows`: what is told of topics and
    brokers, in the order of the capture."""
    listed = list(queue_events(rows))
    found = StreamJudges(QUEUE_RULES, listed, rules, of_sends="").listed()
    return [
        finding_of(file, group, rule, found.get((group, rule), PartFinding()))
        for group in sorted({event.group for event in listed})
        for rule in sorted(QUEUE_RULES)
    ]
