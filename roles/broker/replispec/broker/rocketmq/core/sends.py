"""Messages of producers: stored, brought to the disk, copied, and only then acknowledged.

Source: RIP-44 "A solution without losing messages"; apache/rocketmq rocketmq-all-5.4.0,
SendMessageProcessor, GroupTransferService.
"""

from __future__ import annotations

import ipaddress
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from replispec.broker.rocketmq.core.addresses import host
from replispec.broker.rocketmq.core.topics import NAME, Topics
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.log import MessageStore, Placed, RoomListener
from replispec.runtime.rocketmq.remoting.server import Request
from replispec.runtime.rocketmq.replication import is_durable
from replispec.runtime.storage import StorageFailed
from replispec.runtime.world import Level, Outbox
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import (
    SendMessageRequest,
    SendMessageResponse,
    SendMessageV2Request,
    TopicConfig,
)
from replispec.wire.rocketmq.client import BatchMessage
from replispec.wire.rocketmq.codes import LogMagic, MessageFlag, Permission, RequestCode, ResponseCode
from replispec.wire.rocketmq.options import BrokerOptions
from replispec.wire.rocketmq.store import LogRecord

WAITING_MAX: Final = 100_000
"""Messages that wait to be acknowledged; further ones are refused until some are."""
RECORD_BYTES_BESIDE_MAX: Final = 256
"""No record is longer than its body and its properties by more: fixed fields, and a topic of 127 bytes."""
_IPV6_HOSTS: Final = MessageFlag.BORN_HOST_IPV6 | MessageFlag.STORE_HOST_IPV6
"""Bits of a record whose hosts are IPv6; ours are written as IPv4."""


class SendRefused(Exception):
    """A message is not stored: the code and the words of the answer."""

    def __init__(self, code: ResponseCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class _TopicWanted(Exception):
    """A message is the first of its topic, which has to be there before it."""

    def __init__(self, topic: TopicConfig) -> None:
        super().__init__(topic.topic_name)
        self.topic = topic


@dataclass(slots=True)
class _Waiting:
    request: Request
    end: int
    answer: SendMessageResponse
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

    def wait_for_room(self, then: RoomListener) -> None:
        """Have a file made for what the log has reserved; `then` is told when it is there, or cannot be."""
        ...

    def stored(self, now_ms: int, /) -> None:
        """Messages were appended to the log."""
        ...


class Sends:
    """Takes messages and answers in the order in which they were stored."""

    def __init__(
        self, outbox: Outbox, store: MessageStore, topics: Topics, options: BrokerOptions, master: MasterLog
    ) -> None:
        self._outbox = outbox
        self._store = store
        self._topics = topics
        self._options = options
        self._master = master
        self._waiting: deque[_Waiting] = deque()
        self._durable = 0
        self._store_ip = _packed(host(options))
        self._store_host = str(ipaddress.ip_address(self._store_ip))
        self.store_port = options.listen_port
        self.stored_count = 0
        self._is_refusing = False
        # What waits for the log's next file, in the order in which it came.
        self._held: deque[Request] = deque()

    def take(self, request: Request) -> None:
        """Store the message or messages of a request; it is answered when they are safe."""
        self._take(request, request.now_ms)

    def _take(self, request: Request, now_ms: int) -> None:
        try:
            header, body = _read(request), request.command.body
            records = self._records(header, body, request)
            if self._held or not self._has_room(records):
                self._hold(request)
                return
            placed = self._put(records)
        except SendRefused as refused:
            request.answer(refused.code, remark=str(refused))
        except RemoteProtocolError as error:
            request.answer(ResponseCode.MESSAGE_ILLEGAL, remark=str(error))
        except _TopicWanted as wanted:
            self._topics.create(wanted.topic, now_ms, partial(self._take_when_kept, request))
        except StorageFailed as error:
            self._refuse(request, str(error))
            if self._store.log.broken:
                self._outbox.halt(f"the commit log is broken: {error}")
        else:
            self._is_refusing = False
            self._wait(request, placed, now_ms)
            self._master.stored(now_ms)

    def _take_when_kept(self, request: Request, reason: str, now_ms: int) -> None:
        """The topic of a message is there, or cannot be."""
        if reason:
            self._refuse(request, reason)
        else:
            self._take(request, now_ms)

    def _has_room(self, records: list[LogRecord]) -> bool:
        """Whether the log has files for these. Raises Refused."""
        at_most = sum(len(each.body) + len(each.properties) + RECORD_BYTES_BESIDE_MAX for each in records)
        if self._store.log.has_room(at_most):
            return True
        try:
            return self._store.log.reserve([len(each.encode()) for each in records])
        except ValueError as error:
            raise SendRefused(ResponseCode.MESSAGE_ILLEGAL, str(error)) from error

    def _hold(self, request: Request) -> None:
        self._held.append(request)
        if len(self._held) == 1:
            self._master.wait_for_room(self._room_changed)

    def _room_changed(self, reason: str, now_ms: int) -> None:
        """The log has another file, or cannot have one."""
        held, self._held = self._held, deque()
        for request in held:
            if reason:
                self._refuse(request, reason)
            else:
                self._take(request, now_ms)

    def _refuse(self, request: Request, reason: str) -> None:
        """The disk refused; told once in the log until a message is stored again, each time to the sender."""
        if not self._is_refusing:
            self._is_refusing = True
            self._outbox.note(Level.ERROR, "a message cannot be kept", reason=reason)
        request.answer(ResponseCode.SERVICE_NOT_AVAILABLE, remark=f"store: {reason}")

    def advance(self, safe: int) -> None:
        """Everything before this offset is safe: acknowledge it."""
        waiting = self._waiting
        while waiting and waiting[0].end <= safe:
            one = waiting.popleft()
            one.request.answer(ResponseCode.SUCCESS, ext_fields=one.answer.to_ext_fields())

    def durable(self, offset: int) -> None:
        """What lies before this offset is on the disk; decides which code a late message is told."""
        self._durable = offset

    def refuse_all(self, reason: str) -> None:
        """This broker is no longer master: the outcome of pending sends is unknown."""
        refused = [*(one.request for one in self._waiting), *self._held]
        self._waiting.clear()
        self._held.clear()
        for request in refused:
            request.answer(ResponseCode.SERVICE_NOT_AVAILABLE, remark=reason)

    def ticked(self, now_ms: int) -> None:
        """Tell those that waited too long what they waited for."""
        while self._waiting and now_ms >= self._due_ms(self._waiting[0]):
            one = self._waiting.popleft()
            late_disk = is_durable(self._options.replication) and one.end > self._durable
            code = ResponseCode.FLUSH_DISK_TIMEOUT if late_disk else ResponseCode.FLUSH_SLAVE_TIMEOUT
            request = one.request
            request.answer(code, ext_fields=one.answer.to_ext_fields(), remark="not acknowledged in time")

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        return self._due_ms(self._waiting[0]) if self._waiting else None

    def _due_ms(self, one: _Waiting) -> int:
        late_disk = is_durable(self._options.replication) and one.end > self._durable
        return one.disk_by_ms if late_disk else one.replicas_by_ms

    def _records(self, header: SendMessageV2Request, body: bytes, request: Request) -> list[LogRecord]:
        """The records of a request. Raises Refused, RemoteProtocolError, _TopicWanted."""
        if not self._master.serves:
            raise SendRefused(ResponseCode.SERVICE_NOT_AVAILABLE, "this broker is no master")
        if not rules.may_store(self._master.sync_members, self._options.min_in_sync_replicas):
            raise SendRefused(ResponseCode.SYSTEM_ERROR, "in-sync replicas not enough")
        if len(self._waiting) + len(self._held) >= WAITING_MAX:
            raise SendRefused(ResponseCode.SYSTEM_BUSY, "too many messages wait to be acknowledged")
        topic = header.topic or ""
        if not NAME.fullmatch(topic):
            raise SendRefused(ResponseCode.MESSAGE_ILLEGAL, f"{topic[:200]!r} is no name of a topic")
        if len(body) > self._options.max_message_size:
            raise SendRefused(ResponseCode.MESSAGE_ILLEGAL, f"{len(body)} bytes are too many for a message")
        if (header.sys_flag or 0) & MessageFlag.TRANSACTION:
            raise SendRefused(ResponseCode.NO_PERMISSION, "transactions are not supported")
        queue_id = self._queue(header, topic)
        properties = (header.properties or "").encode()
        if request.code == RequestCode.SEND_BATCH_MESSAGE or header.batch:
            parts = _batch(body)
        else:
            parts = [BatchMessage(flag=header.flag or 0, body=body, properties=properties)]
        if any(len(part.properties) > constants.PROPERTIES_BYTES_MAX for part in parts):
            raise SendRefused(ResponseCode.MESSAGE_ILLEGAL, "the properties are too long")
        born_ip, born_port = _host(request.peer)
        return [
            LogRecord(
                magic=LogMagic.MESSAGE_V1,
                queue_id=queue_id,
                flag=part.flag,
                sys_flag=(header.sys_flag or 0) & ~_IPV6_HOSTS,
                born_timestamp=header.born_timestamp or request.now_ms,
                born_ip=born_ip,
                born_port=born_port,
                store_timestamp=request.now_ms,
                store_ip=self._store_ip,
                store_port=self.store_port,
                reconsume_times=header.reconsume_times or 0,
                body=part.body,
                topic=topic,
                properties=part.properties,
            )
            for part in parts
        ]

    def _queue(self, header: SendMessageV2Request, topic: str) -> int:
        """The queue of a message. Raises Refused, _TopicWanted."""
        config = self._topics.get(topic)
        if config is None:
            wanted = self._topics.for_message(topic, header.default_topic_queue_nums or 1)
            if wanted is None:
                raise SendRefused(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist")
            raise _TopicWanted(wanted)
        if not (config.perm or 0) & Permission.WRITE:
            raise SendRefused(ResponseCode.NO_PERMISSION, f"the topic[{topic}] sending message is forbidden")
        queue_id = header.queue_id if header.queue_id is not None and header.queue_id >= 0 else 0
        if queue_id >= (config.write_queue_nums or 0):
            raise SendRefused(ResponseCode.SYSTEM_ERROR, f"request queueId[{queue_id}] is illegal")
        return queue_id

    def _put(self, records: list[LogRecord]) -> list[Placed]:
        """Store them one after the other. Raises Refused, StorageFailed."""
        try:
            placed = [self._store.put(record) for record in records]
        except ValueError as error:
            raise SendRefused(ResponseCode.MESSAGE_ILLEGAL, str(error)) from error
        self.stored_count += len(placed)
        return placed

    def _wait(self, request: Request, placed: list[Placed], now_ms: int) -> None:
        broker = f"{self._store_host}:{self.store_port}"
        ids = [rules.message_id(broker, each.offset) for each in placed]
        answer = SendMessageResponse(
            msg_id=",".join(ids),
            queue_id=placed[0].record.queue_id,
            queue_offset=placed[0].record.queue_offset,
        )
        end = placed[-1].offset + placed[-1].size
        replicas_by_ms = now_ms + self._options.slave_timeout_ms
        disk_by_ms = now_ms + self._options.sync_flush_timeout_ms
        self._waiting.append(_Waiting(request, end, answer, replicas_by_ms, disk_by_ms))


def _read(request: Request) -> SendMessageV2Request:
    """The header in its newer form. Raises RemoteProtocolError."""
    fields = request.command.header.ext_fields or {}
    if request.code != RequestCode.SEND_MESSAGE:
        return SendMessageV2Request.from_ext_fields(fields)
    old = SendMessageRequest.from_ext_fields(fields)
    return SendMessageV2Request(
        producer_group=old.producer_group,
        topic=old.topic,
        default_topic=old.default_topic,
        default_topic_queue_nums=old.default_topic_queue_nums,
        queue_id=old.queue_id,
        sys_flag=old.sys_flag,
        born_timestamp=old.born_timestamp,
        flag=old.flag,
        properties=old.properties,
        reconsume_times=old.reconsume_times,
        batch=old.batch,
    )


def _batch(body: bytes) -> list[BatchMessage]:
    """The messages of a batch, at least one. Raises RemoteProtocolError."""
    found, at = [], 0
    while at < len(body):
        message, at = BatchMessage.decode_at(body, at, len(body))
        found.append(message)
    if not found:
        raise RemoteProtocolError("a batch without messages", offset=0)
    return found


def _host(address: str) -> tuple[bytes, int]:
    host, _, port = address.rpartition(":")
    return _packed(host), int(port) if port.isdecimal() else 0


def _packed(host: str) -> bytes:
    """Four bytes; zeros for what is no IPv4 address."""
    try:
        found = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return bytes(4)
    if isinstance(found, ipaddress.IPv6Address):
        found = found.ipv4_mapped or ipaddress.IPv4Address(0)
    return found.packed
