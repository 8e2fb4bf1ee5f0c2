"""A broker of Kafka's replication as a node: requests, commands and what the store says in, answers out.

Source: Kafka replication, detailed design V3, procedures C, E, G; apache/kafka 2.8.2, KafkaServer, KafkaApis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from replispec.broker.kafka.commands import ControllerCommands
from replispec.broker.kafka.connections import AskedFrame, Asker, Askers
from replispec.broker.kafka.core.places import ToldPlaces
from replispec.broker.kafka.core.replica import LocalReplica
from replispec.broker.kafka.designed import DesignLimits, DesignRequests
from replispec.broker.kafka.fetches import Fetches
from replispec.broker.kafka.fetching import CopiedPartitions
from replispec.broker.kafka.isr import IsrKeeper
from replispec.broker.kafka.keeping import LogKeeper
from replispec.broker.kafka.produces import Produces
from replispec.broker.kafka.questions import PartitionQuestions, versions_told
from replispec.broker.kafka.registering import BrokerRegistration
from replispec.broker.kafka.replicas import LocalReplicas
from replispec.broker.kafka.store_view import PartitionsStoreView
from replispec.broker.kafka.strays import StrayLogs
from replispec.broker.kafka.view import PartitionsBrokerView
from replispec.runtime.kafka.log import LogFolder, PartitionLogSettings
from replispec.runtime.kafka.stores import design_version, store_form
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.rng import Rng
from replispec.runtime.storage import FoldersReader, StorageFailed
from replispec.runtime.world import (
    Accepted,
    Closed,
    Connected,
    Effect,
    Event,
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
from replispec.runtime.zookeeper.client import MetastoreClient, SessionStanding
from replispec.wire.kafka.apache import (
    ApacheLeaderAndIsrRequest,
    ApacheStopReplicaRequest,
    ApacheUpdateMetadataRequest,
)
from replispec.wire.kafka.clients import (
    ApacheFetchRequest,
    ApacheListOffsetsRequest,
    ApacheMetadataRequest,
    ApacheOffsetForLeaderEpochRequest,
    ApacheProduceRequest,
)
from replispec.wire.kafka.codes import ApiKey
from replispec.wire.kafka.commands import APACHE_RESPONSE_FRAME
from replispec.wire.kafka.constants import FOLLOWS_0_11
from replispec.wire.kafka.options import KafkaBrokerOptions
from replispec.wire.kafka.requests import DesignRequestFrame

CLIENTS: Final = "clients"


class PartitionsBrokerNode:
    """One broker on one folder, at these servers of the store, HOST:PORT each. `listen` is where it listens,
    `told` what others are told of that, None: the same; `seed` makes the name of a new cluster."""

    def __init__(
        self,
        options: KafkaBrokerOptions,
        servers: Sequence[str],
        listen: str,
        told: str | None,
        files: FoldersReader,
        seed: int,
    ) -> None:
        self._options = options
        self._listen: Final = listen
        self._told_address = told
        self._files = files
        self._outbox = Outbox()
        self._writes = Writes(self._outbox)
        self._now_ms = 0
        self._client: Final = MetastoreClient(
            self._outbox, servers, options.zookeeper_session_timeout_ms, stands=self._stands
        )
        self._places: Final = ToldPlaces()
        form = self._form = store_form(options.replication_profile)
        self.replicas: Final = LocalReplicas(form, options.broker_id, self._places)
        self.registration: Final = BrokerRegistration(
            self._outbox,
            self._client,
            form,
            options.broker_id,
            Rng(seed),
            named=self._named,
            controller_seen=self._controller_seen,
            now_ms=self._clock,
        )
        self.askers: Final = Askers(self._outbox, options, self._serve)
        self._isr: Final = IsrKeeper(
            self._outbox, self._client, form, self.replicas, options.replica_lag_time_max_ms, self._clock
        )
        self._questions: Final = PartitionQuestions(self.replicas, self._places)
        self._keeper: LogKeeper | None = None
        self._commands: ControllerCommands | None = None
        self._strays: StrayLogs | None = None
        self._produces: Produces | None = None
        self._fetches: Fetches | None = None
        self._copied: CopiedPartitions | None = None
        self._view: PartitionsStoreView | None = None
        self._designed: DesignRequests | None = None
        self._begins_again = False
        self._checkpoint_at_ms = self._age_at_ms = 0
        self.view: Final = PartitionsBrokerView(self)

    @property
    def isr_changes(self) -> int:
        """See `PartitionsBrokerParts`."""
        return self._isr.changes

    def is_copying(self, replica: LocalReplica) -> bool:
        """See `PartitionsBrokerParts`."""
        figures = None if self._copied is None else self._copied.follower.figures(*replica.key)
        return figures is not None and figures.is_copying

    @property
    def listeners(self) -> Mapping[str, str]:
        """One port for clients, followers and the controller."""
        return {CLIENTS: self._listen}

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event and return its effects, in order."""
        self._now_ms = event.now_ms
        match event:
            case Persisted() | PersistFailed():
                self._writes.answered(event)
            case Ticked():
                self._ticked(event.now_ms)
            case Started():
                self._started(event)
            case Stopping():
                self._stop()
            case _:
                self._on_connection(event)
        if self._begins_again:
            self._begins_again = False
            self._client.begin(event.now_ms)
        self._settle(event.now_ms)
        return self._outbox.take()

    def _on_connection(self, event: Event) -> None:
        """Whoever has the connection takes the event: the store's client, or somebody who asks."""
        match event:
            case Received():
                if not (self._client.received(event) or self._follower_takes(event)):
                    self.askers.received(event)
            case Writable():
                self.askers.writable(event)
            case Accepted():
                self.askers.accepted(event)
            case Connected():
                if not self._follower_takes(event):
                    self._client.connected(event)
            case Closed(connection):
                if not (self._client.closed(event) or self._follower_takes(event)):
                    self.askers.closed(connection)
            case _:
                pass

    def _follower_takes(self, event: Connected | Received | Closed) -> bool:
        """Whether the connection is one to a leader."""
        if self._copied is None:
            return False
        follower = self._copied.follower
        match event:
            case Connected():
                return follower.connected(event)
            case Received():
                return follower.received(event)
            case Closed():
                return follower.closed(event)

    def deadline_ms(self) -> int | None:
        """When time matters."""
        times = [self._client.deadline_ms(), self.registration.deadline_ms(), self._isr.deadline_ms()]
        if self._produces is not None and self._fetches is not None:
            times += [self._produces.deadline_ms(), self._fetches.deadline_ms()]
        if self._has_folder:
            times += [self._checkpoint_at_ms, self._age_at_ms]
        if self._copied is not None:
            times.append(self._copied.follower.deadline_ms())
        return min((each for each in times if each is not None), default=None)

    @property
    def _has_folder(self) -> bool:
        """Whether the folder is this broker's: nothing is due in it before the store names the cluster."""
        return self._keeper is not None and self._keeper.folder.is_taken

    # Beginning and end

    def _started(self, event: Started) -> None:
        listens = event.addresses.get(CLIENTS, self._listen)
        host, _, port = (self._told_address or listens).rpartition(":")
        self.registration.host, self.registration.port = host.strip("[]"), int(port)
        try:
            self._open(event.now_ms)
        except StorageFailed as error:
            self._outbox.halt(str(error))
            return
        self._client.begin(event.now_ms)

    def _open(self, now_ms: int) -> None:
        options, outbox = self._options, self._outbox
        folder = LogFolder(self._files, _settings(options), now_ms)
        for found in folder.findings:
            if found.torn_bytes or found.segments_dropped:
                outbox.record(Level.WARNING, "end of a log was torn", found=found._asdict())
        keeper = self._keeper = LogKeeper(
            outbox, self._writes, folder, flushed=self._flushed, failed=self._failed
        )
        is_design = design_version(options.replication_profile) is not None
        # The design knows no epochs of logs: followers cut as the generation does that knew none either.
        generation = FOLLOWS_0_11 if is_design else options.inter_broker_protocol_version
        self._copied = CopiedPartitions(outbox, options, generation, keeper, self._clock)
        self._commands = ControllerCommands(
            outbox,
            self.replicas,
            self._places,
            keeper,
            self._copied,
            own_epoch=lambda: self.registration.epoch,
            now_ms=self._clock,
        )
        self._strays = StrayLogs(outbox, self._client, self._form, self.replicas, folder, self._commands)
        self._produces = Produces(options, self.replicas, keeper)
        self._fetches = Fetches(options, self.replicas, keeper, self._isr)
        if is_design:
            follows = options.follower
            limits = DesignLimits(
                follows.replica_fetch_max_bytes,
                follows.replica_fetch_min_bytes,
                follows.replica_fetch_wait_max_ms,
            )
            self._view = PartitionsStoreView(outbox, self._client, self._form, self._places, self._store_read)
            self._designed = DesignRequests(
                options.broker_id, self._commands, self._fetches, self._view, limits
            )

    def _store_read(self) -> None:
        """All that the store holds was read: begin with it, and be known to others then."""
        assert self._designed is not None, "who reads the store goes by the design"
        assert self._view is not None, "it is what has read"
        # Where leaders are is known before they are followed.
        self._view.settle()
        self._designed.start(self._take_part)

    def _stop(self) -> None:
        if self._keeper is not None:
            self._keeper.stop()
        self._client.leave()

    # The store

    def _stands(self, standing: SessionStanding) -> None:
        self.registration.stands(standing)
        is_broken = self._keeper is not None and self._keeper.is_broken
        if standing is SessionStanding.LOST and not is_broken:
            self._begins_again = True

    def _named(self, cluster_id: str) -> None:
        """The store says which cluster it is: the folder must be this broker's of that one."""
        keeper = self._keeper
        assert keeper is not None
        self._questions.cluster_id = cluster_id
        folder, own = keeper.folder, (self._options.broker_id, cluster_id)
        if folder.identity is None:
            folder.identify(*own)
        elif (folder.identity.broker_id, folder.identity.cluster_id or cluster_id) != own:
            named = (folder.identity.broker_id, folder.identity.cluster_id)
            self._outbox.halt(f"the folder of logs is of broker and cluster {named}, not of {own}")
            return
        # Known to others once the folder is taken: commands come then.
        keeper.when_written(self._take_part if self._view is None else self._view.begin)

    def _take_part(self) -> None:
        self.registration.begin()
        if self._strays is not None:
            self._strays.watch_all()

    def _controller_seen(self, epoch: int) -> None:
        if self._commands is not None:
            self._commands.controller_seen(epoch)

    # The disk

    def _flushed(self) -> None:
        self.replicas.commit()
        if self._copied is not None:
            self._copied.follower.written(self._now_ms)

    def _failed(self) -> None:
        """The disk failed: whoever waits is told so, and others are to lead what this broker leads."""
        self._client.leave()
        self.registration.epoch = 0
        if self._copied is not None:
            self._copied.follower.stop_all()
        if self._produces is not None:
            self._produces.settle_all(self._now_ms)

    def _ticked(self, now_ms: int) -> None:
        self._client.ticked(now_ms)
        self.registration.ticked(now_ms)
        self._isr.ticked(now_ms)
        if self._copied is not None:
            self._copied.follower.ticked(now_ms)
        keeper, options = self._keeper, self._options
        if keeper is None or not self._has_folder:
            return
        if now_ms >= self._checkpoint_at_ms:
            self._checkpoint_at_ms = now_ms + options.replica_high_watermark_checkpoint_interval_ms
            keeper.folder.checkpoint()
        if now_ms >= self._age_at_ms:
            self._age_at_ms = now_ms + options.log_retention_check_interval_ms
            for each in keeper.folder.logs.values():
                if each.is_settled:
                    each.age(now_ms)

    def _settle(self, now_ms: int) -> None:
        """Serve whose turn it is, answer what may be answered, and have written what there is."""
        self.askers.go_on(now_ms)
        if self._keeper is None or self._produces is None or self._fetches is None:
            return
        if self._questions.cluster_id is not None:
            self._keeper.write()
        if self._view is not None:
            self._view.settle()
        if self._commands is not None:
            self._commands.go_on()
        self._produces.settle(now_ms)
        self._fetches.settle(now_ms)
        self.replicas.touched.clear()

    # Requests

    def _serve(self, asker: Asker, frame: AskedFrame, now_ms: int) -> None:
        """Serve a request. Raises RemoteProtocolError when it breaks the protocol, or is none of ours."""
        say: Callable[[bytes | None], None] = partial(self.askers.reply, asker)
        if isinstance(frame, DesignRequestFrame):
            if self._designed is None:
                raise RemoteProtocolError("this broker is only beginning")
            self._designed.take(frame, now_ms, say)
            return
        version = frame.api_version
        if frame.api_key == ApiKey.API_VERSIONS:
            say(versions_told(version))
            return
        message = APACHE_RESPONSE_FRAME.read_request(frame)
        if self._produces is None or self._fetches is None or self._commands is None:
            raise RemoteProtocolError("this broker is only beginning")
        match message:
            case ApacheProduceRequest():
                refused = partial(self.askers.drop, asker, "a batch without acknowledgement was refused")
                self._produces.take(message, version, now_ms, say, refused)
            case ApacheFetchRequest():
                self._fetches.take(message, version, now_ms, say)
            case ApacheListOffsetsRequest():
                say(self._questions.offsets(message, version))
            case ApacheOffsetForLeaderEpochRequest():
                say(self._questions.epochs(message, version))
            case ApacheMetadataRequest():
                say(self._questions.places(message, version))
            case ApacheLeaderAndIsrRequest() | ApacheStopReplicaRequest() | ApacheUpdateMetadataRequest():
                self._commands.take(message, version, say)
            case _:
                raise RemoteProtocolError(f"key {frame.api_key} in version {version} is not served")

    def _clock(self) -> int:
        return self._now_ms


def _settings(options: KafkaBrokerOptions) -> PartitionLogSettings:
    keep_ms, keep_bytes = options.log_retention_ms, options.log_retention_bytes
    return PartitionLogSettings(
        segment_bytes=options.log_segment_bytes,
        roll_ms=options.log_roll_millis,
        index_interval_bytes=options.log_index_interval_bytes,
        retention_ms=None if keep_ms < 0 else keep_ms,
        retention_bytes=None if keep_bytes < 0 else keep_bytes,
        appends_time=options.log_message_timestamp_type == "LogAppendTime",
    )
