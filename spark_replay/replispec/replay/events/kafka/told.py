"""What single requests tell of partitions with their answers: the kind of each row, and its fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from replispec.replay.events.partition_observations import Appended, EpochEnd, Fetched, Ordered
from replispec.replay.frames.kafka.kept import heads_of
from replispec.wire.kafka import apache, clients
from replispec.wire.kafka.records import RecordBatchFixed

Row = tuple[type[Any], dict[str, Any]]


def _batch(head: RecordBatchFixed, base: int) -> dict[str, int]:
    last = base + head.last_offset_delta
    told = {"epoch": head.partition_leader_epoch, "crc": head.crc, "count": head.records_count}
    return {"base": base, "last": last, **told}


def appended(asked: clients.ApacheProduceRequest, told: clients.ApacheProduceResponse) -> Iterator[Row]:
    """What was written, and where it lies."""
    answers = {(topic.name, each.index): each for topic in told.topics for each in topic.partitions}
    for topic in asked.topics:
        for each in topic.partitions:
            answer = answers.get((topic.name, each.index))
            if answer is not None:
                yield (
                    Appended,
                    {
                        "topic": topic.name,
                        "partition": each.index,
                        "code": answer.error,
                        "acks": asked.acks,
                        "offset": answer.base_offset,
                        "batches": [*_placed(heads_of(each.records), answer.base_offset)],
                    },
                )


def _placed(heads: Iterable[RecordBatchFixed], base: int) -> Iterator[dict[str, int]]:
    """Batches that follow one another from an offset on."""
    for head in heads:
        yield _batch(head, base)
        base += head.last_offset_delta + 1


def fetched(asked: clients.ApacheFetchRequest, told: clients.ApacheFetchResponse | None) -> Iterator[Row]:
    """What was asked for by name, and given. In a session a partition may be given that is not named, and
    what is named has no answer of its own where nothing came."""
    answered = (
        set()
        if told is None
        else {(topic.topic, each.partition) for topic in told.topics for each in topic.partitions}
    )
    for topic in asked.topics:
        for wish in topic.partitions:
            if (topic.topic, wish.partition) not in answered:
                about = {"topic": topic.topic, "partition": wish.partition, "member": asked.replica_id}
                yield Fetched, {**about, "asked": wish.fetch_offset, "epoch": wish.current_leader_epoch}
    if told is not None:
        yield from _given(asked, told)


def _given(asked: clients.ApacheFetchRequest, told: clients.ApacheFetchResponse) -> Iterator[Row]:
    wanted = {(topic.topic, each.partition): each for topic in asked.topics for each in topic.partitions}
    for topic in told.topics:
        for each in topic.partitions:
            wish = wanted.get((topic.topic, each.partition))
            heads = heads_of(each.records)
            yield (
                Fetched,
                {
                    "topic": topic.topic,
                    "partition": each.partition,
                    "code": each.error,
                    "member": asked.replica_id,
                    "asked": None if wish is None else wish.fetch_offset,
                    "epoch": None if wish is None else wish.current_leader_epoch,
                    "high_watermark": each.high_watermark,
                    "min_offset": each.log_start_offset,
                    "batches": [_batch(head, head.base_offset) for head in heads],
                },
            )


def epoch_ends(
    asked: clients.ApacheOffsetForLeaderEpochRequest, told: clients.ApacheOffsetForLeaderEpochResponse
) -> Iterator[Row]:
    """Where epochs end."""
    wanted = {(topic.topic, each.partition): each for topic in asked.topics for each in topic.partitions}
    for topic in told.topics:
        for each in topic.partitions:
            wish = wanted.get((topic.topic, each.partition))
            yield (
                EpochEnd,
                {
                    "topic": topic.topic,
                    "partition": each.partition,
                    "code": each.error,
                    "member": asked.replica_id,
                    "asked": None if wish is None else wish.leader_epoch,
                    "epoch": each.leader_epoch,
                    "end_offset": each.end_offset,
                },
            )


def led(
    asked: apache.ApacheLeaderAndIsrRequest, told: apache.ApacheLeaderAndIsrResponse | None
) -> Iterator[Row]:
    """Who leads, as the controller says it."""
    errors = None if told is None else _errors(told.errors)
    brokers = [_listener(each.broker_id, each.host_name, each.port) for each in asked.live_leaders]
    for number, (topic, each) in enumerate(_with_topics(asked)):
        # All partitions are told the same.
        told_here = {"brokers": brokers} if not number else {}
        yield (
            Ordered,
            {**_said(asked, topic, each), "code": _code(errors, topic, each.partition_index), **told_here},
        )


def published(
    asked: apache.ApacheUpdateMetadataRequest, told: apache.ApacheUpdateMetadataResponse | None
) -> Iterator[Row]:
    """Who leads, as clients are to be told it."""
    code = None if told is None else told.error
    brokers = [
        _listener(broker.broker_id, end.host, end.port)
        for broker in asked.live_brokers
        for end in broker.endpoints or ()
    ]
    for number, (topic, each) in enumerate(_with_topics(asked)):
        told_here = {"brokers": brokers} if not number else {}
        yield Ordered, {**_said(asked, topic, each), "code": code, **told_here}


def stopped(
    asked: apache.ApacheStopReplicaRequest, told: apache.ApacheStopReplicaResponse | None
) -> Iterator[Row]:
    """Who is to have no replica any more."""
    errors = None if told is None else _errors(told.errors)
    named = [(each.topic_name, each.partition_index) for each in asked.partitions or ()]
    named += [(topic.name, each) for topic in asked.topics or () for each in topic.partition_indexes]
    for topic, partition in named:
        yield (
            Ordered,
            {
                "message": type(asked).__name__,
                "topic": topic,
                "partition": partition,
                "controller_id": asked.controller_id,
                "controller_epoch": asked.controller_epoch,
                "code": _code(errors, topic, partition),
            },
        )


def _listener(broker: int, host: str, port: int) -> dict[str, Any]:
    return {"id": broker, "address": f"{host}:{port}"}


def _with_topics(asked: Any) -> Iterator[tuple[str, Any]]:
    """The partitions of a command, in the form of either generation."""
    for each in asked.partitions or ():
        yield each.topic_name or "", each
    for topic in asked.topics or ():
        for each in topic.partitions:
            yield topic.topic_name, each


def _said(asked: Any, topic: str, each: Any) -> dict[str, Any]:
    return {
        "message": type(asked).__name__,
        "topic": topic,
        "partition": each.partition_index,
        "controller_id": asked.controller_id,
        "controller_epoch": asked.controller_epoch,
        "leader": each.leader,
        "epoch": each.leader_epoch,
        "isr": each.isr,
        "replicas": each.replicas,
        "version": each.zk_version,
    }


def _errors(partitions: Iterable[apache.ApachePartitionError]) -> dict[tuple[str, int], int]:
    return {(each.topic_name, each.partition_index): each.error for each in partitions}


def _code(errors: dict[tuple[str, int], int] | None, topic: str, partition: int) -> int | None:
    return None if errors is None else errors.get((topic, partition))
