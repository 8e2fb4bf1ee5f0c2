"""The rules of logical queues and static topics, asked of captures that were written for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from zlib import crc32

import pytest

from replispec.replay.engines.decoding import decode_capture
from replispec.replay.engines.rocketmq.queues import about, judged_topics, topics_of
from replispec.replay.events.observation import ObservationKind
from replispec.replay.events.observe import observe
from replispec.replay.events.rocketmq.queue_seen import OF_TOPIC
from replispec.replay.judges.findings import FindingRow
from replispec.replay.judges.rocketmq.queues import QUEUE_RULES
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq.broker import PullMessageRequest, PullMessageResponse
from replispec.wire.rocketmq.codes import LogMagic, MessageFlag
from replispec.wire.rocketmq.logical_queue import (
    QueryLogicalQueueMappingRequest,
    QueryLogicalQueueMappingResponse,
)
from replispec.wire.rocketmq.store import LogRecord, OffsetMessageId, OffsetMessageIdV6
from tests.replay.faults import Frame, taken, written
from tests.replay.logical_queue_faults import LOGICAL_FAULTS
from tests.replay.logical_queues import logical_queues
from tests.replay.pcap_writer import Packet, pcap
from tests.replay.queue_faults import STATIC_FAULTS, Fault, spoken
from tests.replay.queues import ADMIN, BROKERS, GROUP, TOPIC, World, static_topic

ENDS = "segment-ends-stay"
"""Java never sets the end of an item."""
OF_STATIC_TOPICS = (
    *("answers-are-translated", "offsets-are-translated"),
    *("mapping-epochs-grow", "mappings-are-for-their-broker"),
    *("routes-are-registered", "routes-are-the-newest"),
)
"""Of logical queues nobody translates offsets, and mappings have no epochs."""
Story = Callable[[], World]


def judged(path: Path) -> list[FindingRow]:
    decoded = decode_capture(path)
    events = observe(decoded.frames, decoded.holes, decoded.streams)
    topics = topics_of(events)
    return judged_topics(path.name, events, [about(topics, events)])


def judged_packets(packets: list[Packet], path: Path) -> list[FindingRow]:
    path.write_bytes(pcap(packets, nanoseconds=True))
    return judged(path)


def verdicts(findings: list[FindingRow]) -> dict[str, str]:
    assert {each.group for each in findings} == {OF_TOPIC + TOPIC}
    return {each.invariant: each.verdict.value for each in findings}


@cache
def clean(story: Story, folder: Path) -> tuple[Frame, ...]:
    path = folder / "clean.pcap"
    path.write_bytes(pcap(story().packets(), nanoseconds=True))
    return tuple(spoken(taken(path), "PYTHON"))


def changed(fault: Fault, frames: tuple[Frame, ...], folder: Path) -> dict[str, str]:
    before = verdicts(judged_packets(written(frames), folder / "clean.pcap"))
    findings = judged_packets(written(fault.edit([*frames])), folder / "fault.pcap")
    return {rule: each for rule, each in verdicts(findings).items() if each != before[rule]}


def expected(fault: Fault) -> dict[str, str]:
    found = dict.fromkeys(fault.breaks, "violated") | dict.fromkeys(fault.doubts, "unknown")
    return found | dict.fromkeys(fault.diverges, "diverged")


def test_a_static_topic_that_moves_keeps_every_rule(tmp_path: Path) -> None:
    found = judged_packets(written(clean(static_topic, tmp_path)), tmp_path / "same.pcap")
    assert verdicts(found) == dict.fromkeys(QUEUE_RULES, "ok") | {ENDS: "unknown"}


def test_a_logical_queue_that_migrates_and_comes_back_keeps_every_rule(tmp_path: Path) -> None:
    found = judged_packets(written(clean(logical_queues, tmp_path)), tmp_path / "same.pcap")
    assert verdicts(found) == dict.fromkeys(QUEUE_RULES, "ok") | dict.fromkeys(OF_STATIC_TOPICS, "unknown")


@pytest.mark.parametrize("fault", STATIC_FAULTS, ids=lambda fault: fault.edit.__name__)
def test_a_fault_in_a_static_topic_is_found_and_nothing_else_is(fault: Fault, tmp_path: Path) -> None:
    assert changed(fault, clean(static_topic, tmp_path), tmp_path) == expected(fault)


@pytest.mark.parametrize("fault", LOGICAL_FAULTS, ids=lambda fault: fault.edit.__name__)
def test_a_fault_in_logical_queues_is_found_and_nothing_else_is(fault: Fault, tmp_path: Path) -> None:
    assert changed(fault, clean(logical_queues, tmp_path), tmp_path) == expected(fault)


def test_every_rule_has_a_fault() -> None:
    every = [*STATIC_FAULTS, *LOGICAL_FAULTS]
    broken = {rule for fault in every for rule in fault.breaks}
    known_of_java = {rule for fault in every for rule in fault.diverges}
    # What only the order of connections tells is known of Java, and of nobody else.
    assert broken == {*QUEUE_RULES} - {"routes-are-the-newest"}
    assert "routes-are-the-newest" in known_of_java


@pytest.mark.parametrize("wide", [0, MessageFlag.BORN_HOST_IPV6, MessageFlag.STORE_HOST_IPV6, 48])
def test_messages_in_an_answer_are_read_as_the_codec_reads_them(wide: int, tmp_path: Path) -> None:
    born, stored = (bytes(range(1, 17 if wide & flag else 5)) for flag in (16, 32))
    records = [
        LogRecord(
            magic=magic, queue_id=3, queue_offset=7 + at, physical_offset=900 + at, sys_flag=wide,
            born_ip=born, store_ip=stored, store_port=10_911, body=b"b" * at, topic=TOPIC, properties=b"p",
        )
        for at, magic in enumerate((LogMagic.MESSAGE_V1, LogMagic.MESSAGE_V2))
    ]  # fmt: skip
    world = static_topic()
    body = b"".join(each.encode() for each in records)
    host = (OffsetMessageId if len(stored) == 4 else OffsetMessageIdV6)(stored, 10_911, 0).encode().hex()
    header = PullMessageRequest(GROUP, TOPIC, 0, 7, 32, 0, 0, 0, "*", 0, "TAG", lo=False)
    world.ask("10.0.0.99", BROKERS["broker-a"], header, PullMessageResponse(0, 9, 0, 9), told=body, asks=11)
    path = tmp_path / "widths.pcap"
    path.write_bytes(pcap(world.packets(), nanoseconds=True))
    frames = decode_capture(path).frames.to_pylist()
    (pulled,) = [each["pulled"] for each in frames if each["destination"].startswith("10.0.0.99:")]
    assert [tuple(each.values()) for each in pulled] == [
        (each.queue_id, each.queue_offset, rules.message_broker(host), each.physical_offset, crc32(each.body))
        for each in records
    ]


def test_that_a_topic_is_not_mapped_is_read(tmp_path: Path) -> None:
    world = logical_queues()
    header = QueryLogicalQueueMappingRequest("other")
    world.ask(ADMIN, BROKERS["broker-a"], header, QueryLogicalQueueMappingResponse(), told=b"null")
    path = tmp_path / "null.pcap"
    path.write_bytes(pcap(world.packets(), nanoseconds=True))
    decoded = decode_capture(path)
    told = observe(decoded.frames, decoded.holes, decoded.streams)
    assert not told[ObservationKind.UNDECODABLE].num_rows
