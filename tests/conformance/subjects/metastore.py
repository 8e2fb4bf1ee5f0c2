"""A metastore in a few lines, for tests of the suite; wrong ones override one choice of it each.

Bytes and times in, what is sent and hung up on out: no socket, no clock.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.frames import FrameBuffer
from replispec.wire.zookeeper.codes import AdminWord, ErrorCode, OpCode, SessionStatus, WatchEvent
from replispec.wire.zookeeper.commands import REPLY_FRAME
from replispec.wire.zookeeper.connection import (
    AdminWordFrame,
    ConnectRequest,
    ConnectResponse,
    ReplyFrame,
    RequestFrame,
)
from replispec.wire.zookeeper.constants import PASSWORD_BYTES
from replispec.wire.zookeeper.operations import (
    CreateResponse,
    ExistsResponse,
    GetChildren2Response,
    GetChildrenResponse,
    GetDataResponse,
    MultiRequest,
    MultiResponse,
    MultiResult,
    SetDataResponse,
    SetWatchesRequest,
    SyncResponse,
    WatchNotification,
)
from replispec.wire.zookeeper.streams import REQUESTS
from tests.conformance.subjects.nodes import Nodes, Refusal, Told

FRAME_BYTES_MAX = 1_048_575 + 4
FORMS = {form.code: form.request for form in REPLY_FRAME.forms}
(UNASKED,) = REPLY_FRAME.unasked
DATA, CHILDREN = "data", "children"
Watched = tuple[str, str]


class Client:
    """One connection: what came, what it is to be sent, and whether it is to end then."""

    def __init__(self, number: int, limit_bytes: int) -> None:
        self.number = number
        self.frames = FrameBuffer(REQUESTS, limit_bytes=limit_bytes)
        self.session = 0
        self.out: list[bytes] = []
        self.ends = False
        self.is_broken = False


class KnownSession:
    """A session, who has it, and when it expires."""

    def __init__(self, number: int, password: bytes) -> None:
        self.number = number
        self.password = password
        self.client: Client | None = None
        self.timeout_ms = 0
        self.until_s = math.inf


class GoodMetastore:
    """A metastore that does it right."""

    nodes_kind: type[Nodes] = Nodes
    tick_ms, least_ms, most_ms = 1000, 2000, 20000
    limit_bytes = FRAME_BYTES_MAX

    def __init__(self, now_s: Callable[[], float]) -> None:
        self.now_s = now_s
        self.nodes = self.nodes_kind()
        self.sessions: dict[int, KnownSession] = {}
        self.clients: dict[int, Client] = {}
        self.watches: dict[Watched, dict[int, None]] = {}
        self.ended = 0

    # What a fault overrides

    def granted(self, wish_ms: int) -> int:
        """The timeout that is granted."""
        return max(self.least_ms, min(wish_ms, self.most_ms))

    def knows(self, session: KnownSession, password: bytes | None) -> bool:
        """Whether who asks may have the session."""
        return session.password == password

    def said_of_reading(self, asked: ConnectRequest) -> bool | None:
        """Whether who connects is told that the server writes."""
        return None if asked.read_only is None else False

    def is_behind(self, asked: ConnectRequest) -> bool:
        """Whether a client has seen what is not here."""
        return asked.last_zxid_seen > self.nodes.zxid

    def refused(self, client: Client) -> None:
        """What follows the refusal of a session."""
        client.ends = True

    def strangers(self, session: KnownSession) -> None:
        """Somebody asked for a session with a wrong password."""

    def moved(self, session: KnownSession, before: Client, after: Client) -> None:  # noqa: ARG002
        """A session has another connection."""
        before.ends = True
        self.forget_watches(before)

    def lasts_ms(self, session: KnownSession) -> int:
        """How long a session lives without a word."""
        return session.timeout_ms + self.tick_ms

    def touches(self, op_code: int) -> bool:  # noqa: ARG002
        """Whether a request lets its session live."""
        return True

    def closed(self, session: KnownSession) -> None:
        """A session is over."""
        del self.sessions[session.number]

    def gone_with(self, session: KnownSession) -> list[str]:
        """The nodes that go with a session."""
        return self.nodes.of_session(session.number)

    def new_number(self) -> int:
        """The number of the next session."""
        return 0x1000_0000_0001 + len(self.sessions) + self.ended

    def zxid_told(self) -> int:
        """The zxid of an answer."""
        return self.nodes.zxid

    def leaves_watch(self, op_code: int, *, failed: bool) -> bool:
        """Whether a read with a watch leaves it."""
        return not failed or op_code == OpCode.EXISTS

    def heard(self, event: int, path: str) -> Iterable[int]:
        """Who hears of an event; they watch no more."""
        kinds = {
            WatchEvent.CREATED: (DATA,),
            WatchEvent.DATA_CHANGED: (DATA,),
            WatchEvent.DELETED: (DATA, CHILDREN),
            WatchEvent.CHILDREN_CHANGED: (CHILDREN,),
        }[WatchEvent(event)]
        found: dict[int, None] = {}
        for kind in kinds:
            found |= self.watches.pop((kind, path), {})
        return found

    def missed(self, said: SetWatchesRequest) -> Iterable[tuple[int | None, str, str]]:
        """What a client missed: the event (None: nothing), what it watches, and where."""
        since = said.relative_zxid
        for path in said.data_watches or ():
            node = self.nodes.all.get(path)
            event = WatchEvent.DATA_CHANGED if node and node.mzxid > since else None
            yield event if node else WatchEvent.DELETED, DATA, path
        for path in said.exist_watches or ():
            yield WatchEvent.CREATED if path in self.nodes.all else None, DATA, path
        for path in said.child_watches or ():
            node = self.nodes.all.get(path)
            event = WatchEvent.CHILDREN_CHANGED if node and node.pzxid > since else None
            yield event if node else WatchEvent.DELETED, CHILDREN, path

    def names(self, path: str) -> list[str]:
        """The children that are told."""
        return sorted(self.nodes.there(path).children)

    def synced(self, path: str | None) -> str | None:
        """What a sync is answered."""
        return path

    def unknown(self, client: Client, asked: RequestFrame) -> None:
        """A type that nobody knows was asked."""
        self.answer(client, asked.xid, ErrorCode.UNIMPLEMENTED)

    def unreadable(self, client: Client, asked: RequestFrame) -> None:
        """The body of a request does not decode."""
        self.answer(client, asked.xid, ErrorCode.MARSHALLING_ERROR)

    def credentials(self, client: Client, asked: RequestFrame) -> None:
        """Somebody says who he is."""
        self.answer(client, asked.xid, ErrorCode.AUTH_FAILED)
        client.ends = True

    def said_of_word(self, word: int) -> str:
        """What a word is answered."""
        if word == AdminWord.SRVR:
            return f"Zookeeper version: 0, scripted\nZxid: {self.nodes.zxid:#x}\nMode: standalone\n"
        return "imok"

    def broken(self, client: Client) -> None:
        """Who broke the protocol is hung up on."""
        client.ends = True

    def rolled_back(self, before: Nodes) -> None:
        """A multi failed: all is as it was."""
        self.nodes = before

    def told_of_failed(self, told: list[Told]) -> list[Told]:  # noqa: ARG002
        """What is told of a multi that failed."""
        return []

    def failed_results(self, count: int, at: int, why: int) -> list[int]:
        """The errors of a multi of which one operation failed."""
        return [
            ErrorCode.OK if each < at else why if each == at else ErrorCode.RUNTIME_INCONSISTENCY
            for each in range(count)
        ]

    def failed_frame(self, why: int) -> int:  # noqa: ARG002
        """The error of the frame of such an answer."""
        return ErrorCode.OK

    def between_operations(self) -> None:
        """After each operation of a multi."""

    def order(self, told: list[Told]) -> Sequence[Told]:
        """In which order events are told."""
        return told

    def frames_in_turn(self, frames: list[bytes]) -> list[bytes]:
        """In which order requests that came together are served."""
        return frames

    def after(self, client: Client, told: list[Told], answer: Callable[[], None]) -> None:  # noqa: ARG002
        """A change is done: who watches is told, then it is answered."""
        self.tell(told)
        answer()

    # What stays

    def accepted(self, number: int) -> Client:
        """A connection is there."""
        client = self.clients[number] = Client(number, self.limit_bytes)
        return client

    def receive(self, client: Client, data: bytes) -> None:
        """Bytes came."""
        if client.is_broken:
            return
        try:
            frames = client.frames.receive(data)
        except RemoteProtocolError:
            client.is_broken = True
            self.broken(client)
            return
        for frame in self.frames_in_turn(frames):
            if client.ends:
                return
            try:
                self.serve(client, frame)
            except RemoteProtocolError:
                self.broken(client)
                return

    def disconnected(self, client: Client) -> None:
        """A connection is gone."""
        self.clients.pop(client.number, None)
        self.forget_watches(client)
        session = self.sessions.get(client.session)
        if session is not None and session.client is client:
            session.client = None

    def deadline_s(self) -> float:
        """When the next session expires."""
        return min((each.until_s for each in self.sessions.values()), default=math.inf)

    def tick(self) -> None:
        """Time has passed."""
        for session in [each for each in self.sessions.values() if each.until_s <= self.now_s()]:
            self.end(session)
            if session.client is not None:
                session.client.ends = True

    def serve(self, client: Client, frame: bytes) -> None:
        """One frame. Raises RemoteProtocolError."""
        if client.session:
            self.request(client, RequestFrame.decode(frame))
        elif REQUESTS.opening.form_at(frame, 0, len(frame)).message == AdminWordFrame.__name__:  # type: ignore[union-attr]  # a first frame has a form
            client.out.append(self.said_of_word(AdminWordFrame.decode(frame).word).encode())
            client.ends = True
        else:
            self.connect(client, ConnectRequest.decode(frame))

    def connect(self, client: Client, asked: ConnectRequest) -> None:
        """The first frame of a client."""
        if self.is_behind(asked):
            client.ends = True
            return
        session = self.sessions.get(asked.session_id)
        if asked.session_id == 0:
            number = self.new_number()
            password = abs(number).to_bytes(PASSWORD_BYTES, "big")
            session = self.sessions[number] = KnownSession(number, password)
        elif session is None or not self.knows(session, asked.password):
            if session is not None:
                self.strangers(session)
            self.greet(client, asked, 0, 0, bytes(PASSWORD_BYTES))
            self.refused(client)
            return
        before, session.client = session.client, client
        client.session = session.number
        session.timeout_ms = self.granted(asked.timeout)
        self.touch(session)
        if before is not None:
            self.moved(session, before, client)
        self.greet(client, asked, session.timeout_ms, session.number, session.password)

    def greet(
        self, client: Client, asked: ConnectRequest, timeout_ms: int, number: int, password: bytes
    ) -> None:
        """The answer to who connects."""
        said = self.said_of_reading(asked)
        client.out.append(ConnectResponse(0, timeout_ms, number, password, said).encode())

    def touch(self, session: KnownSession) -> None:
        """A session was heard."""
        session.until_s = self.now_s() + self.lasts_ms(session) / 1000

    def end(self, session: KnownSession) -> None:
        """A session is over, and what goes with it."""
        self.ended += 1
        told: list[Told] = []
        self.nodes.begin()
        for path in self.gone_with(session):
            told += self.nodes.delete(path, -1)
        self.closed(session)
        self.tell(told)

    def forget_watches(self, client: Client) -> None:
        """Watches of a connection are no more."""
        for watching in self.watches.values():
            watching.pop(client.number, None)

    def tell(self, told: list[Told]) -> None:
        """Tell those who watch."""
        for event, path in self.order(told):
            for number in list(self.heard(event, path)):
                if number in self.clients:
                    self.notify(self.clients[number], event, path)

    def notify(self, client: Client, event: int, path: str) -> None:
        """Tell one of them."""
        body = WatchNotification(event, SessionStatus.CONNECTED, path).encode()
        client.out.append(ReplyFrame(UNASKED, -1, ErrorCode.OK, body).encode())

    def answer(self, client: Client, xid: int, error: int = 0, message: Any = None) -> None:
        """Answer a request."""
        body = b"" if message is None else message.encode()
        client.out.append(ReplyFrame(xid, self.zxid_told(), error, body).encode())

    def request(self, client: Client, asked: RequestFrame) -> None:
        """A request of a session."""
        session, code = self.sessions[client.session], asked.op_code
        if self.touches(code):
            self.touch(session)
        if code not in FORMS:
            self.unknown(client, asked)
            return
        form: Any = FORMS[code]
        try:
            said = form.decode(asked.body)
        except RemoteProtocolError:
            self.unreadable(client, asked)
            return
        match code:
            case OpCode.PING:
                self.answer(client, asked.xid)
            case OpCode.AUTH:
                self.credentials(client, asked)
            case OpCode.CLOSE_SESSION:
                self.end(session)
                self.answer(client, asked.xid)
                client.ends = True
            case OpCode.MULTI:
                self.multi(client, asked.xid, said)
            case OpCode.CREATE | OpCode.DELETE | OpCode.SET_DATA:
                self.change(client, asked.xid, code, said)
            case OpCode.SET_WATCHES:
                self.set_watches(client, asked.xid, said)
            case _:
                self.read(client, asked.xid, code, said)

    def change(self, client: Client, xid: int, code: int, said: Any) -> None:
        """One change."""
        self.nodes.begin()
        try:
            told, result = self.operation(code, said, client.session)
        except Refusal as refusal:
            self.answer(client, xid, refusal.error)
            return
        self.after(client, told, lambda: self.answer(client, xid, 0, result))

    def operation(self, code: int, said: Any, session: int) -> tuple[list[Told], Any]:
        """Do one change; what happened, and what is answered. Raises Refusal."""
        match code:
            case OpCode.CREATE:
                path, told = self.nodes.create(said, session)
                return told, CreateResponse(path)
            case OpCode.DELETE:
                return self.nodes.delete(said.path, said.version), None
            case OpCode.SET_DATA:
                told = self.nodes.set_data(said.path, said.data, said.version)
                return told, SetDataResponse(self.nodes.there(said.path).stat())
            case _:
                self.nodes.check(said.path, said.version)
                return [], None

    def multi(self, client: Client, xid: int, said: MultiRequest) -> None:
        """Several changes, or none."""
        before, told, results = copy.deepcopy(self.nodes), list[Told](), list[MultiResult]()
        self.nodes.begin()
        for at, each in enumerate(said.operations):
            asked = each.create or each.delete or each.set_data or each.check
            try:
                more, result = self.operation(each.op_code, asked, client.session)
            except Refusal as refusal:
                self.rolled_back(before)
                errors = self.failed_results(len(said.operations), at, refusal.error)
                results = [MultiResult(OpCode.ERROR, error, failed=error) for error in errors]
                self.tell(self.told_of_failed(told))
                error = self.failed_frame(refusal.error)
                self.answer(client, xid, error, None if error else MultiResponse(results))
                return
            self.between_operations()
            told += more
            made = result if isinstance(result, CreateResponse) else None
            changed = result if isinstance(result, SetDataResponse) else None
            results.append(MultiResult(each.op_code, 0, made, changed))
        self.after(client, told, lambda: self.answer(client, xid, 0, MultiResponse(results)))

    def read(self, client: Client, xid: int, code: int, said: Any) -> None:
        """A question."""
        failed, result = 0, None
        try:
            result = self.found(code, said.path)
        except Refusal as refusal:
            failed = refusal.error
        if code != OpCode.SYNC and said.watch and self.leaves_watch(code, failed=bool(failed)):
            kind = DATA if code in (OpCode.EXISTS, OpCode.GET_DATA) else CHILDREN
            self.watch(client, kind, said.path)
        self.answer(client, xid, failed, result)

    def watch(self, client: Client, kind: str, path: str) -> None:
        """A client watches."""
        self.watches.setdefault((kind, path), {})[client.number] = None

    def found(self, code: int, path: str) -> Any:
        """What a question is answered. Raises Refusal."""
        if code == OpCode.SYNC:
            return SyncResponse(self.synced(path))
        node = self.nodes.there(path)
        match code:
            case OpCode.EXISTS:
                return ExistsResponse(node.stat())
            case OpCode.GET_DATA:
                return GetDataResponse(node.data, node.stat())
            case OpCode.GET_CHILDREN:
                return GetChildrenResponse(self.names(path))
            case _:
                return GetChildren2Response(self.names(path), node.stat())

    def set_watches(self, client: Client, xid: int, said: SetWatchesRequest) -> None:
        """A client says its watches again."""
        for event, kind, path in self.missed(said):
            if event is None:
                self.watch(client, kind, path)
            else:
                self.notify(client, event, path)
        self.answer(client, xid)
