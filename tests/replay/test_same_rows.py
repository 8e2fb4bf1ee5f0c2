"""Whatever a capture is wrapped in, its rows are the same: link types, tags, containers, units."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from replispec.replay.capture.records import CaptureError
from replispec.replay.engines.decoding import decode_capture
from replispec.replay.events.observe import observe
from tests.replay.event_rows import event_rows
from tests.replay.pcap_writer import Packet, pcap, pcapng
from tests.replay.world import World

# Places in a file differ with what its packets are wrapped in; they are an order and nothing more.
PLACES = ("record_offset", "order")
LINK_TYPES = (0, 101, 108, 113, 228, 276)
Rows = list[list[dict[str, Any]]]


@cache
def packets() -> tuple[Packet, ...]:
    """A broker group that comes up, replicates and acknowledges; times are whole microseconds."""
    world = World()
    world.come_up(1)
    world.come_up(2)
    return tuple(world.traffic.packets())


def rows(data: bytes, name: str = "made.pcap") -> Rows:
    """Frames, holes, streams and observations without their places in the file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        decoded = decode_capture(path)
        assert not decoded.warnings
    events = observe(decoded.frames, decoded.holes, decoded.streams)
    tables = [table.to_pylist() for table in (decoded.frames, decoded.holes, decoded.streams)]
    return [
        [{key: value for key, value in row.items() if key not in PLACES} for row in table]
        for table in (*tables, event_rows(events))
    ]


@cache
def expected() -> Rows:
    found = rows(pcap(packets()))
    assert len(found[0]) > 10
    assert len(found[3]) > 10
    return found


def tagged(*tags: int) -> list[Packet]:
    return [replace(packet, vlans=tags) for packet in packets()]


def provider_bridged(data: bytes) -> bytes:
    """The outer of two tags as IEEE 802.1ad has it."""
    return data.replace(bytes(12) + b"\x81\x00\x00\x07\x81\x00", bytes(12) + b"\x88\xa8\x00\x07\x81\x00")


WRAPPED: dict[str, Callable[[], bytes]] = {
    **{f"link type {link}": partial(pcap, packets(), link_type=link) for link in LINK_TYPES},
    "one tag": lambda: pcap(tagged(7)),
    "stacked tags": lambda: pcap(tagged(7, 8)),
    "802.1ad": lambda: provider_bridged(pcap(tagged(7, 8))),
    "nanoseconds": lambda: pcap(packets(), nanoseconds=True),
    "big endian": lambda: pcap(packets(), byte_order=">"),
    "big endian, nanoseconds": lambda: pcap(packets(), byte_order=">", nanoseconds=True),
    "pcapng": lambda: pcapng(packets()),
    "pcapng, big endian, microseconds": lambda: pcapng(packets(), byte_order=">", resolution=None),
    "pcapng, cooked": lambda: pcapng(packets(), link_type=276),
    "pcapng, old blocks": lambda: pcapng(packets(), block="old"),
    "gzip": lambda: gzip.compress(pcap(packets()), mtime=0),
    "gzip of pcapng": lambda: gzip.compress(pcapng(packets()), mtime=0),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_the_rows_do_not_depend_on_the_wrapping(name: str) -> None:
    assert rows(WRAPPED[name]()) == expected()


def test_the_tags_of_a_provider_are_in_the_bytes() -> None:
    assert WRAPPED["802.1ad"]() != WRAPPED["stacked tags"]()


@pytest.mark.parametrize("link_type", [0, 1, 101, 113, 276])
def test_ipv6_gives_the_rows_of_ipv4_with_other_addresses(link_type: int) -> None:
    def mapped(end: tuple[str, int]) -> tuple[str, int]:
        return f"fd00::{end[0].replace('.', ':')}", end[1]

    sixes = [
        replace(packet, source=mapped(packet.source), destination=mapped(packet.destination))
        for packet in packets()
    ]
    frames = rows(pcap(sixes, link_type=link_type))[0]
    named = ("connection", "source", "destination")

    def without_names(found: list[dict[str, Any]]) -> list[str]:
        return sorted(repr([value for key, value in row.items() if key not in named]) for row in found)

    assert all(row["source"].startswith("[fd00::") for row in frames)
    assert without_names(frames) == without_names(expected()[0])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"BZh91AY&SY", "no packet capture: the file starts with 425a6839"),
        (b"\x28\xb5\x2f\xfd\x04\x00", "no packet capture: the file starts with 28b52ffd"),
    ],
)
def test_another_compression_is_no_capture_and_said_so(data: bytes, said: str) -> None:
    with pytest.raises(CaptureError, match=said):
        rows(data)
