"""Connections, incarnations, unwrapped positions, first arrival, holes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.replay.capture.files import open_capture
from replispec.replay.tcp.copies import settle
from replispec.replay.tcp.flows import FlowSide, Incarnation, connection_text
from replispec.replay.tcp.packets import PLAIN, read_packets
from replispec.replay.tcp.pieces import TRUNCATED, Pieces, find_holes
from replispec.replay.tcp.sides import read_connections
from tests.replay.pcap_writer import ACK, RST, SYN, Conversation, Packet, pcap, with_times

CLIENT, SERVER = ("10.0.0.9", 40_000), ("10.0.0.2", 10_911)


def connections(
    tmp_path: Path, packets: list[Packet], snap_length: int = 262_144
) -> tuple[list[Incarnation], bytes]:
    path = tmp_path / "flow.pcap"
    path.write_bytes(pcap(packets, snap_length=snap_length))
    with open_capture(path) as capture:
        return read_connections(capture.data, read_packets(capture.data, capture.records())), bytes(
            capture.data
        )


def text(side: FlowSide | None, data: bytes) -> str:
    """The bytes of a side from position 0 on, a dot for each missing one."""
    assert side is not None
    length = max(side.pieces.end.tolist(), default=side.zero) - side.zero
    out = bytearray(b"." * length)
    for start, end, at, *_ in zip(*(column.tolist() for column in side.pieces.columns()), strict=True):
        out[start - side.zero : end - side.zero] = data[at : at + end - start]
    return out.decode()


def one(found: list[Incarnation]) -> tuple[FlowSide, FlowSide]:
    """Server side and client side (the server's address is the lower) of the only connection."""
    assert len(found) == 1
    server, client = found[0].sides
    assert server is not None
    assert client is not None
    return server, client


def letters(count: int) -> bytes:
    return bytes(97 + at % 26 for at in range(count))


def test_a_conversation_is_put_together_and_named(tmp_path: Path) -> None:
    talk = Conversation(CLIENT, SERVER, mss=7).open().send(letters(30), from_client=True)
    talk.send(b"answer", from_client=False).close()
    found, data = connections(tmp_path, talk.packets)
    server, client = one(found)
    assert connection_text(found[0].key, found[0].number) == "10.0.0.2:10911<->10.0.0.9:40000#1"
    assert (text(client, data), text(server, data)) == (letters(30).decode(), "answer")
    assert (client.opens, client.accepts, server.opens, server.accepts) == (True, False, False, True)
    assert client.closed
    assert client.fin == client.zero + 30


@pytest.mark.parametrize("initial", [0, 2**31 - 20, 2**32 - 20, 2**32 - 1])
def test_sequence_numbers_wrap(tmp_path: Path, initial: int) -> None:
    talk = (
        Conversation(CLIENT, SERVER, client_initial=initial, mss=9).open().send(letters(60), from_client=True)
    )
    found, data = connections(tmp_path, talk.packets)
    assert text(one(found)[1], data) == letters(60).decode()


def test_reordering_retransmission_and_keep_alive_change_nothing(tmp_path: Path) -> None:
    talk = Conversation(CLIENT, SERVER, mss=5).open().send(letters(40), from_client=True)
    head, body = talk.packets[:3], talk.packets[3:]
    keep_alive = replace(body[-1], sequence=body[-1].sequence + 4, payload=b"\x00")
    bridging = replace(body[2], payload=letters(40)[10:22])
    packets = [
        *head,
        keep_alive,
        body[0],
        body[2],
        body[1],
        body[5],
        body[1],
        bridging,
        *body[3:],
        keep_alive,
    ]
    found, data = connections(tmp_path, with_times(packets))
    assert text(one(found)[1], data) == letters(40).decode()


def test_the_same_ports_used_again_are_another_connection(tmp_path: Path) -> None:
    first = Conversation(CLIENT, SERVER).open().send(b"first", from_client=True)
    second = Conversation(CLIENT, SERVER, client_initial=77_000, server_initial=88_000).open()
    second.send(b"second", from_client=True)
    found, data = connections(tmp_path, with_times(first.packets + second.packets))
    assert [text(item.sides[1], data) for item in found] == ["first", "second"]
    assert [item.number for item in found] == [1, 2]


def test_a_repeated_syn_and_a_late_syn_stay_in_the_connection(tmp_path: Path) -> None:
    talk = Conversation(CLIENT, SERVER).open().send(b"data", from_client=True)
    syn, answer, confirm, data_packet = talk.packets
    for order in ([syn, syn, answer, answer, confirm, data_packet], [confirm, syn, answer, data_packet, syn]):
        found, data = connections(tmp_path, with_times(order))
        assert text(one(found)[1], data) == "data"


def test_a_syn_that_several_packets_overtook_stays_in_the_connection(tmp_path: Path) -> None:
    talk = Conversation(CLIENT, SERVER, client_initial=2**32 - 3).open()
    for piece in (b"da", b"ta"):
        talk.send(piece, from_client=True)
    syn, answer, confirm, first, second = talk.packets
    found, data = connections(tmp_path, with_times([answer, second, syn, first, confirm]))
    assert text(one(found)[1], data) == "data"


def test_a_syn_behind_many_bytes_that_are_stamped_later_stays_in_the_connection(tmp_path: Path) -> None:
    """As where the buffers of a capture are written one after the other."""
    content = letters(200_000)
    talk = Conversation(CLIENT, SERVER).open().send(content, from_client=True, mss=1_000)
    late = [*talk.packets[150:], *talk.packets[:150]]
    found, data = connections(tmp_path, late)
    assert text(one(found)[1], data) == content.decode()


def test_a_syn_behind_many_bytes_that_came_before_it_opens_another_connection(tmp_path: Path) -> None:
    """A number drawn for a new connection may lie below those of the old one."""
    old = Conversation(CLIENT, SERVER).open().send(letters(200_000), from_client=True, mss=1_000)
    new = Conversation(CLIENT, SERVER, client_initial=1_500, server_initial=9_000).open()
    new.send(b"second", from_client=True)
    found, data = connections(tmp_path, with_times([*old.packets[150:], *new.packets]))
    assert [text(item.sides[1], data)[-6:] for item in found] == [letters(200_000)[-6:].decode(), "second"]


def test_a_stream_seen_from_the_middle_starts_at_its_lowest_byte(tmp_path: Path) -> None:
    packets = [Packet(CLIENT, SERVER, 504, b"bbbb"), Packet(CLIENT, SERVER, 500, b"aaaa")]
    found, data = connections(tmp_path, packets)
    side = found[0].sides[1]
    assert text(side, data) == "aaaabbbb"
    assert side is not None
    assert side.syn is None
    assert (side.opens, side.accepts) == (False, False)


def test_a_reset_with_a_strange_number_moves_nothing(tmp_path: Path) -> None:
    talk = Conversation(CLIENT, SERVER).open().send(b"data", from_client=True)
    reset = Packet(CLIENT, SERVER, 4_000_000_000, flags=RST)
    more = replace(talk.packets[-1], sequence=talk.packets[-1].sequence + 4, payload=b"more")
    found, data = connections(tmp_path, [*talk.packets, reset, more])
    assert text(one(found)[1], data) == "datamore"


def test_a_syn_may_carry_data(tmp_path: Path) -> None:
    packets = [Packet(CLIENT, SERVER, 10, b"early", SYN), Packet(CLIENT, SERVER, 16, b"late", ACK)]
    found, data = connections(tmp_path, packets)
    assert text(found[0].sides[1], data) == "earlylate"


def holes(side: FlowSide) -> list[tuple[int, int, str]]:
    from replispec.replay.tcp.directions import side_holes

    return [(hole.start, hole.end, hole.kind) for hole in side_holes(side)]


def test_holes_are_found_where_bytes_were_lost(tmp_path: Path) -> None:
    talk = Conversation(CLIENT, SERVER, mss=10).open().send(letters(60), from_client=True)
    talk.acknowledge(from_client=False)
    keep = [packet for at, packet in enumerate(talk.packets) if at not in (3, 5, 8)]
    found, _ = connections(tmp_path, keep)
    assert holes(one(found)[1]) == [(0, 10, "lost_at_start"), (20, 30, "lost"), (50, 60, "lost_at_end")]


def test_a_snap_length_makes_truncated_holes_and_a_retransmission_may_fill_them(tmp_path: Path) -> None:
    packets = [
        Packet(CLIENT, SERVER, 0, b"", SYN),
        Packet(CLIENT, SERVER, 1, letters(4), payload_wire=10),
        Packet(CLIENT, SERVER, 11, b"bbbb", payload_wire=10),
        Packet(CLIENT, SERVER, 1, letters(10)),
    ]
    found, data = connections(tmp_path, packets)
    side = found[0].sides[1]
    assert text(side, data) == "abcdefghijbbbb"
    assert side is not None
    assert holes(side) == [(14, 20, "truncated")]


intervals = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12), st.integers(0, 2)), max_size=25)


@given(intervals, intervals, st.integers(0, 60))
def test_holes_are_exactly_what_no_piece_covers(
    rows: list[tuple[int, int, int]], cuts: list[tuple[int, int, int]], high: int
) -> None:
    start = np.array([row[0] for row in rows], np.int64)
    end = start + np.array([row[1] for row in rows], np.int64)
    zeros = np.zeros(len(rows), np.int64)
    pieces = settle(bytes(200), zeros, Pieces(start, end, start, zeros, zeros, zeros, zeros + PLAIN)).pieces
    cut_start = np.array([row[0] for row in cuts], np.int64)
    cut_end = cut_start + np.array([row[1] for row in cuts], np.int64)
    high = max([high, *end.tolist(), *cut_end.tolist()])
    found = find_holes(
        pieces, {TRUNCATED: list(zip(cut_start, cut_end, strict=True))}, 0, high, high, starts_known=False
    )
    covered = {place for first, last in zip(start, end, strict=True) for place in range(first, last)}
    cut = {place for first, last in zip(cut_start, cut_end, strict=True) for place in range(first, last)}
    kinds = {place: hole.kind for hole in found for place in range(hole.start, hole.end)}
    assert set(kinds) == set(range(high)) - covered
    assert {place for place, kind in kinds.items() if kind == "truncated"} == cut - covered
