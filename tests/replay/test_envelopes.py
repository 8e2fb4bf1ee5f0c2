"""Whatever tags, labels and tunnels a capture's packets are in, everything found in it is the same."""

from __future__ import annotations

import struct
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replispec.replay.capture.records import CaptureError
from replispec.replay.engines.by_splits import decode_by_splits
from replispec.replay.engines.decoding import DecodedCapture, decode_capture
from replispec.replay.engines.family import judged
from replispec.replay.engines.local import capture_row
from replispec.replay.engines.results import Options
from replispec.replay.events.observe import observe
from tests.replay.envelopes import (
    ENVELOPES,
    ENVELOPES_6,
    MACS,
    Envelope,
    Seen,
    as_ipv6,
    ethernet,
    gre,
    ipv4,
    labels,
    put_into,
    read,
    tag,
    udp,
    vxlan,
    written,
)
from tests.replay.event_rows import event_rows

CAPTURES = Path(__file__).parents[2] / "spark_replay/captures"
# Places in a file differ with what its packets are in; they are an order and nothing more.
PLACES = ("record_offset", "order")
SMALL = "k2_newbroker_oldcontroller"
Rows = list[list[dict[str, Any]]]


def decoded(frames: list[Seen]) -> DecodedCapture:
    """What both ways of decoding make of some frames."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "made.pcap"
        path.write_bytes(written(frames))
        local, split = decode_capture(path), decode_by_splits(path, 5000)
    assert (local.frames, local.holes, local.streams) == (split.frames, split.holes, split.streams)
    assert (local.wire, local.warnings) == (split.wire, split.warnings)
    return local


def rows(found: DecodedCapture) -> Rows:
    """Frames, holes, streams and observations without their places in the file."""
    events = observe(found.frames, found.holes, found.streams)
    tables = [table.to_pylist() for table in (found.frames, found.holes, found.streams)]
    return [
        [{key: value for key, value in row.items() if key not in PLACES} for row in table]
        for table in (*tables, event_rows(events))
    ]


def findings(found: DecodedCapture) -> list[tuple[Any, ...]]:
    """The findings and losses about a capture."""
    row = capture_row("made.pcap", found)
    result = judged(row, observe(found.frames, found.holes, found.streams), Options())
    told = [(each.group, each.invariant, each.verdict.value, each.evaluated) for each in result.findings]
    return [*told, *((loss.epoch, loss.acknowledged) for loss in result.losses)]


@cache
def clean(*envelopes: Envelope, name: str = SMALL) -> tuple[Rows, list[tuple[Any, ...]]]:
    found = decoded(put_into(read(CAPTURES / f"{name}.pcap"), *envelopes))
    assert found.frames.num_rows > 50
    return rows(found), findings(found)


@pytest.mark.parametrize("name", ENVELOPES)
def test_what_is_found_does_not_depend_on_the_envelope(name: str) -> None:
    found = decoded(put_into(read(CAPTURES / f"{SMALL}.pcap"), *ENVELOPES[name]))
    assert (rows(found), findings(found)) == clean()
    assert not found.warnings
    assert found.wire.remarks.named("opened: ")


@pytest.mark.parametrize("name", ENVELOPES_6)
def test_ipv6_in_envelopes_is_ipv6(name: str) -> None:
    found = decoded(put_into(read(CAPTURES / f"{SMALL}.pcap"), *ENVELOPES_6[name]))
    assert (rows(found), findings(found)) == clean(as_ipv6)


def test_a_loss_is_found_in_tunnels_in_tunnels() -> None:
    frames = put_into(read(CAPTURES / "failover_lost.pcap"), *ENVELOPES["tunnels in tunnels"])
    found = findings(decoded(frames))
    assert found == clean(name="failover_lost")[1]
    assert [each[1] for each in found if len(each) == 2] == [220]


def test_headers_are_counted_by_name() -> None:
    frames = read(CAPTURES / f"{SMALL}.pcap")
    found = decoded(put_into(frames, tag(0x8100), vxlan(), gre(0), labels(2), tag(0x88A8)))
    assert found.wire.remarks.named("opened: ") == dict.fromkeys(
        ("802.1Q", "802.1ad", "GRE", "MPLS", "VXLAN"), len(frames)
    )


@pytest.mark.parametrize("late", [False, True])
def test_a_packet_seen_inside_and_outside_of_a_tunnel_is_one(late: bool) -> None:
    frames = read(CAPTURES / f"{SMALL}.pcap")
    inside = put_into(frames, vxlan())
    pairs = zip(inside, frames, strict=True) if late else zip(frames, inside, strict=True)
    found = decoded([each for pair in pairs for each in pair])
    assert (rows(found), findings(found)) == clean()


def test_headers_without_end_are_left_and_said() -> None:
    frames = put_into(read(CAPTURES / f"{SMALL}.pcap"), *[tag(0x8100)] * 40)
    found = decoded(frames)
    assert found.wire.remarks.named("unopened: ") == {"more headers than are opened": len(frames)}
    assert capture_row("made.pcap", found).error.startswith("nothing was decoded; seen: ")


SEALED = {
    "ESP": ethernet(0x0800, ipv4(50, bytes(range(100)))),
    "ESP in UDP": ethernet(0x0800, ipv4(17, udp(4500, bytes(range(100))))),
    "WireGuard-like UDP": ethernet(0x0800, ipv4(17, udp(51_820, b"\x04\0\0\0" + bytes(92)))),
    "MACsec": ethernet(0x88E5, bytes(90)),
    "L2TP": ethernet(0x0800, ipv4(115, bytes(90))),
    "UDP": ethernet(0x0800, ipv4(17, udp(53, bytes(30)))),
    "ether type 0x0806": ethernet(0x0806, bytes(28)),
    "IP protocol 89": ethernet(0x0800, ipv4(89, bytes(30))),
}


@pytest.mark.parametrize("name", SEALED)
def test_a_capture_of_which_nothing_can_be_opened_is_no_all_clear(name: str) -> None:
    found = decoded([Seen(at, SEALED[name], len(SEALED[name])) for at in range(5)])
    row = capture_row("made.pcap", found)
    assert row.error == f"nothing was decoded; seen: 5 {name}"
    assert row.unopened == {name: 5}


def test_tcp_of_which_nothing_is_a_frame_is_no_all_clear() -> None:
    frames = [each for each in read(CAPTURES / f"{SMALL}.pcap") if len(each.frame) < 80][:7]
    assert "7 TCP packets" in capture_row("made.pcap", decoded(frames)).error


def test_what_linux_put_into_vxlan_and_tore_up_is_read(tmp_path: Path) -> None:
    """One connection over a VXLAN device, whose packets Linux had to fragment, captured on both devices."""
    data = (Path(__file__).parent / "data/linux_vxlan.pcapng").read_bytes()
    blocks, at = [], 0
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        blocks.append((kind, data[at : at + size]))
        at += size
    found = []
    for devices in ((0, 1), (0,), (1,)):
        path = tmp_path / "made.pcapng"
        path.write_bytes(
            b"".join(
                block
                for kind, block in blocks
                if kind != 6 or struct.unpack_from("<I", block, 8)[0] in devices
            )
        )
        local, split = decode_capture(path), decode_by_splits(path, 5000)
        assert (local.frames, local.holes, local.wire) == (split.frames, split.holes, split.wire)
        found.append(local)
    both, outside, inside = found
    assert both.frames.num_rows == 48
    assert both.holes.num_rows == 0
    assert (both.wire.remarks["datagrams"], outside.wire.remarks["datagrams"]) == (6, 6)
    assert both.wire.remarks.named("opened: ") == outside.wire.remarks.named("opened: ") == {"VXLAN": 70}
    assert inside.wire.remarks.named("opened: ") == {}
    assert both.wire.checked == outside.wire.checked + inside.wire.checked == 108
    moments = (*PLACES, "time_ns")
    told = [
        [{key: value for key, value in row.items() if key not in moments} for row in each.frames.to_pylist()]
        for each in found
    ]
    assert told[0] == told[1] == told[2]


# Bytes behind a real header of each kind, so that garbage gets into every parser.
STARTS = [
    put_into([Seen(0, MACS + b"\x08\x00" + bytes(60), 74)], *envelopes)[0].frame[:-60]
    for name, envelopes in ENVELOPES.items()
    if name != "AH"
]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([b"", *STARTS]), st.binary(max_size=90)), max_size=8))
def test_any_bytes_are_read_without_a_fault(parts: list[tuple[bytes, bytes]]) -> None:
    found = decoded([Seen(at, start + rest, len(start + rest)) for at, (start, rest) in enumerate(parts)])
    assert found.streams.num_rows <= 2 * len(parts)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(sorted(ENVELOPES)),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=6),
    st.integers(1, 400),
)
def test_damaged_and_shortened_tunnels_are_read_without_a_fault(
    name: str, changes: list[tuple[int, int]], kept: int
) -> None:
    frames = []
    for each in put_into(read(CAPTURES / f"{SMALL}.pcap")[:12], *ENVELOPES[name]):
        data = bytearray(each.frame)
        for at, value in changes:
            data[at % len(data)] = value
        frames.append(Seen(each.time_us, bytes(data[:kept]), each.wire))
    try:
        decoded(frames)
    except CaptureError as fault:
        pytest.fail(f"a sound file was refused: {fault}")
