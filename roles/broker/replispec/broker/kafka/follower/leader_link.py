"""What is asked of one leader: one question at a time, about all partitions that are followed there.

Where epochs end comes first, then where logs lie, then records. While a partition waits for the disk no
records are asked for: a question that the leader may hold back would keep what is flushed from being told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from replispec.broker.kafka.follower.generations import FollowerVersions
from replispec.broker.kafka.follower.partition import FollowedKey, FollowedPartition
from replispec.runtime.kafka.asking import AskedBroker
from replispec.runtime.kafka.questions import (
    FetchLimits,
    epochs_request,
    fetch_request,
    in_turn,
    offsets_request,
)
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.exchanges import Message
from replispec.runtime.storage import StorageFailed
from replispec.runtime.world import Outbox
from replispec.wire.kafka.clients import (
    ApacheFetchResponse,
    ApacheListOffsetsResponse,
    ApacheOffsetForLeaderEpochResponse,
)
from replispec.wire.kafka.constants import EARLIEST, LATEST
from replispec.wire.kafka.machines.fetcher import State
from replispec.wire.kafka.options import KafkaFollowerOptions

GivenUp = Callable[[FollowedPartition, str], None]


class LeaderLink:
    """A leader at HOST:PORT and who follows it. `given_up`: the disk failed a partition."""

    def __init__(
        self,
        outbox: Outbox,
        address: str,
        broker_id: int,
        versions: FollowerVersions,
        options: KafkaFollowerOptions,
        given_up: GivenUp,
    ) -> None:
        self.partitions: Final[dict[FollowedKey, FollowedPartition]] = {}
        self._broker_id = broker_id
        self._versions = versions
        self._options = options
        self._given_up = given_up
        # Who waits for the answer, each with its life when it was asked.
        self._asked: dict[FollowedKey, tuple[FollowedPartition, int]] = {}
        self._begins: dict[FollowedKey, int] = {}
        self._last: FollowedKey | None = None
        self.broker: Final = AskedBroker(
            outbox,
            address,
            str(broker_id),
            self,
            timeout_ms=options.replica_socket_timeout_ms,
            pause_ms=options.replica_fetch_backoff_ms,
        )

    # What is asked

    def may_ask(self, now_ms: int) -> None:
        """See `replispec.runtime.kafka.asking.AskingHolder`."""
        if not self.broker.is_free:
            return
        by_state: dict[State, list[FollowedPartition]] = {}
        for each in in_turn(self.partitions, self._last):
            by_state.setdefault(each.state, []).append(each)
        if asking := by_state.get(State.ASKING):
            self._ask_epochs(asking, now_ms)
        elif outside := by_state.get(State.OUTSIDE):
            self._remember(outside)
            self._ask_offsets(EARLIEST, self._begin_told, now_ms)
        elif State.CUTTING in by_state or State.FLUSHING in by_state:
            return
        elif fetching := by_state.get(State.FETCHING):
            self._ask_records(fetching, now_ms)

    def _remember(self, partitions: Iterable[FollowedPartition]) -> None:
        self._asked = {each.key: (each, each.life) for each in partitions}

    def _ask_epochs(self, partitions: Sequence[FollowedPartition], now_ms: int) -> None:
        version = self._versions.epochs
        assert version is not None, "who cuts to the high watermark asks for no epoch"
        self._remember(partitions)
        asked = [(each.key[0], each.epoch_question()) for each in partitions]
        self.broker.ask(epochs_request(asked, self._broker_id, version), version, self._epochs_told, now_ms)

    def _ask_offsets(self, time: int, then: Callable[[Message, int], None], now_ms: int) -> None:
        asked = [(*key, each.variables.leader_epoch) for key, (each, _) in self._asked.items()]
        version = self._versions.list_offsets
        self.broker.ask(offsets_request(asked, self._broker_id, version, time), version, then, now_ms)

    def _ask_records(self, partitions: Sequence[FollowedPartition], now_ms: int) -> None:
        self._remember(partitions)
        version, limits = self._versions.fetch, FetchLimits.of(self._options)
        asked = [(each.key[0], each.fetch_question()) for each in partitions]
        request = fetch_request(asked, self._broker_id, version, limits)
        self.broker.ask(request, version, self._records_told, now_ms)

    # What is answered

    def _epochs_told(self, answer: Message, now_ms: int) -> None:
        assert isinstance(answer, ApacheOffsetForLeaderEpochResponse), "the answer to this question"
        for topic in answer.topics:
            for said in topic.partitions:
                if (each := self._answered(topic.topic, said.partition)) is not None:
                    each.epoch_told(said, now_ms)
        self._rest_failed(now_ms)

    def _begin_told(self, answer: Message, now_ms: int) -> None:
        self._begins = self._offsets_told(answer, now_ms)
        outside = [each for key in self._begins if (each := self.partitions.get(key)) is not None]
        self._remember(each for each in outside if each.state is State.OUTSIDE)
        if self._asked:
            self._ask_offsets(LATEST, self._end_told, now_ms)

    def _end_told(self, answer: Message, now_ms: int) -> None:
        asked = dict(self._asked)
        for key, end in self._offsets_told(answer, now_ms).items():
            asked[key][0].range_told(self._begins[key], end, now_ms)

    def _offsets_told(self, answer: Message, now_ms: int) -> dict[FollowedKey, int]:
        """What is answered without an error, of those that wait for it; all others have failed."""
        assert isinstance(answer, ApacheListOffsetsResponse), "the answer to this question"
        found: dict[FollowedKey, int] = {}
        for topic in answer.topics:
            for said in topic.partitions:
                each = self._answered(topic.name, said.partition_index)
                if each is None:
                    continue
                if said.error:
                    each.refused(said.error, now_ms)
                else:
                    found[each.key] = said.offset
        self._rest_failed(now_ms)
        return found

    def _records_told(self, answer: Message, now_ms: int) -> None:
        assert isinstance(answer, ApacheFetchResponse), "the answer to this question"
        for topic in answer.topics if not answer.error else ():
            for said in topic.partitions:
                each = self._answered(topic.topic, said.partition)
                if each is None:
                    continue
                if said.records:
                    self._last = each.key
                try:
                    each.fetched(said, now_ms)
                except StorageFailed as error:
                    self._given_up(each, str(error))
        self._rest_failed(now_ms)

    def _answered(self, topic: str, partition: int) -> FollowedPartition | None:
        """Who waits for this; None when it was commanded otherwise since it asked.

        Raises RemoteProtocolError for what was not asked, or is answered twice.
        """
        asked = self._asked.pop((topic, partition), None)
        if asked is None:
            raise RemoteProtocolError(f"an answer about {topic}-{partition}, which was not asked")
        each, life = asked
        return each if each.life == life else None

    def _rest_failed(self, now_ms: int) -> None:
        """Whoever is not answered has failed."""
        asked, self._asked = self._asked, {}
        for each, life in asked.values():
            if each.life == life:
                each.failed(now_ms)

    def not_answered(self, now_ms: int) -> None:
        """See `replispec.runtime.kafka.asking.AskingHolder`."""
        self._rest_failed(now_ms)
