"""What everybody who keeps a commit log shows of it."""

from __future__ import annotations

from collections.abc import Iterator

from replispec.runtime.primitives.metrics import Sample
from replispec.runtime.rocketmq.log import MessageStore
from replispec.wire.rocketmq import metrics


def log_samples(
    store: MessageStore, *, broker_id: int, confirmed: int, disk_percent: int, is_full: bool
) -> Iterator[Sample]:
    """The log as it is now; `confirmed` is the confirmOffset."""
    log, last = store.log, store.epochs.last
    place = "local", "disk"
    yield metrics.STORAGE_SIZE.of(log.end - log.first, *place)
    yield metrics.STORAGE_FLUSH_BEHIND_BYTES.of(max(0, log.end - log.flushed), *place)
    yield metrics.STORAGE_DISPATCH_BEHIND_BYTES.of(max(0, log.end - confirmed), *place)
    yield metrics.BROKER_ID.of(broker_id)
    yield metrics.LOG_FIRST_OFFSET.of(log.first)
    yield metrics.LOG_END_OFFSET.of(log.end)
    yield metrics.LOG_FLUSHED_OFFSET.of(log.flushed)
    yield metrics.LOG_EPOCH.of(0 if last is None else last.epoch)
    yield metrics.CONFIRM_OFFSET.of(confirmed)
    yield metrics.LOG_DISK_USED_PERCENT.of(disk_percent)
    yield metrics.LOG_DISK_FULL.of(is_full)
