"""What was encoded once is what would be encoded each time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.runtime.rocketmq.framing import Command, FrameBuffer, decode_command
from replispec.runtime.rocketmq.remoting import Prepared, Request, RequestServer
from replispec.runtime.world import Accepted, Outbox, Received, Send
from replispec.wire.rocketmq.codes import RemotingFlag, SerializeType
from replispec.wire.rocketmq.options import RemotingLimits
from replispec.wire.rocketmq.remoting import RemotingHeader
from replispec.wire.rocketmq.streams import REMOTING

FIELDS: dict[str, str | None] = {"masterEpoch": "1111111", "brokerName": "2222222222", "opaque": "1"}


def answered(
    opaque: int, *, prepared: bool, flag: int = 0, kind: SerializeType = SerializeType.JSON
) -> bytes:
    """The bytes with which a request is answered, both ways."""
    outbox = Outbox()
    again = Prepared(0, ext_fields=FIELDS, body=b"1111111111 2222222222")

    def handle(request: Request) -> None:
        if prepared:
            request.answer_prepared(again)
        else:
            request.answer(0, ext_fields=FIELDS, body=b"1111111111 2222222222")

    server = RequestServer(outbox, handle, limits=RemotingLimits())
    server.accepted(Accepted(1, "l", "127.0.0.1:1", 0))
    request = Command(RemotingHeader(code=1005, opaque=opaque, flag=flag), b"", kind)
    server.received(Received(1, request.encode() * 2, 0))
    return b"".join(bytes(each.data) for each in outbox.take() if isinstance(each, Send))


@given(st.integers(-(2**31), 2**31 - 1))
def test_a_prepared_answer_has_the_bytes_of_any_other(opaque: int) -> None:
    data = answered(opaque, prepared=True)
    assert data == answered(opaque, prepared=False)
    commands = [decode_command(frame) for frame in FrameBuffer(REMOTING).receive(data)]
    assert [each.header.opaque for each in commands] == [opaque, opaque]


@pytest.mark.parametrize("opaque", [0, 9, 10, 99, 100, 1_111_111_111, 2_000_000_000, 2**31 - 1])
def test_each_number_of_digits_has_lengths_of_its_own(opaque: int) -> None:
    assert answered(opaque, prepared=True) == answered(opaque, prepared=False)


def test_a_binary_request_is_answered_in_binary() -> None:
    data = answered(5, prepared=True, kind=SerializeType.ROCKETMQ)
    assert data == answered(5, prepared=False, kind=SerializeType.ROCKETMQ)


def test_a_one_way_request_is_not_answered() -> None:
    assert answered(5, prepared=True, flag=RemotingFlag.ONEWAY) == b""
