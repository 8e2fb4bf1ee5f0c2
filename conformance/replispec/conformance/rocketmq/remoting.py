"""Remoting commands of a case as bytes, and what comes back as answers and requests."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping

from replispec.conformance.encoding import Encoded, Encoder, Question, Unsendable
from replispec.conformance.model import Sent
from replispec.conformance.received import Breach, Received, ReceivedAnswer, ReceivedRequest
from replispec.conformance.rocketmq.names import VOCABULARY
from replispec.conformance.rocketmq.records import PULLS, pulled_records
from replispec.conformance.values import Variables, filled, number, wire_text
from replispec.conformance.vocabulary import Release
from replispec.runtime.primitives import jsons
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.primitives.frames import FrameBuffer
from replispec.runtime.primitives.texts import INT32
from replispec.runtime.rocketmq.framing import Command, decode_command
from replispec.wire.rocketmq.codes import LanguageCode, LogMagic, RemotingFlag, ResponseCode, SerializeType
from replispec.wire.rocketmq.commands import RESPONSE_BODIES, RESPONSE_HEADERS
from replispec.wire.rocketmq.remoting import RemotingHeader
from replispec.wire.rocketmq.store import LogRecord
from replispec.wire.rocketmq.streams import REMOTING

OPAQUE_MAXIMUM = INT32[1]
_RECORD_MS, _RECORD_IP, _RECORD_TOPIC = 1_700_000_000_000, bytes((127, 0, 0, 1)), "T"


class RemotingEncoder(Encoder):
    """Encodes commands with opaques of its own, beside the messages of replication."""

    def __init__(self, release: Release, first_opaque: int) -> None:
        super().__init__(VOCABULARY)
        self._release = release
        self._opaque = first_opaque

    def command(self, sent: Sent, variables: Variables) -> Encoded:
        """One command, with what a client of this release would put into its header."""
        code = sent.code if sent.command is None else VOCABULARY.request_code(sent.command)
        oneway = RemotingFlag.ONEWAY if sent.oneway else RemotingFlag.REQUEST
        header = RemotingHeader(
            code=_int32("code", code or 0),
            language=sent.language or LanguageCode.JAVA.name,
            version=_int32(
                "version",
                VOCABULARY.release_number(self._release) if sent.version is None else sent.version,
            ),
            opaque=self._next(sent.opaque, variables),
            flag=oneway if sent.flag is None else _int32("flag", number(filled(sent.flag, variables))),
            ext_fields=_ext_fields({**sent.header, **sent.extra}, variables),
        )
        kind = SerializeType[sent.encoding or SerializeType.JSON.name]
        if kind is SerializeType.JSON:
            header.serialize_type_current_rpc = kind.name
        command = Command(header, _body_sent(sent, variables), kind)
        question = Question(header.opaque, header.code, not command.wants_answer)
        what = sent.command or str(code)
        return Encoded(command.encode(), (question,), f"{what} {header.ext_fields or ''}".strip())

    def answer(self, code: str, asked: Question, header: Mapping[str, object], body: object) -> bytes:
        """The answer to a request of the subject, as a client of this release would write it.

        Raises Unsendable for a code that the release does not know.
        """
        known = VOCABULARY.response_code(code, self._release)
        if known is None:
            raise Unsendable(f"{code} is no code of this release")
        fields = {name: None if value is None else wire_text(value) for name, value in header.items()}
        answered = RemotingHeader(
            code=known,
            version=VOCABULARY.release_number(self._release),
            opaque=asked.opaque,
            flag=RemotingFlag.RESPONSE,
            ext_fields=fields or None,
        )
        try:
            data = body if isinstance(body, bytes) else b"" if body is None else jsons.dumps(body)
            return Command(answered, data).encode()
        except LocalProtocolError as fault:
            raise Unsendable(f"the answer {code}: {fault}") from None

    def landmarks(self, data: bytes) -> Mapping[str, int]:
        """The fixed fields, the header, the body, and where the next frame begins."""
        known = dict(super().landmarks(data))
        length, size = VOCABULARY.fixed["total_length"], VOCABULARY.fixed["header_length"]
        header = size[0] + size[1]
        if len(data) >= header:
            known["header"] = header
            known["body"] = header + int.from_bytes(data[size[0] : header], "big")
            known["next"] = (
                length[0] + length[1] + int.from_bytes(data[length[0] : length[0] + length[1]], "big")
            )
        return known

    def log_bytes(self, first: int, records: int, size: int) -> bytes:
        """So many records of a log, each of `size` bytes, from its byte `first` on. Raises Unsendable."""
        empty = len(_record(first, b""))
        if size < empty:
            raise Unsendable(f"a record of {size} bytes: the smallest has {empty}")
        places = range(first, first + records * size, size)
        return b"".join(_record(at, f"{at:x}".encode().ljust(size - empty, b".")) for at in places)

    def _next(self, wanted: object, variables: Variables) -> int:
        if wanted is not None:
            return _int32("opaque", number(filled(wanted, variables)))
        self._opaque = self._opaque + 1 if self._opaque < OPAQUE_MAXIMUM else 1
        return self._opaque


def _int32(name: str, value: int) -> int:
    """A number that a header can hold. Raises Unsendable."""
    if not INT32[0] <= value <= INT32[1]:
        raise Unsendable(f"{name} {value} is no number from {INT32[0]} to {INT32[1]}")
    return value


def _record(at: int, body: bytes) -> bytes:
    """One message of the log, whose last bytes of the body are cut off where they do not fit."""
    return LogRecord(
        magic=LogMagic.MESSAGE_V1,
        physical_offset=at,
        queue_offset=at,
        born_timestamp=_RECORD_MS,
        store_timestamp=_RECORD_MS,
        born_ip=_RECORD_IP,
        store_ip=_RECORD_IP,
        body=body,
        topic=_RECORD_TOPIC,
    ).encode()


def _ext_fields(header: Mapping[str, object], variables: Variables) -> dict[str, str | None] | None:
    values = {name: filled(value, variables) for name, value in header.items()}
    return {name: None if value is None else wire_text(value) for name, value in values.items()} or None


def _body_sent(sent: Sent, variables: Variables) -> bytes:
    if sent.body_hex is not None:
        return bytes.fromhex(sent.body_hex)
    if sent.body_text is not None:
        return wire_text(filled(sent.body_text, variables)).encode()
    return b"" if sent.body is None else jsons.dumps(filled(sent.body, variables))


class SubjectRemotingReader:
    """Remoting frames of one connection; knows the questions, so that stray answers are seen."""

    def __init__(self) -> None:
        self._frames = FrameBuffer(REMOTING)
        self._open: Counter[int] = Counter()
        self._codes: dict[int, int] = {}
        self._answerable: set[int] = set()

    def asked(self, question: Question) -> None:
        """A question went out."""
        self._codes[question.opaque] = question.code
        if not question.oneway:
            self._open[question.opaque] += 1
            self._answerable.add(question.opaque)

    def receive(self, data: bytes) -> list[Received]:
        """What these bytes complete. After a breach nothing more is read."""
        try:
            frames = self._frames.receive(data)
        except RemoteProtocolError as fault:
            return [Breach(f"no frame: {fault}")]
        return [self._frame(frame) for frame in frames]

    def ended(self) -> list[Received]:
        """Each frame tells its own end."""
        return []

    def _frame(self, frame: bytes) -> Received:
        try:
            command = decode_command(frame)
            if not command.is_answer and command.header.opaque in self._open:
                return Breach("an answer without the flag of answers")
            return self._answer(command, frame) if command.is_answer else self._request(command)
        except RemoteProtocolError as fault:
            return Breach(f"undecodable: {fault}")

    def _request(self, command: Command) -> ReceivedRequest:
        header = command.header
        return ReceivedRequest(
            header.code,
            header.ext_fields or {},
            _body(command.body),
            header.opaque,
            header.flag,
            oneway=not command.wants_answer,
        )

    def _answer(self, command: Command, frame: bytes) -> Received:
        opaque = command.header.opaque
        if opaque not in self._codes:
            return Breach("an answer to no request")
        if self._open[opaque] <= 0:
            second = opaque in self._answerable
            return Breach("a second answer" if second else "an answer to a one-way request")
        self._open[opaque] -= 1
        code = self._codes[opaque]
        ext_fields = command.header.ext_fields or {}
        if code in RESPONSE_HEADERS:
            RESPONSE_HEADERS[code].from_ext_fields(ext_fields)
        body = _answered(code, command)
        return ReceivedAnswer(opaque, command.header.code, ext_fields, body, frame, command.header.flag)


def _answered(code: int, command: Command) -> object:
    """The body of an answer to a question of this code. Raises RemoteProtocolError."""
    if command.header.code != ResponseCode.SUCCESS:
        return _body(command.body)
    if code in PULLS:
        return {"records": pulled_records(command.body)}
    if code in RESPONSE_BODIES and command.body:
        typed = RESPONSE_BODIES[code].decode(command.body)
        return _parsed(command.body) if hasattr(typed, "to_json") else fields_of(typed)
    return _body(command.body)


def fields_of(typed: object) -> object:
    """A body of text as its fields."""
    return dataclasses.asdict(typed) if dataclasses.is_dataclass(typed) else None  # type: ignore[arg-type]  # an object


def _body(data: bytes) -> object:
    try:
        return _parsed(data) if data else None
    except RemoteProtocolError:
        return data.decode("utf-8", "replace")


def _parsed(data: bytes) -> object:
    """What a body says. Raises RemoteProtocolError when it is no JSON, or deeper than anybody looks into."""
    parsed: object = jsons.loads(data)
    jsons.check_depth(parsed)
    return parsed
