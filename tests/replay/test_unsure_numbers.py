"""Numbers that contradict each other tell nothing: whoever only they would blame is not blamed.

`make test-full` takes ten times as many.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.replay.pcap_writer import Conversation, Packet, pcap, with_times
from tests.replay.random_traffic import command
from tests.replay.test_mess import SEEDS
from tests.replay.test_order import judged, violated

OPENING = 3
CLIENT, SERVER = ("10.0.0.9", 40000), ("10.0.0.2", 10911)


def _talk(rng: random.Random) -> list[Packet]:
    """Requests and their answers, in any order that TCP allows."""
    made = Conversation(CLIENT, SERVER).open()
    asked = answered = 0
    count = rng.randrange(2, 6)
    while answered < count:
        if asked < count and (asked == answered or rng.random() < 0.6):
            made.send(command(asked), from_client=True)
            asked += 1
        else:
            made.send(command(answered, answer=True), from_client=False)
            answered += 1
    return made.packets


def _harmed(packets: list[Packet], rng: random.Random) -> list[Packet]:
    """One number damaged, a packet late, a packet lost."""
    opening, rest = packets[:OPENING], packets[OPENING:]
    at = rng.randrange(len(rest))
    rest[at] = replace(rest[at], acknowledgment=rest[at].acknowledgment ^ 1 << rng.randrange(32))
    late = rest.pop(rng.randrange(len(rest)))
    rest.insert(rng.randrange(len(rest) + 1), late)
    del rest[rng.randrange(len(rest))]
    return with_times([*opening, *rest])


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_damaged_number_a_late_and_a_lost_packet_blame_nobody(seed: int) -> None:
    for each in range(60):
        rng = random.Random(f"{seed} {each}")
        packets = _harmed(_talk(rng), rng)
        assert violated(judged(pcap(packets))) == set(), each
