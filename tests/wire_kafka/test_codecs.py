"""Kafka's codecs: the golden bytes, every version read back, and hostile bytes blamed on the peer."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replispec.runtime.primitives.commands import form_of
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.rocketmq.framing import FrameBuffer
from replispec.wire.kafka import commands, streams
from replispec.wire.kafka.apache import ApacheLeaderAndIsr, ApacheLeaderAndIsrRequest
from replispec.wire.kafka.codes import ApiKey
from replispec.wire.kafka.design import (
    DesignLeaderAndIsr,
    DesignLeaderAndIsrRequest,
    DesignPartition,
    DesignStopReplicaRequest,
)
from replispec.wire.kafka.requests import ApacheRequestFrame, DesignRequestFrame
from tests.wire_kafka.forms import FRAMES, VERSIONED, Golden, frames, golden, of_version
from tests.wire_kafka.written import WRITTEN

GOLDEN = golden()
# Of each message and version, of which there are some hundred.
EXAMPLES = 20
versioned = pytest.mark.parametrize(
    ("kind", "version"), VERSIONED, ids=[f"{kind.__name__}-{version}" for kind, version in VERSIONED]
)


# ---- golden bytes --------------------------------------------------------------------------------


@pytest.mark.parametrize("example", GOLDEN, ids=[example.name for example in GOLDEN])
def test_golden_bytes_are_read_and_written(example: Golden) -> None:
    assert example.kind.decode(example.data, **example.given) == example.message
    assert example.message.encode(**example.given) == example.data


def test_every_command_and_every_frame_has_golden_bytes_or_bytes_that_an_implementation_wrote() -> None:
    known = {example.kind for example in GOLDEN} | {each.kind for each in WRITTEN}
    assert known == {*FRAMES, *(kind for kind, _ in VERSIONED)}


@pytest.mark.parametrize("example", GOLDEN, ids=[example.name for example in GOLDEN])
def test_golden_bytes_cut_anywhere_or_with_one_more_are_blamed_on_the_peer(example: Golden) -> None:
    for cut in range(len(example.data)):
        with pytest.raises(RemoteProtocolError):
            example.kind.decode(example.data[:cut], **example.given)
    with pytest.raises(RemoteProtocolError):
        example.kind.decode(example.data + b"\0", **example.given)


# ---- any message ---------------------------------------------------------------------------------


@versioned
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_a_message_of_any_version_is_read_back_and_ends_where_it_ends(
    kind: type[Any], version: int, data: st.DataObject
) -> None:
    message = data.draw(of_version(kind, version))
    encoded = message.encode(version=version)
    before, after = data.draw(st.binary(max_size=8)), data.draw(st.binary(max_size=8))
    end = len(before) + len(encoded)
    found = kind.decode(before + encoded + after, len(before), end, version=version)
    assert found == message


@versioned
@settings(max_examples=EXAMPLES)
@given(garbage=st.binary(max_size=120))
def test_garbage_is_parsed_or_blamed_on_the_peer(kind: type[Any], version: int, garbage: bytes) -> None:
    with contextlib.suppress(RemoteProtocolError):
        assert kind.decode(garbage, version=version).encode(version=version) == garbage


@versioned
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_a_changed_byte_is_another_message_or_blamed_on_the_peer(
    kind: type[Any], version: int, data: st.DataObject
) -> None:
    encoded = bytearray(data.draw(of_version(kind, version)).encode(version=version))
    if not encoded:
        return
    encoded[data.draw(st.integers(0, len(encoded) - 1))] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(RemoteProtocolError):
        assert kind.decode(bytes(encoded), version=version).encode(version=version) == encoded


@pytest.mark.parametrize("kind", FRAMES, ids=[kind.__name__ for kind in FRAMES])
@given(data=st.data())
def test_frames_do_not_depend_on_how_tcp_cuts_the_bytes(kind: type[Any], data: st.DataObject) -> None:
    sent = [data.draw(frames(kind)) for _ in range(data.draw(st.integers(1, 3)))]
    whole = b"".join(frame.encode() for frame in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    stream = next(stream for stream in streams.STREAMS if stream.forms[0].message == kind.__name__)
    buffer = FrameBuffer(stream)
    pieces = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    found = [kind.decode(frame) for piece in pieces for frame in buffer.receive(piece)]
    assert found == sent
    assert buffer.waiting_bytes == 0


# ---- versions ------------------------------------------------------------------------------------


def test_code_and_version_name_a_message_of_an_implementation() -> None:
    code = ApiKey.LEADER_AND_ISR
    assert form_of(commands.REQUESTS, code, 1, "design") is DesignLeaderAndIsrRequest
    assert form_of(commands.REQUESTS, code, 1, "apache") is ApacheLeaderAndIsrRequest
    assert form_of(commands.REQUESTS, code, 3, "apache") is None
    assert form_of(commands.REQUESTS, ApiKey.FETCH, 0, "apache") is None
    assert form_of(commands.RESPONSES, ApiKey.STOP_REPLICA, 0, "design") is None


def test_a_frame_leads_to_its_message() -> None:
    request = DesignStopReplicaRequest(client_id=1, partitions=[DesignPartition("t", 0)])
    frame = DesignRequestFrame(ApiKey.STOP_REPLICA, 1, request.encode(version=1))
    found = DesignRequestFrame.decode(frame.encode())
    kind = form_of(commands.REQUESTS, found.request_type_id, found.version_id, "design")
    assert kind is not None
    assert kind.decode(found.body, version=found.version_id) == request


def test_a_version_without_this_message_is_refused_on_both_sides() -> None:
    with pytest.raises(RemoteProtocolError, match=r"version: 3 is outside 1\.\.2"):
        DesignLeaderAndIsrRequest.decode(bytes(64), version=3)
    with pytest.raises(LocalProtocolError, match=r"version: 0 is outside 1\.\.2"):
        DesignLeaderAndIsrRequest().encode(version=0)


def test_a_field_of_a_later_version_is_neither_dropped_nor_invented() -> None:
    later = DesignLeaderAndIsr("t", 0, replicas=[1], topic_generation=2)
    with pytest.raises(LocalProtocolError, match=r"DesignLeaderAndIsr\.replicas.*no room"):
        later.encode(version=1)
    with pytest.raises(LocalProtocolError, match=r"ApacheLeaderAndIsr\.is_new.*is None"):
        ApacheLeaderAndIsr("t").encode(version=1)
    with pytest.raises(LocalProtocolError, match=r"ApacheLeaderAndIsr\.topic_name.*no room"):
        ApacheLeaderAndIsr("t", is_new=True).encode(version=2)


# ---- sets, maps, null ----------------------------------------------------------------------------


def test_a_partition_that_stands_twice_is_refused_on_both_sides() -> None:
    twice = DesignStopReplicaRequest(partitions=[DesignPartition("t", 1), DesignPartition("t", 1)])
    with pytest.raises(LocalProtocolError, match=r"partitions: an element stands twice"):
        twice.encode(version=1)
    once = DesignStopReplicaRequest(partitions=[DesignPartition("t", 1), DesignPartition("t", 2)])
    data = once.encode(version=1)
    with pytest.raises(RemoteProtocolError, match=r"partitions: an element stands twice"):
        DesignStopReplicaRequest.decode(data[:-1] + b"\1", version=1)


def test_a_broker_that_stands_twice_in_the_isr_is_refused() -> None:
    data = DesignLeaderAndIsr("t", 0, isr=[1, 2]).encode(version=1)
    broken = data.replace(b"\0\0\0\1\0\0\0\2", b"\0\0\0\1\0\0\0\1")
    with pytest.raises(RemoteProtocolError, match=r"isr: an element stands twice"):
        DesignLeaderAndIsr.decode(broken, version=1)


def test_a_length_below_null_is_blamed_on_the_peer() -> None:
    data = bytearray(ApacheRequestFrame(api_key=4).encode())
    assert data[12:14] == b"\xff\xff"
    data[13] = 0xFE
    with pytest.raises(RemoteProtocolError, match=r"client_id: negative length -2"):
        ApacheRequestFrame.decode(bytes(data))


def test_a_huge_count_is_refused_before_room_is_made() -> None:
    data = DesignLeaderAndIsrRequest(client_id=1).encode(version=1)
    with pytest.raises(RemoteProtocolError, match=r"partitions: 2147483647 bytes needed"):
        DesignLeaderAndIsrRequest.decode(data[:-4] + b"\x7f\xff\xff\xff", version=1)
    isr = DesignLeaderAndIsr("t", 0).encode(version=1)
    at = len(isr) - 12
    with pytest.raises(RemoteProtocolError, match=r"isr"):
        DesignLeaderAndIsr.decode(isr[:at] + b"\0\0\0\x08" + isr[at + 4 :], version=1)


def test_a_number_too_large_for_its_field_is_our_own_fault() -> None:
    with pytest.raises(LocalProtocolError, match=r"isr"):
        DesignLeaderAndIsr("t", 0, isr=[1 << 31]).encode(version=1)
