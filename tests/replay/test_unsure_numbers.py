"""Numbers that contradict each other tell nothing: whoever only they would blame is not blamed.

`make test-full` takes ten times as many.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from replispec.replay.engines.decoding import decode_capture
from replispec.replay.pairing.delivery import delivered
from tests.replay.pcap_writer import ACK, Conversation, Packet, pcap, with_times
from tests.replay.random_traffic import command
from tests.replay.test_mess import SEEDS
from tests.replay.test_order import judged, violated

OPENING = 3
CLIENT, SERVER = ("10.0.0.9", 40000), ("10.0.0.2", 10911)
LIAR, LIED_TO = ("10.0.0.8", 40000), ("10.0.0.1", 10911)
LIES = 3_000


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


@pytest.mark.parametrize("bit", [8, 16, 30, 31])
def test_an_answer_whose_number_is_damaged_may_answer_what_was_not_captured(bit: int) -> None:
    packets = _in_turns(2)
    answer = replace(packets[-1], acknowledgment=packets[-1].acknowledgment ^ 1 << bit)
    assert violated(judged(pcap([*packets[:-2], answer]))) == set()


def _in_turns(count: int) -> list[Packet]:
    made = Conversation(CLIENT, SERVER).open()
    for number in range(count):
        made.send(command(number), from_client=True)
        made.send(command(number, answer=True), from_client=False)
    return made.packets


@pytest.mark.parametrize("bit", [20, 29, 30, 31])
@pytest.mark.parametrize("field", ["sequence", "acknowledgment"])
def test_one_damaged_number_moves_no_other_one(field: str, bit: int, tmp_path: Path) -> None:
    packets = _in_turns(4)
    # The number of a SYN says alone where its direction begins.
    for at in range(1 if field == "acknowledgment" else OPENING - 1, len(packets)):
        harmed = list(packets)
        harmed[at] = replace(packets[at], **{field: getattr(packets[at], field) ^ 1 << bit})
        path = tmp_path / f"{at}.pcap"
        path.write_bytes(pcap(harmed))
        found = decode_capture(path).frames
        assert found.num_rows >= 8 - (field == "sequence" and at >= OPENING), at
        assert len(set(found.column("connection").to_pylist())) == 1, at


@pytest.mark.parametrize("step", [(1 << 29) + 1, (1 << 30) - 1, (1 << 31) - 1])
def test_numbers_of_one_connection_move_no_other_one(step: int, tmp_path: Path) -> None:
    """Positions that lie grow beyond all that an honest connection has."""
    liar = Conversation(LIAR, LIED_TO).open()
    bare = replace(liar.packets[-1], flags=ACK)
    for number in range(LIES):
        liar.packets.append(replace(bare, sequence=(1001 + number * step) % 2**32))
    liar._sent[True] = 1001 + LIES * step
    for number in range(20):
        liar.send(command(number), from_client=True)
    lies = [replace(each, sequence=each.sequence % 2**32) for each in liar.packets]
    path = tmp_path / "lies.pcap"
    path.write_bytes(pcap(with_times([*lies, *_in_turns(20)])))
    found = decode_capture(path)
    order = delivered(found.frames, found.streams)
    own = order.connection == order.connections.index("10.0.0.2:10911<->10.0.0.9:40000#1")
    numbers = order.integers("opaque")[own].tolist()
    assert numbers == [number for number in range(20) for _ in range(2)]
    assert order.sure[own].all()
