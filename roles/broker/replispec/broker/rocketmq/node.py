"""One broker: everything it decides, connections and timers included, and nothing of the world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replispec.broker.rocketmq.core.addresses import HA, MAIN, ha_beside, ha_host, host, listeners
from replispec.broker.rocketmq.core.admin import Admin
from replispec.broker.rocketmq.core.copied import CopiedTables
from replispec.broker.rocketmq.core.delays import Delays
from replispec.broker.rocketmq.core.groups import Groups
from replispec.broker.rocketmq.core.manager import LogStatus, ReplicasManager
from replispec.broker.rocketmq.core.mapped_topics import KnownMappings, MappedTopics
from replispec.broker.rocketmq.core.new_topics import NewTopics
from replispec.broker.rocketmq.core.offsets import ConsumerOffsets
from replispec.broker.rocketmq.core.peers import Peers
from replispec.broker.rocketmq.core.pulls import Pulls
from replispec.broker.rocketmq.core.replicated import Replicated
from replispec.broker.rocketmq.core.role import Role
from replispec.broker.rocketmq.core.sends import Sends
from replispec.broker.rocketmq.core.slave import SlaveSync
from replispec.broker.rocketmq.core.statistics import Statistics
from replispec.broker.rocketmq.core.subscription_groups import SubscriptionGroups
from replispec.broker.rocketmq.core.topics import Topics
from replispec.broker.rocketmq.view import BrokerView, Parts
from replispec.runtime.rocketmq.access import OPEN, ReplicaGuard, RequestGuard, Security, replica_hosts
from replispec.runtime.rocketmq.derived_options import join_address, log_folder
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.log import MessageStore, RoomListener
from replispec.runtime.rocketmq.membership import Announcement, Controllers, NameServers
from replispec.runtime.rocketmq.remoting.answering import BODY_BYTES_MAX, BODY_OBJECTS_MAX, Requests
from replispec.runtime.rocketmq.remoting.calls import Calls
from replispec.runtime.rocketmq.remoting.server import BROKER_RELEASE, RequestServer
from replispec.runtime.rocketmq.replication import DigestAnswers
from replispec.runtime.storage import FilesReader, StorageFailed
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
from replispec.wire.rocketmq.client import HaRuntimeInfo
from replispec.wire.rocketmq.machines import broker_role
from replispec.wire.rocketmq.options import BrokerOptions


class BrokerNode:
    """A broker in controller mode; see `replispec.runtime.world.Node`. Raises StorageFailed when what is on
    its disk cannot be used."""

    def __init__(self, options: BrokerOptions, files: FilesReader, security: Security = OPEN) -> None:
        self._options = options
        out = self._outbox = Outbox()
        self._writes = Writes(out)
        self._calls = Calls(self._outbox, version=BROKER_RELEASE, sign=security.sign)
        self._guard = RequestGuard(self._outbox, security)
        self._replicas = ReplicaGuard(self._outbox, replica_hosts(options))
        self._requests = Requests(self._guard)
        self._server = RequestServer(
            self._outbox,
            self._requests.take,
            limits=options.limits,
            version=BROKER_RELEASE,
            dropped=self._forget_client,
        )
        controllers = Controllers(self._calls, options.controller_addr)
        self._role = Role(self._outbox, self._writes, controllers, files, options, self)
        self._manager = ReplicasManager(self._outbox, self._writes, controllers, files, options, self)
        self._name_servers = NameServers(
            self._outbox,
            self._calls,
            options.namesrv_addr,
            self._announcement,
            self._master_named,
            period_ms=options.register_name_server_period_ms,
            announced=self._manager.announced,
        )
        store = MessageStore(
            files, file_bytes=options.mapped_file_size_commit_log, log_folder=log_folder(options)
        )
        self._log = Replicated(out, self._writes, files, store, options, self._role, self._calls, self)
        self._topics = Topics(
            files,
            self._writes,
            template_queues=options.default_topic_queue_nums,
            auto_create=options.auto_create_topic_enable,
        )
        self._mappings = KnownMappings(self._outbox, self._writes, files, store, options.broker_name)
        self._topics.overlay(self._mappings.config)
        self._topics_known = len(self._topics)
        interval_ms = options.flush_consumer_offset_interval_ms
        self._offsets = ConsumerOffsets(out, self._writes, files, interval_ms)
        copied = CopiedTables(self._outbox, self._writes, files)
        self._delays = Delays(self._outbox, store, options, self, copied.delays, self._topics.is_name)
        groups = SubscriptionGroups(copied.groups)
        self._peers = Peers(self._outbox, options.namesrv_addr, security.sign)
        new_topics = NewTopics(self._peers, options.namesrv_addr)
        asked = self._delays, groups, new_topics
        self._sends = Sends(self._outbox, store, self._topics, options, self, *asked)
        self._pulls = Pulls(store, self._topics, self._offsets, groups, self)
        known = self._topics, self._mappings, self._offsets, self._pulls, self._peers
        self._mapped = MappedTopics(self._outbox, store, *known, options, self, self._requests.hand_on)
        self._mapped.recorder.store_ip = self._sends.store_ip
        consumed = self._offsets, self._pulls, self._topics, store, self._mapped.recorder
        self._groups = Groups(self._server, *consumed, self._sends, options.broker_name, self)
        told = self._topics, self._offsets, self._pulls, self._groups.clients, self._mappings.static
        statistics = Statistics(options.broker_name, *told, self)
        mappings = self._mappings.static, self._mappings.logical
        kept = self._topics, *mappings, self._offsets, copied, groups
        self._admin = Admin(store, *kept, options, self, self._mapped, new_topics)
        tables = self._topics, self._mappings.static, self._offsets, copied
        self._slave = SlaveSync(self._outbox, self._calls, *tables, options)
        self._digests = DigestAnswers(store, self)
        self._serve(statistics)
        traffic = self._sends, self._pulls, self._topics, self._groups, self._offsets
        self.view = BrokerView(options, Parts(self._server, self._role, self._manager, self._log, *traffic))
        self._address = self._ha_address = ""
        self._ha_addresses: dict[str, str] = {}
        self._announce_due = self._topics_changed = False

    def _serve(self, statistics: Statistics) -> None:
        """Have each request handled by the part that knows it."""
        others = self._mapped.through(self._pulls.table | self._groups.table)
        others |= self._admin.table | self._digests.table | self._mapped.small_table
        others |= statistics.table | self._groups.questions.table
        self._requests.serve(others, body_bytes_max=BODY_BYTES_MAX)
        self._requests.serve(self._mapped.through(self._sends.table))
        self._requests.serve(self._mapped.table, body_objects_max=BODY_OBJECTS_MAX)

    # The world

    @property
    def listeners(self) -> Mapping[str, str]:
        """Where clients, controllers and replicas come to."""
        return listeners(self._options)

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event and return its effects."""
        try:
            self._take(event)
            self._settle(event.now_ms)
        except StorageFailed as error:
            self._outbox.halt(f"the disk refused what cannot be left undone: {error}")
        return self._outbox.take()

    def deadline_ms(self) -> int | None:
        """When the node wants to be told the time."""
        parts = (
            self._calls,
            self._peers,
            self._manager,
            self._role,
            self._name_servers,
            self._log,
            self._sends,
            self._delays,
            self._mapped,
            self._topics,
            self._pulls,
            self._groups,
            self._offsets,
            self._slave,
        )
        times = [part.deadline_ms() for part in parts]
        return min((each for each in times if each is not None), default=None)

    def _take(self, event: Event) -> None:
        match event:
            case Started():
                self._started(event)
            case Ticked(now_ms):
                self._ticked(now_ms)
            case Accepted():
                if event.listener != HA:
                    self._server.accepted(event)
                elif self._replicas.admits(event):
                    self._log.accepted(event)
            case Connected() | Received() | Closed() | Writable():
                self._on_connection(event)
            case Persisted() | PersistFailed():
                self._writes.answered(event)
            case FileRead():
                self._guard.file_read(event)
            case Stopping(now_ms):
                self._stop(now_ms)

    def _on_connection(self, event: Connected | Received | Closed | Writable) -> None:
        if self._log.owns(event.connection):
            self._log.take(event)
            return
        if event.connection < 0:
            self._peers.take(event)
        match event:
            case Connected():
                self._calls.connected(event)
            case Writable():
                self._server.writable(event)
            case Received():
                (self._calls if event.connection < 0 else self._server).received(event)
            case Closed():
                (self._calls if event.connection < 0 else self._server).closed(event)
                if event.connection > 0:
                    self._forget_client(event.connection)

    def _forget_client(self, connection: int) -> None:
        """A connection is gone, whoever ended it: nothing waits on it, and its client is in no group."""
        self._pulls.closed(connection)
        self._groups.closed(connection)

    def _started(self, event: Started) -> None:
        self._guard.started(self._options)
        addresses = {**self.listeners, **event.addresses}
        ports = {name: address.rpartition(":")[2] for name, address in addresses.items()}
        self._address = join_address(host(self._options), ports[MAIN])
        self.view.address = self._address
        self._ha_address = join_address(ha_host(self._options), ports[HA])
        self._sends.store_port = int(self._address.rpartition(":")[2])
        self._mapped.listens_at(self._address)
        self._log.start(event.now_ms)
        self._manager.begin(self._address, event.now_ms)

    def _ticked(self, now_ms: int) -> None:
        self._log.ticked(now_ms)
        self._manager.ticked(now_ms)
        self._role.ticked(now_ms)
        self._name_servers.ticked(now_ms)
        self._sends.ticked(now_ms)
        self._mapped.ticked(now_ms)
        self._topics.ticked(now_ms)
        self._pulls.ticked(now_ms)
        self._groups.ticked(now_ms)
        self._slave.ticked(now_ms)
        if (due_ms := self._offsets.deadline_ms()) is not None and now_ms >= due_ms:
            self._offsets.keep()

    def _settle(self, now_ms: int) -> None:
        """What is done once for all that one event brought."""
        self._calls.ticked(now_ms)
        self._peers.ticked(now_ms)
        self._log.settle(now_ms)
        if self._mapped.settle(self._log.kept_offset, now_ms):
            self._topics_changed = True
        self._groups.settle()
        self._delays.settle(self._log.kept_offset, now_ms, serves=self.serves)
        if len(self._topics) != self._topics_known:
            self._topics_known = len(self._topics)
            self._topics_changed = True
        if self._topics_changed and not self._announce_due:
            self._name_servers.announce_soon(now_ms)
        self._topics_changed = False
        if self._announce_due:
            self._announce_due = False
            self._name_servers.announce(now_ms)

    def _stop(self, now_ms: int) -> None:
        self._name_servers.leave(now_ms)
        self._manager.stop(now_ms)
        self._sends.refuse_all(stops=True)
        self._mapped.refuse_all("this broker stops", now_ms)
        self._log.stop(now_ms)
        self._mapped.stop()
        self._topics.stop(now_ms)
        self._offsets.stop()

    # Requests

    def role_told(self, command: Command, now_ms: int, /) -> None:
        """A controller told of a role."""
        self._manager.notified(command, now_ms)

    def delete_old_files(self, now_ms: int, /) -> None:
        """Look for old files of the log at once, whatever the hour is."""
        self._log.retention.delete_now(now_ms)

    # What the controllers decide

    def master_lost(self, now_ms: int) -> None:
        """Nothing more comes from the master."""
        self._manager.lose_master(now_ms)

    def identified(self, broker_id: int, now_ms: int) -> None:
        """The broker has its id."""
        last = self._log.store.epochs.last
        epoch = last.epoch if last is not None else 0
        self._role.identified(broker_id, epoch, now_ms, is_sure=self._log.is_sure)

    def replica_info_received(self, info: broker_role.ReplicaInfoReceived, now_ms: int) -> None:
        """A controller said who is master and who is in the set."""
        self._role.replica_info_received(info, now_ms)

    def become_master(self, epoch: int, now_ms: int, *, resumed: bool) -> None:
        """Serve as master as soon as the epoch is on the disk."""
        self._outbox.note(Level.INFO, "master now", epoch=epoch, resumed=resumed)
        self._manager.settle_office(now_ms)
        self._slave.stop()
        self._log.serve_as_master(epoch, now_ms, resumed=resumed)

    def serving(self, now_ms: int) -> None:
        """Log and epoch are on the disk."""
        self._role.serving(now_ms)
        self._mappings.catch_up()
        self._groups.locks.office_taken(now_ms)
        queues = self._log.store.index.queues.items()
        self._topics.cover([key for key, each in queues if self._mappings.lives(key[0], each)], now_ms)
        self._announce_due = True

    def become_replica(self, address: str, now_ms: int) -> None:
        """Copy from the master at this address."""
        self._outbox.note(Level.INFO, "replica now", master=address, epoch=self._role.master_epoch)
        self._manager.settle_office(now_ms)
        self._sends.refuse_all(stops=False)
        self._mapped.refuse_all("this broker is no master any more", now_ms)
        self._groups.locks.office_left()
        self._copy_from(address, now_ms)
        self._slave.follow(address, now_ms)
        self._announce_due = True

    def let_go_of_master(self, now_ms: int) -> None:
        """Copy nothing more from a master that its controller misses."""
        if self._role.is_replica:
            what = "letting go of the master, which its controller misses"
            self._outbox.note(Level.INFO, what, master=self._role.master_address)
            self._log.let_go(now_ms)

    def go_on_with_master(self, now_ms: int) -> None:
        """Copy from it again: its controller hears it."""
        if self._role.is_replica:
            address = self._role.master_address or ""
            self._outbox.note(Level.INFO, "going on with the master, which is heard again", master=address)
            self._copy_from(address, now_ms)
            self._announce_due = True

    def _copy_from(self, address: str, now_ms: int) -> None:
        self._log.copy_as_replica(now_ms)
        if address in self._ha_addresses:
            self._log.follow(self._ha_addresses[address], now_ms)
        elif not self._options.namesrv_addr:
            # Nobody will tell.
            self._log.follow(ha_beside(address), now_ms)

    def set_changed(self, now_ms: int) -> None:
        """Others must hold a message now."""
        self._log.count(now_ms)

    def check_members(self, now_ms: int) -> None:
        """Find the members of the set that no longer keep up."""
        self._log.check_members(now_ms)

    def compared_from(self, now_ms: int, /) -> Sequence[int]:
        """From where on replicas are about to copy that compared their logs not long ago."""
        return self._digests.wanted_from(now_ms)

    def lags(self, broker_id: int) -> bool:
        """Whether this member is gone, or does not keep up."""
        return self._log.lags(broker_id)

    def may_join(self, broker_id: int) -> bool:
        """Whether this replica is connected now, and has what a member must have."""
        return self._log.may_join(broker_id)

    def ask_election(self, now_ms: int) -> None:
        """There is no master."""
        self._manager.settle_office(now_ms)
        self._manager.ask_for_master(now_ms)

    def leave_office(self, now_ms: int) -> None:
        """Keep silent until the controller has looked for another master."""
        self._manager.leave_office(now_ms)

    def master_told(self, info: broker_role.ReplicaInfoReceived, asked_ms: int) -> None:
        """A controller that was asked then said who is master."""
        role = self._role
        if role.is_master and (info.master, info.master_epoch) == (role.broker_id, role.master_epoch):
            self._pulls.is_master_since(asked_ms)

    def ask_who_is_master(self, now_ms: int) -> None:
        """The controller knows."""
        self._manager.ask_for_set(now_ms)

    def announce(self, _now_ms: int) -> None:
        """Name servers may, or must, hear of this broker."""
        self._announce_due = True

    def announce_topics(self, _now_ms: int) -> None:
        """Name servers must hear of changed topics."""
        self._topics_changed = True

    def _announcement(self) -> Announcement | None:
        if not self._manager.is_running or not (self.serves or self._role.is_replica):
            return None
        topics = self._topics.table(self._role.master_epoch)
        self._mappings.announce(topics, self._address)
        options = self._options
        return Announcement(
            options.broker_cluster_name,
            options.broker_name,
            self.route_id,
            self._address,
            self._ha_address,
            topics,
        )

    def _master_named(self, address: str, ha_address: str, now_ms: int) -> bool:
        if not self._role.is_replica or address != self._role.master_address:
            return False
        self._ha_addresses = {address: ha_address}
        self._log.follow(ha_address, now_ms)
        return True

    # What the parts ask of the broker

    def hold(self, end: int, /) -> int:
        """The log is to begin at an offset: up to where it may be deleted now."""
        return self._mappings.hold(end)

    @property
    def serves(self) -> bool:
        """Whether this broker takes messages."""
        return self._role.is_master and self._log.serves

    @property
    def knows_confirmed(self) -> bool:
        """Whether this is a master that knows what is confirmed of its log."""
        return self._log.knows_confirmed

    @property
    def disk_is_full(self) -> bool:
        """Whether its disk is used by more than it may be."""
        return self._log.retention.is_full

    @property
    def awaits_room(self) -> bool:
        """Whether messages wait for the log's next file."""
        return self._sends.awaits_room

    def wait_for_room(self, then: RoomListener) -> None:
        """Have a file made for messages that wait for it."""
        self._log.wait_for_room(then)

    @property
    def sync_members(self) -> int:
        """How many brokers the SyncStateSet has."""
        return len(self._role.members)

    @property
    def sync_set(self) -> frozenset[int]:
        """The SyncStateSet as the controller last told it."""
        return self._role.members

    @property
    def route_id(self) -> int:
        """0 for the master, the broker's own id else."""
        return constants.MASTER_ID if self._role.is_master else self._role.broker_id

    @property
    def master_epoch(self) -> int:
        """The masterEpoch of the role."""
        return self._role.master_epoch

    def stored(self, _now_ms: int) -> None:
        """Messages were appended to the log."""
        self._log.stored()

    def safe(self, offset: int, durable: int) -> None:
        """Messages before this offset may be acknowledged."""
        self._sends.durable(durable)
        self._sends.advance(offset)

    def shown(self) -> None:
        """Consumers may read on."""
        self._pulls.shown()

    def log_status(self) -> LogStatus:
        """For heartbeats."""
        last = self._log.store.epochs.last
        epoch = last.epoch if last is not None else -1
        return LogStatus(epoch, self._log.store.log.end, self._log.confirm_offset, self._log.is_copying)

    def ha_status(self) -> HaRuntimeInfo:
        """For administrators."""
        return self._log.status()

    def counts(self) -> tuple[int, int]:
        """Messages stored and given."""
        return self._sends.stored_count, self._pulls.given_count
