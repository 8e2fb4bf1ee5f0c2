"""What of the events of a capture is about topics with logical queues, and how it is judged.

Who has which queues is rare. What is sent and read is frequent: of all parts of a capture that of such topics
is brought together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from replispec.replay.events.capture_events import CaptureEvents
from replispec.replay.events.observation import ObservationKind
from replispec.replay.events.rocketmq.addresses import behind_names
from replispec.replay.events.rocketmq.queue_topics import logical_topics
from replispec.replay.events.tables import Events, joined_events, rows_of
from replispec.replay.judges.findings import FindingRow
from replispec.replay.judges.rocketmq.queues import judge_queues
from replispec.replay.pairing.pairs import EVERYTHING

FREQUENT: Final = (
    ObservationKind.ACKNOWLEDGED,
    ObservationKind.PULLED,
    ObservationKind.POSITION,
    ObservationKind.LIMIT,
)
_RARE: Final = (
    ObservationKind.MAPPED,
    ObservationKind.BROKER,
    ObservationKind.UNSEEN,
    ObservationKind.SUBSCRIBED,
)


def topics_of(rare: Events) -> frozenset[str]:
    """The topics with logical queues."""
    mapped = ObservationKind.MAPPED
    return logical_topics(rows_of(mapped, rare[mapped])) if mapped in rare else frozenset()


def about(topics: Collection[str], part: Events) -> Events:
    """What of the frequent events of a part is about these topics."""
    names = pa.array(sorted(topics), pa.string())
    return {kind: part[kind].filter(pc.is_in(part[kind].column("topic"), names)) for kind in FREQUENT}


def judged_topics(file: str, rare: Events, frequent: Iterable[Events]) -> list[FindingRow]:
    """The findings about topics with logical queues; `frequent`: what `about` told of every part."""
    every = [(kind, table) for each in frequent for kind, table in each.items()]
    told = joined_events([*every, *((kind, rare[kind]) for kind in _RARE if kind in rare)])
    rows = CaptureEvents(told).rows((*_RARE, *FREQUENT))
    return judge_queues(file, behind_names(rows))


def in_order(findings: Iterable[FindingRow]) -> list[FindingRow]:
    """Findings in the order in which a capture has them."""
    return sorted(findings, key=lambda row: (row.group == EVERYTHING, row.group, row.invariant))
