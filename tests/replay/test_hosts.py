"""Captures of all hosts make the story that one clean capture tells: verdicts, counts, losses.

Every capture of the project is dealt out to three hosts with clocks 300 ms apart that drift, with losses of
their own, and one host behind a translation of addresses.
"""

from __future__ import annotations

import random
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from replispec.replay.engines.local import LocalEngine
from replispec.replay.engines.results import CaptureResult, Options
from replispec.replay.hosts.merging import merge
from replispec.replay.hosts.told import Merged
from tests.replay import mess
from tests.replay.hosts import MICROSECOND, MILLISECOND, Places, at_hosts, translated
from tests.replay.mess import ETHERNET, Seen
from tests.replay.pcap_writer import START_NS, Conversation, Packet, pcap
from tests.replay.test_mess import FILES, clean, header_and_packets, invented, told

NAMES = sorted(set(FILES) - {"linux_vxlan"})
PLACES = {
    "clocks apart": Places(),
    "losses at each": Places(lost=0.05),
    "one sees itself otherwise": Places(lost=0.02, hides="own"),
    "one is seen otherwise": Places(lost=0.02, hides="others"),
}

# So short that a host may share no packet with another one.
FEW = ("k1_oldbroker_newcontroller", "k2_newbroker_oldcontroller")


def merged(name: str, places: Places, folder: Path) -> tuple[Merged, CaptureResult]:
    header, packets = header_and_packets(name)
    paths = []
    for number, own in enumerate(at_hosts(packets, random.Random(name), places)):
        paths.append(folder / f"host{number}.pcap")
        paths[-1].write_bytes(mess.written(header, own))
    made = merge(paths, folder / "story.pcapng")
    (found,) = LocalEngine().results([folder / "story.pcapng"], folder, Options(), lambda *_: None)
    return made, found


def judged(found: CaptureResult) -> tuple[object, object]:
    """Verdicts with their counts, and losses, whatever the capture is called."""
    return told(replace(found, losses=[replace(each, file="") for each in found.losses]))


def counted(found: CaptureResult) -> tuple[int, ...]:
    row = found.capture
    return row.frames_remoting, row.frames_ha, row.holes, row.bytes_undecoded, row.bytes_foreign


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("places", PLACES)
def test_many_hosts_tell_what_one_clean_capture_tells(places: str, name: str, tmp_path: Path) -> None:
    made, found = merged(name, PLACES[places], tmp_path)
    assert counted(found) == counted(clean(name))
    assert judged(found) == judged(clean(name))
    assert all(clock.reference for clock in made.clocks[1:]) or name in FEW


@pytest.mark.parametrize("name", NAMES)
def test_where_numbers_are_changed_too_nothing_is_invented_and_what_counts_twice_is_said(
    name: str, tmp_path: Path
) -> None:
    made, found = merged(name, Places(hides="others", renumbers=True), tmp_path)
    assert invented(found, clean(name)) == set()
    assert judged(found)[1] == judged(clean(name))[1]
    if counted(found) != counted(clean(name)):
        assert made.doubtful
        assert "may be one behind a translation" in " ".join(made.warnings)


SHORT = "t_binary_header"


def alone(packets: bytes, folder: Path) -> tuple[Merged, CaptureResult]:
    """What merging one capture comes to."""
    (folder / "one.pcap").write_bytes(packets)
    made = merge([folder / "one.pcap"], folder / "story.pcapng")
    (found,) = LocalEngine().results([folder / "story.pcapng"], folder, Options(), lambda *_: None)
    return made, found


def test_a_node_that_translates_sees_both_halves_of_a_connection_in_one_capture(tmp_path: Path) -> None:
    header, packets = header_and_packets(SHORT)
    listener = min(min(each.ends, key=lambda end: end[-2:]) for each in packets if each.ends is not None)
    inside = [
        replace(
            translated(each, each.ends[0] == listener, {}, random.Random(0), renumbers=False),
            time_ns=each.time_ns + (-20_000 if each.ends[0] == listener else 20_000),
        )
        for each in packets
        if each.ends is not None and listener in each.ends
    ]
    made, found = alone(mess.written(header, [*packets, *inside]), tmp_path)
    assert inside
    assert made.renamings
    assert counted(found) == counted(clean(SHORT))
    assert judged(found) == judged(clean(SHORT))


def test_what_came_in_and_went_out_of_one_host_counts_once(tmp_path: Path) -> None:
    _, packets = header_and_packets(SHORT)
    cooked = [
        replace(
            each, data=struct.pack("!HHIHBB8s", 0x0800, 0, index, 1, kind, 6, bytes(8)) + each.data[ETHERNET:]
        )
        for each in packets
        for index, kind in ((1, 4), (2, 0))
    ]
    header = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, 276)
    _, found = alone(
        mess.written(header, [replace(each, wire_size=len(each.data)) for each in cooked]), tmp_path
    )
    assert found.capture.packets_tcp == clean(SHORT).capture.packets_tcp
    assert judged(found) == judged(clean(SHORT))


def talk(port: int, initial: int, start_ns: int = START_NS) -> list[Packet]:
    """A connection that says what all of these say."""
    ends = (("10.0.0.1", port), ("10.0.0.9", 9876))
    said = Conversation(*ends, initial, initial * 7, time_ns=start_ns).open()
    for number in range(20):
        said.send(bytes([number]) * 40, from_client=True).send(bytes([number]) * 50, from_client=False)
    return said.close().packets


def elsewhere(packets: list[Packet], port: int, initial: int, apart_ns: int = 0) -> list[Packet]:
    """The same connection behind what changes ports and numbers, by a clock so far ahead: what its opener
    sent comes a little later, what it is sent was there a little before."""
    opener = packets[0].source
    shifts = {opener: initial, packets[0].destination: initial * 3}
    called = {opener: (opener[0], port)}
    return [
        replace(
            each,
            source=called.get(each.source, each.source),
            destination=called.get(each.destination, each.destination),
            time_ns=each.time_ns + apart_ns + (20 if each.source == opener else -20) * MICROSECOND,
            sequence=(each.sequence + shifts[each.source]) % 2**32,
            acknowledgment=(each.acknowledgment + shifts[each.destination]) % 2**32,
        )
        for each in packets
    ]


def made_of(folder: Path, *captures: list[Packet]) -> Merged:
    paths = [folder / f"{number}.pcap" for number in range(len(captures))]
    for path, packets in zip(paths, captures, strict=True):
        path.write_bytes(pcap(sorted(packets, key=lambda each: each.time_ns), nanoseconds=True))
    return merge(paths, folder / "story.pcapng")


APART = 300 * MILLISECOND


def test_one_connection_of_other_numbers_elsewhere_is_known_where_another_one_tells_the_clocks(
    tmp_path: Path,
) -> None:
    own = talk(4_001, 1_000)
    other = [replace(each, payload=each.payload and b"!" + each.payload[1:]) for each in talk(4_009, 77_000)]
    seen_twice = [replace(each, time_ns=each.time_ns + APART) for each in other]
    made = made_of(tmp_path, [*own, *other], [*elsewhere(own, 4_002, 9_000, APART), *seen_twice])
    assert [each.seen for each in made.renamings] == ["10.0.0.1:4002"]
    assert not made.doubtful


def test_several_connections_of_other_numbers_vouch_for_each_other(tmp_path: Path) -> None:
    own = [talk(port, port * 9, START_NS + port * 10**6) for port in (4_001, 4_002)]
    own[1] = [replace(each, payload=each.payload and b"!" + each.payload[1:]) for each in own[1]]
    away = [elsewhere(each, 5_001 + number, 9_000, APART) for number, each in enumerate(own)]
    made = made_of(tmp_path, [*own[0], *own[1]], [*away[0], *away[1]])
    assert [each.seen for each in made.renamings] == ["10.0.0.1:5001", "10.0.0.1:5002"]
    assert abs(made.clocks[1].offset_ns - APART) < MILLISECOND


@pytest.mark.parametrize("apart_ns", [0, APART, 63 * 10**9])
def test_a_connection_of_other_numbers_does_not_prove_itself(apart_ns: int, tmp_path: Path) -> None:
    """What says when two were is not that they say the same: so does a program that is run again."""
    own = talk(4_001, 1_000)
    made = made_of(tmp_path, own, talk(4_002, 9_000, START_NS + apart_ns))
    assert made.renamings == ()
    assert made.copies == 0
    assert made.clocks[1].reference == ""
    assert made.doubtful


def test_programs_run_again_with_times_of_their_own_move_no_clock(tmp_path: Path) -> None:
    rng = random.Random(7)
    captures: list[list[Packet]] = [[], []]
    for run, packets in enumerate(captures):
        for number in range(4):
            started = START_NS + run * 63 * 10**9 + number * 10**9 + rng.randrange(20 * MILLISECOND)
            spoken = talk(4_001 + number + 10 * run, rng.randrange(2**32), started)
            named = bytes([number]) * 4
            packets += [
                replace(each, payload=each.payload and named + each.payload[4:], time_ns=late)
                for each in spoken
                for late in [each.time_ns + rng.randrange(MILLISECOND)]
            ]
    made = made_of(tmp_path, *captures)
    assert made.renamings == ()
    assert made.clocks[1].reference == ""


def test_a_capture_cut_by_connections_is_merged_into_itself(tmp_path: Path) -> None:
    """Nothing in it is there twice: two runs of a program in it stay two."""
    header, packets = header_and_packets("g_mqadmin")
    spoken = sorted({each.connection for each in packets if each.connection is not None})
    cut: list[list[Seen]] = [[], []]
    for each in packets:
        cut[0 if each.connection is None else spoken.index(each.connection) % 2].append(each)
    for number, own in enumerate(cut):
        (tmp_path / f"{number}.pcap").write_bytes(mess.written(header, own))
    made = merge([tmp_path / "0.pcap", tmp_path / "1.pcap"], tmp_path / "story.pcapng")
    (found,) = LocalEngine().results([tmp_path / "story.pcapng"], tmp_path, Options(), lambda *_: None)
    assert (made.copies, made.renamings) == (0, ())
    assert counted(found) == counted(clean("g_mqadmin"))
    assert judged(found) == judged(clean("g_mqadmin"))


def test_a_program_that_is_run_again_has_another_connection(tmp_path: Path) -> None:
    again = [*talk(4_001, 1_000), *talk(4_002, 9_000, START_NS + 10**9)]
    assert made_of(tmp_path, again).renamings == ()


def test_of_two_that_say_the_same_at_once_none_is_chosen(tmp_path: Path) -> None:
    twins = [*talk(4_001, 1_000), *talk(4_002, 9_000)]
    made = made_of(tmp_path, twins, talk(4_003, 17_000))
    assert made.renamings == ()
    assert made.doubtful


def test_what_differs_in_one_byte_of_few_is_another_connection(tmp_path: Path) -> None:
    other = [
        replace(each, payload=b"x" + each.payload[1:]) if each.payload[:1] in (b"\3", b"\4") else each
        for each in talk(4_002, 1_000)
    ]
    assert made_of(tmp_path, talk(4_001, 1_000), other).renamings == ()


def test_a_segment_that_many_connections_share_tells_none_apart(tmp_path: Path) -> None:
    crowd = [packet for port in range(4_000, 4_040) for packet in talk(port, 1_000)]
    assert made_of(tmp_path, crowd).renamings == ()


def test_captures_without_a_common_packet_keep_their_times_and_say_so(tmp_path: Path) -> None:
    made = made_of(tmp_path, talk(4_001, 1_000), [replace(each, payload=b"") for each in talk(5_001, 77)])
    assert made.clocks[1].reference == ""
    assert "clock is not compared" in " ".join(made.warnings)


def test_a_capture_is_not_merged_into_itself(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="one of the captures"):
        merge([tmp_path / "a.pcap"], tmp_path / "a.pcap")
