"""A follower, and leaders that answer it out of a log, one question at a time."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from replispec.broker.kafka.follower import LeaderAddress, PartitionsFollower, versions_of
from replispec.runtime.kafka import rules
from replispec.runtime.kafka.log import PartitionLog
from replispec.runtime.world import Close, Closed, Connected, Dial, Note, Outbox, Received, Send
from replispec.wire.kafka.clients import (
    ApacheEpochEndOffset,
    ApacheFetchPartitionResponse,
    ApacheFetchRequest,
    ApacheFetchResponse,
    ApacheFetchTopicResponse,
    ApacheListOffsetsPartitionResponse,
    ApacheListOffsetsRequest,
    ApacheListOffsetsResponse,
    ApacheListOffsetsTopicResponse,
    ApacheOffsetForLeaderEpochRequest,
    ApacheOffsetForLeaderEpochResponse,
    ApacheOffsetForLeaderEpochTopicResponse,
)
from replispec.wire.kafka.codes import ErrorCode
from replispec.wire.kafka.commands import APACHE_RESPONSE_FRAME
from replispec.wire.kafka.constants import EARLIEST
from replispec.wire.kafka.options import KafkaFollowerOptions
from replispec.wire.kafka.requests import ApacheRequestFrame, ApacheResponseFrame
from tests.runtime.partition_log.logs import NOW_MS, TOPIC, opened, written

LEADER = LeaderAddress(1, "10.0.0.1:9092")
Changed = Callable[[Any], None]
Logs = dict[tuple[str, int], PartitionLog]


def answered(request: Any, version: int, logs: Logs) -> Any:
    """What a leader with these logs answers; all of a log is committed up to its high watermark."""
    match request:
        case ApacheFetchRequest():
            topics = [
                ApacheFetchTopicResponse(
                    topic.topic,
                    [_fetched(logs[topic.topic, each.partition], each, version) for each in topic.partitions],
                )
                for topic in request.topics
            ]
            return ApacheFetchResponse(
                error=0 if version >= 7 else None, session_id=0 if version >= 7 else None, topics=topics
            )
        case ApacheOffsetForLeaderEpochRequest():
            return ApacheOffsetForLeaderEpochResponse(
                throttle_time=0 if version >= 2 else None,
                topics=[
                    ApacheOffsetForLeaderEpochTopicResponse(
                        topic.topic,
                        [
                            _epoch_end(logs[topic.topic, each.partition], each, version)
                            for each in topic.partitions
                        ],
                    )
                    for topic in request.topics
                ],
            )
        case ApacheListOffsetsRequest():
            return ApacheListOffsetsResponse(
                throttle_time=0,
                topics=[
                    ApacheListOffsetsTopicResponse(
                        topic.name,
                        [
                            _offset(logs[topic.name, each.partition_index], each, version)
                            for each in topic.partitions
                        ],
                    )
                    for topic in request.topics
                ],
            )
    raise AssertionError(request)


def _fetched(log: PartitionLog, asked: Any, version: int) -> ApacheFetchPartitionResponse:
    is_inside = log.start <= asked.fetch_offset <= log.end
    data = log.read(asked.fetch_offset, asked.partition_max_bytes, log.end) if is_inside else b""
    return ApacheFetchPartitionResponse(
        partition=asked.partition,
        error=ErrorCode.NONE if is_inside else ErrorCode.OFFSET_OUT_OF_RANGE,
        high_watermark=log.high_watermark if is_inside else -1,
        last_stable_offset=log.high_watermark,
        log_start_offset=log.start,
        aborted_transactions=None,
        preferred_read_replica=-1 if version >= 11 else None,
        records=data,
    )


def _epoch_end(log: PartitionLog, asked: Any, version: int) -> ApacheEpochEndOffset:
    epoch = rules.known_epoch(log.epochs.entries, asked.leader_epoch)
    end = rules.epoch_end(log.epochs.entries, log.end, asked.leader_epoch)
    return ApacheEpochEndOffset(
        error=0,
        partition=asked.partition,
        leader_epoch=(-1 if epoch is None else epoch) if version >= 1 else None,
        end_offset=-1 if end is None else end,
    )


def _offset(log: PartitionLog, asked: Any, version: int) -> ApacheListOffsetsPartitionResponse:
    offset = log.start if asked.timestamp == EARLIEST else log.end
    return ApacheListOffsetsPartitionResponse(
        asked.partition_index, 0, -1, offset, leader_epoch=0 if version >= 4 else None
    )


class FollowedPlay:
    """A follower with one log of `TOPIC`, and more by `more`; `flush` brings what it wants to the disk."""

    def __init__(self, generation: str = "1.0", **options: int) -> None:
        self.folder, self.log, self.files, self.disk = opened()
        self.outbox = Outbox()
        self.versions = versions_of(generation)
        self.flushes = 0
        self.broken: list[str] = []
        self.follower = PartitionsFollower(
            self.outbox,
            2,
            self.versions,
            SimpleNamespace(follower=KafkaFollowerOptions(**options)),
            flush=self._flush,
            broken=lambda log, reason: self.broken.append(f"{log.topic}-{log.partition}: {reason}"),
        )
        self.now_ms = NOW_MS
        self.questions: list[tuple[int, ApacheRequestFrame, Any]] = []
        self.notes: list[str] = []
        self.dialled: list[str] = []
        self.closed: list[int] = []
        self.connection = 0

    def _flush(self) -> None:
        self.flushes += 1

    def more(self, partition: int) -> PartitionLog:
        """One log more, on the disk."""
        log = self.folder.make(TOPIC, partition, NOW_MS)
        written(self.folder, self.files)
        return log

    def follow(self, epoch: int = 0, log: PartitionLog | None = None, leader: LeaderAddress = LEADER) -> None:
        """Follow, and let the leader take the connection."""
        self.follower.follow(log or self.log, leader, epoch, self.now_ms)
        self.carry_out()

    def carry_out(self) -> None:
        """Let what the follower wants happen; connections are taken, questions wait."""
        effects = self.outbox.take()
        for effect in effects:
            match effect:
                case Dial(connection, address, _):
                    self.dialled.append(address)
                    self.connection = connection
                    self.follower.connected(Connected(connection, "", self.now_ms))
                case Send(connection, data, _):
                    frame = ApacheRequestFrame.decode(bytes(data))
                    self.questions.append((connection, frame, APACHE_RESPONSE_FRAME.read_request(frame)))
                case Close(connection):
                    self.closed.append(connection)
                case Note():
                    self.notes.append(effect.what)
        if effects:
            self.carry_out()

    def answer(self, logs: Logs, change: Changed = lambda _answer: None) -> Any:
        """Have the oldest question answered out of logs, changed; the question."""
        connection, frame, request = self.questions.pop(0)
        answer = answered(request, frame.api_version, logs)
        change(answer)
        body = answer.encode(version=frame.api_version)
        data = ApacheResponseFrame(frame.correlation_id, body).encode()
        self.follower.received(Received(connection, data, self.now_ms))
        self.carry_out()
        return request

    def flush(self) -> None:
        """Bring everything to the disk."""
        written(self.folder, self.files)
        self.follower.written(self.now_ms)
        self.carry_out()

    def wait(self, milliseconds: int) -> None:
        """Let time pass."""
        self.now_ms += milliseconds
        self.follower.ticked(self.now_ms)
        self.carry_out()

    def lose(self) -> None:
        """The connection ends."""
        self.questions.clear()
        self.follower.closed(Closed(self.connection, "", self.now_ms))
        self.carry_out()

    def copy(self, logs: Logs, rounds: int = 20) -> None:
        """Answer and flush until nothing is asked but what the leader has not."""
        for _ in range(rounds):
            self.flush()
            if self.questions:
                self.answer(logs)
