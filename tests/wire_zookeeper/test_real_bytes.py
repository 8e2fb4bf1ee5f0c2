"""What a real ZooKeeper and real clients of it wrote: read whole, written back byte by byte, pair by pair."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from replispec.runtime.primitives.exchanges import OpenRequests, PairedAnswer
from replispec.runtime.primitives.frames import FrameBuffer
from replispec.wire.zookeeper import operations, streams
from replispec.wire.zookeeper.commands import REPLY_FRAME
from replispec.wire.zookeeper.connection import (
    AdminWordFrame,
    ConnectRequest,
    ConnectResponse,
    ReplyFrame,
    RequestFrame,
)

RECORDED = Path(__file__).parent / "captures/zookeeper_3_5_9.txt"
WAITING_MAX = 16
OPENING = {each.__name__: each for each in (AdminWordFrame, ConnectRequest)}


def connections() -> dict[int, list[tuple[str, bytes]]]:
    """The frames of each connection, in the order in which they were seen: who sent it, and its bytes."""
    found: dict[int, list[tuple[str, bytes]]] = {}
    for line in RECORDED.read_text("utf-8").splitlines():
        if not line.startswith("#"):
            number, side, data = line.split()
            found.setdefault(int(number), []).append((side, bytes.fromhex(data)))
    return found


CONNECTIONS = connections()


def answers(frames: list[tuple[str, bytes]]) -> Iterator[PairedAnswer]:
    """Every answer of a connection with a session; all its frames are read, and written back."""
    pairing, opened = OpenRequests(REPLY_FRAME, most=WAITING_MAX), set()
    for side, data in frames:
        if side not in opened:
            opened.add(side)
            first = ConnectRequest if side == "C" else ConnectResponse
            assert first.decode(data).encode() == data
        elif side == "C":
            request = RequestFrame.decode(data)
            body = REPLY_FRAME.read_request(request)
            assert request.encode() == data
            assert body is None or body.encode() == request.body  # type: ignore[call-arg]
            pairing.ask(request)
        else:
            reply = ReplyFrame.decode(data)
            found = pairing.answered(reply)
            assert reply.encode() == data
            assert found.message is None or found.message.encode() == reply.body  # type: ignore[call-arg]
            yield found


def has_a_session(frames: list[tuple[str, bytes]]) -> bool:
    """Whether a connection begins with a question for a session, and not with a word."""
    form, _ = streams.REQUESTS.opening.form_and_size(frames[0][1], 0, len(frames[0][1]))
    return form is not None and form.message == ConnectRequest.__name__


@pytest.mark.parametrize("number", [each for each, frames in CONNECTIONS.items() if has_a_session(frames)])
def test_every_frame_is_read_and_written_back_and_every_answer_has_its_request(number: int) -> None:
    from_server = sum(side == "S" for side, _ in CONNECTIONS[number])
    assert len([*answers(CONNECTIONS[number])]) == max(from_server - 1, 0)


def test_every_answer_of_the_specification_was_seen() -> None:
    seen = [
        answer.message
        for frames in CONNECTIONS.values()
        if has_a_session(frames)
        for answer in answers(frames)
        if answer.message is not None
    ]
    answered = {form.answer for form in REPLY_FRAME.forms}
    never = {each.__name__ for each in answered if each is not None} - {type(each).__name__ for each in seen}
    assert never == set()
    assert operations.WatchNotification in {type(each) for each in seen}


def test_real_bytes_in_any_pieces_are_the_same_frames() -> None:
    for frames in CONNECTIONS.values():
        if has_a_session(frames):
            for side, stream in (("C", streams.REQUESTS), ("S", streams.ANSWERS)):
                sent = [data for who, data in frames if who == side]
                whole, buffer = b"".join(sent), FrameBuffer(stream)
                found = [each for at in range(len(whole)) for each in buffer.receive(whole[at : at + 1])]
                assert found == sent[: len(found)]
                assert len(sent) - len(found) <= 1


def test_a_real_word_is_the_first_frame() -> None:
    words = [frames[0][1] for frames in CONNECTIONS.values() if not has_a_session(frames)]
    assert {b"ruok", b"srvr"} <= set(words)
    assert AdminWordFrame.decode(b"ruok").encode() == b"ruok"
