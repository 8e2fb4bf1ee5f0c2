"""Frames out of bytes in any pieces: the cuts of TCP do not matter, and no peer makes memory grow."""

from __future__ import annotations

import contextlib
import tracemalloc
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.primitives.streams import Stream
from replispec.runtime.rocketmq.framing import Command, FrameBuffer, decode_command
from replispec.wire.rocketmq import client, ha, remoting, store, streams
from replispec.wire.rocketmq.codes import RemotingFlag, SerializeType
from tests.wire.strategies import messages

HEADER = messages(remoting.RemotingHeader)
COMMANDS = st.builds(Command, HEADER, st.binary(max_size=40), st.sampled_from(list(SerializeType)))
FRAMES: dict[str, st.SearchStrategy[bytes]] = {
    "REMOTING": COMMANDS.map(Command.encode),
    "HA_REPLICA": st.one_of(*map(messages, (ha.HaHandshakeAddress, ha.HaHandshakeId, ha.HaReport))).map(
        lambda message: message.encode()
    ),
    "HA_MASTER": st.one_of(*map(messages, (ha.HaHandshakeAnswer, ha.HaTransferHeader))).map(
        lambda message: message.encode()
    ),
    "HA_MASTER_5_0_0": st.one_of(*map(messages, (ha.HaHandshakeAnswerPadded, ha.HaTransferHeader))).map(
        lambda message: message.encode()
    ),
    "HA_LEGACY_REPLICA": messages(ha.HaLegacyReport).map(lambda message: message.encode()),
    "HA_LEGACY_MASTER": messages(ha.HaLegacyTransferHeader).map(lambda message: message.encode()),
    "COMMIT_LOG": st.one_of(*map(messages, (store.LogRecord, store.LogBlank))).map(
        lambda message: message.encode()
    ),
    "MESSAGE_BATCH": messages(client.BatchMessage).map(lambda message: message.encode()),
}


def received(stream: Stream, pieces: Iterable[bytes]) -> list[bytes]:
    buffer = FrameBuffer(stream)
    return [frame for piece in pieces for frame in buffer.receive(piece)]


def test_every_stream_of_the_specification_is_tried_here() -> None:
    assert {stream.name for stream in streams.STREAMS} == FRAMES.keys()


@pytest.mark.parametrize("stream", streams.STREAMS, ids=lambda stream: stream.name)
@given(data=st.data())
def test_framing_does_not_depend_on_how_tcp_cuts_the_bytes(stream: Stream, data: st.DataObject) -> None:
    frames = data.draw(st.lists(FRAMES[stream.name], min_size=1, max_size=4))
    whole = b"".join(frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    pieces = [whole[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert received(stream, pieces) == frames
    assert received(stream, (bytes([byte]) for byte in whole)) == frames


@pytest.mark.parametrize("stream", streams.STREAMS, ids=lambda stream: stream.name)
@given(pieces=st.lists(st.binary(max_size=60), max_size=8))
def test_garbage_is_parsed_or_blamed_on_the_peer_in_bounded_memory(
    stream: Stream, pieces: list[bytes]
) -> None:
    buffer = FrameBuffer(stream, limit_bytes=100)
    with contextlib.suppress(RemoteProtocolError):
        for piece in pieces:
            buffer.receive(piece)
            assert buffer.waiting_bytes <= 100 + len(piece)
            assert buffer.waiting_bytes < max(100, stream.head_size)


def test_a_length_of_two_gigabytes_is_refused_at_the_first_four_bytes() -> None:
    with pytest.raises(RemoteProtocolError, match="outside"):
        FrameBuffer(streams.REMOTING).receive(b"\x7f\xff\xff\xff\x00\x00\x00\x10")


def test_a_frame_over_the_callers_limit_is_refused_before_it_is_there() -> None:
    frame = remoting.RemotingFrame(header=b"{}", body=bytes(500)).encode()
    with pytest.raises(RemoteProtocolError, match="510 bytes in one frame, 100 allowed"):
        FrameBuffer(streams.REMOTING, limit_bytes=100).receive(frame[:9])


def test_a_fault_is_told_with_its_place_in_all_that_was_received() -> None:
    frame = remoting.RemotingFrame(header=b"{}", body=bytes(50)).encode()
    for wrong in (b"\x7f\xff\xff\xff\x00", b"\x00\x00\x00\x10\x02", b"\x00\x00\x10\x00\x00"):
        buffer = FrameBuffer(streams.REMOTING, limit_bytes=1000)
        assert len(buffer.receive(frame) + buffer.receive(frame)) == 2
        with pytest.raises(RemoteProtocolError) as raised:
            buffer.receive(frame + wrong)
        assert raised.value.offset == 3 * len(frame)


def test_bytes_after_a_fault_are_our_own_fault() -> None:
    buffer = FrameBuffer(streams.HA_REPLICA)
    with pytest.raises(RemoteProtocolError):
        buffer.receive(b"\xff" * 4)
    with pytest.raises(LocalProtocolError):
        buffer.receive(b"\x00")


def _held_bytes(frame: bytes, piece_bytes: int) -> int:
    """The most memory that a buffer took for one frame in pieces of this size, which the sender holds too."""
    buffer = FrameBuffer(streams.REMOTING)
    pieces = [frame[at : at + piece_bytes] for at in range(0, len(frame), piece_bytes)]
    tracemalloc.start()
    try:
        found = [whole for piece in pieces for whole in buffer.receive(piece)]
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == [frame]
    return most


def test_a_large_frame_in_pieces_is_copied_once() -> None:
    frame = remoting.RemotingFrame(header=b"{}", body=bytes(4_000_000)).encode()
    assert _held_bytes(frame, 256 * 1024) < 1.1 * len(frame)


def test_a_frame_in_tiny_pieces_takes_no_more_room_than_its_bytes() -> None:
    frame = remoting.RemotingFrame(header=b"{}", body=bytes(100_000)).encode()
    assert _held_bytes(frame, 3) < 2.5 * len(frame)


@given(command=COMMANDS)
def test_a_command_is_read_back_in_the_encoding_of_its_sender(command: Command) -> None:
    found = decode_command(command.encode())
    assert found.encode() == command.encode()
    assert (found.serialize_type, found.body) == (command.serialize_type, command.body)
    flag = command.header.flag
    assert found.is_answer == bool(flag & RemotingFlag.RESPONSE)
    assert found.wants_answer == (flag & 3 == 0)


@pytest.mark.parametrize("piece", [rb"\"", rb"\\\"", b'"', b"{1", b", ", b",1 ", b"{ 12 "])
def test_a_header_that_is_no_json_is_refused_in_one_walk(piece: bytes) -> None:
    """To go back for every piece would take days."""
    header = b'{"' + piece * (4_000_000 // len(piece))
    frame = remoting.RemotingFrame(serialize_type=SerializeType.JSON, header=header, body=b"")
    with pytest.raises(RemoteProtocolError):
        decode_command(frame.encode())
