"""Topics whose queues are mapped, static ones and those of logical queues: what the log has of them, who sets
it, and who serves it. The node knows them as one part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from replispec.broker.rocketmq.core.logical import LogicalRequests
from replispec.broker.rocketmq.core.logical_aging import LogicalQueueAging
from replispec.broker.rocketmq.core.logical_mappings import LogicalMappings
from replispec.broker.rocketmq.core.logical_queues import LogicalQueueAdmin
from replispec.broker.rocketmq.core.logical_traffic import LogicalQueueTraffic
from replispec.broker.rocketmq.core.mappings import Mappings
from replispec.broker.rocketmq.core.offsets import ConsumerOffsets
from replispec.broker.rocketmq.core.peers import Peers
from replispec.broker.rocketmq.core.pulls import Pulls
from replispec.broker.rocketmq.core.recorded import RecordedMappings
from replispec.broker.rocketmq.core.recorder import Handler, Kept, MappingLog, Recorder
from replispec.broker.rocketmq.core.static_aging import StaticTopicAging
from replispec.broker.rocketmq.core.static_topics import StaticTopics
from replispec.broker.rocketmq.core.topics import Topics
from replispec.runtime.rocketmq.log import MessageStore, Queue
from replispec.runtime.rocketmq.remoting.server import Request
from replispec.runtime.storage import FilesReader
from replispec.runtime.world import Outbox, Writes
from replispec.wire.rocketmq.broker import (
    DataVersion,
    LogicalQueueMapping,
    TopicConfig,
    TopicConfigTable,
)
from replispec.wire.rocketmq.commands import REQUEST_HEADERS
from replispec.wire.rocketmq.options import BrokerOptions
from replispec.wire.rocketmq.static_topic import TopicConfigAndQueueMapping


class KnownMappings:
    """What the log says of both. Raises StorageFailed."""

    def __init__(
        self, outbox: Outbox, writes: Writes, files: FilesReader, store: MessageStore, broker_name: str
    ) -> None:
        self.static = Mappings(outbox, writes, files, store, broker_name)
        self.logical = LogicalMappings(outbox, writes, files, store, broker_name)

    def config(self, topic: str) -> TopicConfig | None:
        """The topic of the mapping that was recorded last."""
        if not (self.static.knows(topic) or self.logical.knows(topic)):
            return None
        return self.static.config(topic) or self.logical.config(topic)

    def catch_up(self) -> None:
        """Take what came to the log."""
        self.static.catch_up()
        self.logical.catch_up()

    def lives(self, topic: str, queue: Queue) -> bool:
        """Whether a queue has a message that is younger than the deletion of its topic."""
        return self.static.lives(topic, queue)

    def hold(self, end: int) -> int:
        """The log is to begin at an offset: up to where it may be deleted before mappings are recorded."""
        return min(self.static.hold(end), self.logical.hold(end))

    def announce(self, table: TopicConfigTable, address: str) -> None:
        """Add what name servers are told."""
        # What an administrator maps just now is a plain topic until then, which no name server is to forget.
        begun = (each for each in self.logical.unsure if self.logical.is_of_before(each))
        for name in (*self.static.unsure, *begun):
            (table.topic_config_table or {}).pop(name, None)
        table.topic_queue_mapping_info_map = self.static.infos()
        table.logical_queues_info_map = self.logical.infos(address)
        table.logical_queues_enabled_map = self.logical.statements()
        state_version = (table.data_version or DataVersion()).state_version
        table.mapping_data_version = DataVersion(self.static.version + self.logical.version, state_version, 0)


class MappedTopics:
    """Those who set and serve them."""

    def __init__(
        self,
        outbox: Outbox,
        store: MessageStore,
        topics: Topics,
        known: KnownMappings,
        offsets: ConsumerOffsets,
        pulls: Pulls,
        peers: Peers,
        options: BrokerOptions,
        master: MappingLog,
        hand_on: Callable[[Request, Handler], None],
    ) -> None:
        self._topics = topics
        self._known = known
        self._master = master
        self._broker_name = options.broker_name
        self.recorder = Recorder(outbox, store, options, master, hand_on)
        self._static = StaticTopics(topics, known.static, self.recorder, options, master)
        logical = known.logical
        asked = self.recorder, pulls, peers
        self._logical = LogicalQueueAdmin(store, topics, logical, *asked, options, master)
        self._aging = LogicalQueueAging(store, logical, self.recorder, master)
        self._static.is_logical = lambda topic: logical.newest(topic) is not None
        self._logical.is_static = lambda topic: known.static.newest(topic) is not None
        parts = offsets, pulls, peers
        self._emptied = StaticTopicAging(outbox, self._static, known.static, *parts, self.recorder, master)
        self._requests = LogicalRequests(
            outbox, self._static, known.static, *parts, self._emptied, options, hand_on
        )
        self._traffic = LogicalQueueTraffic(store, self._logical, logical, pulls, peers, options.broker_name)
        self.table = self._static.table
        self.small_table = self._logical.table
        """Those of which the body is never long."""

    def through(self, table: Mapping[int, Handler]) -> dict[int, Handler]:
        """Has requests about mapped queues handled as what they mean here; those about others as before."""
        logical, static = self._traffic.through(table), self._requests.through(table)
        both = self._requests.through(logical)
        return {
            code: self._parted(code, each, logical[code], static[code], both[code])
            for code, each in table.items()
        }

    def _parted(self, code: int, plain: Handler, logical: Handler, static: Handler, both: Handler) -> Handler:
        """Handles a request by what its topic is: once it was of either form, by both."""
        if both is plain:
            return plain
        key = REQUEST_HEADERS[code].key_of("topic")
        is_logical, is_static = self._known.logical.knows, self._known.static.knows

        def parted(request: Request) -> None:
            topic = (request.command.header.ext_fields or {}).get(key)
            if is_static(topic):
                (both if is_logical(topic) else static)(request)
            else:
                (logical if is_logical(topic) else plain)(request)

        return parted

    def listens_at(self, address: str) -> None:
        """Where this broker is reached."""
        self._logical.address = address
        self.recorder.store_port = int(address.rpartition(":")[2])

    def settle(self, kept_to: int, now_ms: int) -> bool:
        """Take what the log has now, and what of it is kept; whether name servers have to hear of it."""
        changed = False
        for table in (self._known.static, self._known.logical):
            if topics := table.follow(kept_to, now_ms):
                configs = table.configs()
                self._topics.count_in(
                    {name: configs[name] for name in sorted(topics & configs.keys())}, now_ms
                )
                for name in filter(self._topics.get, table.forgotten(topics)):
                    self._topics.drop(name, now_ms, lambda _reason, _now_ms: None)
                    self._logical.hints.forget(name)
                changed = True
                if table is self._known.logical:
                    self._traffic.changed(topics)
        self.recorder.kept(kept_to if self._master.serves else 0, now_ms)
        self._static.record_unsafe(now_ms)
        self._logical.settle(now_ms)
        self._aging.settle(now_ms)
        self._emptied.settle(now_ms)
        return changed

    def ticked(self, now_ms: int) -> None:
        """Do what is due."""
        self.recorder.ticked(now_ms)
        self._emptied.ticked(now_ms)
        self._known.static.ticked(now_ms)
        self._known.logical.ticked(now_ms)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        parts = self.recorder, self._emptied, self._known.static, self._known.logical
        times = [each.deadline_ms() for each in parts]
        return min((each for each in times if each is not None), default=None)

    def stop(self) -> None:
        """The process ends: leave the files as mappings are."""
        self._known.static.keep()
        self._known.logical.keep()

    def forget(self, topic: str, now_ms: int, then: Kept) -> None:
        """Record that a topic is deleted, whether it had a mapping or not."""
        logical, static = self._known.logical, self._known.static
        gone = TopicConfigAndQueueMapping(topic_name=topic).encode()
        if logical.newest(topic) is None:
            self._record(static, gone, now_ms, then)
            return

        def forgotten(reason: str, at_ms: int) -> None:
            if reason:
                then(reason, at_ms)
            else:
                self._record(static, gone, at_ms, then)

        said = LogicalQueueMapping(broker_name=self._broker_name, topic=topic)
        self._record(logical, said.encode(), now_ms, forgotten)

    def configure(self, config: TopicConfig, now_ms: int, then: Kept) -> None:
        """Record what a topic with logical queues is, but for how many message queues it has: those are what
        other records make of it."""
        mapped = self._known.logical.newest(config.topic_name or "")
        if mapped is None:
            then("it has no logical queues any more", now_ms)
            return
        known = mapped.said.config
        reads, writes = known.read_queue_nums, known.write_queue_nums
        config = replace(config, read_queue_nums=reads, write_queue_nums=writes)
        body = self._known.logical.record_of(replace(mapped.said, config=config))

        def again(reason: str, at_ms: int) -> None:
            if reason:
                then(reason, at_ms)
            else:
                self.configure(config, at_ms, then)

        self.recorder.record(self._known.logical, body, now_ms, then, again)

    def _record(self, table: RecordedMappings[Any], body: bytes, now_ms: int, then: Kept) -> None:
        def again(reason: str, at_ms: int) -> None:
            if reason:
                then(reason, at_ms)
            else:
                self._record(table, body, at_ms, then)

        self.recorder.record(table, body, now_ms, then, again)

    def refuse_all(self, reason: str, now_ms: int) -> None:
        """This broker stops, or is no longer master."""
        self.recorder.refuse_all(reason, now_ms)
        self._logical.step_down()
        self._aging.step_down()
        self._emptied.step_down()
