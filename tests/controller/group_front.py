"""A group of controllers as one address: whoever connects here is heard by all members, and answered by
whoever leads. Another one does again and again: once it has led for a while, after so many answers more.

It does what a broker's library does: heartbeats go to all, everything else to the leader, and what a member
refuses because it does not lead is asked of the next one. What an administrator sets goes to all: members
do not share what they were started with, so each is told, as `replispec admin` and mqadmin do.

The leader moves between two requests only: what becomes of a request that is under way then is the business
of who asked, which the suite cannot be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import trio

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.framing import Command, FrameBuffer, decode_command
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import GROUP_QUESTIONS_VERSION
from replispec.wire.rocketmq.controller import (
    GetMetadataRequest,
    GetMetadataResponse,
    TransferLeadRequest,
)
from replispec.wire.rocketmq.remoting import RemotingHeader
from replispec.wire.rocketmq.streams import REMOTING

HOST = "127.0.0.1"
READ_BYTES = 65_536
LENGTH_BYTES = 4
FRAME_BYTES_MAX = 16 << 20
PAUSE_S = 0.05
QUIET_S = 2.0
TOLD_TO_ALL = (RequestCode.BROKER_HEARTBEAT, RequestCode.UPDATE_CONTROLLER_CONFIG)
Broken = (trio.BrokenResourceError, trio.ClosedResourceError, OSError)


@dataclass
class GroupFront:
    """`members` are ports by id. Each leads for `leads_s`, in which it may elect, and for `answers_between`
    more; `moves` counts. `is_moving`: until then the leader stays."""

    members: Mapping[str, int]
    answers_between: int
    leads_s: float
    moves: int = 0
    is_moving: bool = False
    leader: str = ""
    _lines: set[_Line] = field(default_factory=set)
    _answered: int = 0
    _may_move_at: float = 0.0
    _due: trio.Event = field(default_factory=trio.Event)
    gate: trio.Event = field(default_factory=trio.Event)

    async def serve(self, *, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve; the status is the address, once somebody leads."""
        await self._found(None)
        self.gate.set()
        listeners = await trio.open_tcp_listeners(0, host=HOST)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._move_on)
            nursery.start_soon(trio.serve_listeners, self._connected, listeners)
            task_status.started(f"{HOST}:{listeners[0].socket.getsockname()[1]}")

    def counted(self) -> None:
        """A request was answered."""
        self._answered += self.is_moving and trio.current_time() >= self._may_move_at
        if self._answered >= self.answers_between:
            self._due.set()

    async def _connected(self, client: trio.SocketStream) -> None:
        line = _Line(self, client)
        self._lines.add(line)
        try:
            await line.run()
        finally:
            self._lines.discard(line)

    async def _move_on(self) -> None:
        """Have another member lead, once nobody waits for an answer; requests wait meanwhile."""
        names = list(self.members)
        while True:
            await self._due.wait()
            self._due = trio.Event()
            self.gate = trio.Event()
            with trio.move_on_after(QUIET_S):
                while any(each.asked for each in self._lines):
                    await trio.sleep(PAUSE_S / 10)
                following = names[(names.index(self.leader) + 1) % len(names)]
                await self._hand_over(following)
                self.moves += 1
            self._answered, self._may_move_at = 0, trio.current_time() + self.leads_s
            self.gate.set()

    async def _hand_over(self, member: str) -> None:
        wanted = TransferLeadRequest(GROUP_QUESTIONS_VERSION, member)
        while self.leader != member:
            await _asked(self.members[self.leader], RequestCode.CONTROLLER_TRANSFER_LEAD, wanted)
            with trio.move_on_after(QUIET_S / 4):
                await self._found(member)

    async def _found(self, wanted: str | None) -> None:
        """Wait until somebody leads, or this one."""
        while True:
            for name, port in self.members.items():
                answer = await _asked(port, RequestCode.CONTROLLER_GET_METADATA_INFO, GetMetadataRequest())
                said = GetMetadataResponse.from_ext_fields(answer.header.ext_fields or {})
                if said.is_leader and wanted in (None, name):
                    self.leader = name
                    return
            await trio.sleep(PAUSE_S)


async def _asked(port: int, code: int, header: GetMetadataRequest | TransferLeadRequest) -> Command:
    fields = RemotingHeader(code=code, ext_fields=header.to_ext_fields())
    async with await trio.open_tcp_stream(HOST, port) as stream:
        await stream.send_all(Command(fields, b"").encode())
        frames = FrameBuffer(REMOTING)
        while data := await stream.receive_some(READ_BYTES):
            for frame in frames.receive(data):
                return decode_command(frame)
    raise ConnectionResetError(f"{port} hung up")


@dataclass(eq=False)
class _Open:
    """A request that was asked of `leader` and perhaps others: who of them has not answered, and what was."""

    leader: str
    frame: bytes
    members: set[str]
    answer: bytes = b""


class _Line:
    """One connection, and one from it to each member."""

    def __init__(self, front: GroupFront, client: trio.SocketStream) -> None:
        self._front, self._client = front, client
        self._to: dict[str, trio.SocketStream] = {}
        self._waiting = b""
        self._is_foreign = False
        self._nursery: trio.Nursery
        self.asked: dict[int, list[_Open]] = {}

    async def run(self) -> None:
        """Until either side hangs up."""
        try:
            for name, port in self._front.members.items():
                self._to[name] = await trio.open_tcp_stream(HOST, port)
            async with trio.open_nursery() as self._nursery:
                for name in self._to:
                    self._nursery.start_soon(self._answers, name)
                await self._requests()
        finally:
            self.asked.clear()
            for each in (self._client, *self._to.values()):
                each.socket.close()

    async def _requests(self) -> None:
        try:
            while data := await self._client.receive_some(READ_BYTES):
                await self._take(data)
            await self._tell(self._front.leader, self._waiting)
            for each in self._to.values():
                await each.send_eof()
        except Broken:
            self._nursery.cancel_scope.cancel()

    async def _take(self, data: bytes) -> None:
        self._waiting += data
        while not self._is_foreign and len(self._waiting) >= LENGTH_BYTES:
            size = LENGTH_BYTES + int.from_bytes(self._waiting[:LENGTH_BYTES])
            self._is_foreign = size > FRAME_BYTES_MAX
            if self._is_foreign or len(self._waiting) < size:
                break
            frame, self._waiting = self._waiting[:size], self._waiting[size:]
            await self._front.gate.wait()
            await self._ask(frame)
        if self._is_foreign:
            await self._tell(self._front.leader, self._waiting)
            self._waiting = b""

    async def _ask(self, frame: bytes) -> None:
        leader = self._front.leader
        try:
            header = decode_command(frame).header
        except RemoteProtocolError:
            await self._tell(leader, frame)
            return
        asked = {leader, *(self._to if header.code in TOLD_TO_ALL else ())}
        if not header.flag & (RemotingFlag.ONEWAY | RemotingFlag.RESPONSE):
            self.asked.setdefault(header.opaque, []).append(_Open(leader, frame, set(asked)))
        for name in asked:
            await self._tell(name, frame)

    async def _tell(self, name: str, data: bytes) -> None:
        await self._to[name].send_all(data)

    async def _answers(self, name: str) -> None:
        frames = FrameBuffer(REMOTING)
        try:
            while data := await self._to[name].receive_some(READ_BYTES):
                for frame in frames.receive(data):
                    await self._answered(name, frame)
        except Broken:
            pass
        if name == self._front.leader:
            self._nursery.cancel_scope.cancel()

    async def _answered(self, name: str, frame: bytes) -> None:
        header = decode_command(frame).header
        open_ones = self.asked.get(header.opaque, [])
        found = next((each for each in open_ones if name in each.members), None)
        if found is None:
            return
        found.members.discard(name)
        if name == found.leader:
            found.answer = frame
        if found.members:
            return
        open_ones.remove(found)
        if not open_ones:
            del self.asked[header.opaque]
        code = decode_command(found.answer).header.code
        if code == ResponseCode.CONTROLLER_NOT_LEADER and found.leader != self._front.leader:
            await self._front.gate.wait()
            await self._ask(found.frame)
            return
        await self._client.send_all(found.answer)
        self._front.counted()
