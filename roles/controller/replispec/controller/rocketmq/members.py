"""Speaks with the other members of a controller's group: a connection out to each, messages in on its port.

Messages may be lost: what cannot leave soon is dropped, and the agreement sends it again. Who speaks for a
member is judged by the host it speaks from, as far as a controller without authentication can tell: the host
of the member as it is configured, or what that name led to when this side dialled it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from replispec.controller.consensus import Message
from replispec.controller.consensus.raft import number_of
from replispec.controller.rocketmq.core.heartbeats import host_of
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.access import Sign
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.remoting import Request
from replispec.runtime.rocketmq.remoting.server import LANGUAGE
from replispec.runtime.world import Closed, Connected, Level, Outbox, Writable
from replispec.wire.raft.codes import RequestCode
from replispec.wire.raft.member import RaftLeadRequest
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.codes import RemotingFlag
from replispec.wire.rocketmq.remoting import RemotingHeader

CODES: Final = frozenset(int(code) for code in RequestCode if code)
"""What members tell each other."""
_ANSWERS: Final = frozenset(
    map(int, (RequestCode.VOTE_ANSWER, RequestCode.ENTRIES_ANSWER, RequestCode.SNAPSHOT_PART_ANSWER))
)
"""Nobody answers these: who said one may hear nothing for as long as somebody else leads."""
WAITING_MAX: Final = 64
"""Messages that wait for a connection; older ones give way."""


@dataclass(slots=True)
class _Line:
    """The way to one member. `connection` is None in a pause, which ends at `again_ms`.

    `hosts`: from where it may speak. `asked_ms`: since when it has been asked something and was not heard.
    """

    member: str
    address: str
    hosts: set[str]
    connection: int | None = None
    dialled_ms: int = 0
    is_open: bool = False
    waiting: list[bytes] = field(default_factory=list)
    again_ms: int = 0
    pause_ms: int = constants.MEMBER_DIAL_FIRST_MS
    asked_ms: int | None = None
    unsent_bytes: int = 0
    awaits_writable: bool = False
    is_told: bool = False


class UnknownMember(RemoteProtocolError):
    """Somebody speaks for a member that this one does not know."""


class Members:
    """The other members of a group."""

    def __init__(self, outbox: Outbox, sign: Sign | None = None) -> None:
        self._outbox = outbox
        self._sign = sign
        self._opaque = 0
        self._lines: dict[str, _Line] = {}
        self._by_number: dict[int, _Line] = {}
        self._by_connection: dict[int, _Line] = {}

    def are(self, addresses: Mapping[str, str], now_ms: int) -> None:
        """They are these, each reached at its HOST:PORT, and no others. Whoever is new is dialled: what its
        name leads to is known from then on."""
        for member, line in tuple(self._lines.items()):
            if addresses.get(member) != line.address:
                self._drop(line)
        for member, address in addresses.items():
            if member not in self._lines:
                line = _Line(member, address, {host_of(address)})
                self._lines[member] = self._by_number[number_of(member)] = line
                self._dial(line, now_ms)

    def _drop(self, line: _Line) -> None:
        del self._lines[line.member], self._by_number[number_of(line.member)]
        if line.connection is not None:
            del self._by_connection[line.connection]
            self._outbox.close(line.connection)

    def are_reached(self) -> frozenset[str]:
        """Those that are connected and do not owe an answer."""
        lines = self._lines.values()
        return frozenset(each.member for each in lines if each.is_open and not each.is_told)

    def owns(self, connection: int) -> bool:
        """Whether this connection is one of ours."""
        return connection in self._by_connection

    # Out

    def send(self, member: str, message: Message, now_ms: int) -> None:
        """Tell a member, if it can be told soon."""
        line = self._lines.get(member)
        if line is None:
            return
        if line.asked_ms is None and message.code not in _ANSWERS:
            line.asked_ms = now_ms
        data = self._frame(message)
        if line.is_open:
            self._put(line, data)
            return
        line.waiting.append(data)
        del line.waiting[:-WAITING_MAX]

    def connected(self, event: Connected) -> None:
        """A member listens: what waits for it leaves, and whoever speaks from there may speak for it."""
        line = self._by_connection[event.connection]
        line.is_open, line.asked_ms = True, None
        if event.peer:
            line.hosts = {host_of(line.address), host_of(event.peer)}
        waiting, line.waiting = line.waiting, []
        for data in waiting:
            self._put(line, data)

    def writable(self, event: Writable) -> None:
        """What was sent has left."""
        line = self._by_connection.get(event.connection)
        if line is not None:
            line.unsent_bytes, line.awaits_writable = 0, False

    def closed(self, event: Closed) -> None:
        """A connection is gone: it is opened again after a pause."""
        line = self._by_connection.get(event.connection)
        if line is not None:
            self._pause(line, event.reason, event.now_ms)

    def ticked(self, now_ms: int) -> None:
        """Dial whom it is time for, and give up on connections over which nothing is heard."""
        for line in self._lines.values():
            due_ms = self._due_ms(line)
            if due_ms is None or now_ms < due_ms:
                continue
            if line.connection is None:
                self._dial(line, now_ms)
            else:
                self._outbox.close(line.connection)
                self._pause(line, "it does not answer", now_ms)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        times = map(self._due_ms, self._lines.values())
        return min((each for each in times if each is not None), default=None)

    # In

    def sender(self, request: Request) -> str:
        """Whose message this may be, by what it says and where it comes from.

        Raises RemoteProtocolError when it is no other member's.
        """
        if request.wants_answer:
            raise RemoteProtocolError("a message of a member wants an answer")
        # All messages of members begin alike.
        said = RaftLeadRequest.from_ext_fields(request.command.header.ext_fields or {})
        line = self._by_number.get(said.member or 0)
        if line is None:
            raise UnknownMember(f"{said.member} is the number of no other member of the group")
        host = host_of(request.peer)
        if host not in line.hosts:
            raise RemoteProtocolError(f"it speaks for member {line.member!r}, which is at {line.address}")
        return line.member

    def heard(self, member: str, now_ms: int) -> None:
        """A message of a member was taken: it is there, and is dialled at once if need be."""
        line = self._lines[member]
        line.asked_ms = None
        line.pause_ms = constants.MEMBER_DIAL_FIRST_MS
        if line.is_told:
            line.is_told = False
            self._outbox.note(Level.INFO, "member heard again", member=line.member)
        if line.connection is None:
            self._dial(line, now_ms)

    def _dial(self, line: _Line, now_ms: int) -> None:
        line.connection = self._outbox.dial(line.address)
        line.dialled_ms, line.asked_ms = now_ms, None
        line.unsent_bytes, line.awaits_writable = 0, False
        self._by_connection[line.connection] = line

    def _pause(self, line: _Line, reason: str, now_ms: int) -> None:
        assert line.connection is not None
        del self._by_connection[line.connection]
        if not line.is_told:
            line.is_told = True
            self._outbox.note(
                Level.WARNING, "member not reached", member=line.member, address=line.address, reason=reason
            )
        line.connection, line.is_open, line.asked_ms = None, False, None
        line.again_ms = now_ms + line.pause_ms
        line.pause_ms = min(2 * line.pause_ms, constants.MEMBER_DIAL_LAST_MS)

    def _due_ms(self, line: _Line) -> int | None:
        """When a pause ends, or the patience with a connection."""
        if line.connection is None:
            return line.again_ms
        if not line.is_open:
            return line.dialled_ms + constants.CONNECT_TIMEOUT_MS
        return None if line.asked_ms is None else line.asked_ms + constants.MEMBER_SILENCE_MS

    def _put(self, line: _Line, data: bytes) -> None:
        assert line.connection is not None
        if line.unsent_bytes > constants.MEMBER_UNSENT_BYTES_MAX:
            return
        line.unsent_bytes += len(data)
        tell = line.unsent_bytes > constants.MEMBER_TELL_BYTES and not line.awaits_writable
        line.awaits_writable = line.awaits_writable or tell
        self._outbox.send(line.connection, data, tell=tell)

    def _frame(self, message: Message) -> bytes:
        self._opaque = 0 if self._opaque >= constants.OPAQUE_MAX else self._opaque + 1
        fields = message.header.to_ext_fields()
        if self._sign is not None:
            fields = self._sign(fields, message.body)
        header = RemotingHeader(
            code=message.code,
            language=LANGUAGE,
            opaque=self._opaque,
            flag=RemotingFlag.ONEWAY,
            ext_fields=fields,
        )
        return Command(header, message.body).encode()
