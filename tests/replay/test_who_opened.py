"""Who opened a connection is told by both ends together: one SYN more, or one flag less, alters no order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from replispec.replay.engines.decoding import decode_capture
from replispec.replay.pairing.delivery import delivered
from tests.replay.pcap_writer import ACK, SYN, Conversation, Packet, pcap
from tests.replay.random_traffic import command

CLIENT, SERVER = ("10.0.0.9", 40000), ("10.0.0.2", 10911)
OPENED, ACCEPTED = 0, 1
"""Where the packets of `Conversation.open` stand."""


def _variants(packets: list[Packet]) -> dict[str, list[Packet]]:
    """The packets of one connection, opened in ways that say more than one thing."""
    opened, accepted = packets[OPENED], packets[ACCEPTED]
    rest = packets[2:]
    bare, answering = replace(accepted, flags=SYN), replace(opened, flags=SYN | ACK)
    return {
        "as usual": packets,
        "the flag of the answer was lost": [opened, bare, *rest],
        "a stray SYN of who accepted": [opened, accepted, bare, *rest],
        "a stray SYN before it": [opened, bare, accepted, *rest],
        "a stray answer of who opened": [opened, answering, accepted, *rest],
        "both opened": [opened, bare, replace(answering, acknowledgment=bare.sequence + 1), accepted, *rest],
        "no SYN": rest,
        "only the SYN": [opened, *rest],
        "only its answer": [accepted, *rest],
    }


def _talk() -> list[Packet]:
    """Notes of a server, then requests one behind the other, then their answers: only who accepted the
    connection tells how they follow one another."""
    talk = Conversation(CLIENT, SERVER).open()
    for number in range(10):
        talk.send(command(1000 + number, code=40), from_client=False)
    for number in range(3):
        talk.send(command(number), from_client=True)
    for number in range(3):
        talk.send(command(number, answer=True), from_client=False)
    return talk.packets


@pytest.mark.parametrize("name", _variants(_talk()))
def test_one_end_accepted_and_frames_come_in_its_order(name: str, tmp_path: Path) -> None:
    path = tmp_path / "made.pcap"
    path.write_bytes(pcap(_variants(_talk())[name]))
    found = decode_capture(path)
    accepted = dict(
        zip(
            found.streams.column("source").to_pylist(),
            found.streams.column("accepted").to_pylist(),
            strict=True,
        )
    )
    assert accepted == {"10.0.0.2:10911": True, "10.0.0.9:40000": False}
    order = delivered(found.frames, found.streams)
    opaques = order.integers("opaque").tolist()
    assert opaques == [*range(1000, 1010), 0, 1, 2, 0, 1, 2]
