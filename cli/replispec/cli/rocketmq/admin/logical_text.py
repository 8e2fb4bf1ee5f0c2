"""The logical queues of a topic as text: the columns of RIP-21, and JSON as brokers say it.

Source: RIP-21 "Architecture"; apache/rocketmq rocketmq-all-5.0.0-PREVIEW, QueryTopicLogicalQueueMapping.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from replispec.administrator.rocketmq.logical_topics import LogicalPart, LogicalTopic
from replispec.cli.peers_text import of_peers
from replispec.cli.shown import Display
from replispec.runtime.rocketmq.queues import LogicalQueue, Segment, rows
from replispec.runtime.rocketmq.queues.forms import message_of_queues
from replispec.wire.rocketmq.codes import LogicalQueueState as State

HEAD: Final = "brokerName MessageQueue LogicalQueue QueueStatus"
COLUMNS: Final = tuple(HEAD.split())


@of_peers
def table(found: LogicalTopic) -> Display:
    """All brokers together, in the proposal's own columns, without what is expired of one that is gone."""
    queues = [
        LogicalQueue(index, tuple(each for each in queue.segments if _is_there(found, each)))
        for index, queue in found.queues.items()
    ]
    listed = [COLUMNS, *rows(queues)]
    widths = [max(len(row[at]) for row in listed) for at in range(len(COLUMNS) - 1)]
    lines = (
        " ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]])
        for row in listed
    )
    return Display(
        "".join(f"{line}\n" for line in lines), [dict(zip(COLUMNS, row, strict=True)) for row in listed[1:]]
    )


def _is_there(found: LogicalTopic, segment: Segment) -> bool:
    return segment.queue.broker_name in found.parts or segment.state != State.EXPIRED


def mapping(topic: str, parts: Sequence[LogicalPart]) -> Display:
    """What each of these brokers says: JSON in one line for each."""
    said = {
        part.address: message_of_queues(part.queues.values(), topic).to_json()
        for part in parts
        if part.queues
    }
    text = "".join(f"{json.dumps({address: each})}\n" for address, each in said.items())
    table = [dict(zip(COLUMNS, row, strict=True)) for part in parts for row in rows(part.queues.values())]
    return Display(text, table)
