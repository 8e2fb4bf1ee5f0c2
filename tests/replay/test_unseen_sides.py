"""A side of which nothing was captured, while its peer acknowledges its bytes, is a hole with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from replispec.replay.capture.files import open_capture
from replispec.replay.engines.by_splits import decode_by_splits
from replispec.replay.engines.decoding import DecodedCapture, decode_capture
from replispec.replay.tcp.directions import directions
from replispec.replay.tcp.packets import read_packets
from replispec.replay.tcp.sides import read_connections
from tests.replay.mess import Seen
from tests.replay.pcap_writer import ACK, Conversation, Packet, pcap
from tests.replay.test_mess import header_and_packets, lost, replayed

CLIENT, SERVER = ("10.0.0.9", 40_000), ("10.0.0.2", 10_911)
SENT, ANSWERED = b"a" * 70, b"b" * 90


def talk(*, server_initial: int = 5_000) -> list[Packet]:
    """Three times a request, its answer, and what confirms that; then the end."""
    made = Conversation(CLIENT, SERVER, server_initial=server_initial).open()
    for _ in range(3):
        made.send(SENT, from_client=True).send(ANSWERED, from_client=False).acknowledge(from_client=True)
    return made.close().packets


def of_client(packets: list[Packet]) -> list[Packet]:
    return [packet for packet in packets if packet.source == CLIENT]


def decoded(tmp_path: Path, packets: list[Packet]) -> DecodedCapture:
    path = tmp_path / "made.pcap"
    path.write_bytes(pcap(packets))
    return decode_capture(path)


def holes(tmp_path: Path, packets: list[Packet]) -> list[tuple[int, int, int, str]]:
    rows = decoded(tmp_path, packets).holes.to_pylist()
    return [(row["direction"], row["start"], row["end"], row["kind"]) for row in rows]


@pytest.mark.parametrize("initial", [5_000, 2**32 - 100])
def test_a_side_without_a_packet_lacks_what_its_peer_acknowledged(tmp_path: Path, initial: int) -> None:
    # The last number that the peer confirms is that of the FIN; nothing tells it from a byte.
    packets = of_client(talk(server_initial=initial))
    assert holes(tmp_path, packets) == [(0, 0, 271, "lost_at_end")]


def test_a_side_without_a_packet_has_the_times_of_its_peer(tmp_path: Path) -> None:
    packets = of_client(talk())
    server, _ = decoded(tmp_path, packets).streams.sort_by("direction").to_pylist()
    assert (server["first_time_ns"], server["last_time_ns"]) == (packets[0].time_ns, packets[-1].time_ns)


def test_a_side_whose_empty_packets_alone_were_captured_lacks_what_its_peer_acknowledged(
    tmp_path: Path,
) -> None:
    whole = talk()
    confirm = Packet(SERVER, CLIENT, 5_001, b"", ACK, 1_071, whole[4].time_ns)
    packets = [*whole[:1], *whole[2:4], confirm, *of_client(whole[4:])]
    assert holes(tmp_path, packets) == [(0, 0, 271, "lost_at_end")]


def test_a_side_that_sent_nothing_lacks_nothing(tmp_path: Path) -> None:
    """Neither the number of its FIN nor that of a keep-alive, one below its stream, is a byte."""
    made = Conversation(CLIENT, SERVER).open().send(SENT, from_client=True).close()
    assert holes(tmp_path, of_client(made.packets)) == []
    assert holes(tmp_path, made.packets[3:]) == []
    keep_alive = Packet(SERVER, CLIENT, 5_000, b"", ACK, 1_071, made.packets[3].time_ns)
    assert holes(tmp_path, [made.packets[3], keep_alive, *made.packets[4:]]) == []


def test_what_both_sides_say_first_does_not_hide_a_hole(tmp_path: Path) -> None:
    """Acknowledgments that overtook each other begin at the least of them."""
    packets = of_client(talk())
    path = tmp_path / "made.pcap"
    path.write_bytes(pcap(packets[::-1]))
    with open_capture(path) as capture:
        found = read_connections(capture.data, read_packets(capture.data, capture.records()))
    server, _ = directions(found[0])
    assert server is not None
    assert [(hole.start, hole.end) for hole in server.holes] == [(0, 271)]


@pytest.mark.parametrize("size", [1, 300, 700])
def test_a_side_without_a_packet_is_the_same_hole_in_splits(tmp_path: Path, size: int) -> None:
    whole = decoded(tmp_path, of_client(talk()))
    parts = decode_by_splits(tmp_path / "made.pcap", size)
    assert whole.holes.num_rows == 1
    assert parts.holes.to_pylist() == whole.holes.to_pylist()
    assert parts.streams.to_pylist() == whole.streams.to_pylist()


def test_a_loss_whose_answers_were_not_captured_is_a_hole_and_never_all_clear() -> None:
    """The answers to two producers, and the logs that replicas get, are not in the capture."""
    _, packets = header_and_packets("failover_lost")
    answers = {(30910, 38302), (30920, 39572)}

    def ports(packet: Seen) -> tuple[int, ...]:
        return tuple(int.from_bytes(end[-2:], "big") for end in packet.ends or ())

    kept = [each for each in packets if ports(each) not in answers and not {30912, 30922} & set(ports(each))]
    found = replayed("failover_lost", kept)
    assert (lost(found), found.capture.holes_by_reason) == (0, {"lost_at_end": 2})
