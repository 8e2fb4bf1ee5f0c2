"""The names of ZooKeeper's client protocol, out of the tables that are generated for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from replispec.conformance.vocabulary import Vocabulary, parse_release
from replispec.runtime.primitives.binary import BinaryMessage
from replispec.wire.zookeeper.codes import (
    ERROR_CODE_NAMES,
    OP_CODE_NAMES,
    AdminWord,
    CreateFlags,
    ErrorCode,
    OpCode,
    Permission,
    SessionStatus,
    WatchEvent,
)
from replispec.wire.zookeeper.commands import REPLY_FRAME
from replispec.wire.zookeeper.connection import (
    AdminWordFrame,
    ConnectRequest,
    ConnectResponse,
    RequestFrame,
)
from replispec.wire.zookeeper.constants import SEEN_RELEASES
from replispec.wire.zookeeper.operations import WatchNotification
from replispec.wire.zookeeper.streams import REQUESTS as REQUEST_STREAM

ZXID = "zxid"
ENUMS: Mapping[str, type[IntEnum]] = {
    "error": ErrorCode,
    "event": WatchEvent,
    "failed": ErrorCode,
    "flags": CreateFlags,
    "op_code": OpCode,
    "permissions": Permission,
    "status": SessionStatus,
    "word": AdminWord,
}
"""What the numbers of these fields are called."""


@dataclass(frozen=True, slots=True)
class ToldWatch:
    """What a subject told without being asked, by its names."""

    event: str
    status: str
    path: str | None


@dataclass(frozen=True, slots=True)
class AdminText:
    """What a word of four letters was answered, up to the end of the connection; `values` are its lines of
    the form `NAME: VALUE`."""

    text: str
    values: Mapping[str, str] = field(default_factory=dict)


def named(name: str, number: int) -> str:
    """The name of the number of a field, its digits when it has none."""
    try:
        return ENUMS[name](number).name
    except ValueError:
        return str(number)


def _binary(kind: object) -> type[BinaryMessage] | None:
    return kind if isinstance(kind, type) and issubclass(kind, BinaryMessage) else None


REQUESTS: Mapping[int, type[BinaryMessage]] = {
    form.code: kind for form in REPLY_FRAME.forms if (kind := _binary(form.request)) is not None
}
ANSWERS: Mapping[int, type[BinaryMessage]] = {
    form.code: kind for form in REPLY_FRAME.forms if (kind := _binary(form.answer)) is not None
}
_RELEASES = [parse_release(each) or () for each in SEEN_RELEASES.split()]


def _places() -> Mapping[str, tuple[int, int]]:
    """Where the numbers at the start of a request lie: their bytes are those that change with them."""
    (form,) = REQUEST_STREAM.forms
    found = {"size": (form.length_at, form.length_size)}
    zero = RequestFrame().encode()
    for name, other in (("xid", RequestFrame(xid=-1)), ("op_code", RequestFrame(op_code=-1))):
        changed = [at for at, pair in enumerate(zip(zero, other.encode(), strict=True)) if len({*pair}) > 1]
        found[name] = changed[0], len(changed)
    return found


VOCABULARY = Vocabulary(
    implementation="zookeeper",
    releases=dict.fromkeys(_RELEASES, 0),
    requests=OP_CODE_NAMES,
    responses=ERROR_CODE_NAMES,
    answer_keys=frozenset((ZXID,)),
    request_bodies=REQUESTS,
    response_bodies=ANSWERS,
    messages={
        AdminWordFrame.__name__: AdminWordFrame,
        ConnectRequest.__name__: ConnectRequest,
        ConnectResponse.__name__: ConnectResponse,
        WatchNotification.__name__: ToldWatch,
        AdminText.__name__: AdminText,
    },
    fixed=_places(),
    landmarks=("body", "next"),
)
