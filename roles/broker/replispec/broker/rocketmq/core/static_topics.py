"""Mappings of static topics, as administrators set them: checked on the machine `static_topic_queue`, written
to the commit log as one record, and answered when the SyncStateSet has that.

Source: apache/rocketmq rocketmq-all-5.4.0, AdminBrokerProcessor.updateAndCreateStaticTopic,
TopicQueueMappingManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, Final

from replispec.broker.rocketmq.core.mappings import Mapped, Mappings
from replispec.broker.rocketmq.core.recorder import RECORDED_AT_ONCE, MappingLog, Recorder
from replispec.broker.rocketmq.core.topics import Topics
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.machines import edge_of, step
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.queues.forms import queues_of_items
from replispec.runtime.rocketmq.remoting.answering import give
from replispec.runtime.rocketmq.remoting.server import Request
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import TopicConfig
from replispec.wire.rocketmq.machines import static_topic_queue as machine
from replispec.wire.rocketmq.machines import static_topic_queue_wire as wire
from replispec.wire.rocketmq.options import BrokerOptions
from replispec.wire.rocketmq.static_topic import (
    LogicQueueMappingItem,
    TopicConfigAndQueueMapping,
    TopicQueueMappingDetail,
    UpdateStaticTopicRequest,
)

Items = Sequence[LogicQueueMappingItem]
Instance = tuple[machine.State, machine.Variables]
"""One logical queue of a topic at this broker."""


class StaticTopics:
    """Sets mappings. It is what only this broker knows; see `local` of the machine."""

    def __init__(
        self,
        topics: Topics,
        mappings: Mappings,
        recorder: Recorder,
        options: BrokerOptions,
        master: MappingLog,
    ) -> None:
        self._mappings = mappings
        self._topics = topics
        self._recorder = recorder
        self._master = master
        self.broker_name = options.broker_name
        self.is_logical: Callable[[str], bool] = lambda _topic: False
        """Whether a topic is one of logical queues in the form of RIP-21."""
        self._now_ms = 0
        self._bound = wire.bound(self, rules)
        self._instances: dict[str, tuple[Mapped, dict[int, Instance]]] = {}
        self.table: Final = dict.fromkeys(wire.REQUESTS, self._asked)

    # What the machine asks

    @property
    def serves(self) -> bool:
        """Whether the broker is master."""
        return self._master.serves

    def is_topic(self, name: str, /) -> bool:
        """Whether a text may name a topic."""
        return self._topics.is_name(name)

    def fault_of(self, topic: str, said: TopicQueueMappingDetail, /) -> str | None:
        """What cannot be of a mapping, those of its logical queues included that it does not name."""
        if self.is_logical(topic):
            return "the topic is one of logical queues"
        if not rules.is_epoch_credible(said.epoch or 0, self._now_ms):
            return f"the epoch {said.epoch} is far ahead of the clock"
        try:
            queues = queues_of_items(self._with_unnamed(topic, said), topic)
        except RemoteProtocolError as error:
            return str(error)
        last = max(queues, default=0)
        return None if last <= max(0, (said.total_queues or 0) - 1) else f"there is no logical queue {last}"

    def items_of(self, said: TopicQueueMappingDetail, /) -> Items:
        """What it says of the logical queue that answers."""
        return rules.items_of_queue(said, constants.MAPPING_SPEAKER)

    # Setting a mapping

    def _asked(self, request: Request) -> None:
        """Check and record a mapping. Raises Refused, RemoteProtocolError."""
        self._now_ms = request.now_ms
        command = request.command
        fields = command.header.ext_fields or {}
        event = self._bound.event_of(request.code, fields, command.body, command.release)
        assert isinstance(event, machine.Mapped)
        said = UpdateStaticTopicRequest.from_ext_fields(fields)
        detail = TopicQueueMappingDetail.decode(command.body)
        topic = said.topic or ""
        instances = self._of(self._mappings.newest(topic))
        is_recorded = False
        for index in sorted({constants.MAPPING_SPEAKER, *instances, *(detail.hosted_queues or {})}):
            state, known = instances.get(index, (machine.MACHINE.initial, machine.MACHINE.variables))
            mapped = replace(event, items=rules.items_of_queue(detail, index))
            for effect in edge_of(machine.MACHINE, state, known, mapped, rules).do:
                if effect in self._bound.answers:
                    give(request, self._bound.answer_of(effect, known, mapped, command.release))
                    return
                is_recorded = is_recorded or effect == "record_mapping"
        if not is_recorded:
            raise RemoteProtocolError("it sets nothing")
        whole = self._with_unnamed(topic, detail)
        body = recorded_mapping(self._with_room(_config(said), whole), whole)
        kept = partial(self._kept, request)
        again = self._recorder.asks_again(request, self._asked, kept)
        self._recorder.record(self._mappings, body, request.now_ms, kept, again)

    def _with_unnamed(self, topic: str, said: TopicQueueMappingDetail) -> TopicQueueMappingDetail:
        """A mapping with the logical queues that it does not name, as they were."""
        known = self._mappings.newest(topic)
        before = {} if known is None else known.detail.hosted_queues or {}
        named = {index: each for index, each in (said.hosted_queues or {}).items() if each.items}
        return replace(said, hosted_queues={**before, **named}, curr_id_map={}, dirty=False)

    def _with_room(self, config: TopicConfig, detail: TopicQueueMappingDetail) -> TopicConfig:
        """A topic with every queue of this broker that an item names: who sets this may not know of all."""
        items = (each for of in (detail.hosted_queues or {}).values() for each in of.items or ())
        count = max((each.queue_id or 0 for each in items if each.bname == self.broker_name), default=-1) + 1
        reads, writes = config.read_queue_nums or 0, config.write_queue_nums or 0
        return replace(config, read_queue_nums=max(reads, count), write_queue_nums=max(writes, count))

    # What became of it

    def _kept(self, request: Request, reason: str, now_ms: int) -> None:
        self._tell(request, machine.Unkept(reason) if reason else machine.Kept(), now_ms)

    def _tell(self, request: Request, event: machine.Kept | machine.Unkept, now_ms: int) -> None:
        """Answer by the edge of the logical queue that answers."""
        fields = request.command.header.ext_fields or {}
        topic = UpdateStaticTopicRequest.from_ext_fields(fields).topic or ""
        began = machine.MACHINE.initial, machine.MACHINE.variables
        state, known = self._of(self._mappings.newest(topic)).get(constants.MAPPING_SPEAKER, began)
        for effect in edge_of(machine.MACHINE, state, known, event, rules).do:
            if effect in self._bound.answers:
                give(request, self._bound.answer_of(effect, known, event, request.command.release))
            else:
                self._master.announce_topics(now_ms)

    # Of each topic

    def instance(self, mapped: Mapped, index: int) -> Instance:
        """A logical queue of a mapping; one that it does not name is nowhere."""
        return self._of(mapped).get(index, (machine.MACHINE.initial, machine.MACHINE.variables))

    def says(self, effect: str, instance: Instance, event: Any, request: Request) -> bool:
        """Answer a request with this effect; false where that is no answer."""
        if effect not in self._bound.answers:
            return False
        give(request, self._bound.answer_of(effect, instance[1], event, request.command.release))
        return True

    def _of(self, mapped: Mapped | None) -> dict[int, Instance]:
        """The logical queues of a mapping, by index."""
        if mapped is None:
            return {}
        topic = mapped.detail.topic or ""
        cached = self._instances.get(topic)
        if cached is None or cached[0] is not mapped:
            cached = self._instances[topic] = mapped, self._instances_of(mapped.detail)
        return cached[1]

    def _instances_of(self, detail: TopicQueueMappingDetail) -> dict[int, Instance]:
        found: dict[int, Instance] = {}
        epoch = constants.UNDECIDED if detail.epoch is None else detail.epoch
        for index in sorted({constants.MAPPING_SPEAKER, *(detail.hosted_queues or {})}):
            items = rules.items_of_queue(detail, index)
            # What the log has of it is all that is durable; which state that is, the machine says.
            known = machine.Variables(epoch=epoch, items=items)
            event = machine.Recorded(self.broker_name, epoch, items)
            taken = step(machine.MACHINE, machine.MACHINE.initial, known, event, rules)
            found[index] = taken.state, taken.variables
        return found

    # So that the log has all of them

    def record_unsafe(self, now_ms: int) -> None:
        """As a master, record mappings that no record holds, or of which it is about to be deleted."""
        if not self._mappings.is_safe:
            self._recorder.record_again(self._mappings, self._unsafe(), now_ms)

    def _unsafe(self) -> Iterator[tuple[str, bytes]]:
        for topic, found in islice(self._mappings.unsafe(), RECORDED_AT_ONCE):
            config = found.config or self._topics.get(topic)
            if config is None:
                return
            yield topic, recorded_mapping(config, found.detail)


def recorded_mapping(config: TopicConfig, detail: TopicQueueMappingDetail) -> bytes:
    """A topic and its mapping as the log has them."""
    return TopicConfigAndQueueMapping(
        attributes=config.attributes,
        mapping_detail=detail,
        order=config.order,
        perm=config.perm,
        read_queue_nums=config.read_queue_nums,
        topic_filter_type=config.topic_filter_type,
        topic_name=config.topic_name,
        topic_sys_flag=config.topic_sys_flag,
        write_queue_nums=config.write_queue_nums,
    ).encode()


def _config(said: UpdateStaticTopicRequest) -> TopicConfig:
    return TopicConfig(
        attributes={},
        order=said.order or False,
        perm=said.perm,
        read_queue_nums=said.read_queue_nums or 0,
        topic_filter_type=said.topic_filter_type or constants.SINGLE_TAG,
        topic_name=said.topic,
        topic_sys_flag=said.topic_sys_flag or 0,
        write_queue_nums=said.write_queue_nums or 0,
    )
