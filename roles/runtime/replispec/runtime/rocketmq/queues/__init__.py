"""Logical queues, of RIP-21 and of static topics, on one model.

In: the two JSON forms in which brokers, name servers, administrators and clients say them. Out: logical
queues, which locate and convert offsets, are sealed, continued, checked and merged, and the forms again.
Begin with `model`, then `profiles`, which names where both differ.

Words: a *segment* maps an interval of logical offsets to one of a physical queue, ends exclusive; an offset
that is not decided, and an end that is open, is UNDECIDED; a *holding* is what one broker said of a topic.
"""

from replispec.runtime.rocketmq.queues.checks import (
    fault_of,
    fault_of_count,
    fault_of_message_queues,
    fault_of_topic,
)
from replispec.runtime.rocketmq.queues.holdings import Holding, merged, with_holding
from replispec.runtime.rocketmq.queues.model import LogicalQueue, PhysicalQueue, Segment
from replispec.runtime.rocketmq.queues.profiles import LOGICAL_QUEUES, STATIC_TOPICS, Profile
from replispec.runtime.rocketmq.queues.table import rows
from replispec.runtime.rocketmq.queues.telling import Enabled, HeardQueues, Statement, lack_of

__all__ = [
    "LOGICAL_QUEUES",
    "STATIC_TOPICS",
    "Enabled",
    "HeardQueues",
    "Holding",
    "LogicalQueue",
    "PhysicalQueue",
    "Profile",
    "Segment",
    "Statement",
    "fault_of",
    "fault_of_count",
    "fault_of_message_queues",
    "fault_of_topic",
    "lack_of",
    "merged",
    "rows",
    "with_holding",
]
