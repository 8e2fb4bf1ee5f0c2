"""What a broker or a learner tells anybody of its epochs and the end of its log.

Source: RIP-44 "Interface Design/Change"; apache/rocketmq rocketmq-all-5.4.0, AdminBrokerProcessor.
"""

from __future__ import annotations

from replispec.runtime.rocketmq.log import MessageStore
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.controller import EpochEntry, EpochEntryCache


def epoch_cache(store: MessageStore, cluster_name: str, broker_name: str, route_id: int) -> EpochEntryCache:
    """The answer; `route_id` is 0 for a master, the broker's own id else."""
    entries = store.epochs.entries
    ends = [entry.start_offset for entry in entries[1:]] + [constants.OPEN_EPOCH_END]
    listed = [
        EpochEntry(end, entry.epoch, entry.start_offset) for entry, end in zip(entries, ends, strict=False)
    ]
    return EpochEntryCache(route_id, broker_name, cluster_name, listed, store.log.end)
