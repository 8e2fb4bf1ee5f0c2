"""What checksums vouch for: damaged copies, copies that differ, senders that fill in no checksum."""

from __future__ import annotations

import random
import struct
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.replay.engines.decoding import DecodedCapture
from replispec.replay.engines.family import judged
from replispec.replay.engines.local import capture_row
from replispec.replay.engines.results import Options
from replispec.replay.events.observe import observe
from replispec.replay.report.wire_words import wire_lines
from replispec.replay.tcp.checksums import ranges
from replispec.replay.tcp.layers import BigEndian
from tests.replay.envelopes import (
    Seen,
    as_ipv6,
    checksum,
    filled,
    payload_at,
    put_into,
    read,
    turned,
    vxlan,
    with_copies,
)
from tests.replay.event_rows import event_rows
from tests.replay.test_envelopes import CAPTURES, SMALL, clean, decoded, findings, rows

FRAMES = read(CAPTURES / f"{SMALL}.pcap")
FILLED = put_into(FRAMES, filled)
LOSING = ("failover_lost", "hung_master")
AUDITED = ("m_mtu1500", "d_async_learner", *LOSING)


@given(st.binary(min_size=1, max_size=300), st.lists(st.tuples(st.integers(0, 299), st.integers(0, 299))))
def test_sums_of_ranges_are_internet_checksums(data: bytes, ends: list[tuple[int, int]]) -> None:
    places = [(min(pair) % len(data), max(pair) % (len(data) + 1)) for pair in ends]
    places = [(start, end) for start, end in places if start <= end]
    start = np.array([start for start, _ in places], np.int64)
    end = np.array([end for _, end in places], np.int64)
    found = ranges(BigEndian(data), start, end)
    for total, (low, high) in zip(found.tolist(), places, strict=True):
        assert (total + checksum(data[low:high])) % 0xFFFF == 0


def with_payload(frames: list[Seen]) -> list[int]:
    return [at for at, each in enumerate(frames) if len(each.frame) > payload_at(each.frame)]


def wrong(frames: list[Seen], at: int) -> Seen:
    """A damaged copy of one of the frames."""
    return replace(frames[at], frame=turned(frames[at].frame, at))


def test_right_checksums_vouch_and_change_nothing() -> None:
    found = decoded(FILLED)
    assert (rows(found), findings(found)) == clean()
    assert found.wire.checked == len(with_payload(FILLED))
    assert not found.wire.left


def test_right_checksums_of_ipv6_vouch() -> None:
    found = decoded(put_into(FRAMES, as_ipv6, filled))
    assert (rows(found), findings(found)) == clean(as_ipv6)
    assert found.wire.checked == len(with_payload(FILLED))


def test_senders_that_fill_in_none_are_named() -> None:
    found = decoded(FRAMES)
    assert (found.wire.checked, found.wire.left) == (0, ("127.0.0.1",))
    row = capture_row("made.pcap", found)
    assert row.senders_offloaded == ("127.0.0.1",)
    assert any("127.0.0.1 are not filled in (offloaded)" in line for line in wire_lines(row))


@pytest.mark.parametrize("place", ["before", "after", "both"])
def test_a_damaged_copy_beside_the_good_one_is_no_data(place: str) -> None:
    at = with_payload(FILLED)[5]
    bad = wrong(FILLED, at)
    before, after = [bad] * (place != "after"), [bad] * (place != "before")
    found = decoded([*FILLED[:at], *before, FILLED[at], *after, *FILLED[at + 1 :]])
    assert (rows(found), findings(found)) == clean()
    count = 1 + (place == "both")
    assert [each.reason for each in found.warnings] == [
        f"{count} packets were left out: their checksum is wrong, though their sender fills it in"
    ]
    assert capture_row("made.pcap", found).packets_corrupt == count


def test_a_damaged_packet_alone_is_a_hole_with_its_reason() -> None:
    at = with_payload(FILLED)[5]
    found = decoded([*FILLED[:at], wrong(FILLED, at), *FILLED[at + 1 :]])
    assert found.holes["kind"].to_pylist() == ["corrupt"]
    row = capture_row("made.pcap", found)
    assert row.holes_by_reason == {"corrupt": 1}
    assert "Holes: 1 captured with a wrong checksum only" in wire_lines(row)


@pytest.mark.parametrize("first", [True, False])
def test_copies_that_nobody_vouches_for_are_ambiguous(first: bool) -> None:
    at = with_payload(FRAMES)[5]
    pair = [FRAMES[at], wrong(FRAMES, at)]
    found = decoded([*FRAMES[:at], *(pair if first else pair[::-1]), *FRAMES[at + 1 :]])
    assert set(found.holes["kind"].to_pylist()) == {"ambiguous"}
    length = sum(b - a for a, b in zip(*(found.holes[n].to_pylist() for n in ("start", "end")), strict=True))
    assert length == len(pair[0].frame) - payload_at(pair[0].frame)


def test_a_checksum_that_lies_is_not_believed_against_another() -> None:
    at = with_payload(FILLED)[5]
    lie = replace(FILLED[at], frame=filled(turned(FILLED[at].frame, 3)))
    found = decoded([*FILLED[:at], lie, *FILLED[at:]])
    assert set(found.holes["kind"].to_pylist()) == {"ambiguous"}
    assert not found.warnings


def test_of_a_vouched_and_an_unfilled_copy_the_vouched_one_counts() -> None:
    """As captured with segments merged on receipt, whose checksums are those of the pseudo-header."""
    at = with_payload(FILLED)[5]
    odd = bytearray(turned(FRAMES[at].frame, 5))
    found = decoded([*FILLED[:at], replace(FRAMES[at], frame=bytes(odd)), *FILLED[at:]])
    assert (rows(found)[0], findings(found)) == (clean()[0][0], clean()[1])


def test_checksums_that_are_wrong_as_a_rule_tell_nothing() -> None:
    def spoilt(frame: bytes) -> bytes:
        tcp = 14 + (frame[14] & 15) * 4
        number = int.from_bytes(frame[tcp + 16 : tcp + 18], "big")
        return frame[: tcp + 16] + struct.pack("!H", number ^ 0x1111) + frame[tcp + 18 :]

    found = decoded(put_into(FILLED, spoilt))
    assert (rows(found), findings(found)) == clean()
    assert (found.wire.strange, found.wire.checked) == (("127.0.0.1",), 0)
    lines = wire_lines(capture_row("made.pcap", found))
    assert "Checksums of 127.0.0.1 are wrong as a rule: nothing is concluded from them" in lines


def test_headers_that_are_wrong_are_no_packets() -> None:
    at = with_payload(FRAMES)[5]
    bad = bytearray(FRAMES[at].frame)
    bad[22] ^= 0x40
    found = decoded([*FRAMES[:at], replace(FRAMES[at], frame=bytes(bad)), *FRAMES[at + 1 :]])
    assert found.holes["kind"].to_pylist() == ["corrupt"]
    again = decoded([*FRAMES[:at], replace(FRAMES[at], frame=bytes(bad)), *FRAMES[at:]])
    assert (rows(again), findings(again)) == clean()


def test_a_damaged_address_is_nobody() -> None:
    """The copy's sender was never seen otherwise: its interface tells that checksums are filled in."""
    at = with_payload(FILLED)[5]
    six = put_into(FRAMES, as_ipv6, filled)
    bad = bytearray(six[at].frame)
    bad[14 + 8 + 5] ^= 0x20
    found = decoded([*six[:at], replace(six[at], frame=bytes(bad)), *six[at:]])
    assert (rows(found), findings(found)) == clean(as_ipv6)


def test_findings_and_timelines_tell_why_bytes_are_missing() -> None:
    frames = put_into(read(CAPTURES / "hung_master.pcap"), filled)
    found = decoded(with_copies(frames, 3, 0.03, ["instead"]))
    observations = observe(found.frames, found.holes, found.streams)
    result = judged(capture_row("made.pcap", found), observations, Options())
    why = "captured with a wrong checksum only"
    assert any(why in proof.text for each in result.findings for proof in each.proofs)
    assert any(why in repr(event) for each in result.timelines for event in each.events)
    told = {row["text"] for row in event_rows(observations) if row["kind"] in ("unseen", "gap")}
    assert "corrupt" in told


def test_truncated_packets_cannot_be_verified() -> None:
    short = [Seen(each.time_us, each.frame[:100], each.wire) for each in FILLED]
    plain = [Seen(each.time_us, each.frame[:100], each.wire) for each in FRAMES]
    found = decoded(short)
    assert rows(found) == rows(decoded(plain))
    assert "truncated" in found.holes["kind"].to_pylist()
    assert found.wire.checked < len(with_payload(FILLED))


def test_a_damaged_copy_in_a_tunnel_is_no_data() -> None:
    at = with_payload(FILLED)[5]
    frames = [*FILLED[:at], wrong(FILLED, at), *FILLED[at:]]
    found = decoded(put_into(frames, vxlan()))
    assert (rows(found), findings(found)) == clean()


def verdicts(found: DecodedCapture) -> tuple[set[tuple[Any, ...]], int]:
    """What is violated, and how many acknowledged messages are lost."""
    row = capture_row("made.pcap", found)
    result = judged(row, observe(found.frames, found.holes, found.streams), Options())
    violated = {(each.group, each.invariant) for each in result.findings if each.verdict.value == "violated"}
    return violated, sum(loss.acknowledged for loss in result.losses)


@cache
def known(name: str) -> tuple[set[tuple[Any, ...]], int]:
    """What the capture shows as it is."""
    return verdicts(decoded(read(CAPTURES / f"{name}.pcap")))


@pytest.mark.parametrize("name", AUDITED)
@pytest.mark.parametrize("fills", [True, False], ids=["filled", "offloaded"])
@pytest.mark.parametrize("place", ["before", "after"])
def test_damaged_copies_invent_no_loss_and_hide_none_where_checksums_tell(
    name: str, fills: bool, place: str
) -> None:
    frames = read(CAPTURES / f"{name}.pcap")
    chosen = put_into(frames, filled) if fills else frames
    found = decoded(with_copies(chosen, random.Random(name + place).randrange(10**6), 0.02, [place]))
    violated, lost = verdicts(found)
    if fills:
        assert (violated, lost) == known(name)
    else:
        assert violated <= known(name)[0]
        assert lost <= known(name)[1]
        assert lost == known(name)[1] or "ambiguous" in found.holes["kind"].to_pylist()


@pytest.mark.parametrize("name", AUDITED)
def test_damaged_packets_without_a_good_copy_invent_nothing(name: str) -> None:
    frames = put_into(read(CAPTURES / f"{name}.pcap"), filled)
    found = decoded(with_copies(frames, 11, 0.01, ["instead"]))
    violated, lost = verdicts(found)
    assert violated <= known(name)[0]
    assert lost <= known(name)[1]
    assert "corrupt" in found.holes["kind"].to_pylist()
