"""What a connection brought: frames as answers, requests and messages, and what breaks the protocol."""

from collections.abc import Sequence

import pytest

from replispec.conformance.encoding import Question
from replispec.conformance.received import (
    Breach,
    Ended,
    Received,
    ReceivedAnswer,
    ReceivedMessage,
    ReceivedRequest,
    StreamReader,
    described,
)
from replispec.conformance.rocketmq.names import VOCABULARY, master_stream
from replispec.conformance.rocketmq.remoting import SubjectRemotingReader
from replispec.conformance.values import difference
from replispec.conformance.vocabulary import Dialect
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import LogMagic, RemotingFlag, RequestCode, ResponseCode, SerializeType
from replispec.wire.rocketmq.ha import HaHandshakeAnswer, HaTransferHeader
from replispec.wire.rocketmq.remoting import RemotingHeader
from replispec.wire.rocketmq.store import LogBlank, LogRecord

NEWEST = Dialect(VOCABULARY, (5, 4, 0))
METADATA = RequestCode.CONTROLLER_GET_METADATA_INFO
IP = bytes((127, 0, 0, 1))


def _answer(
    opaque: int = 7,
    code: int = ResponseCode.SUCCESS,
    flag: int = RemotingFlag.RESPONSE,
    header: dict[str, str | None] | None = None,
    body: bytes = b"",
    encoding: SerializeType = SerializeType.JSON,
) -> bytes:
    return Command(
        RemotingHeader(code=code, opaque=opaque, flag=flag, ext_fields=header), body, encoding
    ).encode()


def _asked(*questions: tuple[int, int, bool]) -> SubjectRemotingReader:
    reader = SubjectRemotingReader()
    for opaque, code, oneway in questions:
        reader.asked(Question(opaque, code, oneway))
    return reader


def _whole(data: bytes, code: int = METADATA) -> Received:
    (received,) = _asked((7, code, False)).receive(data)
    return received


@pytest.mark.parametrize("encoding", list(SerializeType))
def test_an_answer_has_a_code_a_header_and_a_body(encoding: SerializeType) -> None:
    data = _answer(header={"controllerLeaderId": "n1"}, body=b'{"a":1}', encoding=encoding)
    wanted = ReceivedAnswer(7, 0, {"controllerLeaderId": "n1"}, {"a": 1}, data, RemotingFlag.RESPONSE)
    assert _whole(data) == wanted


def test_a_body_of_text_that_is_no_json_stays_text() -> None:
    received = _whole(_answer(code=ResponseCode.SYSTEM_ERROR, body=b"\xffno"))
    assert isinstance(received, ReceivedAnswer)
    assert received.body == "\N{REPLACEMENT CHARACTER}no"


def test_a_body_that_is_nested_too_deep_is_told_as_text() -> None:
    data = b"[" * 1000 + b"]" * 1000
    received = _whole(_answer(code=ResponseCode.SYSTEM_ERROR, body=data))
    assert isinstance(received, ReceivedAnswer)
    assert received.body == data.decode()
    assert described(received, NEWEST)


def test_a_request_of_the_subject_is_no_answer() -> None:
    data = _answer(opaque=3, code=RequestCode.NOTIFY_BROKER_ROLE_CHANGED, flag=RemotingFlag.REQUEST)
    assert _whole(data) == ReceivedRequest(RequestCode.NOTIFY_BROKER_ROLE_CHANGED, {}, None, opaque=3)


@pytest.mark.parametrize(
    ("data", "code", "reason"),
    [
        (_answer(opaque=8), METADATA, "an answer to no request"),
        (_answer(flag=RemotingFlag.REQUEST), METADATA, "an answer without the flag of answers"),
        (_answer(body=b"{"), RequestCode.CONTROLLER_GET_SYNC_STATE_DATA, "undecodable: "),
        (_answer(header={"masterEpoch": "x"}), RequestCode.CONTROLLER_GET_REPLICA_INFO, "undecodable: "),
        (b"\xff" * 8, METADATA, "no frame: "),
        (bytes((0, 0, 0, 8, 0, 0, 0, 4)) + b"nope", METADATA, "undecodable: "),
    ],
)
def test_what_breaks_the_protocol_is_a_breach(data: bytes, code: int, reason: str) -> None:
    received = _whole(data, code)
    assert isinstance(received, Breach)
    assert received.reason.startswith(reason)


RECORDS = [
    LogRecord(magic=LogMagic.MESSAGE_V1, born_ip=IP, store_ip=IP, topic="T", queue_offset=at, body=b"%d" % at)
    for at in (5, 6)
]
READ = b"".join(each.encode() for each in RECORDS)


@pytest.mark.parametrize("code", [RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE])
@pytest.mark.parametrize(("data", "offsets"), [(READ, [5, 6]), (RECORDS[1].encode(), [6]), (b"", [])])
def test_what_a_pull_is_given_is_read_as_records(code: int, data: bytes, offsets: list[int]) -> None:
    received = _whole(_answer(body=data), code)
    assert isinstance(received, ReceivedAnswer)
    wanted: object = [{"topic": "T", "queue_id": 0, "queue_offset": at, "body": f"{at}"} for at in offsets]
    assert difference(received.body, {"records": wanted}, "body") is None


@pytest.mark.parametrize(
    "data",
    [
        READ[:-1],
        READ + b"\0",
        b"log",
        READ.replace(b"\x016", b"\x017"),
        RECORDS[0].encode() + LogBlank().encode(),
    ],
)
def test_damaged_records_in_the_answer_to_a_pull_break_the_protocol(data: bytes) -> None:
    assert data != READ
    received = _whole(_answer(body=data), RequestCode.PULL_MESSAGE)
    assert isinstance(received, Breach)
    assert received.reason.startswith("undecodable: ")


def test_a_pull_that_is_refused_gives_no_records() -> None:
    received = _whole(_answer(code=ResponseCode.PULL_NOT_FOUND, body=b"no"), RequestCode.PULL_MESSAGE)
    assert isinstance(received, ReceivedAnswer)
    assert received.body == "no"


def test_an_error_may_have_a_body_that_its_command_does_not_have() -> None:
    data = _answer(code=ResponseCode.SYSTEM_ERROR, body=b"{")
    assert isinstance(_whole(data, RequestCode.CONTROLLER_GET_SYNC_STATE_DATA), ReceivedAnswer)


def test_one_question_has_one_answer_and_a_oneway_has_none() -> None:
    reader = _asked((7, METADATA, False), (8, METADATA, True))
    kinds = [type(each) for each in reader.receive(_answer() + _answer() + _answer(opaque=8))]
    assert kinds == [ReceivedAnswer, Breach, Breach]


def test_an_opaque_that_was_asked_twice_is_answered_twice() -> None:
    reader = _asked((7, METADATA, False), (7, METADATA, False))
    kinds = [type(each) for each in reader.receive(_answer() * 3)]
    assert kinds == [ReceivedAnswer, ReceivedAnswer, Breach]


def _byte_by_byte(reader: SubjectRemotingReader | StreamReader, data: bytes) -> list[Received]:
    return [each for at in range(len(data)) for each in reader.receive(data[at : at + 1])]


def test_frames_do_not_depend_on_how_tcp_cuts_them() -> None:
    data = _answer(body=b"[1]") + _answer(opaque=8)
    questions = ((7, METADATA, False), (8, METADATA, False))
    assert _byte_by_byte(_asked(*questions), data) == _asked(*questions).receive(data)


RUN = HaTransferHeader(offset=10, epoch=2, epoch_start_offset=5, confirm_offset=3, body=b"abc")
MESSAGES: Sequence[HaHandshakeAnswer | HaTransferHeader] = (HaHandshakeAnswer(max_offset=9), RUN)


def _ha_reader() -> StreamReader:
    return StreamReader(master_stream(NEWEST.release), VOCABULARY)


def test_messages_of_an_ha_stream_are_named_whatever_their_cut() -> None:
    data = b"".join(message.encode() for message in MESSAGES)
    whole = _ha_reader().receive(data)
    assert [each.name for each in whole if isinstance(each, ReceivedMessage)] == [
        "HaHandshakeAnswer",
        "HaTransferHeader",
    ]
    assert _byte_by_byte(_ha_reader(), data) == whole


def test_garbage_on_an_ha_stream_is_a_breach() -> None:
    (received,) = _ha_reader().receive(b"\x7f" * 64)
    assert isinstance(received, Breach)
    assert received.reason.startswith("no message: ")


@pytest.mark.parametrize(
    ("received", "words"),
    [
        (ReceivedAnswer(7, 0, {"a": "1"}, None), "SUCCESS {'a': '1'}"),
        (ReceivedAnswer(7, 31999, {}, None), "31999"),
        (ReceivedRequest(RequestCode.NOTIFY_BROKER_ROLE_CHANGED, {}, None), "NOTIFY_BROKER_ROLE_CHANGED"),
        (Ended("reset"), "the subject ended the connection (reset)"),
        (Breach("no frame"), "no frame"),
    ],
)
def test_what_came_is_told_in_one_line(received: Received, words: str) -> None:
    assert described(received, NEWEST) == words


def test_a_long_body_is_told_by_its_size() -> None:
    words = described(ReceivedMessage("HaTransferHeader", RUN), NEWEST)
    assert words.startswith("HaTransferHeader {")
    assert words.endswith(" + 3 bytes")
