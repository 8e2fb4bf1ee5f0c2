"""Requests of a case as bytes, to brokers and to the store, and what comes back: answers, and what a subject
asks itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from replispec.conformance.encoding import NO_COMMAND, Encoded, Encoder, Question, Unsendable
from replispec.conformance.kafka.bodies import body_bytes, shown_body
from replispec.conformance.kafka.names import FORMS, STORE_FROM, SUCCESS, VOCABULARY
from replispec.conformance.kafka.stored import node_texts, shown_nodes
from replispec.conformance.model import Sent
from replispec.conformance.received import Breach, Received, ReceivedAnswer, ReceivedRequest
from replispec.conformance.values import Variables, filled, number
from replispec.conformance.vocabulary import Release
from replispec.conformance.zookeeper.frames import SubjectReplyReader, ZookeeperEncoder
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.exchanges import OpenRequests
from replispec.runtime.primitives.frames import FrameBuffer
from replispec.runtime.primitives.texts import INT32
from replispec.wire.kafka.codes import ApiKey, ErrorCode
from replispec.wire.kafka.commands import APACHE_RESPONSE_FRAME
from replispec.wire.kafka.requests import ApacheRequestFrame, ApacheResponseFrame
from replispec.wire.kafka.streams import APACHE_REQUESTS, APACHE_RESPONSES

CLIENT = "suite"
# More than any case leaves unanswered.
OPEN_MAXIMUM = 1_000
_SHOWN_CHARACTERS = 500


class KafkaEncoder(Encoder):
    """Encodes requests to brokers with numbers of its own, and hands those to the store on."""

    def __init__(self, release: Release, first_number: int) -> None:
        super().__init__(VOCABULARY)
        self._number = first_number
        self._store = ZookeeperEncoder(release, first_number)

    def sent(self, sent: Sent, variables: Variables) -> Encoded:
        """One request, or what begins a session of the store. Raises Unsendable or UnknownVariable."""
        if sent.message is not None:
            return self._store.sent(sent, variables)
        return super().sent(sent, variables)

    def command(self, sent: Sent, variables: Variables) -> Encoded:
        """One request, with what whoever sends it would put where a case says nothing."""
        code = sent.code if sent.command is None else VOCABULARY.request_code(sent.command)
        code = code or 0
        if code >= STORE_FROM // 2 and sent.command is not None:
            return self._store.sent(replace(sent, body=node_texts(filled(sent.body, variables))), variables)
        form = FORMS.get(code)
        version = sent.version if sent.version is not None else form.last if form is not None else 0
        what = sent.command or str(code)
        body, is_answered = b"", True
        if sent.body_hex is not None or form is None or not form.first <= version <= form.last:
            body = bytes.fromhex(sent.body_hex or "")
        else:
            values = filled(sent.body or {}, variables)
            body = body_bytes(form.request, values, version, what)
            is_answered = not (
                code == ApiKey.PRODUCE and isinstance(values, Mapping) and values.get("acks") == 0
            )
        wanted = None if sent.opaque is None else number(filled(sent.opaque, variables))
        question = Question(self._next(wanted), code, not is_answered, version)
        client = filled({"client_id": CLIENT, **sent.header}["client_id"], variables)
        named = None if client is None else str(client)
        data = ApacheRequestFrame(code, version, question.opaque, named, body).encode()
        return Encoded(data, (question,), f"{what} {version} {sent.body or ''}"[:_SHOWN_CHARACTERS].strip())

    def answer(self, code: str, asked: Question, header: Mapping[str, object], body: object) -> bytes:
        """The answer to a request of the subject, in the version that it asked in."""
        if header or VOCABULARY.response_code(code) is None:
            raise Unsendable(f"{code}: an answer is a body that may name an error")
        form = FORMS.get(asked.code)
        if isinstance(body, bytes) or asked.code == NO_COMMAND:
            return ApacheResponseFrame(asked.opaque, body if isinstance(body, bytes) else b"").encode()
        if form is None or form.answer is None or not form.first <= asked.version <= form.last:
            raise Unsendable(f"key {asked.code} in version {asked.version} has no answer that is specified")
        values = body if isinstance(body, Mapping) else {}
        if "error" in getattr(form.answer, "__dataclass_fields__", {}) and code != SUCCESS:
            values = {"error": code, **values}
        said = body_bytes(form.answer, values, asked.version, f"the answer to {asked.code}", whole=False)
        return ApacheResponseFrame(asked.opaque, said).encode()

    def landmarks(self, data: bytes) -> Mapping[str, int]:
        """The fixed fields, and where the next frame begins."""
        known = dict(super().landmarks(data))
        at, length = VOCABULARY.fixed["size"]
        if len(data) >= at + length:
            known["next"] = at + length + int.from_bytes(data[at : at + length], "big")
        return known

    def _next(self, wanted: int | None) -> int:
        if wanted is not None:
            return wanted
        self._number = self._number + 1 if self._number < INT32[1] else 1
        return self._number


class BrokerAnswerReader:
    """What a broker answers on one connection; knows what was asked."""

    def __init__(self) -> None:
        self._frames = FrameBuffer(APACHE_RESPONSES)
        self._open = OpenRequests(APACHE_RESPONSE_FRAME, most=OPEN_MAXIMUM)

    def asked(self, question: Question) -> None:
        """A question went out; what wants no answer is none."""
        if not question.oneway:
            self._open.ask(ApacheRequestFrame(question.code, _answered_in(question), question.opaque))

    def receive(self, data: bytes) -> list[Received]:
        """What these bytes complete. After a breach nothing more is read."""
        try:
            frames = self._frames.receive(data)
        except RemoteProtocolError as fault:
            return [Breach(f"no frame: {fault.reason}")]
        return [self._answer(frame) for frame in frames]

    def ended(self) -> list[Received]:
        """Half a frame is a breach."""
        cut = self._frames.waiting_bytes
        return [Breach("the connection ended in the middle of a frame")] if cut else []

    def _answer(self, frame: bytes) -> Received:
        waiting = len(self._open)
        try:
            reply = ApacheResponseFrame.decode(frame)
            message = self._open.answered(reply).message
            body = None if message is None else shown_body(message)
        except RemoteProtocolError as fault:
            if not waiting:
                return Breach("an answer to no request")
            if len(self._open) == waiting:
                return Breach("an answer out of turn")
            return Breach(f"undecodable: {fault.reason}")
        error = getattr(message, "error", None) or ErrorCode.NONE
        return ReceivedAnswer(reply.correlation_id, error, {}, body, frame)


def _answered_in(question: Question) -> int:
    """The version in which a question is answered: what brokers answer is asked for in every version."""
    form = FORMS.get(question.code)
    is_known = form is not None and form.first <= question.version <= form.last
    return 0 if question.code == ApiKey.API_VERSIONS and not is_known else question.version


class PeerReader:
    """What a subject asks the brokers that the suite is."""

    def __init__(self) -> None:
        self._frames = FrameBuffer(APACHE_REQUESTS)

    def asked(self, question: Question) -> None:
        """The suite asks nothing here."""

    def receive(self, data: bytes) -> list[Received]:
        """What these bytes complete. After a breach nothing more is read."""
        try:
            return [_request(frame) for frame in self._frames.receive(data)]
        except RemoteProtocolError as fault:
            return [Breach(f"no request: {fault.reason}")]

    def ended(self) -> list[Received]:
        """Each request tells its own end."""
        return []


def _request(data: bytes) -> ReceivedRequest:
    """One request. Raises RemoteProtocolError."""
    frame = ApacheRequestFrame.decode(data)
    message = APACHE_RESPONSE_FRAME.read_request(frame)
    header = {"version": frame.api_version, "client_id": frame.client_id}
    body = None if message is None else shown_body(message)
    return ReceivedRequest(frame.api_key, header, body, frame.correlation_id, version=frame.api_version)


class StoreReader(SubjectReplyReader):
    """What the store answers, with the numbers that its codes have here, and nodes by what they say."""

    def receive(self, data: bytes) -> list[Received]:
        """What these bytes complete. After a breach nothing more is read."""
        return [_moved(each) for each in super().receive(data)]


def _moved(received: Received) -> Received:
    if not isinstance(received, ReceivedAnswer):
        return received
    return replace(received, code=received.code + STORE_FROM, body=shown_nodes(received.body))
