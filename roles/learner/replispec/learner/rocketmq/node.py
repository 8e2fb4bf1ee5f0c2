"""One learner: it copies a broker set's log, exports what is confirmed, and is never more than that.

It has an identity of its own, as a broker has, for its handshake and its place at the name servers. It sends
no heartbeat and asks for no election, so that no controller can make it master, even when it starts first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from replispec.learner.rocketmq.core.export import Export
from replispec.learner.rocketmq.core.watch import Watch
from replispec.learner.rocketmq.view import Copied, LearnerView
from replispec.runtime.rocketmq.access import OPEN, RequestGuard, Security
from replispec.runtime.rocketmq.derived_options import join_address, log_folder
from replispec.runtime.rocketmq.log import GroupCommit, MessageStore, Retention
from replispec.runtime.rocketmq.membership import (
    Announcement,
    Controllers,
    LogQuestions,
    NameServers,
    epoch_cache,
    runtime_info,
)
from replispec.runtime.rocketmq.remoting.answering import Requests
from replispec.runtime.rocketmq.remoting.calls import Calls
from replispec.runtime.rocketmq.remoting.server import BROKER_RELEASE, RequestServer
from replispec.runtime.rocketmq.replication import HaReplica, is_plain
from replispec.runtime.storage import FilesReader, LinesReader, StorageFailed
from replispec.runtime.world import (
    Accepted,
    Closed,
    Connected,
    Effect,
    Event,
    FileRead,
    Level,
    Outbox,
    Persisted,
    PersistFailed,
    Received,
    Started,
    Stopping,
    Ticked,
    Writable,
    Writes,
)
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import DataVersion, TopicConfigTable
from replispec.wire.rocketmq.client import RuntimeInfo
from replispec.wire.rocketmq.controller import EpochEntryCache
from replispec.wire.rocketmq.options import LearnerOptions

MAIN: Final = "main"


class LearnerNode:
    """A learner; see `replispec.runtime.world.Node`. Without `lines` nothing is exported. Raises
    StorageFailed when what is on its disk cannot be used."""

    def __init__(
        self,
        options: LearnerOptions,
        files: FilesReader,
        lines: LinesReader | None = None,
        security: Security = OPEN,
    ) -> None:
        self._options = options
        self._outbox = Outbox()
        self._writes = Writes(self._outbox)
        self._calls = Calls(self._outbox, version=BROKER_RELEASE, sign=security.sign)
        self._guard = RequestGuard(self._outbox, security)
        self._requests = Requests(self._guard)
        self._server = RequestServer(
            self._outbox, self._requests.take, limits=options.limits, version=BROKER_RELEASE
        )
        controllers = Controllers(self._calls, options.controller_addr)
        self._watch = Watch(
            self._outbox, self._writes, controllers, files, options, self._identified, self._stand_still
        )
        self._name_servers = NameServers(
            self._outbox,
            self._calls,
            options.namesrv_addr,
            self._announcement,
            self._master_named,
            period_ms=options.register_name_server_period_ms,
        )
        self._store = MessageStore(
            files, file_bytes=options.mapped_file_size_commit_log, log_folder=log_folder(options)
        )
        self._commit = GroupCommit(self._outbox, self._writes, self._store)
        self._retention = Retention(
            self._outbox, files, self._store, self._commit, options.retention, self._safe_to_delete
        )
        self._export = None if lines is None else Export(self._writes, lines, self._store, self._not_exported)
        self._export_ms: int | None = None
        self._replica: HaReplica | None = None
        self._address = ""
        self.view = LearnerView(
            options, self._server, self._watch, self._store, self._retention, self._copied
        )
        self._requests.serve(LogQuestions(self._epochs, self._figures).table)

    # The world

    @property
    def listeners(self) -> Mapping[str, str]:
        """Administrators come to `main`."""
        return {MAIN: join_address(self._options.bind_address, self._options.listen_port)}

    @property
    def exported(self) -> int:
        """The offset up to which everything is exported; 0 without an export."""
        return 0 if self._export is None else self._export.position

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event and return its effects."""
        try:
            self._take(event)
            self._calls.ticked(event.now_ms)
        except StorageFailed as error:
            self._outbox.halt(f"the disk refused what cannot be left undone: {error}")
        return self._outbox.take()

    def deadline_ms(self) -> int | None:
        """When the node wants to be told the time."""
        parts = (self._calls, self._watch, self._name_servers, self._commit, self._retention)
        times = [self._export_ms, *(part.deadline_ms() for part in parts)]
        if self._replica is not None:
            times.append(self._replica.deadline_ms())
        return min((each for each in times if each is not None), default=None)

    def _take(self, event: Event) -> None:
        match event:
            case Started():
                self._guard.started(self._options)
                port = {**self.listeners, **event.addresses}[MAIN].rpartition(":")[2]
                self._address = join_address(self._options.broker_ip1 or self._options.bind_address, port)
                self.view.address = self._address
                self._commit.request()
                self._retention.start(event.now_ms)
                self._watch.begin(self._address, event.now_ms)
            case Ticked(now_ms):
                self._ticked(now_ms)
            case Accepted():
                self._server.accepted(event)
            case Connected() | Received() | Closed() | Writable():
                self._on_connection(event)
            case Persisted() | PersistFailed():
                self._writes.answered(event)
                self._export_what_is_safe()
            case FileRead():
                self._guard.file_read(event)
            case Stopping(now_ms):
                self._name_servers.leave(now_ms)
                self._commit.stop()
                if self._replica is not None:
                    self._replica.stop(now_ms)

    def _on_connection(self, event: Connected | Received | Closed | Writable) -> None:
        owner = self._replica if self._replica is not None and self._replica.owns(event.connection) else None
        match event:
            case Connected():
                (owner or self._calls).connected(event)
            case Received():
                side = owner or (self._calls if event.connection < 0 else self._server)
                side.received(event)
            case Closed():
                side = owner or (self._calls if event.connection < 0 else self._server)
                side.closed(event)
                if owner is not None:
                    self._watch.master_lost(event.now_ms)
                    self._name_servers.announce(event.now_ms)
            case Writable():
                self._server.writable(event)

    def _ticked(self, now_ms: int) -> None:
        self._commit.ticked(now_ms)
        self._retention.ticked(now_ms)
        self._watch.ticked(now_ms)
        self._name_servers.ticked(now_ms)
        if self._replica is not None:
            self._replica.ticked(now_ms)
        if self._export is not None and self._export_ms is not None and now_ms >= self._export_ms:
            self._export_ms = None
            self._export.retry()

    # Whom it copies

    def _identified(self, broker_id: int, now_ms: int) -> None:
        """The id is known: introduce this learner to masters and name servers."""
        self._replica = self._replica_of_nobody(broker_id)
        self._name_servers.announce(now_ms)

    def _replica_of_nobody(self, broker_id: int) -> HaReplica:
        """Copies from the first master that it is told to follow."""
        return HaReplica(
            self._outbox,
            self._store,
            self._commit,
            self,
            self._options.replication,
            broker_id=broker_id,
            is_learner=True,
            plain=is_plain(self._options.tls),
        )

    def _stand_still(self, now_ms: int) -> None:
        """Nobody is copied: also not the master of before, whose log this one might go on with."""
        if self._replica is not None and self._replica.address is not None:
            self._replica.stop(now_ms)
            self._replica = self._replica_of_nobody(self._watch.broker_id)

    def _announcement(self) -> Announcement | None:
        if self._replica is None:
            return None
        options = self._options
        topics = TopicConfigTable(DataVersion(0, 0, 0), DataVersion(0, 0, 0), {}, {}, {})
        names = options.broker_cluster_name, options.broker_name
        return Announcement(*names, self._watch.broker_id, self._address, self._address, topics)

    def _master_named(self, address: str, ha_address: str, now_ms: int) -> bool:
        """A name server names the master; what a controller has said takes precedence."""
        if self._replica is None or not self._watch.may_follow(address):
            return False
        self._replica.follow(ha_address, now_ms)
        return True

    def _copied(self) -> Copied:
        replica = self._replica
        if replica is None:
            return Copied(is_copying=False, confirmed=0, exported=self.exported)
        return Copied(replica.is_copying, replica.confirm_offset, self.exported)

    def _safe_to_delete(self, _needs_room: bool, /) -> int:
        """What is confirmed and, where messages are exported, was."""
        confirmed = 0 if self._replica is None else self._replica.confirm_offset
        return confirmed if self._export is None else min(confirmed, self._export.position)

    # What it copied

    def confirmed(self, _offset: int, _now_ms: int) -> None:
        """The master has said what may be shown."""
        self._export_what_is_safe()

    def _export_what_is_safe(self) -> None:
        """What is confirmed, and on the disk with its epochs: who forgot an epoch in a crash cuts its bytes,
        and has them copied again."""
        if self._export is not None and self._replica is not None and self._store.is_settled:
            self._export.up_to(min(self._replica.confirm_offset, self._store.log.flushed))

    def truncated(self, offset: int, _now_ms: int) -> None:
        """The log was cut."""
        if self._export is None:
            return
        if offset < self._export.position:
            self._outbox.note(
                Level.WARNING, "messages were exported that are lost", end=self._export.position, cut=offset
            )
        self._export.truncated(offset)

    def _not_exported(self, reason: str, now_ms: int) -> None:
        """Nothing waits for the export: what was refused is tried again for as long as it takes."""
        self._outbox.note(Level.ERROR, "messages cannot be exported", reason=reason)
        self._export_ms = now_ms + constants.RETRY_MS

    # Requests

    def _epochs(self) -> EpochEntryCache:
        options = self._options
        names = options.broker_cluster_name, options.broker_name
        return epoch_cache(self._store, *names, self._watch.broker_id)

    def _figures(self, now_ms: int) -> RuntimeInfo:
        return runtime_info(self._store, BROKER_RELEASE, now_ms)
