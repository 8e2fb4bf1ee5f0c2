"""Requests of a case as bytes, and what comes back: the answer to who connects, answers, notifications."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import IntEnum
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from replispec.conformance.encoding import Encoded, Encoder, Question, Unsendable
from replispec.conformance.model import Sent
from replispec.conformance.received import Breach, Received, ReceivedAnswer, ReceivedMessage
from replispec.conformance.values import Variables, filled, number
from replispec.conformance.vocabulary import Release
from replispec.conformance.zookeeper.names import (
    ENUMS,
    REQUESTS,
    VOCABULARY,
    ZXID,
    AdminText,
    ToldWatch,
    named,
)
from replispec.runtime.primitives.binary import BinaryMessage
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.primitives.exchanges import OpenRequests
from replispec.runtime.primitives.frames import FrameBuffer
from replispec.runtime.primitives.texts import INT32
from replispec.wire.zookeeper import streams
from replispec.wire.zookeeper.codes import ErrorCode, OpCode, Permission
from replispec.wire.zookeeper.commands import REPLY_FRAME
from replispec.wire.zookeeper.connection import (
    AdminWordFrame,
    ConnectRequest,
    ConnectResponse,
    ReplyFrame,
    RequestFrame,
)
from replispec.wire.zookeeper.constants import EVERYBODY_ID, EVERYBODY_SCHEME
from replispec.wire.zookeeper.operations import AccessEntry, CreateRequest, MultiOperation, WatchNotification

# More than any case leaves unanswered.
OPEN_MAXIMUM = 10_000
_SHOWN_CHARACTERS = 500
_NUMBERS = {code: xid for xid, code in REPLY_FRAME.numbers.items()}
_EVERYBODY = AccessEntry(Permission.ALL, EVERYBODY_SCHEME, EVERYBODY_ID)


class ZookeeperEncoder(Encoder):
    """Encodes requests with xids of its own, beside the first frames of connections."""

    def __init__(self, _: Release, first_xid: int) -> None:
        super().__init__(VOCABULARY)
        self._xid = first_xid

    def sent(self, sent: Sent, variables: Variables) -> Encoded:
        """One request, or the first frame of a connection. Raises Unsendable or UnknownVariable."""
        if sent.message is None:
            return super().sent(sent, variables)
        kind = VOCABULARY.messages[sent.message]
        if kind not in (AdminWordFrame, ConnectRequest):
            raise Unsendable(f"{sent.message} is no message that a client begins with")
        message = _message(kind, filled(sent.fields, variables), sent.message)
        # Its answer is text without a frame: whoever reads it must know.
        asked = (Question(0, message.word, oneway=True),) if isinstance(message, AdminWordFrame) else ()
        return Encoded(_encoded(message), asked, f"{sent.message} {sent.fields}"[:_SHOWN_CHARACTERS])

    def command(self, sent: Sent, variables: Variables) -> Encoded:
        """One request, with what a client would put into it where a case says nothing."""
        code = sent.code if sent.command is None else VOCABULARY.request_code(sent.command)
        code = code or 0
        xid = self._next(code, sent.opaque, variables)
        kind, what = REQUESTS.get(code), sent.command or str(code)
        if sent.body_hex is not None or kind is None:
            body = bytes.fromhex(sent.body_hex or "")
        else:
            body = _encoded(_message(kind, filled(sent.body or {}, variables), what))
        question = Question(xid, code, oneway=False)
        says = f"{what} {sent.body or ''}"[:_SHOWN_CHARACTERS].strip()
        return Encoded(_encoded(RequestFrame(xid, code, body)), (question,), says)

    def landmarks(self, data: bytes) -> Mapping[str, int]:
        """The fixed fields, the body, and where the next frame begins."""
        known = dict(super().landmarks(data))
        start, size = VOCABULARY.fixed["op_code"]
        if len(data) >= start + size:
            known["body"] = start + size
            at, length = VOCABULARY.fixed["size"]
            known["next"] = at + length + int.from_bytes(data[at : at + length], "big")
        return known

    def _next(self, code: int, wanted: object, variables: Variables) -> int:
        if wanted is not None:
            return number(filled(wanted, variables))
        if code in _NUMBERS:
            return _NUMBERS[code]
        self._xid = self._xid + 1 if self._xid < INT32[1] else 1
        return self._xid


def _encoded(message: BinaryMessage) -> bytes:
    try:
        return message.encode()
    except (LocalProtocolError, TypeError, AttributeError) as fault:
        raise Unsendable(str(fault)) from None


def _message(kind: type[object], values: object, what: str) -> Any:
    """A message of these values: texts are bytes, and names numbers, where the message has them."""
    if not isinstance(values, Mapping):
        raise Unsendable(f"{what}: fields are expected")
    hints = get_type_hints(kind)
    own = {each.name for each in dataclasses.fields(kind)}  # type: ignore[arg-type]  # all are dataclasses
    if unknown := sorted(set(values) - own):
        raise Unsendable(f"{what}: unknown field {unknown[0]!r}: {', '.join(sorted(own)) or 'none'}")
    given = {name: _value(hints[name], each, name) for name, each in values.items()}
    try:
        return kind(**{**_usual(kind, values), **given})
    except (TypeError, AttributeError) as fault:
        raise Unsendable(f"{what}: {fault}") from None


def _usual(kind: type[object], values: Mapping[str, object]) -> Mapping[str, object]:
    """What a client puts where nothing is said."""
    if kind is CreateRequest:
        return {"acl": [_EVERYBODY]}
    if kind is MultiOperation:
        parts = [each for each in values if each != "op_code"]
        return {"op_code": OpCode[parts[0].upper()]} if parts else {}
    return {}


def _value(hint: Any, value: object, name: str) -> object:
    if value is None:
        return None
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    kind = kinds[0]
    if get_origin(kind) is list:
        inner = get_args(kind)[0]
        return [_value(inner, each, name) for each in value] if isinstance(value, list) else value
    if kind is bytes and isinstance(value, str):
        return value.encode()
    if kind is int and not isinstance(value, bool):
        return _number(name, value)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _message(kind, value, name)
    return value


def _number(name: str, value: object) -> int:
    enum = ENUMS.get(name)
    if isinstance(value, str) and enum is not None and not value.lstrip("-").isdecimal():
        if value not in enum.__members__:
            raise Unsendable(f"{name}: the specification knows no {value!r}")
        return int(enum[value])
    return number(value)


class SubjectReplyReader:
    """What a subject writes on one connection; knows what was asked."""

    def __init__(self) -> None:
        self._frames = FrameBuffer(streams.ANSWERS)
        self._open = OpenRequests(REPLY_FRAME, most=OPEN_MAXIMUM)
        self._is_greeted = False
        self._text: bytearray | None = None  # of the answer to a word

    def asked(self, question: Question) -> None:
        """A question went out."""
        if question.oneway:
            self._text = bytearray()
            return
        try:
            self._open.ask(RequestFrame(question.opaque, question.code))
        except LocalProtocolError:
            return  # a case may ask what nobody may: what comes of it, if anything, is no answer

    def receive(self, data: bytes) -> list[Received]:
        """What these bytes complete. After a breach nothing more is read."""
        if self._text is not None:
            self._text += data
            return []
        try:
            frames = self._frames.receive(data)
        except RemoteProtocolError as fault:
            return [Breach(f"no frame: {fault.reason}")]
        return [self._frame(frame) for frame in frames]

    def ended(self) -> list[Received]:
        """The text that a word was answered, if one was asked; half a frame is a breach."""
        if self._text is None:
            cut = self._frames.waiting_bytes
            return [Breach("the connection ended in the middle of a frame")] if cut else []
        if not self._text:
            return []
        text = self._text.decode("utf-8", "replace")
        values = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
        return [ReceivedMessage(AdminText.__name__, AdminText(text, values))]

    def _frame(self, frame: bytes) -> Received:
        try:
            if not self._is_greeted:
                self._is_greeted = True
                return ReceivedMessage(ConnectResponse.__name__, ConnectResponse.decode(frame))
            reply = ReplyFrame.decode(frame)
            told = REPLY_FRAME.read_unasked(reply)
        except RemoteProtocolError as fault:
            return Breach(f"undecodable: {fault.reason}")
        if isinstance(told, WatchNotification):
            seen = ToldWatch(named("event", told.event), named("status", told.status), told.path)
            return ReceivedMessage(WatchNotification.__name__, seen)
        return self._answer(reply, frame)

    def _answer(self, reply: ReplyFrame, frame: bytes) -> Received:
        waiting = len(self._open)
        try:
            message = self._open.answered(reply).message
        except RemoteProtocolError as fault:
            if not waiting:
                return Breach("an answer to no request")
            if len(self._open) == waiting:
                return Breach("an answer out of turn")
            return Breach(f"undecodable: {fault.reason}")
        body = None if message is None else shown(message)
        return ReceivedAnswer(reply.xid, reply.error, {ZXID: reply.zxid}, body, frame)


def shown(message: object) -> Mapping[str, object]:
    """The fields of a message as cases compare them: numbers by their names, bytes as text."""
    kind: Any = message
    return {each.name: _shown(each.name, getattr(message, each.name)) for each in dataclasses.fields(kind)}


def _shown(name: str, value: object) -> object:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, list):
        return [_shown(name, each) for each in value]
    if isinstance(value, int | IntEnum) and not isinstance(value, bool) and name in ENUMS:
        return named(name, value)
    return shown(value) if dataclasses.is_dataclass(value) else value


SUCCESS, UNKNOWN = ErrorCode.OK.name, ErrorCode.UNIMPLEMENTED.name
