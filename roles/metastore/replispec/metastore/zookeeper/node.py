"""The metastore as a node: requests of clients in, answers, notifications and records out.

What changes the tree is proposed to the log and decided when it is applied; what only asks is answered from
what is applied, once all that its client asked before is. Source: apache/zookeeper 3.5.9, ZooKeeperServer,
PrepRequestProcessor, FinalRequestProcessor, NIOServerCnxn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from replispec.metastore.zookeeper import answers
from replispec.metastore.zookeeper.core.records import MetastoreLogDamaged
from replispec.metastore.zookeeper.core.sessions import Sessions, granted_ms
from replispec.metastore.zookeeper.core.tree import NodeTree
from replispec.metastore.zookeeper.core.values import (
    CloseSession,
    Happened,
    OpenSession,
    TreeOutcome,
)
from replispec.metastore.zookeeper.core.watches import Watches
from replispec.metastore.zookeeper.log import MetastoreLog
from replispec.metastore.zookeeper.peers import ClientPeers, Peer
from replispec.metastore.zookeeper.requests import ClientRequests
from replispec.metastore.zookeeper.view import MetastoreView
from replispec.metastore.zookeeper.words import answer_of, word_in
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.rng import Rng
from replispec.runtime.storage import JournalReader, StorageFailed
from replispec.runtime.world import (
    Accepted,
    Closed,
    Effect,
    Event,
    Level,
    Outbox,
    Persisted,
    PersistFailed,
    Received,
    Started,
    Ticked,
    Writable,
    Writes,
)
from replispec.wire.zookeeper.connection import ConnectRequest
from replispec.wire.zookeeper.constants import NO_SESSION, PASSWORD_BYTES
from replispec.wire.zookeeper.options import MetastoreOptions

LISTENER: Final = "clients"
_NUMBER_BYTES: Final = len(bytes(PASSWORD_BYTES)) // 2


class MetastoreNode:
    """One metastore. `seed` makes the numbers and passwords of its sessions."""

    def __init__(self, options: MetastoreOptions, journal: JournalReader, seed: int) -> None:
        self._options = options
        self._rng = Rng(seed)
        self._outbox = Outbox()
        self._writes = Writes(self._outbox)
        self.tree: Final = NodeTree()
        self.sessions: Final = Sessions(options.tick_time_ms)
        self.watches: Final = Watches(options.limits.watches_max)
        self.log: Final = MetastoreLog(
            self._outbox,
            self._writes,
            journal,
            self.tree,
            snapshot_bytes=options.snapshot_bytes,
            failed=self._outbox.halt,
        )
        self.peers: Final = ClientPeers(
            self._outbox, options.limits, options.jute_maxbuffer, self._take, self._forget
        )
        self._requests = ClientRequests(self)
        self.view = MetastoreView(self)
        # Sessions that are proposed and not on record yet.
        self._opening: set[int] = set()
        self.now_ms = 0

    @property
    def options(self) -> MetastoreOptions:
        """With what it was made."""
        return self._options

    @property
    def listeners(self) -> Mapping[str, str]:
        """One port for clients and administrators."""
        host = self._options.client_port_address
        host = f"[{host}]" if ":" in host else host
        return {LISTENER: f"{host}:{self._options.client_port}"}

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event and return its effects, in order."""
        self.now_ms = event.now_ms
        match event:
            case Received():
                self.peers.take(event)
            case Persisted() | PersistFailed():
                self._writes.answered(event)
            case Writable(connection):
                self.peers.writable(connection, event.now_ms)
            case Accepted():
                self.peers.accepted(event)
            case Closed(connection):
                peer = self.peers.forget(connection)
                if peer is not None:
                    self._forget(peer)
            case Ticked():
                self._ticked(event.now_ms)
            case Started():
                self._started(event)
            case _:
                pass
        self.log.commit()
        self.peers.flush()
        return self._outbox.take()

    def deadline_ms(self) -> int | None:
        """When the time of a session may be over."""
        return self.sessions.deadline_ms()

    def _started(self, event: Started) -> None:
        self.view.address = {**self.listeners, **event.addresses}[LISTENER]
        try:
            self.log.start()
        except (StorageFailed, MetastoreLogDamaged) as error:
            self._outbox.halt(str(error))
            return
        on_record = [(number, each.timeout_ms) for number, each in self.tree.sessions.items()]
        self.sessions.begin_all(on_record, event.now_ms)

    def _ticked(self, now_ms: int) -> None:
        deadline_ms = self.sessions.deadline_ms()
        if deadline_ms is not None and now_ms - deadline_ms > self._options.tick_time_ms:
            # Nobody was heard in between: this process did not run.
            self._outbox.note(Level.WARNING, "was not running", millis=now_ms - deadline_ms)
            self.sessions.excuse(now_ms - deadline_ms, now_ms)
        for session in self.sessions.expired(now_ms):
            self.end_session(session, is_expired=True)

    def _forget(self, peer: Peer) -> None:
        """A connection is gone, whoever ended it; its session lives on."""
        self.watches.forget(peer.number)
        if peer.session != NO_SESSION:
            self.sessions.detach(peer.session, peer.number)

    # The first frame

    def _take(self, peer: Peer, frame: bytes, now_ms: int) -> None:
        """Serve a frame. Raises RemoteProtocolError when it breaks the protocol."""
        if peer.is_greeted:
            self.sessions.hear(peer.session, now_ms)
            self._requests.take(peer, frame)
        elif (word := word_in(frame)) is not None:
            self.peers.send(peer, answer_of(word, self))
            self.peers.close(peer)
        else:
            self._connect(peer, ConnectRequest.decode(frame))

    def _connect(self, peer: Peer, asked: ConnectRequest) -> None:
        if asked.last_zxid_seen > self.tree.zxid:
            raise RemoteProtocolError(
                f"it has seen zxid {asked.last_zxid_seen}, here the last one is {self.tree.zxid}"
            )
        timeout_ms = granted_ms(
            asked.timeout, self._options.min_session_timeout_ms, self._options.max_session_timeout_ms
        )
        if asked.session_id != NO_SESSION:
            self._go_on(peer, asked, timeout_ms)
            return
        if len(self.tree.sessions) + len(self._opening) >= self._options.limits.sessions_max:
            raise RemoteProtocolError("there are too many sessions")
        opened = OpenSession(self._unused(), self._password(), timeout_ms)
        self._opening.add(opened.session)
        self.log.propose(opened, self.now_ms, partial(self._opened, peer, asked, opened))

    def _opened(
        self, peer: Peer, asked: ConnectRequest, opened: OpenSession, outcome: TreeOutcome, now_ms: int
    ) -> None:
        self._opening.discard(opened.session)
        if outcome.refusal is not None:
            self.peers.drop(peer, "no room for a session")
            return
        self.sessions.begin(opened.session, opened.timeout_ms, now_ms)
        if self.peers.get(peer.number) is peer:
            self._greet(peer, asked, opened.session, opened.timeout_ms, opened.password)

    def _go_on(self, peer: Peer, asked: ConnectRequest, timeout_ms: int) -> None:
        """A client comes back to its session; one that speaks for it elsewhere is hung up on."""
        session, known = asked.session_id, self.tree.sessions.get(asked.session_id)
        if known is None or known.password != asked.password or not self.sessions.is_open(session):
            self.peers.send(peer, answers.no_session(read_only=asked.read_only))
            self.peers.close(peer)
            return
        self.sessions.grant(session, timeout_ms, self.now_ms)
        self._greet(peer, asked, session, timeout_ms, known.password)

    def _greet(
        self, peer: Peer, asked: ConnectRequest, session: int, timeout_ms: int, password: bytes
    ) -> None:
        before = self.sessions.attach(session, peer.number)
        moved = None if before is None else self.peers.get(before)
        if moved is not None:
            self._outbox.note(
                Level.INFO, "session moved", session=session, peer=peer.address, before=moved.address
            )
            self.peers.close(moved)
        peer.session, peer.is_greeted = session, True
        said = answers.greeting(timeout_ms, session, password, read_only=asked.read_only)
        self.peers.send(peer, said)

    def _unused(self) -> int:
        """A number that no session has: positive, in 63 bits."""
        while True:
            number = self._rng.bits() >> 1
            if number != NO_SESSION and number not in self.tree.sessions and number not in self._opening:
                return number

    def _password(self) -> bytes:
        halves = (self._rng.bits().to_bytes(_NUMBER_BYTES, "big") for _ in range(2))
        return b"".join(halves)

    # What happens to the tree

    def end_session(
        self,
        session: int,
        *,
        is_expired: bool = False,
        then: Callable[[TreeOutcome], None] = lambda _outcome: None,
    ) -> None:
        """Have a session end, and hang up on its client once it has; `then` is called before that."""
        if self.sessions.close(session):
            ended = partial(self._ended, session, is_expired, then)
            self.log.propose(CloseSession(session, is_expired), self.now_ms, ended)

    def _ended(
        self,
        session: int,
        is_expired: bool,
        then: Callable[[TreeOutcome], None],
        outcome: TreeOutcome,
        now_ms: int,
    ) -> None:
        if outcome.refusal is not None:
            self.sessions.reopen(session, now_ms)
            then(outcome)
            return
        self.tell(outcome.events)
        if is_expired:
            removed = sum(happened is Happened.DELETED for happened, _ in outcome.events)
            self._outbox.note(Level.INFO, "session expired", session=session, removed=removed)
        connection = self.sessions.end(session)
        then(outcome)
        peer = None if connection is None else self.peers.get(connection)
        if peer is not None:
            self.peers.close(peer)

    def tell(self, events: Sequence[tuple[Happened, str]]) -> None:
        """Tell those who watch of what happened, before anybody is answered what shows it."""
        if not self.watches.count:
            return
        for happened, path in events:
            heard = self.watches.happened(happened, path)
            if heard:
                told = answers.notification(happened, path)
                for connection in heard:
                    self.peers.tell(connection, told)
