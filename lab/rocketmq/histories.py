"""What producers and consumers were told of a topic, and what of it cannot be where nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

Place = tuple[int, int]
"""A queue, and a position in it."""


@dataclass(slots=True)
class History:
    """Bodies by what was said of them; no body is sent twice. Two threads write it, each its own part."""

    acknowledged: dict[bytes, Place] = field(default_factory=dict)
    twice: list[str] = field(default_factory=list)
    """What one answer says against another."""
    consumed: dict[Place, bytes] = field(default_factory=dict)

    def acknowledge(self, body: bytes, place: Place) -> None:
        """A broker says that it has the message, and where."""
        self.acknowledged[body] = place

    def consume(self, place: Place, body: bytes) -> None:
        """A broker gave the message to a consumer."""
        before = self.consumed.setdefault(place, body)
        if before != body:
            self.twice.append(f"{_at(place)} gave {before.decode()} first, later {body.decode()}")

    def complaints(self, stored: Mapping[int, list[tuple[int, bytes]]]) -> list[str]:
        """What is wrong, given what the queues of the last master hold, in the order of its answers."""
        found = [*self.twice, *_order(stored)]
        there = {(queue, at): body for queue, messages in stored.items() for at, body in messages}
        found += self._claimed_twice()
        for body, place in self.acknowledged.items():
            if there.get(place) != body:
                claimed = f"acknowledged {body.decode()} at {_at(place)}"
                found.append(f"{claimed} is lost: {_shown(there.get(place))}")
        for place, body in self.consumed.items():
            if there.get(place) != body:
                found.append(f"{body.decode()} was read at {_at(place)}: {_shown(there.get(place))}")
        return found

    def _claimed_twice(self) -> Iterator[str]:
        claimed: dict[Place, bytes] = {}
        for body, place in self.acknowledged.items():
            other = claimed.setdefault(place, body)
            if other != body:
                yield f"{_at(place)} was acknowledged for {other.decode()} and for {body.decode()}"


def _order(stored: Mapping[int, list[tuple[int, bytes]]]) -> Iterator[str]:
    """Each queue begins at 0 and has no gap; each body lies once."""
    lie: dict[bytes, Place] = {}
    for queue, messages in sorted(stored.items()):
        for wanted, (at, body) in enumerate(messages):
            if at != wanted:
                yield f"queue {queue} gives position {at} where {wanted} is next"
                break
            other = lie.setdefault(body, (queue, at))
            if other != (queue, at):
                yield f"{body.decode()} lies at {_at(other)} and at {_at((queue, at))}"


def _at(place: Place) -> str:
    return f"position {place[1]} of queue {place[0]}"


def _shown(body: bytes | None) -> str:
    return "nothing is there" if body is None else f"{body.decode()} is there"
