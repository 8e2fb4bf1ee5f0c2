"""Nothing is called kept that was not compared: with every later master, by where its log truly starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from replispec.replay.capture.records import ALL_TIME, Window
from replispec.replay.engines.results import Options
from replispec.replay.engines.run import EngineName, replay
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.epoch_starts import Witnesses
from replispec.replay.report.fill import Story, fill
from replispec.replay.report.headline import Headline, headline
from replispec.replay.report.model import CaptureInfo, ReportFinding, ReportModel
from replispec.replay.report.summary import Summary
from replispec.runtime.primitives.invariants import Verdict
from tests.replay.expectations import SEND_SURVIVES
from tests.replay.pcap_writer import ACK, SYN, Conversation, Packet, interface, pcap, pcapng, section
from tests.replay.scenarios import failed_over, two_brokers
from tests.replay.test_judgement import replayed
from tests.replay.test_stream_events import seen
from tests.replay.world import World

KEPT = 5
PCAP_HEADER, RECORD_HEADER = 24, 16


def fail_over(refused: int, told: Callable[[World], None]) -> World:
    """Broker 2 takes over without the last 5 of 10 messages, refuses some, and stores two."""
    world = two_brokers(messages=KEPT)
    world.send(5)
    world.die(1)
    world.take_over(2)
    world.announce(2)
    for _ in range(refused):
        world.send_in_vain()
    world.send(2)
    told(world)
    return world


def nobody(world: World) -> None:
    """Nothing tells where the epoch of the new master starts."""


def three_brokers() -> World:
    """Broker 2 holds all of 10 messages, broker 3 the first 4."""
    world = World()
    world.come_up(1)
    world.elect(1)
    world.announce(1)
    for number in (2, 3):
        world.come_up(number)
        world.announce(number)
        world.follow(number)
        world.heartbeat(number)
    world.alter((1, 2, 3))
    world.send(4)
    world.replicate(2)
    world.replicate(3)
    world.send(6)
    world.replicate(2)
    world.die(1)
    world.take_over(2)
    world.announce(2)
    return world


def judged(world: World, path: Path) -> tuple[Verdict, int, int, int]:
    """The verdict on acknowledged messages, how many are lost, not judged, and followed."""
    judgement = replayed(world.traffic.packets(), path)
    finding = next(each for each in judgement.findings if each.invariant == SEND_SURVIVES)
    lost = sum(each.acknowledged for each in judgement.losses)
    unknown = finding.counts.get(Verdict.UNKNOWN, 0)
    return finding.verdict, lost, unknown, sum(each.followed for each in judgement.sends)


@pytest.mark.parametrize(("refused", "lost"), [(0, 5), (3, 2), (5, 0), (7, 0)])
def test_behind_the_first_accepted_write_a_message_is_lost_and_before_it_nothing_is_told(
    refused: int, lost: int, tmp_path: Path
) -> None:
    found = judged(fail_over(refused, nobody), tmp_path / "first_write.pcap")
    assert found == (Verdict.VIOLATED if lost else Verdict.UNKNOWN, lost, KEPT + 5 - lost, 0)


@pytest.mark.parametrize("refused", [0, 3, 5])
def test_where_the_start_is_told_every_message_is_judged(refused: int, tmp_path: Path) -> None:
    world = fail_over(refused, lambda world: world.query_epochs(2))
    assert judged(world, tmp_path / "told.pcap") == (Verdict.VIOLATED, 5, 0, KEPT + 5)


def test_the_start_of_one_later_epoch_says_nothing_of_a_still_later_one(tmp_path: Path) -> None:
    world = three_brokers()
    world.follow(3)
    world.die(2)
    assert judged(world, tmp_path / "second.pcap") == (Verdict.OK, 0, 0, 10)
    world.take_over(3)
    world.announce(3)
    assert judged(world, tmp_path / "third.pcap") == (Verdict.UNKNOWN, 0, 10, 0)
    world.query_epochs(3)
    assert judged(world, tmp_path / "told.pcap") == (Verdict.VIOLATED, 6, 0, 10)


def test_a_start_that_was_told_before_the_master_began_again_is_not_forgotten(
    tmp_path: Path,
) -> None:
    world = fail_over(0, lambda world: world.query_epochs(2))
    master = world.brokers[2]
    world.die(2)
    master.epochs[-1] = (2, master.end)
    world.come_back(2)
    world.announce(2)
    world.come_back(1)
    world.announce(1)
    world.follow(1)
    world.send(2)
    world.replicate(1)
    verdict, lost, unknown, _ = judged(world, tmp_path / "again.pcap")
    assert verdict in (Verdict.UNKNOWN, Verdict.VIOLATED)
    assert lost + unknown >= 5


def history(*starts: tuple[int, int]) -> Observation:
    """A handshake answer with these epochs and their starts."""
    epochs = [{"epoch": epoch, "start_offset": start} for epoch, start in starts]
    return seen(ObservationKind.ANSWER, 0, epochs=epochs)


@pytest.mark.parametrize(
    ("histories", "named", "unseen"),
    [
        ([], [], -1),
        ([], [1], 1),
        ([[(1, 0)]], [1], -1),
        ([[(1, 0)]], [1, 2], 2),
        ([[(1, 0)], [(1, 0), (3, 50)]], [1, 2, 3], -1),
        ([[(1, 0)], [(3, 50)]], [1, 3], 2),
        ([[(1, 0), (3, 50)]], [1, 2, 3, 4], 4),
        ([[(1, 0), (3, 50)], [(1, 0), (4, 60)]], [1, 2, 3, 4], -1),
        ([[(1, 0), (3, 50)], [(4, 60)]], [1, 2, 3, 4], 2),
        ([[(1, 0), (2**31 - 1, 50)]], [1], -1),
    ],
)
def test_an_epoch_is_seen_when_its_start_is_told_or_the_latest_log_leaves_it_out(
    histories: list[list[tuple[int, int]]], named: list[int], unseen: int
) -> None:
    witnesses = Witnesses()
    for each in histories:
        witnesses.hear(history(*each))
    assert witnesses.unseen(named) == unseen


# ---- files that were not read whole ------------------------------------------------------------------


def told(data: bytes, path: Path, window: Window = ALL_TIME) -> Summary:
    """What a replay of these bytes comes to."""
    path.write_bytes(data)
    return replay([path], path.parent / "out", EngineName.LOCAL, Options(window=window))


def without_losses() -> list[Packet]:
    """A fail-over after which the old master returns and holds all."""
    return failed_over(two_brokers()).traffic.packets()


def ends_in_a_packet(first: bytes, second: bytes) -> bytes:
    return first + second[PCAP_HEADER : PCAP_HEADER + RECORD_HEADER + 10]


def ends_in_a_header(first: bytes, second: bytes) -> bytes:
    return first + second[PCAP_HEADER : PCAP_HEADER + 10]


def holds_two_files(first: bytes, second: bytes) -> bytes:
    return first + second


def has_a_damaged_record(first: bytes, second: bytes) -> bytes:
    records = bytearray(second[PCAP_HEADER:])
    records[8:12] = b"\xff\xff\xff\x7f"
    return first + bytes(records)


def headline_of(summary: Summary) -> Headline:
    return headline(fill(summary, Story()))


def test_a_file_that_was_read_whole_gets_the_promise(tmp_path: Path) -> None:
    summary = told(pcap(without_losses()), tmp_path / "whole.pcap")
    assert (headline_of(summary).tone, summary.captures[0].unread) == ("kept", ())


@pytest.mark.parametrize(
    "damage", [ends_in_a_packet, ends_in_a_header, holds_two_files, has_a_damaged_record]
)
def test_a_file_that_could_not_be_read_to_its_end_gets_no_promise(
    damage: Callable[[bytes, bytes], bytes], tmp_path: Path
) -> None:
    packets = without_losses()
    summary = told(damage(pcap(packets), pcap(packets[:5])), tmp_path / "cut.pcap")
    found = headline_of(summary)
    assert (found.tone, summary.exit_code) == ("unjudged", 0)
    assert summary.captures[0].unread
    assert {f"Not read: {why}." for why in summary.captures[0].unread} <= {*found.lines}


def of_no_interface(packets: Sequence[Packet]) -> bytes:
    """Of an interface that the file does not describe."""
    return pcapng(packets)[len(section() + interface()) :]


def of_another_link(packets: Sequence[Packet]) -> bytes:
    """Of an interface with a link type that nobody reads."""
    return pcapng(packets, link_type=1)[len(section()) :].replace(interface(1), interface(147), 1)


def cut_in_headers(packets: Sequence[Packet]) -> bytes:
    return pcapng(packets, snap_length=50)[len(section()) :]


def fragments_alone(packets: Sequence[Packet]) -> bytes:
    """First fragments of which the others were not captured."""
    blocks = bytearray(pcapng(packets)[len(section()) :])
    at = blocks.index(b"\x08\x00\x45") + 2
    blocks[at + 6] = 0x20
    return bytes(blocks)


@pytest.mark.parametrize("unread", [of_no_interface, of_another_link, cut_in_headers, fragments_alone])
def test_packets_that_may_be_of_any_connection_and_were_not_read_leave_no_promise(
    unread: Callable[[Sequence[Packet]], bytes], tmp_path: Path
) -> None:
    packets = without_losses()
    whole = pcapng(packets)
    summary = told(whole + section() + unread(packets[-1:]), tmp_path / "unread.pcapng")
    found = headline_of(summary)
    assert (found.tone, summary.exit_code) == ("unjudged", 0)
    (why,) = summary.captures[0].unread
    assert why in " ".join(found.lines)


@pytest.mark.parametrize("port", [10911, 9878, 3306])
def test_what_nobody_can_read_on_connections_with_the_captures_own_listeners_leaves_no_promise(
    port: int, tmp_path: Path
) -> None:
    """A later master may be in it; what is said to others may be of anything."""
    packets = without_losses()
    listeners = {each.destination for each in packets if each.flags & SYN and not each.flags & ACK}
    host = next((host for host, own in sorted(listeners) if own == port), "10.0.9.9")
    other = Conversation(("10.0.7.7", 51000), (host, port), time_ns=packets[-1].time_ns).open()
    other.send(bytes(range(255, 55, -1)), from_client=True).acknowledge(from_client=False)
    summary = told(pcap([*packets, *other.packets]), tmp_path / "strange.pcap")
    assert headline_of(summary).tone == ("kept" if port == 3306 else "unjudged")
    assert [f"{host}:{port}" in each for each in summary.captures[0].unread] == [True] * (port != 3306)


def test_packets_that_are_known_to_be_no_tcp_take_no_promise(tmp_path: Path) -> None:
    """Even where they were cut: ARP, as every network has it."""
    packets = without_losses()
    strange = bytearray(pcapng(packets[-1:], snap_length=50)[len(section()) :])
    at = strange.index(b"\x08\x00\x45")
    strange[at : at + 2] = b"\x08\x06"
    summary = told(pcapng(packets) + section() + bytes(strange), tmp_path / "arp.pcapng")
    assert (headline_of(summary).tone, summary.captures[0].unread) == ("kept", ())


def test_bytes_that_were_not_captured_leave_no_promise() -> None:
    kept = ReportFinding(SEND_SURVIVES, Verdict.OK, "G/a", "f.pcap", 1)
    model = ReportModel("local", (CaptureInfo("f.pcap", holes=2),), findings=(kept,))
    assert headline(model).tone == "unjudged"
    assert "Not read: f.pcap lacks bytes in 2 places." in headline(model).lines


@pytest.mark.parametrize("window", [Window(from_ns=2**62), Window(until_ns=1), Window(2**61, 2**60)])
def test_a_time_without_packets_is_no_success(window: Window, tmp_path: Path) -> None:
    summary = told(pcap(without_losses()), tmp_path / "elsewhere.pcap", window)
    assert (summary.exit_code, summary.captures[0].error) == (2, "nothing was decoded; seen: no TCP packets")


def test_a_file_without_packets_is_no_success(tmp_path: Path) -> None:
    assert told(pcap([]), tmp_path / "empty.pcap").exit_code == 2


@pytest.mark.parametrize("other", [b"no capture", pcap([])])
def test_beside_a_capture_that_could_not_be_used_there_is_no_promise(other: bytes, tmp_path: Path) -> None:
    """A later master may be in it."""
    paths = [tmp_path / "good.pcap", tmp_path / "other.pcap"]
    for path, data in zip(paths, (pcap(without_losses()), other), strict=True):
        path.write_bytes(data)
    summary = replay(paths, tmp_path / "out", EngineName.LOCAL, Options())
    found = headline_of(summary)
    assert (found.tone, summary.exit_code) == ("unjudged", 2)
    assert "Not read: other.pcap" in " ".join(found.lines)
