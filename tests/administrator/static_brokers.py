"""Brokers that keep mappings of static topics as Java's do, in this process, and their name server.

Source: apache/rocketmq rocketmq-all-5.4.0, TopicQueueMappingManager, AdminBrokerProcessor: what is an
assertion there, which production leaves out, is not checked here either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from replispec.administrator.rocketmq.plans import Asking, Plan, Reply
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.remoting.calls import Failure, Outcome
from replispec.wire.rocketmq.broker import BrokerData, ClusterInfo
from replispec.wire.rocketmq.client import TopicOffset, TopicStatsTable
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.message_queue import MessageQueue
from replispec.wire.rocketmq.remoting import RemotingHeader
from replispec.wire.rocketmq.static_topic import (
    LogicQueueItems,
    LogicQueueMappingItem,
    TopicConfigAndQueueMapping,
    TopicQueueMappingDetail,
    UpdateStaticTopicRequest,
)

T = TypeVar("T")
TOPIC, CLUSTER, NAME_SERVER = "TopicS", "C", "10.0.0.1:9876"
OTHER_NAME_SERVER = "10.0.0.2:9876"
SET = RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC


class CutOffError(Exception):
    """The administrator ended here."""


@dataclass(slots=True)
class JavaBroker:
    """One broker: what it holds of the topic, and where its physical queues end."""

    name: str
    config: TopicConfigAndQueueMapping | None = None
    ends: dict[int, int] = field(default_factory=dict)

    @property
    def detail(self) -> TopicQueueMappingDetail:
        """The mapping that it holds."""
        assert self.config is not None
        assert self.config.mapping_detail is not None
        return self.config.mapping_detail

    def items(self, index: int) -> Sequence[LogicQueueMappingItem]:
        """What it holds of a logical queue."""
        held = (self.detail.hosted_queues or {}).get(index, LogicQueueItems([]))
        return held.items or []

    def leads(self, index: int) -> bool:
        """Whether it takes messages of a logical queue."""
        items = self.items(index) if self.config is not None and self.config.mapping_detail else ()
        return bool(items) and items[-1].bname == self.name

    def send(self, index: int, count: int) -> int:
        """Messages are stored; the logical offset of the first, -1 while it is undecided."""
        assert self.leads(index), f"{self.name} does not lead {index}"
        last = self.items(index)[-1]
        queue, start = last.queue_id or 0, last.logic_offset
        end = self.ends.get(queue, 0)
        self.ends[queue] = end + count
        return -1 if start == -1 else (start or 0) + end

    def answer(self, question: Asking) -> Command:
        """What it answers."""
        match question.code:
            case RequestCode.GET_TOPIC_CONFIG if self.config is None:
                return _said(ResponseCode.TOPIC_NOT_EXIST, remark="No topic in this broker")
            case RequestCode.GET_TOPIC_CONFIG:
                assert self.config is not None
                return _said(ResponseCode.SUCCESS, self.config.encode())
            case RequestCode.GET_TOPIC_STATS_INFO:
                return _said(ResponseCode.SUCCESS, self._stats().encode())
            case RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC:
                return self._set(question)
            case RequestCode.DELETE_TOPIC_IN_BROKER:
                self.config = None
                return _said(ResponseCode.SUCCESS)
            case _:
                return _said(ResponseCode.REQUEST_CODE_NOT_SUPPORTED)

    def _stats(self) -> TopicStatsTable:
        assert self.config is not None
        queues = range(self.config.write_queue_nums or 0)
        return TopicStatsTable(
            {
                MessageQueue(self.name, queue, TOPIC).encode().decode(): TopicOffset(
                    max_offset=self.ends.get(queue, 0), min_offset=0, last_update_timestamp=1
                )
                for queue in queues
            },
            0.0,
        )

    def _set(self, question: Asking) -> Command:
        header = UpdateStaticTopicRequest.from_ext_fields(question.fields)
        new = TopicQueueMappingDetail.decode(question.body)
        hosted = dict(new.hosted_queues or {})
        if self.config is not None and self.config.mapping_detail is not None:
            fault = self._refused(self.config.mapping_detail, new, hosted)
            if fault is not None and not header.force:
                return _said(ResponseCode.SYSTEM_ERROR, remark=fault)
        new.hosted_queues = hosted
        self.config = TopicConfigAndQueueMapping(
            mapping_detail=new,
            perm=header.perm,
            read_queue_nums=header.read_queue_nums,
            write_queue_nums=header.write_queue_nums,
            topic_name=header.topic,
        )
        return _said(ResponseCode.SUCCESS)

    def _refused(
        self,
        old: TopicQueueMappingDetail,
        new: TopicQueueMappingDetail,
        hosted: dict[int, LogicQueueItems],
    ) -> str | None:
        epochs = new.epoch or 0, old.epoch or 0
        if epochs[0] < epochs[1]:
            return f"Can't accept data with small epoch {epochs[0]} < {epochs[1]}"
        for index, held in (old.hosted_queues or {}).items():
            told = hosted.get(index)
            if told is None and epochs[0] == epochs[1]:
                return f"Cannot decrease the queue {index} with equal epoch"
            if told is None:
                hosted[index] = held
            elif epochs[0] == epochs[1] and _leader(told) != _leader(held):
                return "The new leader is different but epoch equal"
        return None


def _leader(items: LogicQueueItems) -> tuple[object, ...]:
    last = (items.items or [])[-1]
    return last.gen, last.bname, last.queue_id, last.start_offset


@dataclass(slots=True)
class JavaCluster:
    """Brokers by name, and plans carried out among them. `cut`: after so many mappings are set the
    administrator ends, before it hears of the last one."""

    brokers: Mapping[str, JavaBroker]
    cut: int | None = None
    set_count: int = 0
    told: list[str] = field(default_factory=list)
    silent: set[str] = field(default_factory=set)
    unheard: dict[str, set[str]] = field(default_factory=dict)
    """What a name server does not know."""

    @classmethod
    def of(cls, *names: str) -> JavaCluster:
        """A cluster of brokers with these names."""
        return cls({name: JavaBroker(name) for name in names})

    def carried_out(self, plan: Plan[T]) -> T:
        """What a plan comes to. Raises CutOffError."""
        asked = next(plan)
        try:
            while True:
                asked = plan.send([Reply(each, self._outcome(each)) for each in asked])
        except StopIteration as end:
            result: T = end.value
            return result

    def leaders(self, index: int) -> list[str]:
        """Who takes messages of a logical queue."""
        return [name for name, each in self.brokers.items() if each.leads(index)]

    def _outcome(self, question: Asking) -> Outcome:
        if question.address in {NAME_SERVER, OTHER_NAME_SERVER}:
            return self._name_server(question)
        broker = next(each for name, each in self.brokers.items() if address(name) == question.address)
        if broker.name in self.silent:
            return Failure("Connection refused", False)
        if question.code != SET:
            return broker.answer(question)
        if self.cut == self.set_count:
            raise CutOffError
        self.set_count += 1
        self.told.append(broker.name)
        return broker.answer(question)

    def _name_server(self, question: Asking) -> Command:
        if question.code != RequestCode.GET_BROKER_CLUSTER_INFO:
            return _said(ResponseCode.SUCCESS)
        heard = self.brokers.keys() - self.unheard.get(question.address, set())
        table = {name: BrokerData({0: address(name)}, name, CLUSTER) for name in sorted(heard)}
        info = ClusterInfo.from_json(
            {
                "brokerAddrTable": {name: each.to_json() for name, each in table.items()},
                "clusterAddrTable": {CLUSTER: sorted(heard)},
            }
        )
        return _said(ResponseCode.SUCCESS, info.encode())


def address(name: str) -> str:
    """Where a broker is."""
    return f"{name}:10911"


def _said(code: int, body: bytes = b"", remark: str | None = None) -> Command:
    return Command(RemotingHeader(code=code, remark=remark), body)
