"""Brokers that serve logical queues wrongly: migrations, what name servers are told, what is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.conformance.subjects.logical_clients import GoodLogicalBroker
from tests.conformance.subjects.logical_disk import UNKNOWN, Held
from tests.conformance.subjects.static_topic_shell import Fields, Refused, Told

# Migrations


class DecidesOffByOne(GoodLogicalBroker):
    def decided(self, segment: Held, target: Fields) -> Fields:
        found = super().decided(segment, target)
        return {**found, "logicalQueueDelta": found["logicalQueueDelta"] + 1}


class DecidesPhysically(GoodLogicalBroker):
    """The physical end is where the next one begins."""

    def decided(self, segment: Held, target: Fields) -> Fields:
        return {**target, "logicalQueueDelta": segment.end}


class DecidesNothing(GoodLogicalBroker):
    def decided(self, segment: Held, target: Fields) -> Fields:  # noqa: ARG002
        return target


class HoldsOnWhenPassedOver(GoodLogicalBroker):
    """It ends where its messages end, whoever has begun meanwhile."""

    def gives_way(self, segment: Held, target: Fields) -> None:
        pass


class BeginsTheBegun(GoodLogicalBroker):
    """It decides for a segment that has begun long ago."""

    def decided(self, segment: Held, target: Fields) -> Fields:
        return super().decided(segment, {**target, "state": "WriteOnly"})


class LastTargetWins(GoodLogicalBroker):
    def keeps_target(self, segment: Held, target: Fields) -> Fields:
        return self.decided(segment, target)


class PreparesOnce(GoodLogicalBroker):
    """Who repeats a preparation is refused."""

    def may_leave(self, segment: Held) -> bool:
        return segment.state == "Normal"


class LeavesTargets(GoodLogicalBroker):
    def may_leave(self, segment: Held) -> bool:
        segment.state = "Normal" if segment.state == "WriteOnly" else segment.state
        return True


class LeavesForeign(GoodLogicalBroker):
    """It looks at queue and index of a source alone."""

    def checked_source(self, source: Any, topic: str, target: Any) -> Held:  # noqa: ARG002
        return self.own(topic, source["messageQueue"]["queueId"], source["logicalQueueIndex"])


class LooksAtNoPlace(GoodLogicalBroker):
    def is_other(self, segment: Held, said: Mapping[str, Any]) -> bool:  # noqa: ARG002
        return False


class BeginsAnywhere(GoodLogicalBroker):
    def begins_too_low(self, segment: Held, start: int, source: Mapping[str, Any]) -> bool:  # noqa: ARG002
        return False


class BeginsAgain(GoodLogicalBroker):
    def begin(self, segment: Held, start: int, source: Mapping[str, Any]) -> None:
        segment.state = "WriteOnly"
        super().begin(segment, start, source)
        segment.end = UNKNOWN


class BeginsOnce(GoodLogicalBroker):
    def begin(self, segment: Held, start: int, source: Mapping[str, Any]) -> None:
        if segment.state == "Normal":
            raise Refused("SYSTEM_ERROR")
        super().begin(segment, start, source)


class BeginsUndecided(GoodLogicalBroker):
    def begin(self, segment: Held, start: int, source: Mapping[str, Any]) -> None:
        super().begin(segment, max(start, 0), source)


class NeedsAnEnd(GoodLogicalBroker):
    """A source that is gone cannot be passed over."""

    def begins_too_low(self, segment: Held, start: int, source: Mapping[str, Any]) -> bool:
        return source.get("offsetMax", UNKNOWN) < 0 or super().begins_too_low(segment, start, source)


class BeginsBehindWhatItTook(GoodLogicalBroker):
    """What a target took before is not part of it."""

    def begin(self, segment: Held, start: int, source: Mapping[str, Any]) -> None:
        super().begin(segment, start, source)
        segment.place = self.disk.ends[segment.topic, segment.queue]


class StaysWriteOnly(GoodLogicalBroker):
    def begin(self, segment: Held, start: int, source: Mapping[str, Any]) -> None:
        super().begin(segment, start, source)
        segment.state = "WriteOnly"


class ShowsOthers(GoodLogicalBroker):
    """It keeps and registers the segments of other brokers that it was told of."""

    others: tuple[Fields, ...] = ()

    def begin(self, segment: Held, start: int, source: Mapping[str, Any]) -> None:
        super().begin(segment, start, source)
        self.others = (dict(source),)

    def keeps_target(self, segment: Held, target: Fields) -> Fields:
        found = super().keeps_target(segment, target)
        self.others = (found,)
        return found

    def said_of(self, segments: list[Held]) -> dict[str, list[Fields]]:
        found = super().said_of(segments)
        return {index: [*each, *self.others] for index, each in found.items()}


class BelievesNotices(GoodLogicalBroker):
    def hears(self, source: Fields, target: Fields) -> None:
        found = self.disk.held.get((source["messageQueue"]["topic"], source["messageQueue"]["queueId"]))
        if found is not None:
            found.state, found.end, found.successor = source["state"], source["offsetMax"], target


class KeepsNotices(GoodLogicalBroker):
    def hears(self, source: Fields, target: Fields) -> None:  # noqa: ARG002
        topic, queue = source["messageQueue"]["topic"], source["messageQueue"]["queueId"]
        self.disk.held.setdefault((topic, queue), Held(topic, queue, 0, end=3, state="ReadOnly"))


# Name servers


class RegistersNoSegments(GoodLogicalBroker):
    def registered(self, topic: str) -> list[Held]:  # noqa: ARG002
        return []


class RegistersNoTargets(GoodLogicalBroker):
    def registered(self, topic: str) -> list[Held]:
        return [each for each in super().registered(topic) if each.state != "WriteOnly"]


class RegistersNoExpired(GoodLogicalBroker):
    def registered(self, topic: str) -> list[Held]:
        return [each for each in super().registered(topic) if each.state != "Expired"]


class RegistersAllTopics(GoodLogicalBroker):
    """A topic that is not mapped has a mapping without queues."""

    def wrapper(self) -> Fields:
        found = super().wrapper()
        empty: Fields = {topic: {} for topic in self.disk.topics}
        return {**found, "logicalQueuesInfoMap": {**empty, **found["logicalQueuesInfoMap"]}}


class RegistersChangesAlone(GoodLogicalBroker):
    """Topics that are not mapped are not told again, whoever asks for it."""

    def wrapper(self) -> Fields:
        found = super().wrapper()
        mapped = found["logicalQueuesInfoMap"]
        topics = found["topicConfigTable"]
        return {
            **found,
            "topicConfigTable": {topic: each for topic, each in topics.items() if topic in mapped},
        }


class RegistersOneVersion(GoodLogicalBroker):
    def wrapper(self) -> Fields:
        self.disk.version = 1
        return super().wrapper()


class RegistersByTimeAlone(GoodLogicalBroker):
    registers_every_s = 25

    def tells(self) -> None:
        pass


class SaysNothingIsEnabled(GoodLogicalBroker):
    def wrapper(self) -> Fields:
        return {**super().wrapper(), "logicalQueuesEnabledMap": {}}


class SaysAllIsEnabled(GoodLogicalBroker):
    def wrapper(self) -> Fields:
        all_: Fields = {
            topic: {"epoch": 1, "gone": {}, "queues": 1, "total": 1} for topic in self.disk.topics
        }
        return {**super().wrapper(), "logicalQueuesEnabledMap": all_}


class EnablesWhatItHolds(GoodLogicalBroker):
    """A broker without a segment of a topic does not say that it is enabled."""

    def wrapper(self) -> Fields:
        found = super().wrapper()
        held = {topic for topic, _ in self.disk.held}
        said = {topic: each for topic, each in self.disk.enabled.items() if topic in held}
        return {**found, "logicalQueuesEnabledMap": said}


class EnablesOnce(GoodLogicalBroker):
    def is_older_statement(self, old: Fields, new: Fields) -> bool:  # noqa: ARG002
        return True


class TakesOlderStatements(GoodLogicalBroker):
    def is_older_statement(self, old: Fields, new: Fields) -> bool:  # noqa: ARG002
        return False


class TakesAnyNumbers(GoodLogicalBroker):
    def enable(self, topic: str, said: Any) -> Told:
        self.disk.enabled[topic] = {**said, "gone": said.get("gone", {})}
        return self.changed()


class TakesGoneBack(GoodLogicalBroker):
    def all_gone(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> Fields:  # noqa: ARG002
        return dict(new)


class SaysNothingIsGone(GoodLogicalBroker):
    def all_gone(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> Fields:  # noqa: ARG002
        return {}


class KeepsGoneToItself(GoodLogicalBroker):
    """Who takes a segment again does not say that its offsets are nobody's."""

    def says_gone(self, segment: Held) -> None:
        pass


# What is kept


class ForgetsSegments(GoodLogicalBroker):
    """They are in its memory alone."""

    def survives(self) -> None:
        self.disk.held.clear()


class SaysNothingAtFirst(GoodLogicalBroker):
    """When it was started again it says that nothing is mapped until it was asked once."""

    is_new = False

    def survives(self) -> None:
        self.is_new = bool(self.disk.held)

    async def show(self, header: Fields, body: bytes) -> Told:
        if self.is_new:
            self.is_new = False
            return "SUCCESS", {}, b"null"
        return await super().show(header, body)


class ForgetsSeals(GoodLogicalBroker):
    def survives(self) -> None:
        for each in self.disk.held.values():
            each.state, each.end = "Normal", UNKNOWN


class ForgetsSuccessors(GoodLogicalBroker):
    def survives(self) -> None:
        for each in self.disk.held.values():
            each.successor = None


class ForgetsStarts(GoodLogicalBroker):
    def survives(self) -> None:
        for each in self.disk.held.values():
            each.start = 0


class ForgetsThatItIsEnabled(GoodLogicalBroker):
    def survives(self) -> None:
        self.disk.enabled.clear()


class KeepsWhatWasUnmapped(GoodLogicalBroker):
    """The end of a mapping is in its memory alone."""

    def first_of(self, topic: str, queue: int, index: int) -> None:
        super().first_of(topic, queue, index)
        self.disk.enabled[f"{topic} {queue}"] = {"index": index}

    def wrapper(self) -> Fields:
        return {**super().wrapper(), "logicalQueuesEnabledMap": {}}

    def survives(self) -> None:
        for place, each in self.disk.enabled.items():
            topic, _, queue = place.partition(" ")
            self.disk.held.setdefault((topic, int(queue)), Held(topic, int(queue), each["index"]))
