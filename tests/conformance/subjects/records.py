"""What a subject's core keeps, takes and gives: records of a controller, answers, effects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.headers import Header
from replispec.wire.rocketmq.codes import ResponseCode
from replispec.wire.rocketmq.controller import SyncStateSet

Channel = int
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reply:
    """Send these bytes on the connection that the request came on."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Tell:
    """Send these bytes to a broker's address, `ip:port`."""

    address: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Hangup:
    """Close the connection that the request came on."""


@dataclass(frozen=True, slots=True)
class Die:
    """End the whole subject: its listener and every connection."""


@dataclass(frozen=True, slots=True)
class Reset:
    """Break the connection that the request came on, so that the peer sees a reset."""


@dataclass(frozen=True, slots=True)
class Flood:
    """Send these bytes on the connection that the request came on, again and again, for ever."""

    data: bytes


OnConnection = Reply | Hangup | Reset | Flood
Effect = OnConnection | Tell | Die


@dataclass(slots=True)
class Hearing:
    """A lost master's set: who has yet to be heard before one is elected, and how long that is waited for;
    whose log still grows, and whether they were told to let go of the lost master."""

    left: set[int]
    until_s: float
    growing: set[int] = field(default_factory=set)
    letting_go: bool = False


class Refused(Exception):
    """The answer is this code, perhaps with a header or a body."""

    def __init__(self, code: ResponseCode, remark: str, *, header: Header | None = None, body: bytes = b""):
        super().__init__(remark)
        self.answer = Answer(code, header, body, remark)


@dataclass(slots=True)
class Answer:
    """What is answered, before it becomes a command."""

    code: int = ResponseCode.SUCCESS
    header: Header | None = None
    body: bytes = b""
    remark: str | None = None


@dataclass(slots=True)
class Member:
    """A registered broker."""

    address: str
    check_code: str


@dataclass(slots=True)
class Alive:
    """What a broker last said about itself, and on which connection."""

    channel: Channel
    last_s: float
    timeout_s: float
    epoch: int
    max_offset: int
    priority: int


@dataclass(slots=True)
class BrokerSet:
    """What is recorded about one broker set."""

    name: str
    cluster: str
    members: dict[int, Member] = field(default_factory=dict)
    in_sync: list[int] = field(default_factory=list)
    in_sync_epoch: int = 0
    master: int | None = None
    master_epoch: int = 0
    began_epoch: int = 0
    """The masterEpoch with which the set began: that of an earlier set of this name, which was emptied."""

    @property
    def never_led(self) -> bool:
        """Whether nobody was elected in the set yet."""
        return self.master_epoch == self.began_epoch

    def address(self, broker: int | None) -> str | None:
        """The recorded address of a member; None for nobody."""
        return None if broker is None or broker not in self.members else self.members[broker].address

    def sync_state_set(self) -> SyncStateSet:
        """The set as the wire shows it."""
        return SyncStateSet(broker_ids=sorted(self.in_sync), sync_state_set_epoch=self.in_sync_epoch)


def need(value: T | None, name: str) -> T:
    """The value. Raises RemoteProtocolError when the peer left it out."""
    if value is None:
        raise RemoteProtocolError(f"{name} is missing")
    return value
