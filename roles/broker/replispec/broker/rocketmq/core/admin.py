"""What administrators ask, and what a replica of Apache's copies beside the log.

Source: apache/rocketmq rocketmq-all-5.4.0, AdminBrokerProcessor, SlaveSynchronize.
"""

from __future__ import annotations

from typing import Final, Protocol

from replispec.broker.rocketmq.core.offsets import ConsumerOffsets
from replispec.broker.rocketmq.core.topics import NAME, Topics
from replispec.runtime.rocketmq.log import MessageStore
from replispec.runtime.rocketmq.membership import epoch_cache, runtime_info
from replispec.runtime.rocketmq.remoting.server import BROKER_RELEASE, Request
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import DataVersion, TopicConfig
from replispec.wire.rocketmq.client import (
    CreateTopicRequest,
    DelayOffsetTable,
    GetAllSubscriptionGroupsResponse,
    GetAllTopicConfigResponse,
    GetTopicConfigRequest,
    HaRuntimeInfo,
    MessageRequestModes,
    SubscriptionGroupTable,
    TimerCheckpoint,
    TimerMetrics,
)
from replispec.wire.rocketmq.codes import ResponseCode
from replispec.wire.rocketmq.controller import Properties, Property
from replispec.wire.rocketmq.options import BrokerOptions
from replispec.wire.rocketmq.parameters import BROKER

QUEUES_MAX: Final = 1_024


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

    def announce(self, now_ms: int, /) -> None:
        """Tell name servers what has changed."""
        ...


class Admin:
    """Answers administrators and replicas. Each method raises RemoteProtocolError for a request that cannot
    be read."""

    def __init__(
        self,
        store: MessageStore,
        topics: Topics,
        offsets: ConsumerOffsets,
        options: BrokerOptions,
        broker: Described,
    ) -> None:
        self._store = store
        self._topics = topics
        self._offsets = offsets
        self._options = options
        self._broker = broker

    def create_topic(self, request: Request) -> None:
        """Create a topic or change it."""
        header = CreateTopicRequest.from_ext_fields(request.command.header.ext_fields or {})
        name = header.topic or ""
        queues = header.read_queue_nums or 0, header.write_queue_nums or 0
        if not NAME.fullmatch(name) or not all(1 <= count <= QUEUES_MAX for count in queues):
            request.answer(ResponseCode.INVALID_PARAMETER, remark="no such topic can be")
            return
        if not self._broker.serves:
            request.answer(ResponseCode.SERVICE_NOT_AVAILABLE, remark="this broker is no master")
            return
        config = TopicConfig(
            attributes={},
            order=header.order or False,
            perm=header.perm,
            read_queue_nums=queues[0],
            topic_filter_type=header.topic_filter_type or constants.SINGLE_TAG,
            topic_name=name,
            topic_sys_flag=header.topic_sys_flag or 0,
            write_queue_nums=queues[1],
        )

        def kept(reason: str, now_ms: int) -> None:
            if reason:
                request.answer(ResponseCode.SYSTEM_ERROR, remark=f"the topic cannot be kept: {reason}")
                return
            request.answer(ResponseCode.SUCCESS)
            self._broker.announce(now_ms)

        self._topics.put(config, request.now_ms, kept)

    def topic(self, request: Request) -> None:
        """One topic."""
        header = GetTopicConfigRequest.from_ext_fields(request.command.header.ext_fields or {})
        config = self._topics.get(header.topic or "")
        if config is None:
            request.answer(ResponseCode.TOPIC_NOT_EXIST, remark="no such topic")
        else:
            request.answer(ResponseCode.SUCCESS, body=config.encode())

    def all_topics(self, request: Request) -> None:
        """All topics, at once."""
        response = GetAllTopicConfigResponse(len(self._topics))
        body = self._topics.table(self._broker.master_epoch).encode()
        request.answer(ResponseCode.SUCCESS, ext_fields=response.to_ext_fields(), body=body)

    def all_offsets(self, request: Request) -> None:
        """How far all groups have read."""
        request.answer(ResponseCode.SUCCESS, body=self._offsets.table().encode())

    def all_groups(self, request: Request) -> None:
        """All consumer groups that somebody configured: none."""
        response = GetAllSubscriptionGroupsResponse(0)
        body = SubscriptionGroupTable(_unchanged(), {}, {}).encode()
        request.answer(ResponseCode.SUCCESS, ext_fields=response.to_ext_fields(), body=body)

    def delay_offsets(self, request: Request) -> None:
        """How far delayed messages were delivered: there are none."""
        request.answer(ResponseCode.SUCCESS, body=DelayOffsetTable(_unchanged(), {}).encode())

    def request_modes(self, request: Request) -> None:
        """Who receives how: everybody pulls."""
        request.answer(ResponseCode.SUCCESS, body=MessageRequestModes({}).encode())

    def timer_checkpoint(self, request: Request) -> None:
        """Progress of the wheel of timed messages: constant, for timed messages are not supported."""
        request.answer(ResponseCode.SUCCESS, body=TimerCheckpoint().encode())

    def timer_metrics(self, request: Request) -> None:
        """How many timed messages wait: none."""
        request.answer(ResponseCode.SUCCESS, body=TimerMetrics(_unchanged(), {}).encode())

    def accepted(self, request: Request) -> None:
        """What needs nothing done."""
        request.answer(ResponseCode.SUCCESS)

    def epochs(self, request: Request) -> None:
        """Epochs and log end."""
        options = self._options
        names = options.broker_cluster_name, options.broker_name
        cache = epoch_cache(self._store, *names, self._broker.route_id)
        request.answer(ResponseCode.SUCCESS, body=cache.encode())

    def ha_status(self, request: Request) -> None:
        """How replication is."""
        request.answer(ResponseCode.SUCCESS, body=self._broker.ha_status().encode())

    def configuration(self, request: Request) -> None:
        """What was configured, defaults included."""
        listed = [Property(name, value) for name, value in BROKER.texts(self._options).items()]
        request.answer(ResponseCode.SUCCESS, body=Properties(listed).encode())

    def runtime_info(self, request: Request) -> None:
        """Figures by name; those that are not measured here are zero."""
        stored, given = self._broker.counts()
        serves = self._broker.serves
        response = runtime_info(
            self._store, BROKER_RELEASE, request.now_ms, serves=serves, stored=stored, given=given
        )
        request.answer(ResponseCode.SUCCESS, body=response.encode())


def _unchanged() -> DataVersion:
    return DataVersion(0, 0, 0)
