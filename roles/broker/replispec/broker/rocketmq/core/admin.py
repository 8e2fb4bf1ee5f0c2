"""What administrators ask, and what a replica of Apache's copies beside the log, on the machine
`broker_administration`.

Source: apache/rocketmq rocketmq-all-5.4.0, AdminBrokerProcessor, SlaveSynchronize.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, Protocol

from replispec.broker.rocketmq.core.copied import CopiedTables
from replispec.broker.rocketmq.core.logical_mappings import LogicalMappings
from replispec.broker.rocketmq.core.mappings import Mappings
from replispec.broker.rocketmq.core.new_topics import NewTopics
from replispec.broker.rocketmq.core.offsets import ConsumerOffsets
from replispec.broker.rocketmq.core.subscription_groups import SubscriptionGroups
from replispec.broker.rocketmq.core.topics import Kept, Topics
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.log import MessageStore
from replispec.runtime.rocketmq.membership import LogQuestions, epoch_cache, runtime_info
from replispec.runtime.rocketmq.remoting.answering import Answering
from replispec.runtime.rocketmq.remoting.server import BROKER_RELEASE, Request
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import TopicConfig, TopicConfigTable
from replispec.wire.rocketmq.client import (
    ConsumerOffsetTable,
    CreateTopicRequest,
    DelayOffsetTable,
    HaRuntimeInfo,
    MessageRequestModes,
    RuntimeInfo,
    SubscriptionGroup,
    SubscriptionGroupTable,
)
from replispec.wire.rocketmq.controller import EpochEntryCache, Property
from replispec.wire.rocketmq.machines import broker_administration as machine
from replispec.wire.rocketmq.machines import broker_administration_wire as wire
from replispec.wire.rocketmq.options import BrokerOptions
from replispec.wire.rocketmq.parameters import BROKER
from replispec.wire.rocketmq.static_topic import TopicConfigAndQueueMapping


class Described(Protocol):
    """What the broker says of itself."""

    @property
    def route_id(self) -> int:
        """0 for the master, the broker's own id else."""
        ...

    @property
    def master_epoch(self) -> int:
        """The masterEpoch of the role."""
        ...

    @property
    def serves(self) -> bool:
        """Whether this broker is master."""
        ...

    def ha_status(self) -> HaRuntimeInfo:
        """How replication is."""
        ...

    def counts(self) -> tuple[int, int]:
        """Messages stored and given since the process began."""
        ...

    def role_told(self, command: Command, now_ms: int, /) -> None:
        """A controller told of a role."""
        ...

    def delete_old_files(self, now_ms: int, /) -> None:
        """Look for old files of the log at once, whatever the hour is."""
        ...

    def announce_topics(self, now_ms: int, /) -> None:
        """Tell name servers which topics there are now."""
        ...


class MappingKeeper(Protocol):
    """Who records what becomes of topics with mapped queues."""

    def forget(self, topic: str, now_ms: int, then: Kept, /) -> None:
        """Record that a topic is deleted."""
        ...

    def configure(self, config: TopicConfig, now_ms: int, then: Kept, /) -> None:
        """Record what a topic with logical queues is, but for how many message queues it has."""
        ...


class Admin:
    """Answers administrators and replicas. It is what only this broker knows; see `local` of the machine."""

    def __init__(
        self,
        store: MessageStore,
        topics: Topics,
        mappings: Mappings,
        logical: LogicalMappings,
        offsets: ConsumerOffsets,
        copied: CopiedTables,
        groups: SubscriptionGroups,
        options: BrokerOptions,
        broker: Described,
        keeper: MappingKeeper,
        new_topics: NewTopics,
    ) -> None:
        self._store = store
        self._topics = topics
        self._mappings = mappings
        self._logical = logical
        self._offsets = offsets
        self._copied = copied
        self._groups = groups
        self._options = options
        self._broker = broker
        self._keeper = keeper
        self._new_topics = new_topics
        answering = Answering(
            wire.bound(self),
            {
                "keep_topic": self._keep_topic,
                "record_topic": self._record_topic,
                "ask_name_server": self._ask_name_server,
                "forget_topic": self._forget_topic,
                "keep_group": self._keep_group,
                "forget_group": self._forget_group,
                "delete_old_files": self._delete_old_files,
                "take_role": self._take_role,
            },
            version=BROKER_RELEASE,
        )
        self._take = answering.take
        self.table: Final = answering.table | LogQuestions(self._epochs, self._figures).table

    # What the machine asks

    @property
    def serves(self) -> bool:
        """Whether the broker is master."""
        return self._broker.serves

    def is_topic(self, name: str, /) -> bool:
        """Whether a text may name a topic."""
        return self._topics.is_name(name)

    def topic(self, name: str, with_mapping: bool, /) -> TopicConfigAndQueueMapping | None:
        """A topic; None when there is none of this name."""
        config, mapped = self._topics.get(name), self._mappings.kept(name) if with_mapping else None
        if config is None:
            return None
        found = TopicConfigAndQueueMapping.from_json(config.to_json())
        found.mapping_detail = None if mapped is None else mapped.detail
        logical = self._logical.kept(name)
        found.logical_queues_enabled = None if logical is None else logical.said.statement
        return found

    def is_static(self, name: str, /) -> bool:
        """Whether it is a static topic."""
        return self._mappings.newest(name) is not None

    def is_logical(self, name: str, /) -> bool:
        """Whether the broker holds logical queues of a topic."""
        return self._logical.newest(name) is not None

    def is_asked_for(self, name: str, /) -> bool:
        """Whether name servers are asked of a topic before it is made, and there are any."""
        return self._new_topics.asks(name)

    def read_queues(self, name: str, /) -> int:
        """How many queues of a topic are read, 0 without one."""
        config = self._topics.get(name)
        return 0 if config is None else config.read_queue_nums or 0

    def write_queues(self, name: str, /) -> int:
        """How many of them are written, likewise."""
        config = self._topics.get(name)
        return 0 if config is None else config.write_queue_nums or 0

    def is_unsure(self, name: str, /) -> bool:
        """Whether a topic has a mapping, and none of which it is known that it is kept."""
        return self._mappings.is_unsure(name) or self._logical.is_unsure(name)

    @property
    def topic_count(self) -> int:
        """How many topics there are."""
        return len(self._topics)

    @property
    def topics(self) -> TopicConfigTable:
        """All topics, with their version, and the mappings of static ones."""
        table = self._topics.table(self._broker.master_epoch)
        table.topic_queue_mapping_detail_map = self._mappings.details()
        table.mapping_data_version = self._mappings.data_version
        return table

    @property
    def positions(self) -> ConsumerOffsetTable:
        """How far all groups have read."""
        return self._offsets.table()

    @property
    def groups(self) -> SubscriptionGroupTable | None:
        """Configured groups, as an administrator or a master told them last; None if none did."""
        return self._copied.groups.table

    def group(self, name: str, /) -> SubscriptionGroup | None:
        """One of them."""
        return self._groups.get(name)

    @property
    def delays(self) -> DelayOffsetTable | None:
        """How far delayed messages were delivered, likewise."""
        return self._copied.delays.table

    @property
    def modes(self) -> MessageRequestModes | None:
        """Who receives how, likewise."""
        return self._copied.modes.table

    @property
    def replication(self) -> HaRuntimeInfo:
        """How replication is."""
        return self._broker.ha_status()

    @property
    def properties(self) -> Sequence[Property]:
        """What was configured, defaults included."""
        return [Property(name, value) for name, value in BROKER.texts(self._options).items()]

    # Effects of the machine

    def _keep_topic(self, request: Request, event: machine.TopicWanted | machine.TopicUnclaimed) -> None:
        self._topics.put(_config(event.said), request.now_ms, partial(self._topic_kept, request))

    def _record_topic(self, request: Request, event: machine.TopicWanted) -> None:
        self._keeper.configure(_config(event.said), request.now_ms, partial(self._topic_kept, request))

    def _topic_kept(self, request: Request, reason: str, now_ms: int) -> None:
        self._take(request, machine.TopicLost(reason) if reason else machine.TopicKept())
        if not reason:
            self._broker.announce_topics(now_ms)

    def _ask_name_server(self, request: Request, event: machine.TopicWanted) -> None:
        """Nothing is kept of a topic before it is known that it may be plain."""
        topic = event.said.topic or ""

        def told(request: Request, is_mapped: bool | None, now_ms: int) -> None:
            request.now_ms = now_ms
            if not self.serves:
                self._take(request, machine.TopicLost("this broker is no master any more"))
            elif is_mapped is False and not (self.is_static(topic) or self.is_logical(topic)):
                self._take(request, machine.TopicUnclaimed(event.said))
            else:
                self._take(request, machine.TopicClaimed(topic, is_told=is_mapped is not None))

        if self._new_topics.is_full:
            self._take(request, machine.TopicLost("too many wait for a name server"))
        else:
            request.is_held = True
            self._new_topics.ask(topic, request, told, request.now_ms)

    def _forget_topic(self, request: Request, event: machine.DeletionWanted) -> None:
        """First of the table, then of the log: what the log says outlives a fail-over."""

        def forgotten(reason: str, now_ms: int) -> None:
            self._take(request, machine.TopicStays(reason) if reason else machine.TopicGone())
            if not reason:
                self._broker.announce_topics(now_ms)

        def dropped(reason: str, now_ms: int) -> None:
            if reason:
                forgotten(reason, now_ms)
            else:
                self._keeper.forget(event.topic, now_ms, forgotten)

        self._topics.drop(event.topic, request.now_ms, dropped)

    def _keep_group(self, request: Request, event: machine.GroupWanted) -> None:
        self._groups.put(event.said, request.now_ms, partial(self._group_kept, request))

    def _forget_group(self, request: Request, event: machine.GroupDeletionWanted) -> None:
        self._groups.drop(event.group, request.now_ms, partial(self._group_kept, request))

    def _group_kept(self, request: Request, reason: str, _now_ms: int) -> None:
        self._take(request, machine.GroupLost(reason) if reason else machine.GroupKept())

    def _delete_old_files(self, request: Request, _event: Any) -> None:
        self._broker.delete_old_files(request.now_ms)

    def _take_role(self, request: Request, _event: Any) -> None:
        self._broker.role_told(request.command, request.now_ms)

    # The log

    def _epochs(self) -> EpochEntryCache:
        options = self._options
        names = options.broker_cluster_name, options.broker_name
        return epoch_cache(self._store, *names, self._broker.route_id)

    def _figures(self, now_ms: int) -> RuntimeInfo:
        stored, given = self._broker.counts()
        serves = self._broker.serves
        return runtime_info(self._store, BROKER_RELEASE, now_ms, serves=serves, stored=stored, given=given)


def _config(said: CreateTopicRequest) -> TopicConfig:
    """A topic as an administrator wants it."""
    return TopicConfig(
        attributes={},
        order=said.order or False,
        perm=said.perm,
        read_queue_nums=said.read_queue_nums,
        topic_filter_type=said.topic_filter_type or constants.SINGLE_TAG,
        topic_name=said.topic,
        topic_sys_flag=said.topic_sys_flag or 0,
        write_queue_nums=said.write_queue_nums,
    )
