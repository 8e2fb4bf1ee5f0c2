"""Messages of producers: stored, brought to the disk, copied, and only then acknowledged, on the machine
`broker_sends`.

Source: RIP-44 "A solution without losing messages"; apache/rocketmq rocketmq-all-5.4.0,
SendMessageProcessor, GroupTransferService.
"""

from __future__ import annotations

import ipaddress
from collections import deque
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Final, Protocol

from replispec.broker.rocketmq.core.addresses import host
from replispec.broker.rocketmq.core.delays import Delays
from replispec.broker.rocketmq.core.kept_messages import KeptMessages
from replispec.broker.rocketmq.core.new_topics import NewTopics
from replispec.broker.rocketmq.core.subscription_groups import SubscriptionGroups
from replispec.broker.rocketmq.core.topics import AskedTopic, Topics
from replispec.runtime.primitives.bindings import Refused
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.metrics import BoundedCounts, BoundedHistograms
from replispec.runtime.primitives.texts import decimal_of
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.log import MessageStore, Placed, RoomListener, ends_as_torn
from replispec.runtime.rocketmq.remoting.answering import Answering, give
from replispec.runtime.rocketmq.remoting.server import BROKER_RELEASE, Request
from replispec.runtime.rocketmq.replication import is_durable
from replispec.runtime.storage import StorageFailed
from replispec.runtime.world import Level, Outbox
from replispec.wire.rocketmq import constants, metrics
from replispec.wire.rocketmq.broker import TopicConfig
from replispec.wire.rocketmq.client import BatchMessage
from replispec.wire.rocketmq.codes import LogMagic, MessageFlag, Permission, RequestCode
from replispec.wire.rocketmq.machines import broker_sends as machine
from replispec.wire.rocketmq.machines import broker_sends_wire as wire
from replispec.wire.rocketmq.options import BrokerOptions
from replispec.wire.rocketmq.store import LogRecord

WAITING_MAX: Final = 100_000
"""Messages that wait to be acknowledged; further ones are refused until some are."""
SENDING: Final = frozenset(wire.REQUESTS) - {RequestCode.CONSUMER_SEND_MSG_BACK}
"""Requests that send messages to a topic that they name."""
RECORD_BYTES_BESIDE_MAX: Final = 256
"""No record is longer than its body and its properties by more: fixed fields, and a topic of 127 bytes."""
_HOSTS_MAX: Final = 1024
"""Connections whose address is known as bytes; one sends many messages."""
_IPV6_HOSTS: Final = MessageFlag.BORN_HOST_IPV6 | MessageFlag.STORE_HOST_IPV6
"""Bits of a record whose hosts are IPv6; ours are written as IPv4."""
_NOT_STORED: Final = _IPV6_HOSTS | MessageFlag.LOGICAL_QUEUE
"""Bits of a request that no record has: the last one means something else where it is read."""


class _Unfit(Exception):
    """What was sent cannot be stored as a message."""


class _Parcel:
    """The records of one request, and how much room they take."""

    def __init__(self, records: list[LogRecord]) -> None:
        self.records: Final = records
        self.bytes_max: Final = sum(
            len(each.body) + len(each.properties) + RECORD_BYTES_BESIDE_MAX for each in records
        )

    @cached_property
    def sizes(self) -> list[int]:
        """How long each of them is in the log."""
        return [len(each.encode()) for each in self.records]


@dataclass(slots=True)
class _Waiting:
    request: Request
    end: int
    acknowledged: machine.Acknowledged | machine.TakenBack
    replicas_by_ms: int
    disk_by_ms: int


class MasterLog(Protocol):
    """What is asked of the broker before a message is stored, and told after."""

    @property
    def serves(self) -> bool:
        """Whether this broker is master and may take messages."""
        ...

    @property
    def sync_members(self) -> int:
        """How many brokers the SyncStateSet has."""
        ...

    @property
    def disk_is_full(self) -> bool:
        """Whether its disk is used by more than it may be."""
        ...

    def wait_for_room(self, then: RoomListener) -> None:
        """Have a file made for what the log has reserved; `then` is told when it is there, or cannot be."""
        ...

    def stored(self, now_ms: int, /) -> None:
        """Messages were appended to the log."""
        ...


class Sends(KeptMessages):
    """Takes messages and answers in the order in which they were stored. It is what only this broker knows;
    see `local` of the machine."""

    def __init__(
        self,
        outbox: Outbox,
        store: MessageStore,
        topics: Topics,
        options: BrokerOptions,
        master: MasterLog,
        delays: Delays,
        groups: SubscriptionGroups,
        new_topics: NewTopics,
    ) -> None:
        super().__init__(store, topics, groups)
        self._outbox = outbox
        self._asked_topic = AskedTopic(topics)
        self._options = options
        self._master = master
        self._delays = delays
        self._new_topics = new_topics
        self._waiting: deque[_Waiting] = deque()
        self._durable = 0
        self.store_ip = _packed(host(options))
        self._store_host = str(ipaddress.ip_address(self.store_ip))
        self.store_port = options.listen_port
        self.stored_count = 0
        self.stored_by_topic: Final = BoundedCounts(metrics.TOPIC_VALUES_MAX)
        self.bytes_by_topic: Final = BoundedCounts(metrics.TOPIC_VALUES_MAX)
        self.sizes_by_topic: Final = BoundedHistograms(metrics.MESSAGE_SIZE.buckets, metrics.TOPIC_VALUES_MAX)
        self._is_refusing = False
        self._now_ms = 0
        # What waits for the log's next file, in the order in which it came; what the first one is as records
        # is made once for all files that it needs.
        self._held: deque[Request] = deque()
        self._awaits_room = False
        self._first: tuple[Request, _Parcel] | None = None
        self.sync_members_min: Final = rules.members_wanted(
            options.min_in_sync_replicas,
            options.in_sync_replicas,
            all_acknowledge=options.all_ack_in_sync_state_set,
        )
        self.body_bytes_max: Final = options.max_message_size
        self._answering = Answering(
            wire.bound(self, rules),
            {"store": self._store_sent},
            version=BROKER_RELEASE,
        )
        self._answer = self._answering.take
        self.table: Final = dict.fromkeys(wire.REQUESTS, self._asked)

    # What the machine asks

    @property
    def serves(self) -> bool:
        """Whether the broker is master and may take messages."""
        return self._master.serves

    @property
    def sync_members(self) -> int:
        """How many brokers the SyncStateSet has."""
        return self._master.sync_members

    @property
    def delay_levels(self) -> int:
        """How many delay levels there are."""
        return self._delays.levels

    def kept_id(self, offset: int, /) -> str:
        """The id of a message by its offset in the log."""
        return rules.message_id(f"{self._store_host}:{self.store_port}", offset)

    @property
    def waiting(self) -> int:
        """How many messages wait to be acknowledged, for room, or for what a name server says."""
        return len(self._waiting) + len(self._held) + self._new_topics.count

    @property
    def awaits_room(self) -> bool:
        """Whether messages wait for the log's next file."""
        return self._awaits_room

    @property
    def is_full(self) -> bool:
        """Whether as many messages wait to be acknowledged as may."""
        return self.waiting >= WAITING_MAX

    def is_topic(self, name: str, /) -> bool:
        """Whether a text may name a topic."""
        return self._topics.is_name(name)

    def has_topic(self, topic: str, /) -> bool:
        """Whether the broker has this topic."""
        return self._asked_topic.get(topic) is not None

    def may_make(self, topic: str, /) -> bool:
        """Whether a first message to this topic makes it."""
        return self._topics.for_message(topic, 1) is not None

    def may_write(self, topic: str, /) -> bool:
        """Whether messages of this topic are taken."""
        config = self._asked_topic.get(topic)
        return config is None or rules.has_bit(config.perm or 0, Permission.WRITE)

    def write_queues(self, topic: str, /) -> int:
        """How many queues of this topic are written."""
        config = self._asked_topic.get(topic)
        return constants.QUEUE_ID_MAX if config is None else config.write_queue_nums or 0

    # Storing

    def _asked(self, request: Request) -> None:
        """Store what a request sends; it is answered when that is safe. Raises Refused."""
        self._ask(request, request.now_ms)

    def _ask(self, request: Request, now_ms: int) -> None:
        self._now_ms = now_ms
        self._asked_topic.begin()
        self.forget_kept()
        try:
            self._answering.asked(request)
        except RemoteProtocolError as error:
            self._answer(request, machine.Unreadable(str(error)))

    def _asked_again(self, request: Request, now_ms: int) -> None:
        """Likewise for a request that had to wait; nobody is left who would catch a refusal."""
        try:
            self._ask(request, now_ms)
        except Refused as refusal:
            give(request, refusal.answer)

    def _store_sent(self, request: Request, sent: machine.Sent) -> None:
        now_ms = self._now_ms
        if self._master.disk_is_full:
            # The log of the process says so once; see `Retention`.
            self._answer(request, machine.Unkept("the disk is nearly full"))
            return
        if not self.has_topic(sent.topic):
            wanted = self._topics.for_message(sent.topic, sent.queues_wanted)
            if wanted is None:
                # Of a request that names it, it is refused before; a topic of retries may be one too many.
                self._answer(request, machine.Unkept("there are too many topics"))
                return
            self._make(request, sent, wanted, now_ms)
            return
        if self._awaits_room:
            self._held.append(request)
            return
        try:
            parcel = self._parcel(sent, request)
            if not self._has_room(parcel):
                self._await_room(request, parcel)
                return
            placed = self._put(parcel.records)
        except _Unfit as unfit:
            self._answer(request, machine.Unreadable(str(unfit)))
        except StorageFailed as error:
            self._refuse(request, str(error))
            if self._store.log.broken:
                self._outbox.halt(f"the commit log is broken: {error}")
        else:
            self._is_refusing = False
            self._wait(request, sent, placed, now_ms)
            self._master.stored(now_ms)

    def _make(self, request: Request, sent: machine.Sent, wanted: TopicConfig, now_ms: int) -> None:
        """Make a topic, and take its message then; first a name server says whether it may be plain."""
        if not self._new_topics.asks(sent.topic):
            self._topics.create(wanted, now_ms, partial(self._take_when_kept, request))
            return

        def told(request: Request, is_mapped: bool | None, at_ms: int) -> None:
            if is_mapped is False and self.serves:
                self._topics.create(wanted, at_ms, partial(self._take_when_kept, request))
            elif self.serves:
                self._answer(request, machine.Unmade(sent.topic, is_told=is_mapped is not None))
            else:
                self._answer(request, machine.GivenUp(stops=False))

        self._new_topics.ask(sent.topic, request, told, now_ms)

    def _take_when_kept(self, request: Request, reason: str, now_ms: int) -> None:
        """The topic of a message is there, or cannot be."""
        if reason:
            self._refuse(request, reason)
        else:
            self._asked_again(request, now_ms)

    def _parcel(self, sent: machine.Sent, request: Request) -> _Parcel:
        """The records of a request, made once. Raises _Unfit, RemoteProtocolError."""
        first, self._first = self._first, None
        if first is not None and first[0] is request:
            return first[1]
        return _Parcel(self._records(sent, request))

    def _has_room(self, parcel: _Parcel) -> bool:
        """Whether the log has files for these. Raises _Unfit."""
        if self._store.log.has_room(parcel.bytes_max):
            return True
        try:
            return self._store.log.reserve(parcel.sizes)
        except ValueError as error:
            raise _Unfit(str(error)) from error

    def _await_room(self, request: Request, parcel: _Parcel) -> None:
        """Whoever sends meanwhile waits behind this one."""
        self._held.appendleft(request)
        self._awaits_room, self._first = True, (request, parcel)
        self._master.wait_for_room(self._room_changed)

    def _room_changed(self, reason: str, now_ms: int) -> None:
        """The log has another file, or cannot have one."""
        self._awaits_room = False
        while self._held and not self._awaits_room:
            request = self._held.popleft()
            if reason:
                self._refuse(request, reason)
            else:
                self._asked_again(request, now_ms)

    def _refuse(self, request: Request, reason: str) -> None:
        """The disk refused; told once in the log until a message is stored again, each time to the sender."""
        if not self._is_refusing:
            self._is_refusing = True
            self._outbox.note(Level.ERROR, "a message cannot be kept", reason=reason)
        self._answer(request, machine.Unkept(reason))

    def advance(self, safe: int) -> None:
        """Everything before this offset is safe: acknowledge it."""
        waiting = self._waiting
        while waiting and waiting[0].end <= safe:
            one = waiting.popleft()
            self._answer(one.request, one.acknowledged)

    def durable(self, offset: int) -> None:
        """What lies before this offset is on the disk; decides which code a late message is told."""
        self._durable = offset

    def refuse_all(self, *, stops: bool) -> None:
        """This broker stops, or is no longer master. Whoever has something in the log is told so, for nobody
        knows whether it stays there, and who sends it again may have it twice."""
        stored, refused = [*self._waiting], [*self._held, *self._new_topics.take_all()]
        self._waiting.clear()
        self._held.clear()
        self._first = None
        for one in stored:
            self._late(one)
        for request in refused:
            self._answer(request, machine.GivenUp(stops))

    def ticked(self, now_ms: int) -> None:
        """Tell those that waited too long what they waited for."""
        while self._waiting and now_ms >= self._due_ms(self._waiting[0]):
            self._late(self._waiting.popleft())

    def _late(self, one: _Waiting) -> None:
        said = one.acknowledged
        if isinstance(said, machine.TakenBack):
            self._answer(one.request, machine.NotTakenBack())
            return
        place = said.msg_id, said.queue_id, said.queue_offset, said.stored_in
        self._answer(one.request, machine.Late(*place, on_disk=not self._lacks_disk(one)))

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        return self._due_ms(self._waiting[0]) if self._waiting else None

    def _due_ms(self, one: _Waiting) -> int:
        return one.disk_by_ms if self._lacks_disk(one) else one.replicas_by_ms

    def _lacks_disk(self, one: _Waiting) -> bool:
        """Whether it is the disk that a message waits for."""
        return is_durable(self._options.replication) and one.end > self._durable

    def _records(self, sent: machine.Sent, request: Request) -> list[LogRecord]:
        """The records of a request. Raises _Unfit, RemoteProtocolError."""
        topic, queue_id, properties = sent.topic, sent.queue_id, sent.properties
        if level := _level(sent, request):
            properties = rules.as_waiting(properties, topic, queue_id)
            topic, queue_id = constants.SCHEDULE_TOPIC, level - 1
        alone = BatchMessage(flag=sent.flag, body=sent.body, properties=properties.encode())
        parts = _batch(sent.body) if sent.is_batch else [alone]
        longest = max(len(part.properties) for part in parts)
        if level:
            # A message that waits has to fit its topic, too, wherever it waited.
            delivered = rules.as_delivered(properties, level, constants.POSITION_MAX)
            longest = max(longest, len(delivered.encode()))
            if len(sent.body) + longest + RECORD_BYTES_BESIDE_MAX > self._store.log.record_bytes_max:
                raise _Unfit("it leaves no room for where it waits")
        if longest > constants.PROPERTIES_BYTES_MAX:
            raise _Unfit("the properties are too long")
        if any(ends_as_torn(part.properties) for part in parts):
            raise _Unfit("the properties end with a zero byte")
        born_ip, born_port = _host(request.peer)
        return [
            LogRecord(
                magic=LogMagic.MESSAGE_V1,
                queue_id=queue_id,
                flag=part.flag,
                sys_flag=sent.sys_flag & ~_NOT_STORED,
                born_timestamp=sent.born_timestamp or request.now_ms,
                born_ip=born_ip,
                born_port=born_port,
                store_timestamp=request.now_ms,
                store_ip=self.store_ip,
                store_port=self.store_port,
                reconsume_times=sent.reconsume_times,
                body=part.body,
                topic=topic,
                properties=part.properties,
            )
            for part in parts
        ]

    def _put(self, records: list[LogRecord]) -> list[Placed]:
        """Store them one after the other. Raises _Unfit, StorageFailed."""
        try:
            placed = [self._store.put(record) for record in records]
        except ValueError as error:
            raise _Unfit(str(error)) from error
        self.stored_count += len(placed)
        topic = records[0].topic
        self.stored_by_topic.add(topic, len(placed))
        self.bytes_by_topic.add(topic, sum([each.size for each in placed]))
        sizes = self.sizes_by_topic.of(topic)
        for each in placed:
            sizes.observe(each.size)
        return placed

    def _wait(self, request: Request, sent: machine.Sent, placed: list[Placed], now_ms: int) -> None:
        broker = f"{self._store_host}:{self.store_port}"
        ids = [rules.message_id(broker, each.offset) for each in placed]
        first = placed[0].record
        place = first.queue_id, first.queue_offset
        if level := _level(sent, request):
            self._delays.waits(level)
            place = sent.queue_id, first.queue_offset
        if request.view is not None:
            place = request.view.index, request.view.segment.logical_of(first.queue_offset)
        is_elsewhere = request.view is not None and request.view.is_handed_on
        stored_in = str(first.queue_id) if is_elsewhere else None
        acknowledged: machine.Acknowledged | machine.TakenBack
        acknowledged = machine.Acknowledged(",".join(ids), *place, stored_in)
        if request.command.header.code == RequestCode.CONSUMER_SEND_MSG_BACK:
            acknowledged = machine.TakenBack()
        end = placed[-1].offset + placed[-1].size
        # The log has it: nothing of a request is kept for its answer but whom to tell.
        request.command.body = b""
        request.command.header.ext_fields = None
        replicas_by_ms = now_ms + self._options.slave_timeout_ms
        disk_by_ms = now_ms + self._options.sync_flush_timeout_ms
        self._waiting.append(_Waiting(request, end, acknowledged, replicas_by_ms, disk_by_ms))


def _level(sent: machine.Sent, request: Request) -> int:
    """The delay level of a message; 0 for those of a batch, and of topics with mappings, which never wait."""
    return 0 if sent.is_batch or request.view is not None else sent.delay_level


def _batch(body: bytes) -> list[BatchMessage]:
    """The messages of a batch, at least one. Raises _Unfit, RemoteProtocolError."""
    found: list[BatchMessage] = []
    at = 0
    while at < len(body):
        if len(found) == constants.BATCH_MESSAGES_MAX:
            raise _Unfit(f"the batch has more than {len(found)} messages")
        message, at = BatchMessage.decode_at(body, at, len(body))
        found.append(message)
    if not found:
        raise RemoteProtocolError("a batch without messages", offset=0)
    return found


@lru_cache(maxsize=_HOSTS_MAX)
def _host(address: str) -> tuple[bytes, int]:
    host, _, port = address.rpartition(":")
    return _packed(host), decimal_of(port) or 0


def _packed(host: str) -> bytes:
    """Four bytes; zeros for what is no IPv4 address."""
    try:
        found = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return bytes(4)
    if isinstance(found, ipaddress.IPv6Address):
        found = found.ipv4_mapped or ipaddress.IPv4Address(0)
    return found.packed
