"""What a case says as bytes: requests, HA messages, and raw bytes that need not be either."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from replispec.conformance import names
from replispec.conformance.model import Raw, Sent
from replispec.conformance.values import Variables, filled, number, wire_text
from replispec.runtime.primitives import jsons
from replispec.runtime.primitives.errors import LocalProtocolError
from replispec.runtime.primitives.texts import INT32
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import RemotingFlag, SerializeType
from replispec.wire.rocketmq.remoting import RemotingFrameFixed, RemotingHeader

OPAQUE_MAXIMUM = INT32[1]


class Unsendable(Exception):
    """A case asks for something that has no bytes: a fault of the case."""


@dataclass(frozen=True, slots=True)
class Question:
    """A request on the wire that may be answered."""

    opaque: int
    code: int
    oneway: bool


@dataclass(frozen=True, slots=True)
class Encoded:
    """The bytes of an action, the questions among them, and words for the trace."""

    data: bytes
    questions: tuple[Question, ...]
    says: str


class Encoder:
    """Encodes what one case sends, with opaques of its own."""

    def __init__(self, release: names.Release, first_opaque: int) -> None:
        self._release = release
        self._opaque = first_opaque

    def sent(self, sent: Sent, variables: Variables) -> Encoded:
        """One request or HA message. Raises Unsendable or UnknownVariable."""
        try:
            if sent.message is not None:
                return self._message(sent, variables)
            return self._command(sent, variables)
        except LocalProtocolError as fault:
            raise Unsendable(str(fault)) from None

    def _message(self, sent: Sent, variables: Variables) -> Encoded:
        kind: Any = names.ha_message(sent.message or "")
        values: Any = filled(sent.fields, variables)
        try:
            message = kind(**_numbers(kind, values))
            data: bytes = message.encode()
        except (TypeError, AttributeError) as fault:
            raise Unsendable(f"{sent.message}: {fault}") from None
        return Encoded(data, (), f"{sent.message} {values}")

    def _command(self, sent: Sent, variables: Variables) -> Encoded:
        code = sent.code if sent.command is None else names.request_code(sent.command)
        oneway = RemotingFlag.ONEWAY if sent.oneway else RemotingFlag.REQUEST
        header = RemotingHeader(
            code=code or 0,
            language=sent.language or "JAVA",
            version=self._version() if sent.version is None else sent.version,
            opaque=self._next(sent.opaque, variables),
            flag=oneway if sent.flag is None else number(filled(sent.flag, variables)),
            ext_fields=_ext_fields({**sent.header, **sent.extra}, variables),
        )
        kind = names.serialize_type(sent.encoding or "JSON") or SerializeType.JSON
        if kind is SerializeType.JSON:
            header.serialize_type_current_rpc = kind.name
        command = Command(header, _body(sent, variables), kind)
        question = Question(header.opaque, header.code, not command.wants_answer)
        what = sent.command or str(code)
        return Encoded(command.encode(), (question,), f"{what} {header.ext_fields or ''}".strip())

    def _version(self) -> int:
        return names.release_number(self._release)

    def _next(self, wanted: object, variables: Variables) -> int:
        if wanted is not None:
            return number(filled(wanted, variables))
        self._opaque = self._opaque + 1 if self._opaque < OPAQUE_MAXIMUM else 1
        return self._opaque

    def raw(self, raw: Raw, variables: Variables) -> Encoded:
        """Bytes that need not be whole frames. Raises Unsendable or UnknownVariable."""
        parts = [self.sent(each, variables) for each in raw.of]
        data = b"".join(part.data for part in parts) + bytes.fromhex(raw.hex)
        if raw.patch:
            data = _patched(
                data, {name: number(filled(value, variables)) for name, value in raw.patch.items()}
            )
        for at, digits in raw.overwrite.items():
            piece = bytes.fromhex(digits)
            data = data[:at] + piece + data[at + len(piece) :]
        if raw.keep is not None:
            data = data[: raw.keep]
        says = " + ".join(part.says for part in parts) or f"{len(data)} bytes"
        return Encoded(data, tuple(each for part in parts for each in part.questions), f"bytes of {says}")


def pieces(raw: Raw, data: bytes) -> list[bytes]:
    """The bytes cut where the case says."""
    if raw.each:
        return [data[at : at + 1] for at in range(len(data))]
    places = [0, *(at for at in sorted(raw.split) if 0 < at < len(data)), len(data)]
    return [data[start:end] for start, end in pairwise(places) if end > start]


def _ext_fields(header: Mapping[str, object], variables: Variables) -> dict[str, str | None] | None:
    values = {name: filled(value, variables) for name, value in header.items()}
    return {name: None if value is None else wire_text(value) for name, value in values.items()} or None


def _numbers(kind: type[Any], values: Mapping[str, object]) -> dict[str, object]:
    """The fields with numbers where the message has them: what was saved from a header is text."""
    numeric = {each.name for each in dataclasses.fields(kind) if type(each.default) is int}
    return {
        name: number(value) if name in numeric and isinstance(value, str) else value
        for name, value in values.items()
    }


def _body(sent: Sent, variables: Variables) -> bytes:
    if sent.body_hex is not None:
        return bytes.fromhex(sent.body_hex)
    if sent.body_text is not None:
        return wire_text(filled(sent.body_text, variables)).encode()
    return b"" if sent.body is None else jsons.dumps(filled(sent.body, variables))


def _patched(data: bytes, changes: Mapping[str, int]) -> bytes:
    """The first frame with fixed fields overwritten, whatever they say."""
    patched = bytearray(data)
    for name, value in changes.items():
        start, size = RemotingFrameFixed.places()[name]
        if len(data) < start + size:
            raise Unsendable(f"no frame whose {name} could be patched")
        patched[start : start + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "big")
    return bytes(patched)
