"""Rules about the SyncStateSet on the master: who joins, who leaves, what is confirmed and acknowledged.

Offsets are bytes of the commit log; times are milliseconds of one clock. Source: RIP-44 "SyncStateSet",
"ConfirmOffset", "A solution without losing messages"; apache/rocketmq AutoSwitchHAService,
GroupTransferService, ReplicasManager; golden examples in spec/vectors/rocketmq/sync_state_set.yaml.
"""

from __future__ import annotations

from collections.abc import Sequence


def confirm_offset(
    log_end: int, acknowledged: Sequence[int], others: int, *, all_acknowledge: bool, previous: int
) -> int:
    """Up to where messages may be shown to consumers.

    `acknowledged` are the reports of those of the `others` other members that are connected. A
    member that has not reported holds the offset where it was.
    """
    if others == 0 or not all_acknowledge:
        return log_end
    if len(acknowledged) < others:
        return min(previous, log_end)
    return min(log_end, *acknowledged)


def acknowledged_offset(
    log_end: int, acknowledged: Sequence[int], others: int, *, all_acknowledge: bool, in_sync_replicas: int
) -> int:
    """Up to where sends may be answered as stored; 0 while too few members are connected.

    `log_end` is how much the master itself holds, on the disk where that is demanded. `acknowledged` are
    the reports of those of the `others` other members that are connected. A send waits for all members,
    or for `in_sync_replicas` of them, the master included.
    """
    needed = others if all_acknowledge else in_sync_replicas - 1
    if len(acknowledged) < needed:
        return 0
    fastest = sorted(acknowledged, reverse=True)[:needed]
    return min(log_end, *fastest) if fastest else log_end


def may_store(members: int, min_in_sync_replicas: int) -> bool:
    """True when a SyncStateSet of so many members, the master included, is large enough to take a send, and
    to answer it as stored."""
    return members >= min_in_sync_replicas


def members_wanted(min_in_sync_replicas: int, in_sync_replicas: int, *, all_acknowledge: bool) -> int:
    """How many members a SyncStateSet must have for a send to be answered as stored, ever: more than it waits
    for never come."""
    return min_in_sync_replicas if all_acknowledge else max(min_in_sync_replicas, in_sync_replicas)


def moves_consumer(position: int, oldest: int, stored_end: int, *, is_known: bool) -> bool:
    """True when a consumer that asks for this position of a queue is sent elsewhere.

    `stored_end` is where the next message of the queue will be stored, confirmed or not. Only a master that
    knows what is confirmed (`is_known`) says that a position is outside: others may have less than was read.
    """
    return is_known and not oldest <= position <= stored_end


def may_join(
    acknowledged: int, confirmed: int, epoch_start: int, *, is_member: bool, is_learner: bool
) -> bool:
    """True when the master asks for this replica to become a member."""
    if is_member or is_learner:
        return False
    return acknowledged >= confirmed and acknowledged >= epoch_start


def caught_up_at(
    acknowledged: int, log_end: int, end_at_send: int, sent_at: int, now: int, previous: int
) -> int:
    """When the replica had last caught up with the master, as of a report at `now`.

    `end_at_send` is where the master's log ended when it last sent, `sent_at` when that was.
    """
    if acknowledged < end_at_send:
        return previous
    return now if acknowledged == log_end else sent_at


def must_leave(
    caught_up: int | None, now: int, allowed_ms: int, *, is_master: bool, is_connected: bool
) -> bool:
    """True when the master asks for this member to be removed.

    `caught_up` is None for a member that was never connected to this master.
    """
    if is_master:
        return False
    if caught_up is None or not is_connected:
        return True
    return now - caught_up > allowed_ms
