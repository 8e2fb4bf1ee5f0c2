"""Fetches: of followers up to the end of the log, of readers up to what is committed; some wait for more.

Source: apache/kafka 2.8.2, ReplicaManager.fetchMessages, DelayedFetch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from replispec.broker.kafka.core.deciding import AskedPartition
from replispec.broker.kafka.core.replica import LocalReplica, ReplicaKey
from replispec.broker.kafka.isr import IsrKeeper
from replispec.broker.kafka.keeping import LogKeeper
from replispec.broker.kafka.replicas import LocalReplicas
from replispec.broker.kafka.saying import by_topics
from replispec.broker.kafka.waiting import WaitingRequests
from replispec.runtime.storage import StorageFailed
from replispec.wire.kafka.clients import ApacheFetchPartition, ApacheFetchRequest
from replispec.wire.kafka.constants import NO_OFFSET, NO_REPLICA
from replispec.wire.kafka.machines import client_answer as told
from replispec.wire.kafka.machines import client_answer_wire as wire
from replispec.wire.kafka.machines import partition_asked as machine
from replispec.wire.kafka.options import KafkaBrokerOptions

SayFetched = Callable[[bytes], None]


@dataclass(slots=True, eq=False)
class _FetchPart:
    topic: str
    said: ApacheFetchPartition
    asked: AskedPartition
    replica: LocalReplica | None
    records: bytes = b""


@dataclass(slots=True, eq=False)
class _WaitingFetch:
    request: ApacheFetchRequest
    version: int
    say: SayFetched
    late_at_ms: int
    keys: Sequence[ReplicaKey] = ()
    is_over: bool = False


class Fetches:
    """All fetches that wait for more."""

    def __init__(
        self, options: KafkaBrokerOptions, replicas: LocalReplicas, keeper: LogKeeper, isr: IsrKeeper
    ) -> None:
        self._bytes_max: Final = options.fetch_max_bytes
        self._replicas = replicas
        self._keeper = keeper
        self._isr = isr
        self._waiting = WaitingRequests[_WaitingFetch]()

    def take(self, request: ApacheFetchRequest, version: int, now_ms: int, say: SayFetched) -> None:
        """Answer a fetch, now or when there is enough."""
        one = _WaitingFetch(request, version, say, now_ms + max(request.max_wait, 0))
        parts = self._look(request, now_ms, is_new=True)
        if request.max_wait <= 0 or self._is_enough(request, parts):
            say(_answer_of(one, parts))
            return
        one.keys = tuple(dict.fromkeys((each.topic, each.said.partition) for each in parts))
        self._waiting.add(one, one.keys)

    def settle(self, now_ms: int) -> None:
        """Answer who has waited long enough, and who may have enough now."""
        for one in self._waiting.due(self._replicas.touched, now_ms):
            parts = self._look(one.request, now_ms, is_new=False)
            if now_ms >= one.late_at_ms or self._is_enough(one.request, parts):
                self._end(one)
                one.say(_answer_of(one, parts))

    def deadline_ms(self) -> int | None:
        """When somebody waits no longer."""
        return self._waiting.deadline_ms()

    def _end(self, one: _WaitingFetch) -> None:
        one.is_over = True
        for key in one.keys:
            self._waiting.forget(one, key)

    def _is_enough(self, request: ApacheFetchRequest, parts: list[_FetchPart]) -> bool:
        found = sum(len(each.records) for each in parts)
        return found >= request.min_bytes or any(each.asked.error for each in parts) or not parts

    def _look(self, request: ApacheFetchRequest, now_ms: int, *, is_new: bool) -> list[_FetchPart]:
        """What there is for each partition, within the limits of the whole answer."""
        left = min(max(request.max_bytes, 0), self._bytes_max)
        parts: list[_FetchPart] = []
        for topic in request.topics:
            for said in topic.partitions:
                key = (topic.topic, said.partition)
                part = _FetchPart(topic.topic, said, *self._replicas.look(key, said.current_leader_epoch))
                is_first = not any(each.records for each in parts)
                self._serve(part, request.replica_id, left, now_ms, is_first=is_first, is_new=is_new)
                left = max(left - len(part.records), 0)
                parts.append(part)
        return parts

    def _serve(
        self, part: _FetchPart, replica_id: int, left: int, now_ms: int, *, is_first: bool, is_new: bool
    ) -> None:
        replica, said = part.replica, part.said
        if replica is None or replica.log is None:
            return
        log, follows = replica.log, replica_id > NO_REPLICA
        event = machine.FetchDue(
            offset=said.fetch_offset,
            log_start=log.start,
            log_end=log.end,
            follows=follows,
            assigned=replica_id in replica.followers,
        )
        effect = part.asked.take(event)
        if effect == "give_log" and is_new:
            wanted = replica.fetched(replica_id, said.fetch_offset, now_ms)
            self._replicas.touched.add(replica.key)
            if wanted is not None:
                self._isr.want(replica, wanted)
        if part.asked.error or not (left or is_first):
            return
        upper = log.end if effect == "give_log" else log.high_watermark
        most = min(max(said.partition_max_bytes, 0), left)
        try:
            part.records = log.read(said.fetch_offset, most, upper, at_least_one=is_first)
        except StorageFailed as error:
            self._keeper.fail(str(error))


def _answer_of(one: _WaitingFetch, parts: list[_FetchPart]) -> bytes:
    def topic_told(topic: str, partitions: list[object]) -> object:
        return wire.list_fetched_topic(told.FetchedTopicTold(topic, partitions))  # type: ignore[arg-type]

    topics = by_topics(((each.topic, _fetched_told(each, one.version)) for each in parts), topic_told)
    return wire.answer_fetch(told.FetchTold(one.version, topics)).header.encode(version=one.version)


def _fetched_told(part: _FetchPart, version: int) -> object:
    log = None if part.replica is None else part.replica.log
    return wire.list_fetched(
        told.FetchedTold(
            version=version,
            partition=part.said.partition,
            error=part.asked.error,
            high_watermark=NO_OFFSET if log is None else log.high_watermark,
            log_start=NO_OFFSET if log is None else log.start,
            aborted=None,
            records=part.records,
        )
    )
