"""Whose a queue is that is read in order.

Source: apache/rocketmq rocketmq-all-5.4.0, RebalanceLockManager; golden examples in
spec/vectors/rocketmq/locks.yaml.
"""

from __future__ import annotations

from replispec.wire.rocketmq.constants import LOCK_EXPIRY_MS


def may_lock(holder: str | None, asked_ms: int, client: str, now_ms: int) -> bool:
    """Whether a client gets a queue that was given to `holder`, None for nobody, who asked for it last at
    `asked_ms`. Times are milliseconds of one clock."""
    return holder is None or holder == client or now_ms >= asked_ms + LOCK_EXPIRY_MS
