"""Brokers that serve logical queues wrongly: mappings, seals, queues that are made and taken again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.conformance.subjects.logical_clients import FILLER, GoodLogicalBroker
from tests.conformance.subjects.logical_disk import UNKNOWN, Held
from tests.conformance.subjects.static_topic_shell import Fields, Refused, Told

# Mapping


class MapsByItself(GoodLogicalBroker):
    def made(self, header: Fields) -> Told:
        topic = header["topic"]
        self.disk.held[topic, 0] = Held(topic, 0, 0)
        return super().made(header)


class MapsWholeTopics(GoodLogicalBroker):
    def first_of(self, topic: str, queue: int, index: int) -> None:
        super().first_of(topic, queue, index)
        for other in range(self.disk.topics[topic]["readQueueNums"]):
            self.disk.held.setdefault((topic, other), Held(topic, other, other))


class MapsByNumber(GoodLogicalBroker):
    """The index of a message queue is its number."""

    def first_of(self, topic: str, queue: int, index: int) -> None:  # noqa: ARG002
        super().first_of(topic, queue, queue)


class MapsTwice(GoodLogicalBroker):
    """A message queue becomes one of a second logical queue, too."""

    also: tuple[Held, int] | None = None

    def mapped_elsewhere(self, segment: Held, index: int) -> Told:
        self.also = segment, index
        return self.changed()

    def shown(self, topic: str) -> Mapping[str, list[Fields]]:
        found = dict(super().shown(topic))
        return found if self.also is None else {**found, str(self.also[1]): [self.said(self.also[0])]}


class MapsAsTargets(GoodLogicalBroker):
    """What is mapped waits to be told where it begins."""

    def first_of(self, topic: str, queue: int, index: int) -> None:
        super().first_of(topic, queue, index)
        self.disk.held[topic, queue].state = "WriteOnly"


class BeginsTwice(GoodLogicalBroker):
    """Two message queues begin one logical queue."""

    def first_of(self, topic: str, queue: int, index: int) -> None:
        self.disk.held[topic, queue] = Held(topic, queue, index)


class RefusesMappedQueues(GoodLogicalBroker):
    async def map(self, header: Fields, body: bytes) -> Told:
        asked = self.body_of(body)
        if (asked.get("topic"), asked.get("queueId")) in self.disk.held and asked["logicalQueueIdx"] >= 0:
            raise Refused("SYSTEM_ERROR")
        return await super().map(header, body)


class MakesTopics(GoodLogicalBroker):
    def known_topic(self, asked: Mapping[str, Any]) -> str:
        topic = str(asked.get("topic"))
        known = {"topicName": topic, "perm": 6, "readQueueNums": 4, "writeQueueNums": 4}
        self.disk.topics.setdefault(topic, known)
        return topic


class MapsStaticTopics(GoodLogicalBroker):
    def known_topic(self, asked: Mapping[str, Any]) -> str:
        if asked.get("topic") not in self.disk.topics:
            raise Refused("SYSTEM_ERROR")
        return str(asked["topic"])


class MapsAnyQueue(GoodLogicalBroker):
    def checked_queue(self, asked: Mapping[str, Any], topic: str) -> int:  # noqa: ARG002
        return int(asked.get("queueId", 0))


class UnmapsAnything(GoodLogicalBroker):
    def may_unmap(self, segment: Held) -> bool:  # noqa: ARG002
        return True


class NeverUnmaps(GoodLogicalBroker):
    def may_unmap(self, segment: Held) -> bool:  # noqa: ARG002
        return False

    async def map(self, header: Fields, body: bytes) -> Told:
        asked = self.body_of(body)
        if asked.get("logicalQueueIdx") == -1 and (asked["topic"], asked["queueId"]) not in self.disk.held:
            raise Refused("SYSTEM_ERROR")
        return await super().map(header, body)


class ForgetsAnything(GoodLogicalBroker):
    async def forget(self, header: Fields, body: bytes) -> Told:
        for place in [place for place in self.disk.held if place[0] == header["topic"]]:
            del self.disk.held[place]
        return await super().forget(header, body)


class NeverForgets(GoodLogicalBroker):
    def may_forget(self, topic: str) -> bool:  # noqa: ARG002
        return False


class TakesFromAnybody(GoodLogicalBroker):
    """What clients may do is noted, and nobody goes by it."""

    def may_be_written(self, topic: Fields) -> bool:  # noqa: ARG002
        return True


class ChangesPlainly(GoodLogicalBroker):
    """A change that knows of no mapping is the end of the mapping."""

    def mapped_topic(self, header: Fields) -> Told:
        self.disk.held.clear()
        return self.made(header)


# Seals


class ExpiresOne(GoodLogicalBroker):
    """It compares the first message with the last one."""

    def state_at_end(self, segment: Held, end: int) -> str:
        return super().state_at_end(segment, end - 1)


class KeepsEmpty(GoodLogicalBroker):
    def state_at_end(self, segment: Held, end: int) -> str:  # noqa: ARG002
        return "ReadOnly"


class SealsWithoutEnd(GoodLogicalBroker):
    def end(self, segment: Held) -> None:
        super().end(segment)
        segment.end = UNKNOWN


class SealsOffByOne(GoodLogicalBroker):
    """The last message that was acknowledged lies behind the end."""

    def end(self, segment: Held) -> None:
        super().end(segment)
        segment.end = self.disk.ends[segment.topic, segment.queue] - 1


class SealsAgain(GoodLogicalBroker):
    """A segment takes messages after its seal, and ends behind them when it is sealed again."""

    def takes(self, segment: Held | None) -> bool:  # noqa: ARG002
        return True

    def end(self, segment: Held) -> None:
        segment.state = "Normal"
        super().end(segment)


class SealsTargets(GoodLogicalBroker):
    def may_end(self, segment: Held) -> bool:
        segment.state = "Normal"
        return True


class SealsAnyIndex(GoodLogicalBroker):
    def own(self, topic: str, queue: int, index: int) -> Held:  # noqa: ARG002
        found = self.disk.held.get((topic, queue))
        if found is None:
            raise Refused("SYSTEM_ERROR")
        return found


class SealsWhatIsNone(GoodLogicalBroker):
    def own(self, topic: str, queue: int, index: int) -> Held:
        return self.disk.held.setdefault((topic, queue), Held(topic, queue, index))

    def known_topic(self, asked: Mapping[str, Any]) -> str:
        return str(asked.get("topic"))


# New queues, and those that are taken again


class BeginsAtZero(GoodLogicalBroker):
    def next_start(self, topic: str, index: int) -> int:  # noqa: ARG002
        return 0


class CreatesNoQueue(GoodLogicalBroker):
    """The last queue of a topic that there is becomes a segment."""

    def new_queue(self, topic: str) -> int:
        if topic not in self.disk.topics:
            return super().new_queue(topic)
        return int(self.disk.topics[topic]["readQueueNums"]) - 1


class ComesBackToItsQueue(GoodLogicalBroker):
    """Where a topic is its first queue is taken, also while that is read."""

    def new_queue(self, topic: str) -> int:
        return super().new_queue(topic) if topic not in self.disk.topics else 0


class GrowsNowhere(GoodLogicalBroker):
    """It begins no logical queue but by a mapping."""

    def next_start(self, topic: str, index: int) -> int:
        if not self.disk.of_index(topic, index):
            raise Refused("SYSTEM_ERROR")
        return super().next_start(topic, index)


class NumbersFromOne(GoodLogicalBroker):
    def new_queue(self, topic: str) -> int:
        if topic not in self.disk.topics:
            super().new_queue(topic)
        return super().new_queue(topic)


class MakesTwoTargets(GoodLogicalBroker):
    def makes_two(self) -> bool:
        return True


class CreatesAnyState(GoodLogicalBroker):
    def checked_state(self, state: object) -> str:
        return "Normal" if state != "WriteOnly" else "WriteOnly"


class CreatesBesidePlain(GoodLogicalBroker):
    def is_plain(self, topic: str) -> bool:  # noqa: ARG002
        return False


class TargetsTakeNothing(GoodLogicalBroker):
    def takes(self, segment: Held | None) -> bool:
        return segment is None or segment.state == "Normal"


class TargetsAreNormal(GoodLogicalBroker):
    """A target is read and written from the start."""

    def checked_state(self, state: object) -> str:
        super().checked_state(state)
        return "Normal"

    def next_start(self, topic: str, index: int) -> int:  # noqa: ARG002
        return 0


class ReusesAtOnce(GoodLogicalBroker):
    """A queue is taken by whatever logical queue wants it."""

    def rests(self, segment: Held, index: int) -> bool:  # noqa: ARG002
        return False


class ReusesAtOnceFromStart(ReusesAtOnce):
    """Likewise, from where it began before."""

    def reused_from(self, topic: str, queue: int) -> int:  # noqa: ARG002
        return 0


class ReusesReadOnly(ReusesAtOnce):
    def may_reuse(self, segment: Held | None) -> bool:
        return (segment is not None and segment.state == "ReadOnly") or super().may_reuse(segment)


class ReusesAnything(ReusesAtOnce):
    def may_reuse(self, segment: Held | None) -> bool:  # noqa: ARG002
        return True


class ReusesUnused(GoodLogicalBroker):
    def may_reuse(self, segment: Held | None) -> bool:
        return segment is None or segment.state == "Expired"


class NeverReuses(GoodLogicalBroker):
    def may_reuse(self, segment: Held | None) -> bool:
        return segment is None


class ReusesFromZero(GoodLogicalBroker):
    """A queue that is taken again begins at 0."""

    def reused_from(self, topic: str, queue: int) -> int:
        del self.disk.ends[topic, queue]
        return 0


class ReusesFromStart(GoodLogicalBroker):
    """A queue that is taken again begins where it began before."""

    def reused_from(self, topic: str, queue: int) -> int:  # noqa: ARG002
        return 0


class ReadsWhatWasBefore(GoodLogicalBroker):
    def pulled(self, segment: Held, offset: int, most: int) -> Told:
        if offset < segment.place:
            told = self.offsets(segment.place, self.end_of(segment))
            return "SUCCESS", told, self.given((segment.topic, segment.queue), offset, segment.place)
        return super().pulled(segment, offset, most)


class DropsExpired(GoodLogicalBroker):
    """What has expired leaves its list."""

    def registered(self, topic: str) -> list[Held]:
        return [each for each in super().registered(topic) if each.state != "Expired"]

    def shown(self, topic: str) -> Mapping[str, list[Fields]]:
        return self.said_of([each for each in self.disk.of_topic(topic) if each.state != "Expired"])


class DropsExpiredAtStart(GoodLogicalBroker):
    def survives(self) -> None:
        gone = [place for place, each in self.disk.held.items() if each.state == "Expired"]
        for place in gone:
            del self.disk.held[place]


class ForgetsPositions(GoodLogicalBroker):
    """A queue without a message begins at 0 when it is started again."""

    def survives(self) -> None:
        for place in list(self.disk.kept_from):
            if place[0] != FILLER:
                self.disk.ends[place] = 0


# What cannot be


class GuessesBodies(GoodLogicalBroker):
    """A body that is none is that of the topic which it knows best."""

    def body_of(self, body: bytes) -> Any:
        try:
            return super().body_of(body)
        except Refused:
            asked = {"topic": "LogicalCase", "queueId": 1, "logicalQueueIdx": 1, "logicalQueueIndex": 1}
            return {**asked, "messageQueueStatus": "Normal", "messageQueueRouteState": "Normal"}

    def known_topic(self, asked: Mapping[str, Any]) -> str:
        return super().known_topic({"topic": "LogicalCase", **asked})


class ReadsWordsAsZero(GoodLogicalBroker):
    def body_of(self, body: bytes) -> Any:
        found = super().body_of(body)
        names = ("queueId", "logicalQueueIdx", "logicalQueueIndex")
        zeros = {name: 0 for name in names if isinstance(found.get(name), str)}
        return {**found, **zeros}


class KnowsNoBounds(GoodLogicalBroker):
    def checked_index(self, asked: Mapping[str, Any], name: str = "logicalQueueIndex", least: int = 0) -> int:  # noqa: ARG002
        return int(asked[name])

    def own(self, topic: str, queue: int, index: int) -> Held:
        return super().own(topic, queue, max(index, 0))


class CountsFromTheEnd(GoodLogicalBroker):
    """A message queue below 0, or beyond all, is the last one."""

    def checked_queue(self, asked: Mapping[str, Any], topic: str) -> int:
        most: int = self.disk.topics[topic]["readQueueNums"] - 1
        return most if not 0 <= asked["queueId"] <= most else int(asked["queueId"])


class TakesAnyTopic(GoodLogicalBroker):
    def is_topic(self, topic: str) -> bool:  # noqa: ARG002
        return True


class LooksAtNoTarget(GoodLogicalBroker):
    """What is to follow a segment may be anything."""

    def decided(self, segment: Held, target: Fields) -> Fields:
        return super().decided(segment, target or {})

    def checked_target(self, target: Any, topic: str, source: tuple[str, int, int]) -> None:
        pass


class LooksAtNoSource(GoodLogicalBroker):
    """Where nothing is said of a source it is the first segment that is written."""

    def decided(self, segment: Held, target: Fields) -> Fields:
        return super().decided(segment, target or {})

    def checked_source(self, source: Any, topic: str, target: Any) -> Held:
        if source is not None:
            return super().checked_source(source, topic, target)
        return next(each for each in self.disk.held.values() if each.is_written)

    def is_other(self, segment: Held, said: Mapping[str, Any]) -> bool:
        return bool(said) and super().is_other(segment, said)


class BeginsWhatIsNotSaid(GoodLogicalBroker):
    """A commit that names no target is one of the target that waits."""

    async def commit(self, header: Fields, body: bytes) -> Told:
        try:
            return await super().commit(header, body)
        except (Refused, KeyError, TypeError):
            for each in self.disk.held.values():
                each.start, each.state = max(each.start, 0), "Normal"
            return self.changed()


class FallsForNotices(GoodLogicalBroker):
    """A notice that says nothing ends all segments."""

    async def notify(self, header: Fields, body: bytes) -> Told:
        try:
            self.migration(body)[0]["messageQueue"]
        except (Refused, KeyError, TypeError):
            for each in self.disk.held.values():
                each.state = "Expired"
        return await super().notify(header, body)
