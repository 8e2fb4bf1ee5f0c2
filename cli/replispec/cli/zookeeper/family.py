"""Frames of ZooKeeper's clients and servers as words of one line.

An answer is read by its request, which was printed before it: what waits is kept by connection.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Final

from replispec.cli.family import FrameWords
from replispec.cli.frame_text import Row, shown
from replispec.runtime.primitives.errors import ProtocolError
from replispec.runtime.primitives.exchanges import OpenRequests
from replispec.wire.zookeeper.codes import AdminWord, ErrorCode, OpCode
from replispec.wire.zookeeper.commands import REPLY_FRAME
from replispec.wire.zookeeper.connection import AdminWordFrame, ConnectRequest, ReplyFrame, RequestFrame

WAITING_MAX: Final = 4096
"""So many requests of a connection wait for their answers at most."""
CONNECTIONS_MAX: Final = 4096
"""Of so many connections requests are kept; those that were silent for longest are let go of."""


class _Words:
    def __init__(self) -> None:
        self._pairings: OrderedDict[tuple[str, str], OpenRequests] = OrderedDict()

    def __call__(self, row: Row) -> Iterator[str]:
        """What the frame is, and its fields."""
        name = row["said"]
        if name == RequestFrame.__name__:
            return self._request(row)
        if name == ReplyFrame.__name__:
            return self._reply(row)
        if name == AdminWordFrame.__name__:
            return iter(["word", _name(AdminWord, row["op_code"])])
        if name == ConnectRequest.__name__:
            self._pairings.pop(_key(row), None)
        return _session(row)

    def _pairing(self, row: Row) -> OpenRequests:
        key = _key(row)
        found = self._pairings.pop(key, None) or OpenRequests(REPLY_FRAME, most=WAITING_MAX)
        self._pairings[key] = found
        if len(self._pairings) > CONNECTIONS_MAX:
            self._pairings.popitem(last=False)
        return found

    def _request(self, row: Row) -> Iterator[str]:
        frame = RequestFrame(row["xid"], row["op_code"], bytes.fromhex(row["body_hex"] or ""))
        yield f"request {_name(OpCode, frame.op_code)}"
        yield f"xid={frame.xid}"
        try:
            self._pairing(row).ask(frame)
            message = REPLY_FRAME.read_request(frame) if row["body_hex"] is not None else None
        except ProtocolError as error:
            yield f"({shown(error.reason)})"
            return
        yield from _values(message)

    def _reply(self, row: Row) -> Iterator[str]:
        frame = ReplyFrame(row["xid"], row["zxid"], row["error"], bytes.fromhex(row["body_hex"] or ""))
        try:
            answer = self._pairing(row).answered(frame)
        except ProtocolError as error:
            yield f"answer  xid={frame.xid}  zxid={frame.zxid:#x}  {_name(ErrorCode, frame.error)}"
            yield f"({shown(error.reason)})"
            return
        if answer.asked is None:
            yield "notification"
        else:
            yield f"answer {_name(OpCode, answer.asked.code)}"
            yield f"xid={frame.xid}  zxid={frame.zxid:#x}"
        if frame.error:
            yield _name(ErrorCode, frame.error)
        yield from _values(answer.message)


def _key(row: Row) -> tuple[str, str]:
    return row["capture"], row["connection"]


def _session(row: Row) -> Iterator[str]:
    yield str(row["said"])
    for column in ("timeout", "session_id", "zxid"):
        if row[column] is not None:
            yield f"{column}={row[column] if column == 'timeout' else hex(row[column])}"


def _name(names: Any, number: int) -> str:
    return str(names(number).name) if number in names._value2member_map_ else str(number)


def _values(message: Any, prefix: str = "") -> Iterator[str]:
    """`name=value` for what a message holds, with that of what lies in it."""
    for each in fields(message) if is_dataclass(message) else ():
        value = getattr(message, each.name)
        for number, one in enumerate(value) if isinstance(value, list) else [(None, value)]:
            name = f"{prefix}{each.name}" if number is None else f"{prefix}{each.name}[{number}]"
            if is_dataclass(one):
                yield from _values(one, f"{name}.")
            elif isinstance(one, bytes):
                yield f"{name}={shown(one.decode('utf-8', 'backslashreplace'))}"
            elif one is not None:
                yield f"{name}={shown(str(one))}"


FAMILY = FrameWords(("zookeeper_requests", "zookeeper_answers"), _Words())
