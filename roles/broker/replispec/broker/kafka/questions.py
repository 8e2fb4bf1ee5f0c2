"""What is answered at once: offsets, ends of epochs, where partitions are, and what may be asked.

Source: apache/kafka 2.8.2, KafkaApis.
"""

from __future__ import annotations

from typing import Final

from replispec.broker.kafka.core.places import ToldPlaces
from replispec.broker.kafka.core.replica import LocalReplica
from replispec.broker.kafka.replicas import LocalReplicas
from replispec.broker.kafka.saying import by_topics
from replispec.runtime.kafka import rules
from replispec.runtime.storage import StorageFailed
from replispec.wire.kafka import constants
from replispec.wire.kafka.apache import ApacheUpdateMetadataPartition
from replispec.wire.kafka.clients import (
    ApacheApiVersion,
    ApacheListOffsetsPartition,
    ApacheListOffsetsRequest,
    ApacheMetadataBroker,
    ApacheMetadataRequest,
    ApacheOffsetForLeaderEpochPartition,
    ApacheOffsetForLeaderEpochRequest,
)
from replispec.wire.kafka.codes import ApiKey
from replispec.wire.kafka.commands import APACHE_RESPONSE_FRAME
from replispec.wire.kafka.machines import client_answer as told
from replispec.wire.kafka.machines import client_answer_wire as wire
from replispec.wire.kafka.machines import partition_asked as machine

_NOTHING: Final = (constants.NO_TIME, constants.NO_OFFSET, constants.NO_OFFSET)
_KEYS: Final = tuple(
    ApacheApiVersion(*form[:3]) for form in sorted(APACHE_RESPONSE_FRAME.forms, key=lambda each: each.code)
)


def versions_told(version: int) -> bytes:
    """What may be asked; of a version of this question that is not known, in the oldest form."""
    form = next(each for each in APACHE_RESPONSE_FRAME.forms if each.code == ApiKey.API_VERSIONS)
    fits = form.first <= version <= form.last
    event = told.VersionsTold(version=version, fits=fits, keys=_KEYS)
    said = (wire.answer_versions if fits else wire.refuse_version)(event).header
    return said.encode(version=version if fits else form.first)


class PartitionQuestions:
    """Answers of what is known now."""

    def __init__(self, replicas: LocalReplicas, places: ToldPlaces) -> None:
        self._replicas = replicas
        self._places = places
        self.cluster_id: str | None = None

    # Offsets

    def offsets(self, request: ApacheListOffsetsRequest, version: int) -> bytes:
        """Where times lie."""

        def topic_told(topic: str, partitions: list[object]) -> object:
            return wire.list_offsets_topic(told.OffsetsTopicTold(topic, partitions))  # type: ignore[arg-type]

        each_told = (
            (topic.name, self._offset(topic.name, each, request.replica_id, version))
            for topic in request.topics
            for each in topic.partitions
        )
        topics = by_topics(each_told, topic_told)
        return wire.answer_offsets(told.OffsetsTold(version, topics)).header.encode(version=version)

    def _offset(self, topic: str, said: ApacheListOffsetsPartition, replica_id: int, version: int) -> object:
        asked, replica = self._replicas.look((topic, said.partition_index), said.current_leader_epoch)
        found = _NOTHING
        if replica is not None and replica.log is not None:
            event = machine.OffsetDue(
                reads_committed=replica_id == constants.NO_REPLICA,
                wants_start=said.timestamp == constants.EARLIEST_TIME,
                commits_lag=replica.log.high_watermark < replica.epoch_start,
                has_error=version >= constants.OFFSET_ERROR_VERSION,
            )
            if asked.take(event) == "give_offset":
                found = _offset_in(replica, said.timestamp, reads_committed=event.reads_committed)
        time, offset, epoch = found
        return wire.list_offset(
            told.OffsetTold(version, said.partition_index, asked.error, time, offset, epoch)
        )

    # Epochs

    def epochs(self, request: ApacheOffsetForLeaderEpochRequest, version: int) -> bytes:
        """Where epochs end."""

        def topic_told(topic: str, partitions: list[object]) -> object:
            return wire.list_epochs_topic(told.EpochsTopicTold(topic, partitions))  # type: ignore[arg-type]

        each_told = (
            (topic.topic, self._epoch(topic.topic, each, version))
            for topic in request.topics
            for each in topic.partitions
        )
        topics = by_topics(each_told, topic_told)
        return wire.answer_epochs(told.EpochsTold(version, topics)).header.encode(version=version)

    def _epoch(self, topic: str, said: ApacheOffsetForLeaderEpochPartition, version: int) -> object:
        asked, replica = self._replicas.look((topic, said.partition), said.current_leader_epoch)
        epoch: int | None = None
        end: int | None = None
        if replica is not None and replica.log is not None:
            asked.take(machine.EpochDue())
            entries = replica.log.epochs.entries
            epoch = rules.known_epoch(entries, said.leader_epoch)
            end = rules.epoch_end(entries, replica.log.end, said.leader_epoch)
        event = told.EpochTold(
            version=version,
            partition=said.partition,
            error=asked.error,
            leader_epoch=constants.NO_OFFSET if epoch is None else epoch,
            end=constants.NO_OFFSET if end is None else end,
        )
        return wire.list_epoch(event)

    # Places

    def places(self, request: ApacheMetadataRequest, version: int) -> bytes:
        """Where brokers and the topics are that were asked for, all of them where none is named."""
        known = self._places
        names = sorted(known.topics) if request.topics is None else [each.name for each in request.topics]
        event = told.PlacesTold(
            version=version,
            brokers=[
                ApacheMetadataBroker(broker_id, each.host, each.port, each.rack)
                for broker_id, each in sorted(known.brokers.items())
            ],
            cluster_id=self.cluster_id,
            controller_id=known.controller_id,
            topics=[self._topic(name, version) for name in dict.fromkeys(names)],  # type: ignore[misc]
        )
        return wire.answer_places(event).header.encode(version=version)

    def _topic(self, name: str, version: int) -> object:
        partitions = self._places.topics.get(name)
        shown = [self._place(each, version) for _, each in sorted((partitions or {}).items())]
        event = told.TopicPlaceTold(version, name, partitions is not None, shown)  # type: ignore[arg-type]
        return (wire.list_no_topic if partitions is None else wire.list_topic)(event)

    def _place(self, said: ApacheUpdateMetadataPartition, version: int) -> object:
        live = self._places.brokers
        has_offline = version >= constants.OFFLINE_REPLICAS_VERSION
        event = told.PlaceTold(
            version=version,
            partition=said.partition_index,
            leader=said.leader,
            leader_lives=said.leader in live,
            leader_epoch=said.leader_epoch,
            replicas=said.replicas,
            isr=said.isr,
            offline=[each for each in said.replicas if each not in live] if has_offline else None,
        )
        return (wire.list_place if event.leader_lives else wire.list_unled_place)(event)


def _offset_in(replica: LocalReplica, time: int, *, reads_committed: bool) -> tuple[int, int, int]:
    """Time, offset and leader epoch of what a time lies at."""
    log = replica.log
    assert log is not None
    upper = log.high_watermark if reads_committed else log.end
    newest = replica.known.leader_epoch
    if time == constants.LATEST_TIME:
        return constants.NO_TIME, upper, newest
    if time == constants.EARLIEST_TIME:
        return constants.NO_TIME, log.start, _epoch_at(replica, log.start)
    try:
        found = log.offset_of_time(time, upper)
    except StorageFailed:
        return _NOTHING
    return _NOTHING if found is None else (found[1], found[0], _epoch_at(replica, found[0]))


def _epoch_at(replica: LocalReplica, offset: int) -> int:
    """The epoch in which the record at an offset was written."""
    log = replica.log
    assert log is not None
    older = [each.epoch for each in log.epochs.entries if each.start_offset <= offset]
    return older[-1] if older else constants.NO_OFFSET
