"""Where two endpoints had several connections, each packet belongs to the one whose numbers it fits."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replispec.replay.capture.files import open_capture
from replispec.replay.engines.by_splits import decode_by_splits
from replispec.replay.engines.decoding import decode_capture
from replispec.replay.tcp import turns
from replispec.replay.tcp.doubts import doubtful_flows
from replispec.replay.tcp.flows import Incarnation, group
from replispec.replay.tcp.packets import read_packets
from tests.replay.pcap_writer import ACK, RST, SYN, Conversation, Packet, pcap, with_times
from tests.replay.random_traffic import KINDS, Harm, command, harmed, random_capture
from tests.replay.test_flows import connections, letters, text
from tests.replay.test_split import HARMS, check

CLIENT, SERVER = ("10.0.0.9", 40_000), ("10.0.0.2", 10_911)
FIRST, SECOND = (1_000_000, 2_000_000), (900_000_000, 3_000_000_000)
NEAR = (1_000_500, 2_000_500)


def talk(initial: tuple[int, int], content: bytes) -> list[Packet]:
    made = Conversation(CLIENT, SERVER, client_initial=initial[0], server_initial=initial[1], mss=100).open()
    for _ in range(2):
        made.send(content, from_client=True).send(content.upper(), from_client=False)
    return made.close().packets


def texts(found: list[Incarnation], data: bytes) -> list[tuple[str, str]]:
    return [(text(each.sides[1], data), text(each.sides[0], data)) for each in found]


def answered(found: list[Incarnation]) -> list[Incarnation]:
    return [each for each in found if None not in each.sides]


A, B = b"first" * 20, b"second" * 20
ONE, TWO = talk(FIRST, A), talk(SECOND, B)
TOLD = [(2 * each.decode(), 2 * each.decode().upper()) for each in (A, B)]


@pytest.mark.parametrize(
    "packets",
    [
        pytest.param([*ONE, *TWO, *ONE, *TWO], id="everything once more"),
        pytest.param([*ONE, *TWO, *ONE], id="the first one once more"),
        pytest.param([*ONE, *TWO[:5], *ONE, *TWO[5:]], id="the first one once more within the second"),
        pytest.param([*ONE, *TWO[:5], ONE[4], *TWO[5:], ONE[3]], id="single packets once more"),
        pytest.param([*ONE, *TWO[:5], ONE[0], *TWO[5:], ONE[1]], id="SYN packets once more"),
        pytest.param([*ONE[:-4], *TWO[:5], *ONE[-4:], *TWO[5:]], id="the end of the first one late"),
    ],
)
def test_copies_of_an_earlier_connection_open_no_other_one(tmp_path: Path, packets: list[Packet]) -> None:
    found, data = connections(tmp_path, with_times(packets))
    assert texts(found, data) == TOLD


def test_copies_of_a_syn_that_nobody_answered_open_no_other_connection(tmp_path: Path) -> None:
    unanswered = replace(ONE[0], sequence=700_000_000)
    once = [unanswered, *ONE]
    found, data = connections(tmp_path, with_times([*once, *once]))
    assert texts(found[1:], data) == TOLD[:1]


def test_a_syn_that_nobody_answered_takes_no_connection_of_which_the_answers_were_seen_first(
    tmp_path: Path,
) -> None:
    """What the server said overtook what the client did, its SYN packets with it."""
    unanswered = replace(ONE[0], sequence=700_000_000)
    of_server, of_client = ([each for each in ONE if each.source == end] for end in (SERVER, CLIENT))
    late = [*of_server[:2], unanswered, *of_client, *of_server[2:]]
    for packets in (late, [*late, *late]):
        found, data = connections(tmp_path, with_times(packets))
        assert texts(answered(found), data) == TOLD[:1]


def test_the_answer_to_a_syn_belongs_to_that_one(tmp_path: Path) -> None:
    """It overtook its SYN, and not the one before that nobody answered."""
    unanswered = replace(ONE[0], sequence=700_000_000)
    found, data = connections(tmp_path, with_times([unanswered, ONE[1], ONE[0], *ONE[2:]]))
    (one,) = answered(found)
    assert texts([one], data) == TOLD[:1]
    assert all(side is not None and side.syn is not None for side in one.sides)


def test_copies_of_connections_whose_numbers_lie_close_follow_their_syn(tmp_path: Path) -> None:
    two = talk(NEAR, B)
    found, data = connections(tmp_path, with_times([*ONE, *two, *ONE, *two]))
    assert texts(found, data) == TOLD


@pytest.mark.parametrize("closed_by", ["fin", "rst", "refusal"])
def test_a_second_connection_without_its_syn_packets_is_another_one(tmp_path: Path, closed_by: str) -> None:
    reset = Packet(SERVER, CLIENT, 0, b"", RST | ACK, FIRST[0] + 1, 0)
    one = {"fin": ONE, "rst": [*ONE[:-3], reset], "refusal": [ONE[0], reset]}[closed_by]
    found, data = connections(tmp_path, with_times([*one, *TWO[2:]]))
    assert len(found) == 2
    assert texts(found[1:], data) == TOLD[1:]
    assert all(side is not None and side.syn is None for side in found[1].sides)


def test_numbers_that_no_gap_explains_are_another_connection_though_nobody_closed_the_first(
    tmp_path: Path,
) -> None:
    behind = talk((FIRST[0] - 500_000, SECOND[1]), B)
    found, data = connections(tmp_path, with_times([*ONE[:-4], *behind[2:]]))
    assert texts(found[1:], data) == TOLD[1:]


def test_a_gap_in_a_connection_that_nobody_closed_opens_no_other_one(tmp_path: Path) -> None:
    made = Conversation(CLIENT, SERVER).open().send(letters(50), from_client=True)
    gap = [len(made.packets), 0]
    made.send(bytes(200_000), from_client=True).send(bytes(200_000), from_client=False)
    gap[1] = len(made.packets)
    made.send(letters(50), from_client=True).send(letters(50), from_client=False)
    found, _ = connections(tmp_path, [*made.packets[: gap[0]], *made.packets[gap[1] :]])
    assert len(found) == 1


def test_a_packet_behind_the_end_that_fits_stays(tmp_path: Path) -> None:
    late = [packet for packet in ONE if packet.payload][1:3]
    found, data = connections(tmp_path, with_times([*(each for each in ONE if each not in late), *late]))
    assert texts(found, data) == TOLD[:1]


@pytest.mark.parametrize("size", [1, 400, 1_500])
@pytest.mark.parametrize("order", ["copies", "between", "no_syn", "near", "late", "syn"])
def test_splits_tell_connections_apart_as_one_go_does(tmp_path: Path, order: str, size: int) -> None:
    one, two = talk(FIRST, command(1)), talk(SECOND, command(2))
    near = talk(NEAR, command(3))
    packets = {
        "copies": [*one, *two, *one, *two],
        "between": [*one, *two[:5], *one, *two[5:]],
        "no_syn": [*one, *two[2:], *(packet for packet in near if not packet.flags & SYN)],
        "near": [*one, *near, *one],
        "late": [*one[:-4], *two[:5], *one[-4:], *two[5:]],
        "syn": [*one, *two[:5], one[0], *two[5:], one[1]],
    }[order]
    path = tmp_path / "made.pcap"
    path.write_bytes(pcap(with_times(packets)))
    whole, parts = decode_capture(path), decode_by_splits(path, size)
    assert whole.frames.num_rows
    for left, right in ((whole.frames, parts.frames), (whole.holes, parts.holes)):
        assert left.to_pylist() == right.to_pylist()
    assert whole.streams.to_pylist() == parts.streams.to_pylist()


def test_many_connections_of_the_same_ports_make_no_packet_dearer(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0

    def far(span: turns._Span, number: int) -> int:
        nonlocal compared
        compared += 1
        return _far(span, number)

    _far = turns._Span.far
    monkeypatch.setattr(turns._Span, "far", far)
    stranger, count = 2**31, 0
    flow = turns.FlowTurns()
    for number in range(1, 1_001):
        begun = number * 4_000_037 % stranger
        flow.take(turns.Row(0, begun, 0, SYN, 1, number * 10**12))
        flow.take(turns.Row(1, begun // 2, begun + 1, RST | ACK, 0, number * 10**12 + 1))
        last = flow.take(turns.Row(0, begun + stranger, begun, ACK, 9, number * 10**12 + 2))
        count += 3
    assert last >= 1_000
    assert len(flow._known) <= turns.KNOWN_MAX
    assert compared <= 150 * count


def reused_ports(seed: int) -> list[Packet]:
    """Connections of one pair of ports, some without SYN or end, with copies anywhere."""
    rng = random.Random(seed)
    packets: list[Packet] = []
    initial = (rng.randrange(2**32), rng.randrange(2**32))
    for _ in range(rng.randrange(1, 5)):
        apart = 2**32 if rng.random() < 0.7 else 200_000
        initial = ((initial[0] + rng.randrange(apart)) % 2**32, (initial[1] + rng.randrange(apart)) % 2**32)
        made = Conversation(CLIENT, SERVER, client_initial=initial[0], server_initial=initial[1]).open()
        rng.choice(KINDS)(rng, made)
        found = made.close().packets if rng.random() < 0.6 else made.packets
        first, last = (
            rng.choice([0, 0, 1, 2, 3]),
            rng.choice([len(found), len(found), rng.randrange(len(found))]),
        )
        packets += found[first:last]
        if rng.random() < 0.2:
            packets.append(Packet(CLIENT, SERVER, rng.randrange(2**32), flags=RST))
    if packets and rng.random() < 0.6:
        first, at = rng.randrange(len(packets)), rng.randrange(len(packets) + 1)
        packets[at:at] = packets[first : rng.randrange(first, len(packets)) + 1]
    return with_times(harmed(rng, packets, rng.choice(HARMS)))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 20_000))
def test_any_reuse_of_ports_gives_the_same_rows_in_any_splits(seed: int, split_bytes: int) -> None:
    check(pcap(reused_ports(seed)), split_bytes)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_a_flow_that_is_in_no_doubt_is_one_connection(seed: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "made.pcap"
        path.write_bytes(pcap(reused_ports(seed)))
        with open_capture(path) as capture:
            grouped = group(read_packets(capture.data, capture.records()))
    found = turns.TurnsOfParts(grouped.keys).add(grouped)
    several = {key for key, number in found.items() if number.max() > 1}
    assert several <= set(doubtful_flows(grouped))


# Splits of these captures told other rows than the whole while each split decided for itself.
@pytest.mark.parametrize("seed", [15401, 41])
def test_what_was_closed_and_went_on_within_a_split_gives_the_same_rows(seed: int) -> None:
    check(pcap(random_capture(seed, Harm(lost=0.02, headless=0.3), talks=3)), 1000)
