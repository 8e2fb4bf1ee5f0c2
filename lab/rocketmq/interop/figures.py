"""What the lines of Java's client say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

Positions = Mapping[int, int]
"""What a group reads next, by queue."""


def acknowledged(lines: Iterable[Mapping[str, object]]) -> set[str]:
    """Keys of the messages that were acknowledged without reserve."""
    return {str(line["key"]) for line in lines if line["status"] == "SEND_OK"}


def read(lines: Iterable[Mapping[str, object]]) -> set[str]:
    """Keys of the messages that a consumer was given and did not refuse, a refused one when it came again."""
    return {str(line["key"]) for line in lines if line["status"] in ("READ", "READ_AGAIN")}


def longest_gap_ms(lines: Iterable[Mapping[str, object]]) -> int:
    """The longest time between two acknowledgements of one producer."""
    times = [int(str(line["at_ms"])) for line in lines if line["status"] == "SEND_OK"]
    return max((later - earlier for earlier, later in pairwise(times)), default=0)


def given_again(
    lines: Iterable[Mapping[str, object]], floors: Sequence[tuple[int, Positions]]
) -> list[Mapping[str, object]]:
    """Lines of a consumer that was given what its group had read by then: a floor is how far it had, and when
    that was known, in milliseconds. What was refused comes from a queue of its own, and is not among them."""

    def is_below(line: Mapping[str, object]) -> bool:
        at_ms, queue, offset = (int(str(line[key])) for key in ("at_ms", "queue", "offset"))
        return any(at_ms > floor_ms and offset < floor.get(queue, 0) for floor_ms, floor in floors)

    return [line for line in lines if line["status"] == "READ" and is_below(line)]


def fallen(floor: Positions, told: Positions) -> set[int]:
    """Queues of which a broker tells less than is known."""
    return {queue for queue, position in floor.items() if told.get(queue, 0) < position}
