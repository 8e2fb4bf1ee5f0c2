"""The metastore as a node: requests of clients in, answers, notifications and records out.

What changes the tree is proposed to the log and decided when it is applied; what only asks is answered from
what is applied, once all that its client asked before is. Source: apache/zookeeper 3.5.9, ZooKeeperServer,
PrepRequestProcessor, FinalRequestProcessor, NIOServerCnxn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from replispec.metastore.zookeeper.core.records import MetastoreLogDamaged
from replispec.metastore.zookeeper.core.sessions import Sessions
from replispec.metastore.zookeeper.core.tree import NodeTree
from replispec.metastore.zookeeper.core.values import TreeOutcome
from replispec.metastore.zookeeper.core.watches import Watches
from replispec.metastore.zookeeper.keeping import AnswerClose, SessionKeeper
from replispec.metastore.zookeeper.log import MetastoreLog
from replispec.metastore.zookeeper.peers import ClientPeers, Peer
from replispec.metastore.zookeeper.requests import ClientRequests
from replispec.metastore.zookeeper.saying import notification
from replispec.metastore.zookeeper.view import MetastoreView
from replispec.metastore.zookeeper.words import answer_of, word_in
from replispec.runtime.primitives.rng import Rng
from replispec.runtime.storage import FilesReader, JournalReader, StorageFailed
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
from replispec.wire.zookeeper.constants import RECORDS_WAITING_BYTES_MAX
from replispec.wire.zookeeper.options import MetastoreOptions

LISTENER: Final = "clients"


class MetastoreNode:
    """One metastore. `seed` makes the numbers and passwords of its sessions."""

    def __init__(
        self, options: MetastoreOptions, journal: JournalReader, files: FilesReader, seed: int
    ) -> None:
        self._options = options
        self._outbox = Outbox()
        self._writes = Writes(self._outbox)
        self.tree: Final = NodeTree()
        self.sessions: Final = Sessions(
            options.tick_time_ms, options.min_session_timeout_ms, options.max_session_timeout_ms
        )
        self.watches: Final = Watches(options.limits.watches_max, options.limits.watch_bytes_max)
        self.log: Final = MetastoreLog(
            self._outbox,
            self._writes,
            journal,
            files,
            self.tree,
            snapshot_bytes=options.snapshot_bytes,
            failed=self._outbox.halt,
        )
        self.peers: Final = ClientPeers(
            self._outbox,
            options.limits,
            options.jute_maxbuffer,
            self._take,
            self._forget,
            is_busy=lambda: self.log.waiting_bytes > RECORDS_WAITING_BYTES_MAX,
        )
        self._keeper = SessionKeeper(self, self._outbox, Rng(seed), options.limits.sessions_max)
        self._requests = ClientRequests(self)
        self.view = MetastoreView(self)
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
                self.peers.settled()
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
        """When the time of a session may be over, or of a connection that asks for none."""
        sessions_ms, peers_ms = self.sessions.deadline_ms(), self.peers.deadline_ms()
        if sessions_ms is None or peers_ms is None:
            return peers_ms if sessions_ms is None else sessions_ms
        return min(sessions_ms, peers_ms)

    def _started(self, event: Started) -> None:
        self.view.address = {**self.listeners, **event.addresses}[LISTENER]
        try:
            self.log.start()
        except (StorageFailed, MetastoreLogDamaged) as error:
            self._outbox.halt(str(error))
            return
        on_record = [(number, each.timeout_ms) for number, each in self.tree.sessions.items()]
        self.sessions.restore(on_record, event.now_ms)

    def _ticked(self, now_ms: int) -> None:
        deadline_ms = self.sessions.deadline_ms()
        if deadline_ms is not None and now_ms - deadline_ms > self._options.tick_time_ms:
            # Nobody was heard in between: this process did not run.
            self._outbox.note(Level.WARNING, "was not running", millis=now_ms - deadline_ms)
            self.sessions.excuse(now_ms - deadline_ms)
        self._keeper.ticked(now_ms)
        self.peers.ticked(now_ms)

    def _forget(self, peer: Peer) -> None:
        """A connection is gone, whoever ended it; its session lives on."""
        self._keeper.gone(peer, self.now_ms)

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
            self._keeper.connect(peer, ConnectRequest.decode(frame), now_ms)

    # What happens to the tree

    def close_session(self, peer: Peer, xid: int, answer: AnswerClose) -> None:
        """Have the session of a client end, as it asks."""
        self._keeper.close(peer, xid, answer)

    def tell(self, outcome: TreeOutcome) -> None:
        """Tell those who watch of what happened, before anybody is answered what shows it."""
        if not self.watches.count:
            return
        for happened, path in outcome.events:
            heard = self.watches.happened(happened, path)
            if heard:
                told = notification(happened, path)
                for connection in heard:
                    self.peers.tell(connection, told)
