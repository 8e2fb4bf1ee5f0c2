"""What a leader knows of each follower: what to send it next, and how much of that is on its way."""

from __future__ import annotations

from dataclasses import dataclass

from replispec.runtime.raft.snapshots import SentSnapshot


@dataclass(slots=True)
class FedFollower:
    """One follower. `next`: the place of the entry to be sent next.

    `is_probed`: where its log parts from the leader's is not known, so that one message is sent at a time.
    `snapshot`: what it is sent instead of entries that the leader no longer has.
    """

    next: int
    in_flight: int = 0
    is_probed: bool = True
    snapshot: SentSnapshot | None = None

    def may_be_sent(self, in_flight_max: int) -> bool:
        """Whether another message with entries may leave before an answer."""
        return self.in_flight < (1 if self.is_probed else in_flight_max)

    def sent(self, count: int) -> None:
        """A message with so many entries leaves: what follows is sent as if it arrived."""
        self.in_flight += 1
        self.next += count

    def accepted(self, index: int) -> None:
        """Its log is the leader's up to a place."""
        self.next = max(self.next, index + 1)
        self.is_probed = False
        self.in_flight = max(self.in_flight - 1, 0)
        if self.snapshot is not None and self.snapshot.index <= index:
            self.snapshot = None

    def refused(self, index: int, matched: int) -> None:
        """Its log may be the leader's up to a place, and surely is up to `matched`."""
        self.next = max(min(index + 1, self.next), matched + 1)
        self.is_probed = True
        self.in_flight = 0

    def was_heard_of_long_ago(self) -> None:
        """Whatever is on its way counts as lost."""
        self.in_flight = 0
