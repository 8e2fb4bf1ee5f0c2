"""Batches of producers: appended at once, acknowledged when as many as were asked for have them on the disk.

Source: apache/kafka 2.8.2, ReplicaManager.appendRecords, DelayedProduce.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from replispec.broker.kafka.core.deciding import AskedPartition
from replispec.broker.kafka.core.replica import LocalReplica
from replispec.broker.kafka.keeping import LogKeeper
from replispec.broker.kafka.replicas import LocalReplicas
from replispec.broker.kafka.saying import by_topics
from replispec.broker.kafka.waiting import WaitingRequests
from replispec.runtime.kafka.batches import fault_of
from replispec.runtime.kafka.log import Appended
from replispec.runtime.storage import StorageFailed, StorageFull
from replispec.wire.kafka.clients import ApacheProducePartition, ApacheProduceRequest
from replispec.wire.kafka.constants import NO_OFFSET, NO_TIME, RECORD_FAULTS_VERSION
from replispec.wire.kafka.machines import client_answer as told
from replispec.wire.kafka.machines import client_answer_wire as wire
from replispec.wire.kafka.machines import partition_asked as machine
from replispec.wire.kafka.options import KafkaBrokerOptions

Say = Callable[[bytes | None], None]
"""Is given the answer, None for none."""


@dataclass(slots=True, eq=False)
class _Part:
    """A batch for one partition. `epoch` is the leader's when it was appended."""

    topic: str
    partition: int
    asked: AskedPartition
    replica: LocalReplica | None = None
    appended: Appended | None = None


@dataclass(slots=True, eq=False)
class _Produce:
    acks: int
    version: int
    say: Say
    late_at_ms: int
    parts: list[_Part] = field(default_factory=list)
    is_over: bool = False


class Produces:
    """All batches that wait to be acknowledged."""

    def __init__(self, options: KafkaBrokerOptions, replicas: LocalReplicas, keeper: LogKeeper) -> None:
        self._least: Final = options.min_insync_replicas
        self._bytes_max: Final = options.message_max_bytes
        self._replicas = replicas
        self._keeper = keeper
        self._waiting = WaitingRequests[_Produce]()

    def take(
        self, request: ApacheProduceRequest, version: int, now_ms: int, say: Say, refused: Callable[[], None]
    ) -> None:
        """Append what a producer sent; `refused` is called for one that wants no answer and is refused."""
        one = _Produce(request.acks, version, say, now_ms + max(request.timeout, 0))
        for topic in request.topics:
            one.parts.extend(self._append(topic.name, each, one.acks, now_ms) for each in topic.partitions)
        if one.acks == 0:
            failed = any(each.asked.is_decided for each in one.parts)
            one.is_over = True
            (refused if failed else lambda: say(None))()
            return
        undecided = [(each.topic, each.partition) for each in one.parts if not each.asked.is_decided]
        self._waiting.add(one, undecided)
        self._settle(one, now_ms)

    def _append(self, topic: str, said: ApacheProducePartition, acks: int, now_ms: int) -> _Part:
        key, data = (topic, said.index), said.records or b""
        asked = AskedPartition()
        asked.take(machine.ProduceAsked(acks))
        if asked.is_decided:
            return _Part(*key, asked)
        asked, replica = self._replicas.look(key, None)
        if replica is None or replica.log is None:
            return _Part(*key, asked)
        fits = len(data) <= self._bytes_max
        asked.fault = int(fault_of(data)) if fits else 0
        event = machine.AppendDue(
            acks=acks, fits=fits, fault=asked.fault, in_sync=len(replica.isr), least=self._least
        )
        part = _Part(*key, asked, replica)
        if asked.take(event) == "append":
            try:
                if self._keeper.is_broken:
                    raise StorageFailed("the disk of the logs failed before")
                part.appended = replica.log.append_as_leader(data, replica.known.leader_epoch, now_ms)
                self._replicas.touched.add(key)
            except (StorageFull, StorageFailed) as error:
                self._keeper.fail(str(error))
                asked.take(machine.NotAppended())
        return part

    def settle(self, now_ms: int) -> None:
        """Answer what may be answered: of replicas to which something happened, and what is late."""
        for one in self._waiting.due(self._replicas.touched, now_ms):
            self._settle(one, now_ms)

    def settle_all(self, now_ms: int) -> None:
        """The disk failed: answer everything."""
        for one in self._waiting.all():
            self._settle(one, now_ms)

    def deadline_ms(self) -> int | None:
        """When somebody waits no longer."""
        return self._waiting.deadline_ms()

    def _settle(self, one: _Produce, now_ms: int) -> None:
        if one.is_over:
            return
        for part in one.parts:
            # What is not decided yet has no effect.
            if not part.asked.is_decided and part.asked.take(self._event_of(one, part, now_ms)):
                self._waiting.forget(one, (part.topic, part.partition))
        if all(each.asked.is_decided for each in one.parts):
            one.is_over = True
            one.say(self._answer_of(one))

    def _event_of(self, one: _Produce, part: _Part, now_ms: int) -> machine.Settled:
        replica, appended = part.replica, part.appended
        assert replica is not None
        assert appended is not None
        log = replica.log
        return machine.Settled(
            acks=one.acks,
            flushed=log is not None and log.flushed > appended.last_offset,
            committed=log is not None and log.high_watermark > appended.last_offset,
            in_sync=len(replica.isr),
            least=self._least,
            leads=replica.leads,
            broken=self._keeper.is_broken,
            late=now_ms >= one.late_at_ms,
        )

    def _answer_of(self, one: _Produce) -> bytes:
        def topic_told(topic: str, partitions: list[object]) -> object:
            return wire.list_produced_topic(told.ProducedTopicTold(topic, partitions))  # type: ignore[arg-type]

        topics = by_topics(((each.topic, _told(each, one.version)) for each in one.parts), topic_told)
        return wire.answer_produce(told.ProduceTold(topics)).header.encode(version=one.version)


def _told(part: _Part, version: int) -> object:
    appended, replica = part.appended, part.replica
    is_done = appended is not None and not part.asked.error
    log = None if replica is None else replica.log
    return wire.list_produced(
        told.ProducedTold(
            version=version,
            partition=part.partition,
            error=part.asked.error,
            base_offset=appended.base_offset if is_done and appended is not None else NO_OFFSET,
            append_time=appended.append_time_ms if is_done and appended is not None else NO_TIME,
            log_start=NO_OFFSET if log is None else log.start,
            faults=() if version >= RECORD_FAULTS_VERSION else None,
        )
    )
