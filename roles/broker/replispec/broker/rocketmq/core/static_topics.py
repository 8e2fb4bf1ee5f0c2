"""Mappings of static topics, as administrators set them: checked on the machine `static_topic_queue`, written
to the commit log as one record, and answered when the SyncStateSet has that.

Source: apache/rocketmq rocketmq-all-5.4.0, AdminBrokerProcessor.updateAndCreateStaticTopic,
TopicQueueMappingManager.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Final, Protocol

from replispec.broker.rocketmq.core.mappings import Mapped, Mappings
from replispec.broker.rocketmq.core.topics import Topics
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.machines import edge_of, step
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.log import MessageStore, RoomListener
from replispec.runtime.rocketmq.queues.forms import queues_of_items
from replispec.runtime.rocketmq.remoting.answering import give
from replispec.runtime.rocketmq.remoting.server import Request
from replispec.runtime.storage import StorageFailed
from replispec.runtime.world import Level, Outbox
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import TopicConfig
from replispec.wire.rocketmq.codes import LogMagic
from replispec.wire.rocketmq.machines import static_topic_queue as machine
from replispec.wire.rocketmq.machines import static_topic_queue_wire as wire
from replispec.wire.rocketmq.options import BrokerOptions
from replispec.wire.rocketmq.static_topic import (
    LogicQueueMappingItem,
    TopicConfigAndQueueMapping,
    TopicQueueMappingDetail,
    UpdateStaticTopicRequest,
)
from replispec.wire.rocketmq.store import LogRecord

WAITING_MAX: Final = 1_000
"""Mappings that wait to be kept; further ones are refused until some are."""
RECORDED_AT_ONCE: Final = 16
"""Mappings that are recorded again because of one event."""

Handler = Callable[[Request], None]
Items = Sequence[LogicQueueMappingItem]
Instance = tuple[machine.State, machine.Variables]
"""One logical queue of a topic at this broker."""


class MappingLog(Protocol):
    """What is asked of the broker before a mapping is recorded, and told after."""

    @property
    def serves(self) -> bool:
        """Whether this broker is master."""
        ...

    @property
    def awaits_room(self) -> bool:
        """Whether messages wait for the log's next file, which come first."""
        ...

    def wait_for_room(self, then: RoomListener) -> None:
        """Have a file made for what the log has reserved; `then` is told when it is there, or cannot be."""
        ...

    def stored(self, now_ms: int, /) -> None:
        """Records were appended to the log."""
        ...

    def announce_topics(self, now_ms: int, /) -> None:
        """Tell name servers which topics there are now."""
        ...


Kept = Callable[[str, int], None]
"""Told that a record is kept, or why it is not (empty when it is), and the time in milliseconds."""


@dataclass(slots=True)
class _Waiting:
    then: Kept
    end: int
    late_ms: int


class StaticTopics:
    """Sets mappings. It is what only this broker knows; see `local` of the machine."""

    def __init__(
        self,
        outbox: Outbox,
        store: MessageStore,
        topics: Topics,
        mappings: Mappings,
        options: BrokerOptions,
        master: MappingLog,
        hand_on: Callable[[Request, Handler], None],
    ) -> None:
        self._hand_on = hand_on
        self._outbox = outbox
        self._store = store
        self._mappings = mappings
        self._topics = topics
        self._options = options
        self._master = master
        self.broker_name = options.broker_name
        self.store_ip = bytes(4)
        self.store_port = options.listen_port
        self._bound = wire.bound(self, rules)
        self._instances: dict[str, tuple[Mapped, dict[int, Instance]]] = {}
        self._waiting: deque[_Waiting] = deque()
        # What waits for the log's next file, in the order in which it came.
        self._held: deque[Kept] = deque()
        self._awaits_room = False
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
        command = request.command
        fields = command.header.ext_fields or {}
        event = self._bound.event_of(request.code, fields, command.body, command.release)
        assert isinstance(event, machine.Mapped)
        said = UpdateStaticTopicRequest.from_ext_fields(fields)
        detail = TopicQueueMappingDetail.decode(command.body)
        topic = said.topic or ""
        instances = self._of(self._mappings.newest(topic))
        for index in sorted({constants.MAPPING_SPEAKER, *instances, *(detail.hosted_queues or {})}):
            state, known = instances.get(index, (machine.MACHINE.initial, machine.MACHINE.variables))
            mapped = replace(event, items=rules.items_of_queue(detail, index))
            for effect in edge_of(machine.MACHINE, state, known, mapped, rules).do:
                if effect in self._bound.answers:
                    give(request, self._bound.answer_of(effect, known, mapped, command.release))
                    return
        if len(self._waiting) + len(self._held) >= WAITING_MAX:
            self._lost(request, "too many wait for it")
        elif self._awaits_room:
            self._held.append(partial(self._again, request))
        else:
            wanted = _said(_config(said), self._with_unnamed(topic, detail))
            self._record(wanted, request.now_ms, partial(self._told, request), partial(self._again, request))

    def _again(self, request: Request, reason: str, _now_ms: int) -> None:
        """There is room for what waited, or there cannot be."""
        if reason:
            self._lost(request, reason)
        else:
            # What was recorded meanwhile counts.
            self._hand_on(request, self._asked)

    def forget(self, topic: str, now_ms: int, then: Kept) -> None:
        """Record that a topic is deleted, whether it had a mapping or not."""

        def again(reason: str, at_ms: int) -> None:
            if reason:
                then(reason, at_ms)
            else:
                self.forget(topic, at_ms, then)

        if len(self._waiting) + len(self._held) >= WAITING_MAX:
            then("too many wait for it", now_ms)
        elif self._awaits_room:
            self._held.append(again)
        else:
            self._record(TopicConfigAndQueueMapping(topic_name=topic), now_ms, then, again)

    def _with_unnamed(self, topic: str, said: TopicQueueMappingDetail) -> TopicQueueMappingDetail:
        """A mapping with the logical queues that it does not name, as they were."""
        known = self._mappings.newest(topic)
        before = {} if known is None else known.detail.hosted_queues or {}
        named = {index: each for index, each in (said.hosted_queues or {}).items() if each.items}
        return replace(said, hosted_queues={**before, **named}, curr_id_map={}, dirty=False)

    def _record(self, said: TopicConfigAndQueueMapping, now_ms: int, then: Kept, again: Kept) -> None:
        try:
            end = self._append(said, now_ms)
        except ValueError as error:
            then(str(error), now_ms)
        except StorageFailed as error:
            then(str(error), now_ms)
            if self._store.log.broken:
                self._outbox.halt(f"the commit log is broken: {error}")
        else:
            if end is None:
                self._held.appendleft(again)
            else:
                self._waiting.append(_Waiting(then, end, now_ms + self._options.slave_timeout_ms))

    def _append(self, said: TopicConfigAndQueueMapping, now_ms: int) -> int | None:
        """Write a record; returns where it ends, None when there is no room yet. Raises ValueError for one
        that is too long, StorageFailed."""
        if self._awaits_room:
            return None
        record = self._recorded(said, now_ms)
        if self._master.awaits_room or not self._store.log.reserve([len(record.encode())]):
            self._awaits_room = True
            self._master.wait_for_room(self._room_changed)
            return None
        placed = self._store.put(record)
        self._mappings.catch_up()
        self._master.stored(now_ms)
        return placed.offset + placed.size

    def _recorded(self, said: TopicConfigAndQueueMapping, now_ms: int) -> LogRecord:
        host, port = self.store_ip, self.store_port
        return LogRecord(
            magic=LogMagic.MESSAGE_V1,
            queue_id=constants.MAPPING_QUEUE,
            born_timestamp=now_ms,
            born_ip=host,
            born_port=port,
            store_timestamp=now_ms,
            store_ip=host,
            store_port=port,
            body=said.encode(),
            topic=constants.MAPPING_TOPIC,
        )

    def _room_changed(self, reason: str, now_ms: int) -> None:
        """The log has another file, or cannot have one."""
        self._awaits_room = False
        held, self._held = self._held, deque()
        for again in held:
            again(reason, now_ms)

    # What became of it

    def kept(self, offset: int, now_ms: int) -> None:
        """The SyncStateSet has the log up to here."""
        while self._waiting and self._waiting[0].end <= offset:
            self._waiting.popleft().then("", now_ms)

    def refuse_all(self, reason: str, now_ms: int) -> None:
        """This broker stops, or is no longer master: whether what was set is kept is not known."""
        lost = [*(one.then for one in self._waiting), *self._held]
        self._waiting.clear()
        self._held.clear()
        for then in lost:
            then(reason, now_ms)

    def ticked(self, now_ms: int) -> None:
        """Tell those that waited too long."""
        while self._waiting and now_ms >= self._waiting[0].late_ms:
            self._waiting.popleft().then("it is stored, and not acknowledged in time", now_ms)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        return self._waiting[0].late_ms if self._waiting else None

    def _lost(self, request: Request, reason: str) -> None:
        self._tell(request, machine.Unkept(reason), request.now_ms)

    def _told(self, request: Request, reason: str, now_ms: int) -> None:
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
        if not self._master.serves or self._awaits_room:
            return
        for topic, found in islice(self._mappings.unsafe(), RECORDED_AT_ONCE):
            config = found.config or self._topics.get(topic)
            try:
                if config is None or self._append(_said(config, found.detail), now_ms) is None:
                    return
            except (ValueError, StorageFailed) as error:
                self._outbox.note(Level.ERROR, "a mapping cannot be recorded", topic=topic, reason=str(error))
                return


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


def _said(config: TopicConfig, detail: TopicQueueMappingDetail) -> TopicConfigAndQueueMapping:
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
    )
