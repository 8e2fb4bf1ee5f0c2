"""Frames and files of RocketMQ as fields and as bytes, and damaged ones that every reader refuses."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import ModuleType
from typing import Any

from replispec.conformance.rocketmq.names import VOCABULARY
from replispec.conformance.vector_samples import USUAL, Sampler, hints, plain
from replispec.runtime.primitives.commands import BodyType, HeaderType
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.framing import Command, decode_command
from replispec.wire.rocketmq import ha, store
from replispec.wire.rocketmq.codes import (
    REQUEST_CODE_NAMES,
    LogMagic,
    RemotingFlag,
    ResponseCode,
    SerializeType,
)
from replispec.wire.rocketmq.commands import (
    REQUEST_BODIES,
    REQUEST_HEADERS,
    RESPONSE_BODIES,
    RESPONSE_HEADERS,
)
from replispec.wire.rocketmq.remoting import RemotingFrameFixed, RemotingHeader
from replispec.wire.rocketmq.streams import HA_MASTER, HA_MASTER_5_0_0, HA_REPLICA

Vector = dict[str, Any]
REQUEST, RESPONSE = "request", "response"
_NO_NUMBER = "12x"
_IPV4 = bytes((127, 0, 0, 1))
# What other fields of the message decide, so that it cannot be chosen alone. None: the codec derives it.
_FIXED: Mapping[str, Mapping[str, Any]] = {
    "LogRecord": {
        "magic": int(LogMagic.MESSAGE_V1),
        "sys_flag": 0,
        "born_ip": _IPV4,
        "store_ip": _IPV4,
        "body_crc": None,
        "tail": b"",
    },
    "OffsetMessageId": {"store_ip": _IPV4},
    "OffsetMessageIdV6": {"store_ip": bytes(15) + b"\x01"},
    "EpochFile": {"crc": None},
    "FlushedRuns": {"crc": None},
    "AskedSyncStateSet": {"crc": None},
    "SyncStateSet": {"addresses": None},  # one key holds either; the newer releases write ids
}
SAMPLER = Sampler(_FIXED)


def frames() -> Iterator[Vector]:
    """Every frame, body, replication message, log record and file, the damaged ones last."""
    yield from _commands()
    yield from _bodies()
    for module in (ha, store):
        for kind in _messages(module):
            yield from _whole(kind)
    yield from _damaged_frames()
    yield from _damaged_headers()
    yield from _damaged_bodies()
    for module in (ha, store):
        for kind in _messages(module):
            yield from _damaged_whole(kind)


def _messages(module: ModuleType) -> list[type[Any]]:
    """The messages of a module that stand alone as bytes."""
    found = [each for each in vars(module).values() if isinstance(each, type)]
    return [each for each in found if dataclasses.is_dataclass(each) and each.__module__ == module.__name__]


def _tables() -> Iterator[tuple[str, int, HeaderType, BodyType | None]]:
    for direction, headers, bodies in (
        (REQUEST, REQUEST_HEADERS, REQUEST_BODIES),
        (RESPONSE, RESPONSE_HEADERS, RESPONSE_BODIES),
    ):
        for code, header in sorted(headers.items()):
            yield direction, code, header, bodies.get(code)


def command_name(code: int) -> str:
    """The name of a request's code."""
    return next(each.name for each in REQUEST_CODE_NAMES if each.number == code)


def _in_header(message: Any) -> bool:
    kind = type(message)
    back = [kind.from_ext_fields(message.to_ext_fields(binary=binary)) for binary in (False, True)]
    return all(each == message for each in back)


def _in_bytes(message: Any) -> bool:
    """Whether it reads back as the same, but for what the codec derives."""
    data = message.encode()
    back = type(message).decode(data)
    given = [name for name in hints(type(message)) if getattr(message, name) is not None]
    return back.encode() == data and all(getattr(back, name) == getattr(message, name) for name in given)


def _command(direction: str, code: int, header: Any, body: bytes, encoding: SerializeType) -> Command:
    binary = encoding is SerializeType.ROCKETMQ
    answer = direction == RESPONSE
    remoting = RemotingHeader(
        code=ResponseCode.SUCCESS if answer else code,
        version=VOCABULARY.release_number(VOCABULARY.known_releases()[-1]),
        opaque=code,
        flag=RemotingFlag.RESPONSE if answer else RemotingFlag.REQUEST,
        remark=None,
        ext_fields=header.to_ext_fields(binary=binary) if header is not None else None,
        serialize_type_current_rpc=None if binary else encoding.name,
    )
    return Command(remoting, body, encoding)


def _commands() -> Iterator[Vector]:
    for direction, code, kind, body_kind in _tables():
        body = _usual(body_kind, _in_bytes) if body_kind else None
        for label, message in SAMPLER.samples(kind, _in_header):
            for encoding in SerializeType:
                data = body.encode() if body is not None else b""
                command = _command(direction, code, message, data, encoding)
                yield {
                    "name": f"{command_name(code)} {direction}, {label}, {encoding.name}",
                    "message": kind.__name__,
                    "direction": direction,
                    "request_code": code,
                    "encoding": encoding.name,
                    "header": plain(command.header),
                    "fields": plain(message),
                    "body": None if body is None else _typed(body),
                    "hex": command.encode().hex(),
                }


def _usual(kind: type[Any], round_trip: Callable[[Any], bool]) -> Any:
    return next(message for label, message in SAMPLER.samples(kind, round_trip) if label == USUAL)


def _typed(body: Any) -> Vector:
    return {"message": type(body).__name__, "fields": plain(body), "hex": body.encode().hex()}


def _bodies() -> Iterator[Vector]:
    for direction, code, _, kind in _tables():
        if kind is not None:
            for label, message in SAMPLER.samples(kind, _in_bytes):
                yield {
                    "name": f"{command_name(code)} {direction} body, {label}",
                    "direction": f"{direction} body",
                    "request_code": code,
                    **_typed(message),
                }


def _whole(kind: type[Any]) -> Iterator[Vector]:
    for label, message in SAMPLER.samples(kind, _in_bytes):
        yield {
            "name": f"{kind.__name__}, {label}",
            "direction": _direction(kind),
            **_typed(message),
        }


def _direction(kind: type[Any]) -> str:
    for stream in (HA_REPLICA, HA_MASTER, HA_MASTER_5_0_0):
        if any(form.message == kind.__name__ for form in stream.forms):
            return "replica to master" if stream is HA_REPLICA else "master to replica"
    return "part of a message" if kind.__module__ == ha.__name__ else "stored"


def _refused(what: str, message: str, data: bytes, read: Callable[[bytes], object]) -> Iterator[Vector]:
    """The vector, when these bytes are refused, with our reason, which other readers need not share."""
    try:
        read(data)
    except RemoteProtocolError as refusal:
        yield {"name": what, "message": message, "hex": data.hex(), "refused": True, "reason": str(refusal)}


def _damaged_frames() -> Iterator[Vector]:
    code = min(REQUEST_HEADERS)
    for encoding in SerializeType:
        header = _usual(REQUEST_HEADERS[code], _in_header)
        data = _command(REQUEST, code, header, b"body", encoding).encode()
        for what, damaged in _damages(data):
            yield from _refused(f"frame, {encoding.name}, {what}", "frame", damaged, decode_command)


def _damages(data: bytes) -> Iterator[tuple[str, bytes]]:
    """A whole frame with one thing wrong."""
    yield "no bytes", b""
    yield "last byte missing", data[:-1]
    yield "one byte more", data + b"\x00"
    for name, (start, size) in RemotingFrameFixed.places().items():
        yield f"cut inside {name}", data[: start + size - 1]
        for value in (0, 1, (1 << 8 * size - 1) - 1, (1 << 8 * size) - 1):
            changed = data[:start] + value.to_bytes(size, "big") + data[start + size :]
            if changed != data:
                yield f"{name} is {value}", changed
    after = max(start + size for start, size in RemotingFrameFixed.places().values())
    yield "header begins with another byte", data[:after] + b"\xff" + data[after + 1 :]


def _damaged_headers() -> Iterator[Vector]:
    """Whole frames whose typed header does not hold: one number that is none, or too great."""
    for direction, code, kind, _ in _tables():
        largest = dict(SAMPLER.samples(kind, _in_header)).get("maximum")
        usual = _usual(kind, _in_header)
        for name in hints(kind):
            if type(getattr(usual, name)) is not int:
                continue
            for text in (_NO_NUMBER, str(getattr(largest, name) + 1)):
                frame = _with_text(direction, code, usual, name, text)
                what = f"{command_name(code)} {direction}, {name} is {text}"
                yield from _refused(what, kind.__name__, frame, partial(_view, kind))


def _view(kind: HeaderType, data: bytes) -> object:
    return kind.from_ext_fields(decode_command(data).header.ext_fields or {})


def _with_text(direction: str, code: int, usual: Any, name: str, text: str) -> bytes:
    """A frame whose header has this text for one number."""
    without = dataclasses.replace(usual, **{name: None}).to_ext_fields()
    fields = usual.to_ext_fields()
    (key,) = fields.keys() - without.keys()
    command = _command(direction, code, usual, b"", SerializeType.JSON)
    command.header.ext_fields = {**fields, key: text}
    return command.encode()


def _damaged_bodies() -> Iterator[Vector]:
    for direction, code, _, kind in _tables():
        if kind is not None:
            data = _usual(kind, _in_bytes).encode()
            for what, damaged in (("last byte missing", data[:-1]), ("a list", b"[]"), ("no text", b"\xff")):
                name = f"{command_name(code)} {direction} body, {what}"
                yield from _refused(name, kind.__name__, damaged, kind.decode)


def _damaged_whole(kind: type[Any]) -> Iterator[Vector]:
    data = _usual(kind, _in_bytes).encode()
    for what, damaged in (
        ("no bytes", b""),
        ("last byte missing", data[:-1]),
        ("one byte more", data + b"\x00"),
        ("first byte changed", _flipped(data, 0)),
        ("last byte changed", _flipped(data, len(data) - 1)),
    ):
        yield from _refused(f"{kind.__name__}, {what}", kind.__name__, damaged, kind.decode)


def _flipped(data: bytes, at: int) -> bytes:
    """The bytes with the highest bit of one changed."""
    return data[:at] + bytes([data[at] ^ 0x80]) + data[at + 1 :]


def read_back(vector: Vector) -> object:
    """What our codecs make of a vector: its plain fields. Raises ProtocolError for a damaged one."""
    data = bytes.fromhex(vector["hex"])
    if vector["message"] == "frame":
        return plain(decode_command(data).header)
    kind = _class_of(vector["message"])
    if hasattr(kind, "from_ext_fields"):
        return plain(_view(kind, data))
    return plain(kind.decode(data))


def _class_of(name: str) -> Any:
    tables = (REQUEST_HEADERS, RESPONSE_HEADERS, REQUEST_BODIES, RESPONSE_BODIES)
    kinds = [each for table in tables for each in table.values()] + _messages(ha) + _messages(store)
    return next(each for each in kinds if each.__name__ == name)
