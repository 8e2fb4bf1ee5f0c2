"""What the lines of Java's client say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise


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
