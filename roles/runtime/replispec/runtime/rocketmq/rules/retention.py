"""Rules about how long files of a commit log are kept, and when a disk counts as full.

Percentages are whole, of what a process may use of a disk. Source: apache/rocketmq rocketmq-all-5.3.3,
DefaultMessageStore.CleanCommitLogService; golden examples in spec/vectors/rocketmq/retention.yaml.
"""

from __future__ import annotations

from collections.abc import Sequence


def used_percent(used: int, available: int) -> int:
    """How much of a disk is used, rounded up; 0 when nothing is known of it."""
    total = used + available
    return -(-used * 100 // total) if total > 0 else 0


def may_clean(
    hour: int, hours: Sequence[int], percent: int, bounds: Sequence[int], *, is_asked: bool
) -> bool:
    """True when old files may be deleted now. `hour` is that of the day, 0 to 23."""
    return is_asked or hour in hours or any(percent > bound for bound in bounds)


def may_clean_young(percent: int, forcibly_above: int, *, is_allowed: bool) -> bool:
    """True when files may go though their messages are not old."""
    return is_allowed and percent > forcibly_above


def is_disk_full(percent: int, full_above: int, free_up_to: int, *, was_full: bool) -> bool:
    """True when no message is taken: above one bound, and from then on until at or below the other."""
    return percent > full_above or (was_full and percent > free_up_to)
