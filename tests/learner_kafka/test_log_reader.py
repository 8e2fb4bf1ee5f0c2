"""A learner of Kafka's family, simulated: each committed record is exported once, whenever it ends."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from replispec.learner.kafka.node import LogReaderNode
from replispec.learner.kafka.process import members
from replispec.runtime.kafka.batches import batches_in, next_offset
from replispec.runtime.kafka.log import LogFolder, PartitionLog
from replispec.runtime.primitives.frames import FrameBuffer
from replispec.runtime.primitives.parameters import ConfigurationError
from replispec.runtime.sim import Disk, Rng, SimulatedFiles, SimulatedStorage, World
from replispec.runtime.storage import ReplaceFile, StorageFailed, Stores
from replispec.runtime.world import Accepted, Effect, Event, Member, Outbox, Received, Ticked
from replispec.wire.kafka import paths
from replispec.wire.kafka.clients import (
    ApacheFetchRequest,
    ApacheMetadataBroker,
    ApacheMetadataPartition,
    ApacheMetadataRequest,
    ApacheMetadataResponse,
    ApacheMetadataTopicResponse,
)
from replispec.wire.kafka.codes import ErrorCode
from replispec.wire.kafka.commands import APACHE_RESPONSE_FRAME
from replispec.wire.kafka.learner import LearnedPositions
from replispec.wire.kafka.options import KafkaLearnerOptions
from replispec.wire.kafka.requests import ApacheRequestFrame, ApacheResponseFrame
from replispec.wire.kafka.streams import APACHE_REQUESTS
from tests.follower_kafka.played_leader import answered
from tests.runtime.partition_log.logs import NOW_MS, TOPIC, batch, settings, written

BROKER = "10.0.1.1:9092"
PARTITIONS = 2
HELD_MS = 200
EXPORT, POSITIONS = paths.LEARNER_EXPORT.at(), paths.LEARNER_POSITIONS.at()


class ReadBroker:
    """A broker that leads all partitions and answers at once; `leader` is who it says leads."""

    def __init__(self) -> None:
        self.listeners: Mapping[str, str] = {"clients": BROKER}
        self.files = SimulatedFiles(Disk(Rng(1)))
        self.folder = LogFolder(self.files, settings(), NOW_MS)
        written(self.folder, self.files)
        for number in range(PARTITIONS):
            self.folder.make(TOPIC, number, NOW_MS)
        self.leader = 1
        self.change: Any = lambda answer: answer
        self.readers: list[int] = []
        self._outbox = Outbox()
        self._buffers: dict[int, FrameBuffer] = {}
        self._marks = 0
        self._held: list[tuple[int, int, ApacheRequestFrame]] = []

    def put(self, count: int, *, committed: bool = True) -> None:
        """Take records, in turn for each partition."""
        for _ in range(count):
            log = self.log(self._marks % PARTITIONS)
            log.append_as_leader(batch(mark=self._marks), 0, NOW_MS)
            self._marks += 1
            if committed:
                log.high_watermark = log.end

    def log(self, partition: int) -> PartitionLog:
        """The log of a partition."""
        return self.folder.logs[TOPIC, partition]

    def receive(self, event: Event) -> Sequence[Effect]:
        match event:
            case Accepted():
                self._buffers[event.connection] = FrameBuffer(APACHE_REQUESTS)
            case Received():
                for data in self._buffers[event.connection].receive(event.data):
                    self._answer(event.connection, ApacheRequestFrame.decode(data), event.now_ms)
            case Ticked():
                held, self._held = self._held, []
                for at_ms, connection, frame in held:
                    if at_ms > event.now_ms:
                        self._held.append((at_ms, connection, frame))
                    else:
                        self._answer(connection, frame, None)
            case _:
                pass
        return self._outbox.take()

    def deadline_ms(self) -> int | None:
        return min((at_ms for at_ms, _, _ in self._held), default=None)

    def _answer(self, connection: int, frame: ApacheRequestFrame, now_ms: int | None) -> None:
        """Without a time it is answered whatever there is; else nothing is held back for a while."""
        request: Any = APACHE_RESPONSE_FRAME.read_request(frame)
        if isinstance(request, ApacheMetadataRequest):
            answer: Any = self._metadata()
        else:
            if isinstance(request, ApacheFetchRequest):
                self.readers.append(request.replica_id)
            answer = self.change(answered(request, frame.api_version, self.folder.logs))
            if isinstance(request, ApacheFetchRequest):
                self._committed_only(answer)
                if now_ms is not None and all(
                    not each.records and not each.error for each in answer.topics[0].partitions
                ):
                    self._held.append((now_ms + HELD_MS, connection, frame))
                    return
        body = answer.encode(version=frame.api_version)
        self._outbox.send(connection, ApacheResponseFrame(frame.correlation_id, body).encode())

    def _committed_only(self, answer: Any) -> None:
        for each in answer.topics[0].partitions:
            for found in batches_in(each.records, may_be_cut=False):
                if next_offset(found.head) > each.high_watermark:
                    each.records = each.records[: found.start]
                    break

    def _metadata(self) -> ApacheMetadataResponse:
        partitions = [
            ApacheMetadataPartition(0, number, self.leader, None, [1], [1], [])
            for number in range(PARTITIONS)
        ]
        return ApacheMetadataResponse(
            throttle_time=0,
            brokers=[ApacheMetadataBroker(1, "10.0.1.1", 9092, None)],
            cluster_id="c",
            controller_id=1,
            topics=[ApacheMetadataTopicResponse(0, TOPIC, False, partitions)],
        )


class ReadWorld:
    """A broker, and a learner of its topic."""

    def __init__(self, seed: int = 1, **options: Any) -> None:
        self.world = World(seed)
        self.broker = ReadBroker()
        self.world.add("broker", "10.0.1.1", lambda _: [Member("broker", self.broker)])
        self.world.start("broker")
        made = KafkaLearnerOptions(bootstrap_servers=BROKER, topics=TOPIC, export_folder="e", **options)
        self.world.add("learner", "10.0.2.1", lambda storage: members(made, storage, seed))
        self.world.start("learner")

    def run(self, milliseconds: int) -> None:
        """Let time pass."""
        self.world.run_for(milliseconds)

    def lines(self) -> list[dict[str, Any]]:
        """What is exported."""
        return [json.loads(line) for line in (self.files().read(EXPORT) or b"").splitlines()]

    def files(self) -> SimulatedFiles:
        """The folder of the learner."""
        return SimulatedFiles(self.world.processes["learner"].disk, "e")

    def whole_lines(self) -> list[int]:
        """The marks of the records up to where the file of positions says, of each exactly one."""
        said = LearnedPositions.decode(self.files().read(POSITIONS) or b"")
        data = (self.files().read(EXPORT) or b"")[: said.export_bytes]
        return sorted(int(json.loads(line)["value"][:6]) for line in data.splitlines())


def test_what_is_committed_is_exported_once_and_in_the_order_of_each_partition() -> None:
    play = ReadWorld()
    play.broker.put(20)
    play.broker.put(4, committed=False)
    play.run(2_000)
    lines = play.lines()
    assert sorted(int(each["value"][:6]) for each in lines) == list(range(20))
    for partition in range(PARTITIONS):
        offsets = [each["offset"] for each in lines if each["partition"] == partition]
        assert offsets == list(range(10))
    assert set(play.broker.readers) == {-1}
    for partition in range(PARTITIONS):
        play.broker.log(partition).high_watermark = play.broker.log(partition).end
    play.run(2_000)
    assert play.whole_lines() == list(range(24))


@pytest.mark.parametrize("power", [False, True])
@pytest.mark.parametrize("change", range(1, 9))
def test_whenever_it_ends_it_goes_on_where_it_was(change: int, power: bool) -> None:
    play = ReadWorld()
    play.broker.put(10)
    process = play.world.processes["learner"]
    process.disk.crash_at(change)
    play.run(1_000)
    play.broker.put(10)
    play.world.kill("learner", power=power)
    process.disk.mend()
    play.world.start("learner")
    play.run(2_000)
    assert play.whole_lines() == list(range(20))


def test_a_leader_that_moves_is_found_again() -> None:
    play = ReadWorld()
    play.broker.put(4)
    play.run(1_000)
    play.broker.leader = -1
    play.broker.change = refused
    play.run(3_000)
    play.broker.put(4)
    play.run(1_000)
    assert len(play.lines()) == 4
    play.broker.leader, play.broker.change = 1, lambda answer: answer
    play.run(5_000)
    assert play.whole_lines() == list(range(8))


def refused(answer: Any) -> Any:
    """No partition is led by who is asked."""
    for topic in answer.topics:
        for each in topic.partitions:
            each.error, each.records = ErrorCode.NOT_LEADER, b""
    return answer


def test_records_that_are_wrong_or_not_committed_are_not_exported() -> None:
    play = ReadWorld()
    play.broker.put(4)

    def damage(answer: Any) -> Any:
        for topic in answer.topics:
            for each in topic.partitions:
                if getattr(each, "records", b""):
                    each.records = bytes(each.records[:-1]) + bytes([each.records[-1] ^ 1])
        return answer

    play.broker.change = damage
    play.run(3_000)
    # Of several batches those before the damaged one are right.
    assert len(play.lines()) < 4

    def beyond(answer: Any) -> Any:
        for topic in answer.topics:
            for each in topic.partitions:
                each.high_watermark = 0
        return answer

    play.broker.change = beyond
    play.broker.put(2)
    play.run(3_000)
    assert len(play.lines()) < 4
    play.broker.change = lambda answer: answer
    play.run(3_000)
    assert play.whole_lines() == list(range(6))


def test_records_that_were_exported_and_are_lost_are_told() -> None:
    play = ReadWorld()
    play.broker.put(10)
    play.run(1_000)
    log = play.broker.log(0)
    log.truncate(3)
    written(play.broker.folder, play.broker.files)
    play.run(3_000)
    assert play.lines()[-1] == {"topic": TOPIC, "partition": 0, "cut": 3}
    log.append_as_leader(batch(mark=77), 1, NOW_MS)
    log.high_watermark = log.end
    play.run(3_000)
    assert play.lines()[-1]["offset"] == 3


def test_records_that_are_gone_before_they_were_read_are_passed_over() -> None:
    play = ReadWorld()
    play.broker.put(10)
    play.broker.log(0).advance_start(3)
    play.run(3_000)
    assert [each["offset"] for each in play.lines() if each["partition"] == 0] == [3, 4]


def opened_with(export: bytes, positions: bytes | None) -> None:
    """A learner on a folder with these files. Raises StorageFailed."""
    files = SimulatedFiles(Disk(Rng(1)))
    if export:
        files.growing(EXPORT).append(0, export)
    if positions is not None:
        Stores(files).carry_out([ReplaceFile(POSITIONS, positions)])
    LogReaderNode(
        KafkaLearnerOptions(bootstrap_servers=BROKER, topics=TOPIC, export_folder="e"),
        [BROKER],
        [TOPIC],
        files,
    )


def test_a_folder_that_is_not_whole_is_refused() -> None:
    right = LearnedPositions(export_bytes=2, positions=[]).encode()
    opened_with(b"{}", right)
    wrong = right[:-1] + bytes([right[-1] ^ 1])
    for export, positions in ((b"{}", None), (b"{}", wrong), (b"{}", right[:5]), (b"{", right)):
        with pytest.raises(StorageFailed):
            opened_with(export, positions)


@pytest.mark.parametrize("servers", ["", "host", "host:x", "host:1,"])
def test_servers_that_cannot_be_are_refused(servers: str) -> None:
    options = KafkaLearnerOptions(bootstrap_servers=servers, topics=TOPIC, export_folder="e")
    with pytest.raises(ConfigurationError):
        members(options, SimulatedStorage(Disk(Rng(1))), 1)


def test_topics_without_a_name_are_refused() -> None:
    options = KafkaLearnerOptions(bootstrap_servers=BROKER, topics="a,,b", export_folder="e")
    with pytest.raises(ConfigurationError):
        members(options, SimulatedStorage(Disk(Rng(1))), 1)
