"""ZooKeeper's codecs: golden bytes, any message against an encoder of its own, hostile bytes."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.primitives.frames import FrameBuffer
from replispec.wire.zookeeper import operations, streams
from replispec.wire.zookeeper.connection import (
    AdminWordFrame,
    ConnectRequest,
    ConnectResponse,
    ReplyFrame,
    RequestFrame,
)
from tests.wire_zookeeper.forms import MESSAGES, Golden, any_message, by_jute, golden

GOLDEN = golden()
PREFIX = 4
kinds = pytest.mark.parametrize("kind", MESSAGES, ids=[kind.__name__ for kind in MESSAGES])
examples = pytest.mark.parametrize("example", GOLDEN, ids=[example.name for example in GOLDEN])


@examples
def test_golden_bytes_are_read_and_written(example: Golden) -> None:
    assert example.kind.decode(example.data) == example.message
    assert example.message.encode() == example.data
    assert by_jute(example.message) == example.data


def test_every_message_has_golden_bytes() -> None:
    assert {example.kind for example in GOLDEN} == set(MESSAGES)


@examples
def test_golden_bytes_cut_anywhere_or_with_one_more_are_blamed_on_the_peer(example: Golden) -> None:
    for cut in range(len(example.data)):
        with pytest.raises(RemoteProtocolError):
            example.kind.decode(example.data[:cut])
    with pytest.raises(RemoteProtocolError):
        example.kind.decode(example.data + b"\0")


@kinds
@given(data=st.data())
def test_a_message_is_what_an_encoder_of_its_own_makes_of_it(kind: type[Any], data: st.DataObject) -> None:
    message = data.draw(any_message(kind))
    encoded = message.encode()
    assert encoded == by_jute(message)
    before, after = data.draw(st.binary(max_size=8)), data.draw(st.binary(max_size=8))
    assert kind.decode(before + encoded + after, len(before), len(before) + len(encoded)) == message


@kinds
@given(garbage=st.binary(max_size=120))
def test_garbage_is_parsed_or_blamed_on_the_peer(kind: type[Any], garbage: bytes) -> None:
    with contextlib.suppress(RemoteProtocolError):
        assert kind.decode(garbage).encode() == garbage


@examples
def test_a_turned_bit_is_another_message_or_blamed_on_the_peer(example: Golden) -> None:
    for bit in range(8 * len(example.data)):
        turned = bytearray(example.data)
        turned[bit // 8] ^= 1 << bit % 8
        with contextlib.suppress(RemoteProtocolError):
            found = example.kind.decode(bytes(turned))
            assert found != example.message
            assert found.encode() == turned


@examples
def test_a_length_that_promises_gigabytes_is_refused_before_room_is_made(example: Golden) -> None:
    """Whatever four bytes stand where a length or count may stand: nothing is read beyond the message."""
    for at in range(len(example.data) - PREFIX + 1):
        for huge in (b"\x7f\xff\xff\xff", b"\x00\xff\xff\xff", b"\xff\xff\xff\xfe"):
            data = example.data[:at] + huge + example.data[at + PREFIX :]
            with contextlib.suppress(RemoteProtocolError):
                assert example.kind.decode(data).encode() == data


# ---- frames --------------------------------------------------------------------------------------


@given(data=st.data())
def test_frames_do_not_depend_on_how_tcp_cuts_the_bytes(data: st.DataObject) -> None:
    first, stream, other = data.draw(
        st.sampled_from(
            [
                (ConnectRequest, streams.REQUESTS, RequestFrame),
                (ConnectResponse, streams.ANSWERS, ReplyFrame),
            ]
        )
    )
    sent = [data.draw(any_message(first)), *data.draw(st.lists(any_message(other), max_size=3))]
    whole = b"".join(each.encode() for each in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    buffer = FrameBuffer(stream)
    pieces = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    frames = [frame for piece in pieces for frame in buffer.receive(piece)]
    assert frames == [each.encode() for each in sent]
    assert buffer.waiting_bytes == 0


def test_a_word_instead_of_a_length_is_the_first_frame_or_none() -> None:
    assert FrameBuffer(streams.REQUESTS).receive(b"ruok") == [b"ruok"]
    later = FrameBuffer(streams.REQUESTS)
    later.receive(ConnectRequest(password=bytes(16)).encode())
    with pytest.raises(RemoteProtocolError, match=r"length 1920298859 is outside"):
        later.receive(b"ruok")


def test_an_unknown_word_is_blamed_on_the_peer() -> None:
    form, size = streams.REQUESTS.opening.form_and_size(b"quit", 0, 4)
    assert (form is not None and form.message, size) == ("AdminWordFrame", 4)
    with pytest.raises(RemoteProtocolError, match=r"word: 1903520116 has no meaning"):
        AdminWordFrame.decode(b"quit")


@pytest.mark.parametrize("length", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x00\x10\x00\x01"])
def test_a_frame_beyond_the_limit_is_refused_by_its_length_alone(length: bytes) -> None:
    buffer = FrameBuffer(streams.REQUESTS, limit_bytes=0x100000 + PREFIX)
    buffer.receive(ConnectRequest(password=bytes(16)).encode())
    with pytest.raises(RemoteProtocolError):
        buffer.receive(length)


# ---- what the language gained --------------------------------------------------------------------


def test_a_run_without_its_end_is_blamed_on_the_peer() -> None:
    whole = operations.MultiRequest(
        [operations.MultiOperation(13, check=operations.CheckVersionRequest("/a", 1))]
    ).encode()
    with pytest.raises(RemoteProtocolError, match=r"MultiRequest\.operations: nothing ends it"):
        operations.MultiRequest.decode(whole[:-9])


def test_an_operation_that_no_multi_has_is_refused_on_both_sides() -> None:
    data = bytearray(operations.MultiOperation(2, delete=operations.DeleteRequest("/a", 1)).encode())
    data[3] = 4
    with pytest.raises(RemoteProtocolError, match=r"op_code: 4 is none of 1, 2, 5, 13"):
        operations.MultiOperation.decode(bytes(data))
    with pytest.raises(LocalProtocolError, match=r"op_code: 4 is none of 1, 2, 5, 13"):
        operations.MultiOperation(4).encode()


def test_an_operation_has_the_part_of_its_type_and_no_other() -> None:
    with pytest.raises(LocalProtocolError, match=r"MultiOperation\.delete.*is None"):
        operations.MultiOperation(2).encode()
    both: dict[str, Any] = {
        "delete": operations.DeleteRequest("/a", 1),
        "check": operations.CheckVersionRequest("/a", 1),
    }
    with pytest.raises(LocalProtocolError, match=r"MultiOperation\.check.*no room"):
        operations.MultiOperation(2, **both).encode()


def test_a_count_of_texts_is_refused_before_any_is_read() -> None:
    data = b"\0\0\0\x05" + bytes(16)
    with pytest.raises(RemoteProtocolError, match=r"children: 20 bytes needed, 16 left"):
        operations.GetChildrenResponse.decode(data)
