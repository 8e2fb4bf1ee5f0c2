"""Brokers that do it wrong: each overrides one choice of the good one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from replispec.wire.kafka.codes import ErrorCode
from tests.conformance.subjects.kafka_broker import GoodBroker, HungUp
from tests.conformance.subjects.kafka_choices import BROKER_ID
from tests.conformance.subjects.kafka_replica import Key, ScriptedReplica


class HangsUpOnNewVersions(GoodBroker):
    """A version of ApiVersions that nobody knows ends the connection."""

    def unknown_version(self) -> bytes:
        raise HungUp


class AnswersNoEpochs(GoodBroker):
    """One key is missing in the list."""

    def versions(self) -> Any:
        return super().versions()[:-1]


class AcknowledgesAtOnce(GoodBroker):
    """Nobody waits for the ISR."""

    def committed(self, one: ScriptedReplica, acks: int, end: int) -> bool:  # noqa: ARG002
        return True


class WaitsForEverybody(GoodBroker):
    """With acks 1, too, the ISR is waited for."""

    def committed(self, one: ScriptedReplica, acks: int, end: int) -> bool:  # noqa: ARG002
        return one.hw >= end


class AnswersEveryProducer(GoodBroker):
    """With acks 0, too, something is answered."""

    def answers_nothing(self, acks: int) -> bool:  # noqa: ARG002
        return False


class LooksAtNoMinimum(GoodBroker):
    """The ISR may be as small as it likes."""

    def enough(self, one: ScriptedReplica, acks: int) -> bool:  # noqa: ARG002
        return True


class WantsTheMinimumAlways(GoodBroker):
    """The ISR must be large enough for acks 1, too."""

    def enough(self, one: ScriptedReplica, acks: int) -> bool:
        return super().enough(one, -1 if acks else 0)


class TakesAnyAcks(GoodBroker):
    """Every number of acks means something."""

    def takes_acks(self, acks: int) -> bool:  # noqa: ARG002
        return True


class _Overlooks(GoodBroker):
    """One fault of batches is not seen."""

    overlooked: int = ErrorCode.NONE

    def fault(self, data: bytes) -> int:
        found = super().fault(data)
        return ErrorCode.NONE if found == self.overlooked else found


class TakesProducers(_Overlooks):
    """The id of a producer is passed over."""

    overlooked = ErrorCode.INVALID_REQUEST


class TakesAnySize(_Overlooks):
    """A batch may be as long as it likes."""

    overlooked = ErrorCode.MESSAGE_TOO_LARGE


class TakesDamagedBatches(_Overlooks):
    """The checksum is not looked at."""

    overlooked = ErrorCode.CORRUPT_MESSAGE


class TakesOddBatches(_Overlooks):
    """Whatever is in a batch is taken."""

    overlooked = ErrorCode.INVALID_RECORD


class StampsTheFirstEpoch(GoodBroker):
    """All batches bear the epoch 0."""

    def stamp(self, one: ScriptedReplica) -> int:  # noqa: ARG002
        return 0


class CommitsAlone(GoodBroker):
    """What the leader has is committed."""

    def watermark(self, one: ScriptedReplica) -> int:
        return one.end


class CommitsWithTheFirst(GoodBroker):
    """One follower is enough."""

    def watermark(self, one: ScriptedReplica) -> int:
        ends = [one.ends.get(each, 0) for each in one.isr if each != BROKER_ID]
        return max(one.hw, max(ends, default=one.end))


class TakesBackWhatIsCommitted(GoodBroker):
    """The high watermark falls with a follower."""

    def watermark(self, one: ScriptedReplica) -> int:
        ends = [one.end, *(one.ends.get(each, 0) for each in one.isr if each != BROKER_ID)]
        return min(ends)


class TakesGivingForReceipts(GoodBroker):
    """What a follower was given it has."""

    def has(self, one: ScriptedReplica, replica: int, offset: int, given: int) -> None:  # noqa: ARG002
        one.ends[replica] = given


class GivesReadersAll(GoodBroker):
    """Readers get what is not committed."""

    def upper(self, one: ScriptedReplica, replica: int) -> int:  # noqa: ARG002
        return one.end


class GivesFollowersTheCommitted(GoodBroker):
    """Followers get what is committed alone."""

    def upper(self, one: ScriptedReplica, replica: int) -> int:  # noqa: ARG002
        return one.hw


class ServesStrangers(GoodBroker):
    """Whoever says so is a replica."""

    def refused_fetch(self, one: ScriptedReplica, replica: int, offset: int) -> int:  # noqa: ARG002
        return super().refused_fetch(one, -1, offset)


class KnowsNoRange(GoodBroker):
    """Beyond the log there is nothing, and no error."""

    def refused_fetch(self, one: ScriptedReplica, replica: int, offset: int) -> int:
        return super().refused_fetch(one, replica, min(max(offset, 0), one.end))


class RefusesBeyondTheCommitted(GoodBroker):
    """An offset beyond what is committed is refused."""

    def refused_fetch(self, one: ScriptedReplica, replica: int, offset: int) -> int:
        found = super().refused_fetch(one, replica, offset)
        return found or (ErrorCode.OFFSET_OUT_OF_RANGE if replica < 0 and offset > one.hw else 0)


class LooksAtNoLimit(GoodBroker):
    """All is given, however little is wanted."""

    def fits(self, batch: bytes, left: int, *, is_first: bool) -> bool:  # noqa: ARG002
        return True


class GivesNoFirstBatch(GoodBroker):
    """A batch above the limit is never given."""

    def fits(self, batch: bytes, left: int, *, is_first: bool) -> bool:  # noqa: ARG002
        return len(batch) <= left


class NeverWaits(GoodBroker):
    """Every fetch is answered at once."""

    def is_enough(self, found: int, least: int) -> bool:  # noqa: ARG002
        return True


class WaitsAMinute(GoodBroker):
    """However short the time, it waits a minute."""

    def waits_s(self, asked_ms: int) -> float:  # noqa: ARG002
        return 60.0


class KeepsErrorsBack(GoodBroker):
    """An error waits for records of others."""

    def at_once(self, errors: Iterable[int]) -> bool:  # noqa: ARG002
        return False


class LooksAtNoEpoch(GoodBroker):
    """Whatever leader somebody knows is the right one."""

    def epoch_error(self, one: ScriptedReplica, known: int | None) -> int:  # noqa: ARG002
        return ErrorCode.NONE


class KnowsEverything(GoodBroker):
    """A partition that nobody told it of is one that it does not lead."""

    def unknown(self, key: Key) -> int:  # noqa: ARG002
        return ErrorCode.NOT_LEADER


class TellsTheEndOfTheLog(GoodBroker):
    """Readers are told the end of the log."""

    def offset(self, one: ScriptedReplica, time: int, replica: int) -> tuple[int, int]:
        return (one.end, one.epoch) if time == -1 else super().offset(one, time, replica)


class LooksForNoTime(GoodBroker):
    """A time lies at the beginning."""

    def offset(self, one: ScriptedReplica, time: int, replica: int) -> tuple[int, int]:
        return super().offset(one, -2 if time >= 0 else time, replica)


class TellsTooEarly(GoodBroker):
    """A new leader tells readers where it knows the end to be."""

    def lags(self, one: ScriptedReplica) -> bool:  # noqa: ARG002
        return False


class EndsEveryEpochAtTheEnd(GoodBroker):
    """Each epoch ends where the log does."""

    def end_of(self, one: ScriptedReplica, asked: int) -> tuple[int, int]:
        return asked, one.end


class ObeysAnybody(GoodBroker):
    """A controller is never too old."""

    def controllers_epoch(self) -> int:
        return -1


class LooksAtNoRegistration(GoodBroker):
    """Commands for a former life are carried out."""

    def registration(self) -> int:
        return -1


class CarriesOutOldCommands(GoodBroker):
    """The epoch of the leader is not compared."""

    def not_newer(self, one: ScriptedReplica, epoch: int) -> bool:  # noqa: ARG002
        return False


class TakesReplicasOfOthers(GoodBroker):
    """It need not be assigned."""

    def unassigned(self, replicas: Sequence[int]) -> int:  # noqa: ARG002
        return ErrorCode.NONE


class LeadsOn(GoodBroker):
    """Told that nobody leads, it leads on."""

    def obeys(self, one: ScriptedReplica, leader: int) -> int:
        return one.leader if leader == -1 and one.leader != -1 else leader


class DeletesNothing(GoodBroker):
    """A replica that is to be deleted stays."""

    def deleted(self, key: Key) -> None:
        del key


class RefusesToStopTheUnknown(GoodBroker):
    """What it does not have it cannot stop."""

    def stopped(self, key: Key) -> int:
        return ErrorCode.NONE if key in self.replicas else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class KeepsLaggards(GoodBroker):
    """Nobody leaves the ISR."""

    def laggards(self, one: ScriptedReplica) -> set[int]:  # noqa: ARG002
        return set()


class LeavesItself(GoodBroker):
    """Alone, it leaves its own ISR."""

    def written_isr(self, members: Sequence[int]) -> list[int]:
        return [] if list(members) == [BROKER_ID] else list(members)


class JoinsAnybody(GoodBroker):
    """Whoever fetches is in sync."""

    def joins(self, one: ScriptedReplica, offset: int) -> bool:  # noqa: ARG002
        return True


class LetsNobodyJoin(GoodBroker):
    """Who left the ISR stays out."""

    def joins(self, one: ScriptedReplica, offset: int) -> bool:  # noqa: ARG002
        return False


class WritesOverAnyVersion(GoodBroker):
    """An ISR is written whatever the record says."""

    def expected_version(self, one: ScriptedReplica) -> int:  # noqa: ARG002
        return -1


class TellsNobody(GoodBroker):
    """No controller hears of a changed ISR."""

    def tells_controller(self) -> bool:
        return False


class ShowsAllTopics(GoodBroker):
    """An empty list of topics asks for all."""

    def shown_topics(self, wanted: list[str] | None) -> list[str]:
        return super().shown_topics(wanted or None)


class ForgetsNoBroker(GoodBroker):
    """Who lived once lives."""

    def learned(self, said: Any) -> None:
        self.alive |= {each.broker_id: each for each in said.live_brokers}


class KeepsItsTail(GoodBroker):
    """A new follower cuts nothing, and asks nobody."""

    def truncates(self, one: ScriptedReplica) -> int | None:
        return one.end


class BelievesAnyWatermark(GoodBroker):
    """A follower's high watermark is what its leader says."""

    def taken_watermark(self, one: ScriptedReplica, told: int) -> int:  # noqa: ARG002
        return told


class KnowsNoWatermark(GoodBroker):
    """A follower takes no high watermark over."""

    def taken_watermark(self, one: ScriptedReplica, told: int) -> int:  # noqa: ARG002
        return one.hw


class BeginsAgain(GoodBroker):
    """A follower asks from the beginning each time."""

    def next_offset(self, one: ScriptedReplica) -> int:
        return one.start


class FollowsTheFormerLeader(GoodBroker):
    """Who once led is asked on."""

    def follows(self, one: ScriptedReplica, epoch: int) -> bool:  # noqa: ARG002
        return True


class GivesUp(GoodBroker):
    """A leader that refused is asked no more."""

    def asks_again(self, error: int) -> bool:  # noqa: ARG002
        return False


class AsksAfterFencing(GoodBroker):
    """A leader that said that the epoch is over is asked on."""

    def asks_again(self, error: int) -> bool:  # noqa: ARG002
        return True


CAUGHT: Mapping[type[GoodBroker], str] = {
    HangsUpOnNewVersions: "versions/KAFKA-VERSIONS-1/3",
    AnswersNoEpochs: "versions/KAFKA-VERSIONS-1/1",
    AcknowledgesAtOnce: "produce/KAFKA-ACKS-1/2",
    WaitsForEverybody: "produce/KAFKA-ACKS-1/1",
    AnswersEveryProducer: "produce/KAFKA-PRODUCE-1/2",
    LooksAtNoMinimum: "produce/KAFKA-ACKS-2/1",
    WantsTheMinimumAlways: "produce/KAFKA-ACKS-2/2",
    TakesAnyAcks: "produce/KAFKA-ACKS-1/6",
    TakesProducers: "batch/KAFKA-BATCH-1/6",
    TakesAnySize: "batch/KAFKA-BATCH-1/14",
    TakesDamagedBatches: "batch/KAFKA-BATCH-1/1",
    TakesOddBatches: "batch/KAFKA-BATCH-1/13",
    StampsTheFirstEpoch: "batch/KAFKA-BATCH-2/2",
    CommitsAlone: "fetch/KAFKA-FETCH-3/1",
    CommitsWithTheFirst: "fetch/KV3-FETCH-3/1",
    TakesBackWhatIsCommitted: "fetch/KV3-WATERMARK-1/1",
    TakesGivingForReceipts: "produce/KAFKA-ACKS-1/4",
    GivesReadersAll: "fetch/KAFKA-FETCH-3/2",
    GivesFollowersTheCommitted: "produce/KAFKA-ACKS-1/3",
    ServesStrangers: "fetch/KAFKA-FETCH-4/1",
    KnowsNoRange: "fetch/KAFKA-FETCH-3/3",
    RefusesBeyondTheCommitted: "fetch/KAFKA-FETCH-3/2",
    LooksAtNoLimit: "fetch/KAFKA-FETCH-2/3",
    GivesNoFirstBatch: "fetch/KAFKA-FETCH-2/1",
    NeverWaits: "fetch/KAFKA-FETCH-1/6",
    WaitsAMinute: "fetch/KAFKA-FETCH-1/4",
    KeepsErrorsBack: "fetch/KAFKA-FETCH-1/7",
    LooksAtNoEpoch: "fetch/KAFKA-LEADER-2/1",
    KnowsEverything: "fetch/KAFKA-LEADER-1/1",
    TellsTheEndOfTheLog: "offsets/KAFKA-OFFSETS-1/6",
    LooksForNoTime: "offsets/KAFKA-OFFSETS-1/4",
    TellsTooEarly: "offsets/KAFKA-OFFSETS-2/1",
    EndsEveryEpochAtTheEnd: "epoch/KAFKA-EPOCH-1/2",
    ObeysAnybody: "command/KAFKA-COMMAND-3/1",
    LooksAtNoRegistration: "command/KAFKA-COMMAND-2/1",
    CarriesOutOldCommands: "command/KV3-EPOCH-1/1",
    TakesReplicasOfOthers: "command/KAFKA-COMMAND-4/1",
    LeadsOn: "command/KV3-COMMAND-2/5",
    DeletesNothing: "command/KV3-STOP-1/1",
    RefusesToStopTheUnknown: "command/KV3-STOP-1/3",
    KeepsLaggards: "isr/KV3-ISR-5/1",
    LeavesItself: "isr/KV3-ISR-2/1",
    JoinsAnybody: "isr/KV3-ISR-4/2",
    LetsNobodyJoin: "isr/KV3-ISR-4/1",
    WritesOverAnyVersion: "isr/KV3-ISR-1/1",
    TellsNobody: "isr/KAFKA-STORE-3/1",
    ShowsAllTopics: "metadata/KAFKA-METADATA-1/2",
    ForgetsNoBroker: "metadata/KAFKA-METADATA-2/4",
    KeepsItsTail: "follow/KV3-FOLLOWER-1/2",
    BelievesAnyWatermark: "follow/KV3-WATERMARK-1/2",
    KnowsNoWatermark: "follow/KV3-WATERMARK-1/1",
    BeginsAgain: "follow/KV3-FETCH-1/2",
    FollowsTheFormerLeader: "follow/KV3-COMMAND-2/1",
    GivesUp: "follow/KAFKA-FENCE-2/2",
    AsksAfterFencing: "follow/KAFKA-FENCE-1/1",
}
"""Each with the case that names its fault."""
