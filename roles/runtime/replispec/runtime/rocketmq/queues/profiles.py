"""Where the logical queues of RIP-21 and the static topics of Apache RocketMQ 5.x differ."""

from __future__ import annotations

from dataclasses import dataclass

from replispec.runtime.rocketmq import rules


@dataclass(frozen=True, slots=True)
class Profile:
    """One of the two. docs/decisions/0159 names the clauses that each follows."""

    name: str
    is_contiguous: bool
    """Whether a segment begins where the one before it ends, or at the next block of offsets."""
    takes_again: bool
    """Whether a physical queue serves again once it is expired, or once and never again."""
    may_shrink: bool
    """Whether the number of logical queues may become smaller."""
    leader_keeps_all: bool
    """Whether the broker that leads keeps all segments, or each broker its own."""
    broker_crosses: bool
    """Whether a broker reads what lies at another, or the client goes there."""
    first_start: int | None
    """The physical start that every segment has; None where it is that of the queue when it was taken."""

    def start_after(self, end: int) -> int:
        """The logical start of the segment that follows one with this logical end."""
        return end if self.is_contiguous else rules.next_block(end)


LOGICAL_QUEUES = Profile("LQ", True, True, True, False, False, None)
"""RIP-21's own form: RIP21-OFFSET-1, RIP21-MIGRATE-2, RIP21-STORE-1, RIP21-CLIENT-1."""
STATIC_TOPICS = Profile("ST", False, False, False, True, True, 0)
"""Static topics: ST-OFFSET-2, ST-MAPPING-3, ST-MAPPING-5, ST-MAPPING-4, ST-LEADER-4, ST-MAPPING-2."""
