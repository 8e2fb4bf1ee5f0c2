"""What a client saw, and what of it can never be true of a cluster that loses nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

Place = tuple[int, int]
"""A queue and an offset in it."""


class Moment(Enum):
    """What has just happened when a fault would do the most harm."""

    ACKNOWLEDGED = "a message was acknowledged"
    READ = "a message was read"
    CHANGES = "the SyncStateSet changes"


@dataclass(frozen=True)
class View:
    """What a controller said of the broker set at one time."""

    at_ms: int
    master: int
    epoch: int
    members: tuple[int, ...]
    members_epoch: int


@dataclass
class History:
    """Everything that clients were told. Messages have numbers, which are their bodies."""

    sent: int = 0
    acknowledged: dict[int, Place] = field(default_factory=dict)
    acknowledged_by: dict[int, str] = field(default_factory=dict)
    logged: dict[int, int] = field(default_factory=dict)
    refused: dict[int, int] = field(default_factory=dict)
    read: dict[Place, int] = field(default_factory=dict)
    views: list[View] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    moves: list[str] = field(default_factory=list)
    """Where a consumer was told of less than it had read, or of something else, or was sent elsewhere:
    nothing is ever deleted."""
    may_skip: Callable[[int, int, int], bool] = lambda *_: False
    """Whether nothing of a queue lies from one position to before another that had to be kept for longer:
    consumers may be sent past it."""
    copies_min: int = 0
    count_copies: Callable[[int], int] = lambda _: 0
    tell: Callable[[Moment], None] = lambda _: None

    def acknowledge(self, number: int, place: Place, broker: str) -> None:
        """A broker said that it has a message for good."""
        self.acknowledged[number] = place
        self.acknowledged_by[number] = broker
        if self.copies_min and (copies := self.count_copies(self.logged[number])) < self.copies_min:
            self.faults.append(f"message {number} was acknowledged with {copies} copies of {self.copies_min}")
        self.tell(Moment.ACKNOWLEDGED)

    def see(self, place: Place, number: int) -> None:
        """A consumer got a message."""
        if place not in self.read:
            self.tell(Moment.READ)
        before = self.read.setdefault(place, number)
        if before != number:
            self.moves.append(f"queue {place[0]} offset {place[1]} was message {before}, is {number}")

    def moved(self, what: str) -> None:
        """A consumer was not left where it was."""
        self.moves.append(what)

    def view(self, view: View) -> None:
        """A controller told of the set."""
        last = self.views[-1] if self.views else None
        self.views.append(view)
        if view.master and view.master not in view.members:
            self.faults.append(f"master {view.master} is not in the SyncStateSet {view.members}")
        if last is None:
            return
        if (view.epoch, view.members_epoch) < (last.epoch, last.members_epoch):
            self.faults.append(f"epochs went back: {last} to {view}")
        if view.epoch == last.epoch and view.master and last.master and view.master != last.master:
            self.faults.append(f"two masters of epoch {view.epoch}: {last.master} and {view.master}")
        if view.members_epoch == last.members_epoch and view.members != last.members:
            self.faults.append(f"two sets of epoch {view.members_epoch}: {last.members}, {view.members}")

    def judge(self, log: dict[Place, int]) -> list[str]:
        """The faults, given what the log of the last master holds: message by place."""
        faults = self.judge_acknowledged(log) + self.moves
        for place, number in sorted(self.read.items()):
            if log.get(place) != number:
                faults.append(f"message {number} was read at {place}, {log.get(place)} is there now")
        return faults

    def judge_acknowledged(self, log: dict[Place, int]) -> list[str]:
        """The faults without those of what consumers were told."""
        faults = list(self.faults)
        places: dict[Place, int] = {}
        for number, place in sorted(self.acknowledged.items()):
            if log.get(place) != number:
                faults.append(f"acknowledged message {number} at {place} is lost: {log.get(place)} is there")
            other = places.setdefault(place, number)
            if other != number:
                faults.append(f"messages {other} and {number} were both acknowledged at {place}")
        return faults
