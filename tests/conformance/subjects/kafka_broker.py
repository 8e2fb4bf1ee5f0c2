"""A broker of Kafka's replication in a few hundred lines, for tests of the suite; wrong ones override one
choice of it each. Requests in, answers out, and nodes of a scripted store changed: no socket, no clock."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.kafka import apache as a
from replispec.wire.kafka import clients as c
from replispec.wire.kafka.codes import ApiKey
from replispec.wire.kafka.commands import APACHE_RESPONSE_FRAME
from replispec.wire.kafka.requests import ApacheRequestFrame
from replispec.wire.zookeeper.codes import CreateFlags, Permission
from replispec.wire.zookeeper.operations import AccessEntry, CreateRequest
from tests.conformance.subjects.kafka_choices import BROKER_ID, E_, FORMS, BrokerChoices
from tests.conformance.subjects.kafka_replica import Key, ScriptedReplica
from tests.conformance.subjects.nodes import Refusal

SESSION = 77
PARENTS = ("/brokers", "/brokers/ids", "/brokers/topics", "/admin", "/admin/delete_topics", "/cluster")
NOTICES = "/isr_change_notification"
EVERYBODY = [AccessEntry(Permission.ALL, "world", "anyone")]
Attempt = Callable[[bool], bytes | None]


class HungUp(Exception):
    """The broker ends the connection."""


class Asked:
    """A request that may wait: `attempt` gives the answer, None while it waits; told whether time is over."""

    def __init__(self, attempt: Attempt, until_s: float = math.inf, *, is_answered: bool = True) -> None:
        self.attempt, self.until_s, self.is_answered = attempt, until_s, is_answered


@dataclass
class ProducedPart:
    """A batch for one partition, and what became of it."""

    topic: str
    index: int
    replica: ScriptedReplica | None = None
    error: int = E_.NONE
    first: int = -1
    end: int = -1


def batches_of(said: c.ApacheProduceRequest) -> Iterable[tuple[Key, bytes]]:
    """The batches of a producer, each for its partition."""
    for topic in said.topics:
        for each in topic.partitions:
            yield (topic.name, each.index), each.records or b""


def produced(parts: Sequence[ProducedPart], version: int) -> c.ApacheProduceResponse:
    """What became of batches."""
    topics: dict[str, list[Any]] = {}
    for part in parts:
        found = c.ApacheProducePartitionResponse(part.index, part.error, -1 if part.error else part.first, -1)
        if version >= 5:
            found.log_start_offset = -1 if part.error or part.replica is None else part.replica.start
        topics.setdefault(part.topic, []).append(found)
    return c.ApacheProduceResponse([c.ApacheProduceTopicResponse(*each) for each in topics.items()])


class GoodBroker(BrokerChoices):
    """A broker that does it right."""

    # What stays

    def begin(self, host: str, port: int) -> None:
        """Register in the store."""
        for path in (*PARENTS, NOTICES):
            self.make(path, None)
        name = "PLAINTEXT"
        node = {
            "version": 4, "host": host, "port": port, "jmx_port": -1, "timestamp": "1",
            "endpoints": [f"{name}://{host}:{port}"], "listener_security_protocol_map": {name: name},
        }  # fmt: skip
        self.make(f"/brokers/ids/{BROKER_ID}", node, CreateFlags.EPHEMERAL)
        self.make("/cluster/id", {"version": "1", "id": "scripted"})

    def make(self, path: str, node: object, flags: int = CreateFlags.PERSISTENT) -> None:
        """Make a node of the store, unless it is there."""
        data = None if node is None else json.dumps(node).encode()
        nodes = self.store.nodes
        nodes.begin()
        try:
            _, told = nodes.create(CreateRequest(path, data, EVERYBODY, flags), SESSION)
        except Refusal:
            return
        self.store.tell(told)

    def ask(self, frame: ApacheRequestFrame) -> Asked:
        """One request. Raises HungUp."""
        key, version = frame.api_key, frame.api_version
        form = FORMS.get(key)
        if form is None or not form.first <= version <= form.last:
            if key == ApiKey.API_VERSIONS:
                return Asked(lambda _: self.unknown_version())
            raise HungUp
        try:
            said: Any = APACHE_RESPONSE_FRAME.read_request(frame)
        except RemoteProtocolError:
            raise HungUp from None
        match key:
            case ApiKey.API_VERSIONS:
                answer = c.ApacheApiVersionsResponse(0, self.versions())
                return Asked(lambda _: self.said(answer, version))
            case ApiKey.PRODUCE:
                return self.produce(said, version)
            case ApiKey.FETCH:
                return self.fetch(said, version)
            case ApiKey.OFFSETS:
                data = self.said(self.offsets(said, version), version)
            case ApiKey.OFFSET_FOR_LEADER_EPOCH:
                data = self.said(self.epochs(said, version), version)
            case ApiKey.METADATA:
                data = self.said(self.places(said, version), version)
            case _:
                data = self.said(self.command(key, said), version)
        return Asked(lambda _: data)

    def led(self, key: Key, known: int | None) -> tuple[ScriptedReplica | None, int]:
        """The replica, or why it is not asked."""
        one = self.replicas.get(key)
        if one is None:
            return None, self.unknown(key)
        if error := self.epoch_error(one, known):
            return one, error
        return one, E_.NONE if one.leader == BROKER_ID else E_.NOT_LEADER

    # Producers

    def produce(self, said: c.ApacheProduceRequest, version: int) -> Asked:
        """Batches of a producer."""
        parts = [self.append(key, data, said.acks) for key, data in batches_of(said)]
        self.settle()
        if self.answers_nothing(said.acks):
            if any(part.error for part in parts):
                raise HungUp
            return Asked(lambda _: b"", is_answered=False)

        def attempt(is_late: bool) -> bytes | None:
            for part in parts:
                one = part.replica
                if part.error or one is None or self.committed(one, said.acks, part.end):
                    continue
                if one.leader != BROKER_ID:
                    part.error = E_.NOT_LEADER
                elif is_late:
                    part.error = E_.REQUEST_TIMED_OUT
                else:
                    return None
            return self.said(produced(parts, version), version)

        return Asked(attempt, self.now_s() + said.timeout / 1000)

    def append(self, key: Key, data: bytes, acks: int) -> ProducedPart:
        """Append a batch, and what becomes of it."""
        part = ProducedPart(*key)
        if not self.takes_acks(acks):
            part.error = E_.INVALID_REQUIRED_ACKS
            return part
        part.replica, part.error = self.led(key, None)
        if part.error or part.replica is None:
            return part
        part.error = self.fault(data)
        if not part.error and not self.enough(part.replica, acks):
            part.error = E_.NOT_ENOUGH_REPLICAS
        if not part.error:
            part.first = part.replica.append(data, self.stamp(part.replica))
            part.end = part.replica.end
        return part

    def settle(self) -> None:
        """Commit what may be."""
        for one in self.replicas.values():
            if one.leader == BROKER_ID:
                one.hw = self.watermark(one)

    # Readers and followers

    def fetch(self, said: c.ApacheFetchRequest, version: int) -> Asked:
        """Batches for readers and followers."""
        until_s = self.now_s() + self.waits_s(said.max_wait)
        is_new = [True]

        def attempt(is_late: bool) -> bytes | None:
            left, found, errors, topics = said.max_bytes, 0, [], []
            for topic in said.topics:
                parts = []
                for each in topic.partitions:
                    part = self.fetched(
                        (topic.topic, each.partition),
                        each,
                        said.replica_id,
                        left,
                        version,
                        found == 0,
                        is_new[0],
                    )
                    size = len(part.records or b"")
                    left, found = left - size, found + size
                    errors.append(part.error)
                    parts.append(part)
                topics.append(c.ApacheFetchTopicResponse(topic.topic, parts))
            is_new[0] = False
            self.settle()
            waits = not self.is_enough(found, said.min_bytes) and not self.at_once(errors)
            if waits and not is_late and said.max_wait > 0:
                return None
            has_session = version >= 7
            return self.said(
                c.ApacheFetchResponse(0, 0 if has_session else None, 0 if has_session else None, topics),
                version,
            )

        return Asked(attempt, until_s)

    def fetched(
        self,
        key: Key,
        asked: c.ApacheFetchPartition,
        replica: int,
        left: int,
        version: int,
        is_first: bool,
        is_new: bool,
    ) -> c.ApacheFetchPartitionResponse:
        """What one partition gives."""
        one, error = self.led(key, asked.current_leader_epoch)
        if not error and one is not None:
            error = self.refused_fetch(one, replica, asked.fetch_offset)
        records, at = b"", asked.fetch_offset
        if not error and one is not None:
            room = min(left, asked.partition_max_bytes)
            for each in one.log:
                if each.end <= asked.fetch_offset or each.end > self.upper(one, replica):
                    continue
                if not self.fits(each.data, room - len(records), is_first=is_first and not records):
                    break
                records, at = records + each.data, each.end
            if replica >= 0 and is_new:
                self.followed(one, replica, asked.fetch_offset, at)
        found = c.ApacheFetchPartitionResponse(
            asked.partition,
            error,
            -1 if one is None else one.hw,
            -1 if one is None else one.hw,
            records=records,
        )
        found.aborted_transactions = None
        if version >= 5:
            found.log_start_offset = -1 if one is None else one.start
        if version >= 11:
            found.preferred_read_replica = -1
        return found

    def followed(self, one: ScriptedReplica, replica: int, offset: int, given: int) -> None:
        """A follower asked."""
        self.has(one, replica, offset, given)
        if offset >= one.end:
            one.caught_s[replica] = self.now_s()
        self.settle()
        if replica in one.assigned and replica not in one.isr and self.joins(one, offset):
            one.caught_s[replica] = self.now_s()
            self.write_isr(one, [*one.isr, replica])

    def tick(self) -> None:
        """Time has passed: who lags leaves."""
        for one in self.replicas.values():
            if one.leader == BROKER_ID and (gone := self.laggards(one)):
                self.write_isr(one, [each for each in one.isr if each not in gone])
        self.settle()
        if self.changed and self.tells_controller():
            parts = [{"topic": topic, "partition": number} for topic, number in sorted(self.changed)]
            self.changed.clear()
            self.make(
                f"{NOTICES}/isr_change_",
                {"version": 1, "partitions": parts},
                CreateFlags.PERSISTENT_SEQUENTIAL,
            )

    def write_isr(self, one: ScriptedReplica, members: Sequence[int]) -> None:
        """Change the ISR in the store."""
        isr = self.written_isr([each for each in one.assigned if each in members])
        node = {
            "controller_epoch": one.decided_by, "leader": one.leader, "version": 1,
            "leader_epoch": one.epoch, "isr": isr,
        }  # fmt: skip
        topic, number = one.key
        path = f"/brokers/topics/{topic}/partitions/{number}/state"
        self.store.nodes.begin()
        try:
            told = self.store.nodes.set_data(path, json.dumps(node).encode(), self.expected_version(one))
        except Refusal:
            return
        one.isr, one.version = tuple(isr), self.store.nodes.all[path].version
        self.changed.add(one.key)
        self.store.tell(told)

    # Questions

    def offsets(self, said: c.ApacheListOffsetsRequest, version: int) -> Any:
        """Where times lie."""
        topics = []
        for topic in said.topics:
            parts = []
            for each in topic.partitions:
                one, error = self.led((topic.name, each.partition_index), each.current_leader_epoch)
                offset = epoch = -1
                if not error and one is not None:
                    if said.replica_id < 0 and each.timestamp != -2 and self.lags(one):
                        error = E_.OFFSET_NOT_AVAILABLE if version >= 5 else E_.LEADER_NOT_AVAILABLE
                    else:
                        offset, epoch = self.offset(one, each.timestamp, said.replica_id)
                part = c.ApacheListOffsetsPartitionResponse(each.partition_index, error, -1, offset)
                if version >= 4:
                    part.leader_epoch = epoch
                parts.append(part)
            topics.append(c.ApacheListOffsetsTopicResponse(topic.name, parts))
        return c.ApacheListOffsetsResponse(0 if version >= 2 else None, topics)

    def epochs(self, said: c.ApacheOffsetForLeaderEpochRequest, version: int) -> Any:
        """Where epochs end."""
        topics = []
        for topic in said.topics:
            parts = []
            for each in topic.partitions:
                one, error = self.led((topic.topic, each.partition), each.current_leader_epoch)
                epoch, end = (-1, -1) if error or one is None else self.end_of(one, each.leader_epoch)
                parts.append(
                    c.ApacheEpochEndOffset(error, each.partition, epoch if version >= 1 else None, end)
                )
            topics.append(c.ApacheOffsetForLeaderEpochTopicResponse(topic.topic, parts))
        return c.ApacheOffsetForLeaderEpochResponse(0 if version >= 2 else None, topics)

    def places(self, said: c.ApacheMetadataRequest, version: int) -> Any:
        """Where everything is."""
        brokers = []
        for each in self.alive.values():
            (first, *_) = each.endpoints
            brokers.append(c.ApacheMetadataBroker(each.broker_id, first.host, first.port, each.rack))
        wanted = None if said.topics is None else [each.name for each in said.topics]
        topics = [self.place(name, version) for name in self.shown_topics(wanted)]
        found = c.ApacheMetadataResponse(brokers=brokers, controller_id=self.controller, topics=topics)
        if version >= 2:
            found.cluster_id = "scripted"
        if version >= 3:
            found.throttle_time = 0
        if version >= 8:
            found.cluster_authorized_operations = -(1 << 31)
        return found

    def place(self, name: str, version: int) -> Any:
        """Where the partitions of a topic are."""
        parts = []
        for (topic, number), each in sorted(self.told.items()):
            if topic == name:
                error = E_.NONE if each.leader in self.alive else E_.LEADER_NOT_AVAILABLE
                leader = each.leader if each.leader in self.alive else -1
                part = c.ApacheMetadataPartition(error, number, leader)
                part.replica_nodes, part.isr_nodes = each.replicas, each.isr
                if version >= 7:
                    part.leader_epoch = each.leader_epoch
                if version >= 5:
                    part.offline_replicas = [one for one in each.replicas if one not in self.alive]
                parts.append(part)
        found = c.ApacheMetadataTopicResponse(
            0 if parts else E_.UNKNOWN_TOPIC_OR_PARTITION, name, False, parts
        )
        if version >= 8:
            found.topic_authorized_operations = -(1 << 31)
        return found

    # Commands

    def command(self, key: int, said: Any) -> Any:
        """What the controller commands."""
        error = self.refused_command(said)
        if not error:
            self.controller_epoch, self.controller = said.controller_epoch, said.controller_id
        match key:
            case ApiKey.UPDATE_METADATA:
                if not error:
                    self.update(said)
                return a.ApacheUpdateMetadataResponse(error)
            case ApiKey.LEADER_AND_ISR:
                errors = [] if error else [self.lead(*each, said) for each in named(said)]
                self.settle()
                return a.ApacheLeaderAndIsrResponse(error, errors)
            case _:
                errors = [] if error else [self.stop(each, said) for each in stopped(said)]
                return a.ApacheStopReplicaResponse(error, errors)

    def update(self, said: Any) -> None:
        """The controller told where everything is."""
        self.learned(said)
        for topic, each in named(said):
            if each.leader == -2:
                self.told.pop((topic, each.partition_index), None)
            else:
                self.told[topic, each.partition_index] = each

    def lead(self, topic: str, said: a.ApacheLeaderAndIsr, request: Any) -> a.ApachePartitionError:
        """One partition has this leader now."""
        key = (topic, said.partition_index)
        if error := self.unassigned(said.replicas):
            return a.ApachePartitionError(*key, error)
        one = self.replicas.setdefault(key, ScriptedReplica(key))
        if self.not_newer(one, said.leader_epoch):
            return a.ApachePartitionError(*key, E_.STALE_EPOCH)
        one.leader = self.obeys(one, said.leader)
        one.epoch, one.isr, one.version = said.leader_epoch, tuple(said.isr), said.zk_version
        one.assigned, one.decided_by = tuple(said.replicas), said.controller_epoch
        one.place = None
        for each in request.live_leaders:
            if each.broker_id == said.leader != BROKER_ID:
                one.place = each.host_name, each.port
        if one.leader == BROKER_ID:
            one.epochs.append((one.epoch, one.end))
            one.ends.clear()
            one.caught_s = dict.fromkeys(one.isr, self.now_s())
        return a.ApachePartitionError(*key, E_.NONE)

    def stop(self, key: Key, said: Any) -> a.ApachePartitionError:
        """One replica is stopped, and deleted if so wanted."""
        error = self.stopped(key)
        if said.delete_partitions:
            self.deleted(key)
        elif key in self.replicas:
            self.replicas[key].leader = -1
            self.replicas[key].place = None
        return a.ApachePartitionError(*key, error)


def named(said: Any) -> Iterable[tuple[str, Any]]:
    """The partitions of a command, with their topics."""
    for each in said.partitions or ():
        yield each.topic_name, each
    for topic in said.topics or ():
        for each in topic.partitions:
            yield topic.topic_name, each


def stopped(said: a.ApacheStopReplicaRequest) -> Iterable[Key]:
    """The partitions of a command to stop."""
    for each in said.partitions or ():
        yield each.topic_name, each.partition_index
    for topic in said.topics or ():
        for number in topic.partition_indexes:
            yield topic.name, number
