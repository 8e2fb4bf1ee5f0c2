"""What a crash table demands of what clients were told, where old messages expire and where they do not."""

from __future__ import annotations

import sys

import pytest

from lab.rocketmq.crash_judge import Clients, Place
from lab.rocketmq.crash_rows import AGAIN, NEW, Move

EVERY = 12


def clients(*offsets: int, kept: tuple[range, ...] = ()) -> Clients:
    """Messages 0, 1, ... of queue 0 were acknowledged at their number; of these offsets they were read."""
    acknowledged: dict[int, Place] = {number: (0, number) for number in range(EVERY)}
    return Clients(acknowledged, [((0, each), each) for each in offsets], kept={0: kept})


def faults(move: Move, found: Clients) -> list[str]:
    return list(found.faults(move))


def test_what_brokers_have_no_more_is_not_lost_wherever_it_was() -> None:
    found = clients(*range(3), *range(6, EVERY), kept=(range(3), range(6, sys.maxsize)))
    assert faults(AGAIN, found) == []


@pytest.mark.parametrize(
    ("kept", "lost"), [((range(sys.maxsize),), [3, 4, 5]), ((range(3), range(5, sys.maxsize)), [5])]
)
def test_what_a_broker_has_and_nobody_reads_is_lost(kept: tuple[range, ...], lost: list[int]) -> None:
    found = clients(*range(3), *range(6, EVERY), kept=kept)
    assert faults(AGAIN, found) == [
        f"{len(lost)} acknowledged messages are lost: {lost}",
        "queue 0: 6 is read after 2",
    ]


def test_where_nothing_expires_every_message_is_read() -> None:
    assert faults(NEW, clients(*range(EVERY))) == []
    found = clients(*range(3), *range(6, EVERY), kept=(range(3), range(6, sys.maxsize)))
    assert faults(NEW, found) == [
        "3 acknowledged messages are lost: [3, 4, 5]",
        "queue 0: 6 is read after 2",
    ]
