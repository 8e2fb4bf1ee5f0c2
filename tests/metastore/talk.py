"""Clients of a node that is handed its events one by one: what each sends, and all that it is told."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from replispec.metastore.zookeeper.node import LISTENER, MetastoreNode
from replispec.runtime.primitives.binary import BinaryMessage
from replispec.runtime.primitives.exchanges import OpenRequests, PairedAnswer
from replispec.runtime.primitives.frames import FrameBuffer
from replispec.runtime.primitives.rng import Rng
from replispec.runtime.sim.disk import Disk
from replispec.runtime.sim.files import SimulatedFiles
from replispec.runtime.sim.journal import SimulatedJournal
from replispec.runtime.storage import StorageFailed, StorageFull, Stores
from replispec.runtime.world import (
    Accepted,
    Close,
    Closed,
    Effect,
    Event,
    Halt,
    Note,
    Pause,
    Persist,
    Persisted,
    PersistFailed,
    Received,
    Resume,
    Send,
    Started,
    Ticked,
    Writable,
)
from replispec.wire.zookeeper.commands import REPLY_FRAME
from replispec.wire.zookeeper.connection import ConnectRequest, ConnectResponse, ReplyFrame, RequestFrame
from replispec.wire.zookeeper.operations import AccessEntry, CreateRequest, GetDataRequest, SetDataRequest
from replispec.wire.zookeeper.options import MetastoreLimits, MetastoreOptions
from replispec.wire.zookeeper.streams import ANSWERS

OPEN_ACL = [AccessEntry(31, "world", "anyone")]
NUMBERS = {code: number for number, code in REPLY_FRAME.numbers.items()}


class Talk:
    """A node, its disk, and the clients that speak to it. While `holds_writes` nothing is written."""

    def __init__(
        self,
        disk: Disk | None = None,
        *,
        limits: MetastoreLimits | None = None,
        now_ms: int = 1_000_000,
        **options: int,
    ) -> None:
        self.disk = disk or Disk(Rng(1))
        self.options = MetastoreOptions(limits=limits or MetastoreLimits(), **options)  # type: ignore[arg-type]
        self.now_ms = now_ms
        self.notes: list[Note] = []
        self.halted: list[str] = []
        self.holds_writes = False
        self.clients: dict[int, Client] = {}
        self.begin()

    def begin(self) -> None:
        """The process starts, again: all that the disk holds is there."""
        journal, files = SimulatedJournal(self.disk), SimulatedFiles(self.disk)
        self.stores = Stores(files=files, journal=journal)
        self.node = MetastoreNode(self.options, journal, files, len(self.disk.changes) + 7)
        self.persists: deque[Persist] = deque()
        self.clients.clear()
        self.give(Started(self.now_ms, {LISTENER: "127.0.0.1:2181"}))

    def give(self, event: Event) -> None:
        """Hand the node an event, and carry out all that follows."""
        for effect in self.node.receive(event):
            self._carry_out(effect)
        if not self.holds_writes:
            self.write()

    def write(self) -> None:
        """Carry out what the node wants written."""
        while self.persists:
            persist = self.persists.popleft()
            try:
                self.stores.carry_out(persist.operations)
            except StorageFailed as error:
                is_full = isinstance(error, StorageFull)
                self._answer(PersistFailed(persist.token, str(error), is_full, self.now_ms))
            else:
                self._answer(Persisted(persist.token, self.now_ms))

    def _answer(self, event: Event) -> None:
        for effect in self.node.receive(event):
            self._carry_out(effect)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Send(connection, data, tell):
                client = self.clients[connection]
                client.take(bytes(data))
                if tell:
                    client.wants_writable = True
            case Close(connection):
                self.clients[connection].is_closed = True
            case Persist():
                self.persists.append(effect)
            case Note():
                self.notes.append(effect)
            case Halt(reason):
                self.halted.append(reason)
            case Pause(connection):
                self.clients[connection].is_paused = True
            case Resume(connection):
                self.clients[connection].is_paused = False
            case _:
                raise AssertionError(effect)

    def pass_time(self, millis: int) -> None:
        """Let time pass; the node gets each tick that it wants."""
        end_ms = self.now_ms + millis
        while (deadline_ms := self.node.deadline_ms()) is not None and deadline_ms <= end_ms:
            self.now_ms = max(deadline_ms, self.now_ms)
            self.give(Ticked(self.now_ms))
        self.now_ms = end_ms

    def client(self, **how: Any) -> Client:
        """A new client with a session of its own, or the one that it is given."""
        client = self.connection()
        client.connect(**how)
        return client

    def serves(self, client: Client) -> bool:
        """Whether the node has not hung up on a client."""
        return not client.is_closed

    def connection(self, address: str = "10.0.0.1:1") -> Client:
        """A connection on which nothing was said yet."""
        client = Client(self, len(self.clients) + 1)
        self.clients[client.number] = client
        self.give(Accepted(client.number, LISTENER, address, self.now_ms))
        return client


class Client:
    """One connection. `told` is what came, in order: answers, notifications, bytes that are no frame."""

    def __init__(self, talk: Talk, number: int) -> None:
        self.talk = talk
        self.number = number
        self.is_closed = self.is_paused = self.wants_writable = False
        self.greeting: ConnectResponse | None = None
        self.raw = b""
        self.told: list[tuple[ReplyFrame, PairedAnswer]] = []
        self._frames = FrameBuffer(ANSWERS)
        self._pairing = OpenRequests(REPLY_FRAME, most=1_000_000)
        self._xid = 0

    def connect(
        self,
        *,
        timeout: int = 6_000,
        session: int = 0,
        password: bytes | None = b"\0" * 16,
        seen: int = 0,
        read_only: bool | None = False,
    ) -> None:
        """Ask for a session."""
        self.send_bytes(ConnectRequest(0, seen, timeout, session, password, read_only).encode())

    def again(self, *, seen: int = 0, timeout: int = 6_000) -> Client:
        """Another connection for the same session."""
        assert self.greeting is not None
        return self.talk.client(
            session=self.greeting.session_id, password=self.greeting.password, seen=seen, timeout=timeout
        )

    @property
    def session(self) -> int:
        assert self.greeting is not None
        return self.greeting.session_id

    def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.talk.give(Received(self.number, data, self.talk.now_ms))

    def request(self, message: BinaryMessage, code: int | None = None) -> bytes:
        """The bytes of a request, which is awaited from now on."""
        if code is None:
            (code,) = type(message).CODES  # type: ignore[attr-defined]
        number = NUMBERS.get(code)
        if number is None:
            self._xid += 1
            number = self._xid
        frame = RequestFrame(number, code, message.encode() or b"")
        self._pairing.ask(frame)
        return frame.encode()

    def send(self, *messages: BinaryMessage) -> None:
        """Send requests, all in one piece."""
        self.send_bytes(b"".join(map(self.request, messages)))

    def ask(self, message: BinaryMessage) -> tuple[int, BinaryMessage | None]:
        """Send a request; its error and its answer."""
        self.send(message)
        frame, answered = self.told[-1]
        assert answered.asked is not None, "the last that came is no answer"
        return frame.error, answered.message  # type: ignore[return-value]

    def create(self, path: str, data: bytes | None = b"", flags: int = 0) -> int:
        """Make a node; the error."""
        return self.ask(CreateRequest(path, data, OPEN_ACL, flags))[0]

    def set(self, path: str, data: bytes, version: int = -1) -> int:
        """Set data; the error."""
        return self.ask(SetDataRequest(path, data, version))[0]

    def get(self, path: str, *, watch: bool = False) -> bytes | None:
        """The data of a node that is there."""
        error, message = self.ask(GetDataRequest(path, watch))
        assert error == 0, error
        data: bytes | None = message.data  # type: ignore[union-attr]
        return data

    def take(self, data: bytes) -> None:
        """Bytes came."""
        assert not self.is_closed, "bytes after the end"
        self.raw += data
        if not data or self.raw[:4].isalpha() or self.raw[:2] == b"rw":
            return
        for frame in self._frames.receive(data):
            if self.greeting is None:
                self.greeting = ConnectResponse.decode(frame)
            else:
                reply = ReplyFrame.decode(frame)
                self.told.append((reply, self._pairing.answered(reply)))

    def drain(self) -> None:
        """Read what was sent, as long as the node wants to know of it."""
        while self.wants_writable and not self.is_closed:
            self.wants_writable = False
            self.talk.give(Writable(self.number, self.talk.now_ms))

    def leave(self) -> None:
        """The connection breaks."""
        self.is_closed = True
        self.talk.give(Closed(self.number, "reset", self.talk.now_ms))

    def notifications(self) -> Sequence[tuple[int, str | None]]:
        """What was told without being asked, in order."""
        return [
            (each.message.event, each.message.path)  # type: ignore[union-attr]
            for _, each in self.told
            if each.asked is None
        ]
