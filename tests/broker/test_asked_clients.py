"""An administrator asks a broker how one of its clients is, and is told what that says of itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from replispec.broker.rocketmq.core import client_questions
from replispec.runtime.rocketmq.framing import Command, FrameBuffer, decode_command
from replispec.runtime.rocketmq.remoting import Outcome
from replispec.runtime.rocketmq.rules import message_id, message_offset
from replispec.runtime.world import Connected, Effect, Event, Member, Outbox, Received, Started
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.client import (
    ConsumeMessageDirectlyRequest,
    ConsumerData,
    GetConsumerRunningInfoRequest,
    HeartbeatData,
    ViewMessageRequest,
)
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode, ResponseCode
from replispec.wire.rocketmq.remoting import RemotingHeader
from replispec.wire.rocketmq.store import LogRecord
from replispec.wire.rocketmq.streams import REMOTING
from tests.broker.simulated_set import OK, BrokerSet

SAID = b'{"properties":{"key":"what this client says"}}'
Answers = Callable[[Command], list[Command]]


def _answer(asked: Command, code: int = OK, body: bytes = SAID, opaque: int | None = None) -> Command:
    number = asked.header.opaque if opaque is None else opaque
    return Command(RemotingHeader(code=code, opaque=number, flag=RemotingFlag.RESPONSE, remark="why"), body)


class Consumer:
    """A client of the group `g` that answers what it is asked in its own way."""

    def __init__(self, address: str, answers: Answers, client: str = "c") -> None:
        self._address, self._answers, self._client = address, answers, client
        self._outbox = Outbox()
        self._buffer = FrameBuffer(REMOTING)
        self.asked: list[Command] = []

    @property
    def listeners(self) -> Mapping[str, str]:
        """None."""
        return {}

    def deadline_ms(self) -> int | None:
        """Never."""
        return None

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event."""
        if isinstance(event, Started):
            self._outbox.dial(self._address)
        elif isinstance(event, Connected):
            header = RemotingHeader(code=RequestCode.HEART_BEAT, opaque=1, flag=RemotingFlag.REQUEST)
            data = HeartbeatData(self._client, [ConsumerData(group_name="g")], None, [])
            self._outbox.send(event.connection, Command(header, data.encode()).encode())
        elif isinstance(event, Received):
            for frame in self._buffer.receive(event.data):
                self._take(event.connection, decode_command(frame))
        return self._outbox.take()

    def _take(self, connection: int, command: Command) -> None:
        if command.is_answer or not command.wants_answer:
            return
        self.asked.append(command)
        for each in self._answers(command):
            self._outbox.send(connection, each.encode())


def _with(answers: Answers) -> tuple[BrokerSet, str, Consumer]:
    brokers = BrokerSet()
    address = brokers.alone()
    consumer = Consumer(address, answers)
    brokers.world.add("consumer", "10.0.0.9", lambda _storage: [Member("consumer", consumer)])
    brokers.start("consumer")
    brokers.until(lambda: brokers.broker(1)._groups.questions.has_client("g", "c"))
    return brokers, address, consumer


def _ask(brokers: BrokerSet, address: str, client: str = "c") -> list[Outcome]:
    header = GetConsumerRunningInfoRequest("g", client, True)
    return brokers.asked(address, RequestCode.GET_CONSUMER_RUNNING_INFO, header)


def _try(brokers: BrokerSet, address: str, message_id: str, client: str = "c") -> Command:
    header = ConsumeMessageDirectlyRequest("g", client, message_id, None, "T")
    return _told(brokers, brokers.asked(address, RequestCode.CONSUME_MESSAGE_DIRECTLY, header))


def _view(brokers: BrokerSet, address: str, offset: int) -> Command:
    return brokers.ask(address, RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageRequest("T", offset))


def _told(brokers: BrokerSet, found: list[Outcome]) -> Command:
    brokers.until(lambda: bool(found))
    assert isinstance(found[0], Command)
    return found[0]


def test_an_administrator_is_told_what_a_client_says_of_itself() -> None:
    brokers, address, consumer = _with(lambda asked: [_answer(asked)])
    told = _told(brokers, _ask(brokers, address))
    assert (told.header.code, told.body) == (OK, SAID)
    fields = consumer.asked[0].header.ext_fields or {}
    assert (fields["consumerGroup"], fields["clientId"], fields["jstackEnable"]) == ("g", "c", "true")


def test_who_is_no_client_of_the_group_is_not_asked() -> None:
    brokers, address, consumer = _with(lambda asked: [_answer(asked)])
    told = _told(brokers, _ask(brokers, address, "somebody else"))
    assert told.header.code == ResponseCode.SYSTEM_ERROR
    assert told.header.remark == "The Consumer <g> <somebody else> not online"
    assert not consumer.asked


def test_a_client_that_refuses_is_told_of() -> None:
    brokers, address, _ = _with(lambda asked: [_answer(asked, ResponseCode.SYSTEM_BUSY)])
    told = _told(brokers, _ask(brokers, address))
    assert told.header.code == ResponseCode.SYSTEM_ERROR
    assert "why" in (told.header.remark or "")


def test_a_client_that_says_nothing_is_waited_for_no_longer_than_apaches_are() -> None:
    brokers, address, consumer = _with(lambda _asked: [])
    found = _ask(brokers, address)
    brokers.until(lambda: bool(consumer.asked))
    brokers.world.run_for(constants.CLIENT_ANSWER_MS // 2)
    assert not found
    assert _told(brokers, found).header.code == ResponseCode.CONSUME_MSG_TIMEOUT


def test_a_client_that_goes_away_answers_no_more() -> None:
    brokers, address, consumer = _with(lambda _asked: [])
    found = _ask(brokers, address)
    brokers.until(lambda: bool(consumer.asked))
    brokers.world.kill("consumer")
    brokers.world.run_for(constants.CLIENT_ANSWER_MS // 2)
    assert _told(brokers, found).header.code == ResponseCode.SYSTEM_ERROR


def test_an_answer_counts_once_and_under_its_own_number() -> None:
    def answers(asked: Command) -> list[Command]:
        other = _answer(asked, body=b'{"another":1}', opaque=asked.header.opaque + 7)
        return [other, _answer(asked), _answer(asked, body=b'{"once":"more"}')]

    brokers, address, _ = _with(answers)
    assert _told(brokers, _ask(brokers, address)).body == SAID
    assert _told(brokers, _ask(brokers, address)).body == SAID


def test_questions_that_wait_for_clients_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_questions, "QUESTIONS_MAX", 2)
    brokers, address, consumer = _with(lambda _asked: [])
    found = [_ask(brokers, address) for _ in range(3)]
    told = _told(brokers, found[2])
    assert told.header.code == ResponseCode.SYSTEM_ERROR
    assert "too many" in (told.header.remark or "")
    assert len(consumer.asked) <= 2
    assert not found[0]


def test_an_administrator_has_a_client_consume_one_message() -> None:
    brokers, address, consumer = _with(lambda asked: [_answer(asked)])
    code, sent = brokers.send(address, b"this one")
    assert code == OK
    told = _try(brokers, address, sent.msg_id or "")
    assert (told.header.code, told.body) == (OK, SAID)
    fields = consumer.asked[0].header.ext_fields or {}
    assert (fields["consumerGroup"], fields["brokerName"], fields["topic"]) == ("g", "broker-a", "T")
    assert LogRecord.decode(consumer.asked[0].body).body == b"this one"
    for unknown in (message_id(address, 7), "", "no id"):
        assert _try(brokers, address, unknown).header.code == ResponseCode.SYSTEM_ERROR
    assert _try(brokers, address, sent.msg_id or "", "somebody else").header.code == ResponseCode.SYSTEM_ERROR
    assert len(consumer.asked) == 1


def test_an_administrator_is_shown_messages_and_nothing_else_of_the_log() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    sent = [brokers.send(address, body)[1].msg_id or "" for body in (b"first", b"second")]
    offsets = [message_offset(each) for each in sent]
    for offset, body in zip(offsets, (b"first", b"second"), strict=True):
        answer = _view(brokers, address, offset or 0)
        assert (answer.header.code, LogRecord.decode(answer.body).body) == (OK, body)
    last = offsets[1] or 0
    for wrong in (-1, last + 1, last + 10_000, 2**62):
        assert _view(brokers, address, wrong).header.code == ResponseCode.SYSTEM_ERROR
