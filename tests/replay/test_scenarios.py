"""The generated captures are what they claim to be, before any replay sees them."""

from __future__ import annotations

from collections import defaultdict

import pytest

from replispec.runtime.primitives.streams import Stream
from replispec.wire.rocketmq.codes import RemotingFlag, SerializeType
from replispec.wire.rocketmq.remoting import RemotingFrame, RemotingHeader
from replispec.wire.rocketmq.streams import HA_MASTER, HA_REPLICA, REMOTING
from tests.replay.expectations import GROUP, PAIRING, SEND_SURVIVES, WHOLE_CAPTURE, Scenario
from tests.replay.pcap_writer import Endpoint, pcap
from tests.replay.scenarios import FAULTS, StartSeen, lost_messages

REPLICATION_PORT = 10_912


def directions(scenario: Scenario) -> dict[tuple[Endpoint, Endpoint], bytes]:
    """The bytes of every direction; nothing is lost or out of order."""
    found: defaultdict[tuple[Endpoint, Endpoint], bytes] = defaultdict(bytes)
    for packet in scenario.packets:
        if packet.payload:
            found[packet.source, packet.destination] += packet.payload
    return found


def stream_of(source: Endpoint, destination: Endpoint) -> Stream:
    if source[1] == REPLICATION_PORT:
        return HA_MASTER
    return HA_REPLICA if destination[1] == REPLICATION_PORT else REMOTING


def frames(stream: Stream, data: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(data):
        size = stream.measure(data, at, len(data))
        assert 0 < size <= len(data) - at
        found.append(data[at : at + size])
        at += size
    return found


def header(frame: bytes) -> RemotingHeader:
    outer = RemotingFrame.decode(frame)
    if outer.serialize_type == SerializeType.ROCKETMQ:
        return RemotingHeader.decode_binary(outer.header)
    return RemotingHeader.decode_json(outer.header)


@pytest.mark.parametrize("name", FAULTS)
def test_every_direction_is_whole_frames_of_one_stream(name: str) -> None:
    for (source, destination), data in directions(FAULTS[name]()).items():
        assert frames(stream_of(source, destination), data)


@pytest.mark.parametrize("name", FAULTS)
def test_each_answer_is_counted_as_one_evaluation_of_pairing(name: str) -> None:
    scenario = FAULTS[name]()
    answers = 0
    for (source, destination), data in directions(scenario).items():
        if stream_of(source, destination) is REMOTING:
            answers += sum(header(each).flag & RemotingFlag.RESPONSE for each in frames(REMOTING, data))
    assert scenario.rows[WHOLE_CAPTURE][PAIRING].evaluated == answers


@pytest.mark.parametrize("name", FAULTS)
def test_a_scenario_is_the_same_bytes_every_time(name: str) -> None:
    assert pcap(FAULTS[name]().packets) == pcap(FAULTS[name]().packets)


@pytest.mark.parametrize("lost", [0, 1, 40])
def test_as_many_messages_are_lost_as_were_asked_for(lost: int) -> None:
    scenario = lost_messages(lost)
    assert sum(each.acknowledged for each in scenario.losses) == lost
    assert scenario.rows[GROUP][SEND_SURVIVES].verdict == ("violated" if lost else "ok")


@pytest.mark.parametrize("start_seen", ["handshake", "first write", "epoch query"])
def test_the_losses_do_not_depend_on_what_shows_the_new_epoch(start_seen: StartSeen) -> None:
    assert lost_messages(5, start_seen=start_seen).losses == lost_messages(5).losses
