"""IP fragments are joined in any order; what is missing, contradicts itself or never ends is told."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replispec.replay.engines.by_splits import decode_by_splits
from replispec.replay.engines.decoding import decode_capture
from replispec.replay.tcp import fragments
from tests.replay.envelopes import (
    Seen,
    as_ipv6,
    ethernet,
    filled,
    in_fragments,
    ipv4,
    put_into,
    read,
    torn,
    vxlan,
    written,
)
from tests.replay.test_envelopes import CAPTURES, SMALL, clean, decoded, findings, rows

FRAMES = read(CAPTURES / f"{SMALL}.pcap")
ORDERS: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "forward": list,
    "reversed": lambda parts: parts[::-1],
    "shuffled": lambda parts: random.Random(len(parts)).sample(parts, len(parts)),
    "each twice": lambda parts: [part for part in parts for _ in (0, 1)],
    "all twice": lambda parts: parts + parts,
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", [8, 24, 128])
def test_fragments_in_any_order_are_the_packet(order: str, size: int) -> None:
    """Eight bytes are less than a TCP header."""
    found = decoded(in_fragments(FRAMES, size, ORDERS[order]))
    assert (rows(found), findings(found)) == clean()
    assert found.wire.remarks["datagrams"] == sum(len(each.frame) - 34 > size for each in FRAMES)
    assert not found.warnings


@pytest.mark.parametrize("order", ["forward", "reversed"])
def test_fragments_of_ipv6_are_joined(order: str) -> None:
    frames = in_fragments(put_into(FRAMES, as_ipv6), 64, ORDERS[order], six=True)
    found = decoded(frames)
    assert (rows(found), findings(found)) == clean(as_ipv6)


def test_fragments_of_tunnels_and_in_them_are_joined() -> None:
    inside = put_into(in_fragments(FRAMES, 96), vxlan())
    found = decoded(in_fragments(inside, 88))
    assert (rows(found), findings(found)) == clean()


def test_interleaved_fragments_find_together() -> None:
    frames: list[Seen] = []
    for first, second in zip(FRAMES[::2], FRAMES[1::2], strict=False):
        parts = [in_fragments([each], 40, list) for each in (first, second)]
        parts[1] = [
            replace(each, frame=torn(second.frame, 40, 77)[at]) if len(parts[1]) > 1 else each
            for at, each in enumerate(parts[1])
        ]
        longest = max(map(len, parts))
        frames += [own[at] for at in range(longest) for own in parts if at < len(own)]
    whole = [each for pair in zip(FRAMES[::2], FRAMES[1::2], strict=False) for each in pair]
    assert rows(decoded(frames))[0] == rows(decoded(whole))[0]


def test_fragments_in_several_files_are_joined(tmp_path: Path) -> None:
    frames = in_fragments(FRAMES, 64)
    half = len(frames) // 2
    cut = next(at for at in range(half, len(frames)) if frames[at].time_us == frames[at - 1].time_us)
    parts = [tmp_path / "part.pcap", tmp_path / "part.pcap1"]
    for path, own in zip(parts, (frames[:cut], frames[cut:]), strict=True):
        path.write_bytes(written(own))
    one = tmp_path / "one"
    one.mkdir()
    (one / "part.pcap").write_bytes(written(frames))
    whole = decode_capture(one / "part.pcap")
    for found in (decode_capture(parts), decode_by_splits(parts, 3000)):
        assert (found.frames, found.holes, found.wire) == (whole.frames, whole.holes, whole.wire)


def test_a_loss_is_found_in_fragments() -> None:
    found = decoded(in_fragments(read(CAPTURES / "failover_lost.pcap"), 1024))
    assert findings(found) == clean(name="failover_lost")[1]


def missing_one() -> tuple[list[Seen], int]:
    frames = in_fragments(FRAMES, 128)
    sizes = [len(torn(each.frame, 128, 1)) for each in FRAMES]
    torn_up = next(at for at, count in enumerate(sizes) if count > 2)
    return frames, sum(sizes[:torn_up])


def test_a_missing_fragment_leaves_a_hole_and_is_said() -> None:
    frames, first = missing_one()
    found = decoded(frames[: first + 1] + frames[first + 2 :])
    assert found.warnings[0].reason.startswith("1 fragmented IP packets were left out: fragments are missing")
    assert found.holes.num_rows == 1
    assert findings(found) != clean()[1]


def test_fragments_that_overlap_and_differ_are_not_believed() -> None:
    frames, first = missing_one()
    bad = bytearray(frames[first + 1].frame)
    bad[-1] ^= 1
    found = decoded([*frames[: first + 1], frames[first].framed(bytes(bad)), *frames[first + 1 :]])
    assert "their fragments overlap and differ" in found.warnings[0].reason
    assert found.holes.num_rows == 1


def test_fragments_that_overlap_and_agree_are_joined() -> None:
    frames = []
    for number, each in enumerate(FRAMES):
        parts = torn(each.frame, 64, number)
        wide = [part for at, part in enumerate(torn(each.frame, 96, number)) if at != 1]
        frames += [each.framed(part) for part in [*wide[:1], *parts]]
    whole = decoded(frames)
    assert rows(whole)[0] == clean()[0][0]


def test_a_fragment_with_a_wrong_header_checksum_is_no_fragment() -> None:
    frames, first = missing_one()
    bad = bytearray(frames[first + 1].frame)
    bad[14 + 24 - 14 + 8] ^= 0xFF  # its time to live
    frames[first + 1] = frames[first + 1].framed(bytes(bad))
    found = decoded(frames)
    assert [each.reason.split(" ", 1)[1] for each in found.warnings] == [
        "IPv4 headers around tunnels or of fragments do not match their checksum",
        "fragmented IP packets were left out: fragments are missing",
    ]


def endless(count: int) -> list[Seen]:
    part = [ethernet(0x0800, ipv4(6, bytes(64), place=1 << 13 | at % 8000)) for at in range(count)]
    return [Seen(at, frame, len(frame)) for at, frame in enumerate(part)]


def test_a_packet_that_never_ends_is_bounded_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fragments, "PARTS_MAXIMUM", 50)
    monkeypatch.setattr(fragments, "FRAGMENTS_MAXIMUM", 400)
    found = decoded([*FRAMES, *endless(600)])
    assert (rows(found), findings(found)) == clean()
    assert [each.reason for each in found.warnings] == [
        f"{200 + 1} IP fragments were left out: there are too many to be joined"
    ]


def test_packets_that_never_end_are_waited_for_in_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fragments, "WAITING_MAXIMUM", 50)
    begun = [
        Seen(at, part, len(part))
        for at in range(300)
        for part in [ethernet(0x0800, ipv4(6, bytes(64), place=1 << 13, identification=at))]
    ]
    found = decoded([*begun, *in_fragments(FRAMES, 128)])
    assert (rows(found), findings(found)) == clean()
    assert [each.reason for each in found.warnings] == [
        "49 fragmented IP packets were left out: fragments are missing",
        "251 IP fragments were left out: there are too many to be joined",
    ]


def test_fragments_of_another_minute_are_of_another_packet() -> None:
    frames, first = missing_one()
    late = replace(frames[first + 1], time_us=frames[first + 1].time_us + 61 * 10**6)
    found = decoded([*frames[: first + 1], *frames[first + 2 :], late])
    assert found.wire.remarks["unfinished"] == 2


def test_a_checksum_is_verified_over_all_fragments() -> None:
    frames = put_into(FRAMES, filled)
    clean_checks = decoded(frames).wire.checked
    found = decoded(in_fragments(frames, 64))
    assert (rows(found), found.wire.checked) == (clean()[0], clean_checks)
    assert clean_checks > 20


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 12), st.integers(0, 40), st.booleans(), st.integers(0, 2), st.integers(0, 255)
        ),
        max_size=40,
    )
)
def test_any_fragments_are_joined_without_a_fault(
    parts: list[tuple[int, int, bool, int, int]],
) -> None:
    frames = []
    for at, (place, size, more, identification, fill) in enumerate(parts):
        packet = ipv4(6, bytes([fill]) * size, identification=identification, place=more << 13 | place)
        frames.append(Seen(at, ethernet(0x0800, packet), 14 + len(packet)))
    remarks = decoded(frames).wire.remarks
    told = sum(remarks[name] for name in ("datagrams", "unfinished", "disagreeing", "excessive"))
    assert told <= len(parts)
