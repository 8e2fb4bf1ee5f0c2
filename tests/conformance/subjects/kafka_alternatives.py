"""Brokers that the proposal allows: it numbers no errors, and says nothing of what clients ask."""

from __future__ import annotations

from typing import Any

from replispec.wire.kafka.codes import ErrorCode
from tests.conformance.subjects.kafka_broker import GoodBroker
from tests.conformance.subjects.kafka_replica import Key, ScriptedReplica


class SaysNotLeaderOfTheUnknown(GoodBroker):
    """What it does not have it does not lead."""

    def unknown(self, key: Key) -> int:  # noqa: ARG002
        return ErrorCode.NOT_LEADER


class LooksAtNoKnownEpoch(GoodBroker):
    """What epoch of a leader somebody knows is not compared."""

    def epoch_error(self, one: ScriptedReplica, known: int | None) -> int:  # noqa: ARG002
        return ErrorCode.NONE


class LooksAtNoFormerLife(GoodBroker):
    """A registration has no number."""

    def registration(self) -> int:
        return -1


class AnswersAtOnce(GoodBroker):
    """No fetch waits."""

    def is_enough(self, found: int, least: int) -> bool:  # noqa: ARG002
        return True


class GivesAllThereIs(GoodBroker):
    """Limits of bytes are no concern of replication."""

    def fits(self, batch: bytes, left: int, *, is_first: bool) -> bool:  # noqa: ARG002
        return True


class TellsOfEverything(GoodBroker):
    """Who asks for no topics is told of all."""

    def shown_topics(self, wanted: list[str] | None) -> list[str]:
        return super().shown_topics(wanted or None)


class RemembersBrokers(GoodBroker):
    """Who lived once is told of."""

    def learned(self, said: Any) -> None:
        self.alive |= {each.broker_id: each for each in said.live_brokers}


class TakesIdempotentProducers(GoodBroker):
    """The id of a producer is its own matter."""

    def fault(self, data: bytes) -> int:
        found = super().fault(data)
        return ErrorCode.NONE if found == ErrorCode.INVALID_REQUEST else found


class CutsToItsWatermark(GoodBroker):
    """As the proposal says it, without asking for epochs."""

    by_epoch = False


ALTERNATIVES = (
    SaysNotLeaderOfTheUnknown,
    LooksAtNoKnownEpoch,
    LooksAtNoFormerLife,
    AnswersAtOnce,
    GivesAllThereIs,
    TellsOfEverything,
    RemembersBrokers,
    TakesIdempotentProducers,
    CutsToItsWatermark,
)
