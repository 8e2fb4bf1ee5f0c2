"""Brokers that serve logical queues wrongly where only the messages themselves, queues that begin behind what
was in them before, great numbers or what is kept over a restart show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from replispec.wire.rocketmq.store import LogRecord
from tests.conformance.subjects.logical_clients import KNOWS, GoodLogicalBroker
from tests.conformance.subjects.logical_disk import Held
from tests.conformance.subjects.static_topic_shell import Fields, Told
from tests.conformance.subjects.stored import written

INT31 = 2**31

# What is read


class ServesNoMessages(GoodLogicalBroker):
    """Where who reads is to go on is right, and there is nothing to read."""

    def given(self, place: tuple[str, int], begin: int, end: int) -> bytes:  # noqa: ARG002
        return b""


class ServesGarbage(GoodLogicalBroker):
    def given(self, place: tuple[str, int], begin: int, end: int) -> bytes:  # noqa: ARG002
        return b"log"


class TurnsABit(GoodLogicalBroker):
    """A body is not what was sent, and its checksum is of what was."""

    def given(self, place: tuple[str, int], begin: int, end: int) -> bytes:
        data = bytearray(super().given(place, begin, end))
        at = data.find(b"message")
        data[at] ^= 1
        return bytes(data)


class CutsOff(GoodLogicalBroker):
    """The last message is not whole."""

    def given(self, place: tuple[str, int], begin: int, end: int) -> bytes:
        return super().given(place, begin, end)[:-1]


class ServesOneLess(GoodLogicalBroker):
    def given(self, place: tuple[str, int], begin: int, end: int) -> bytes:
        return super().given(place, begin, end - 1)


class ServesFromTheStart(GoodLogicalBroker):
    """Whatever is asked for, it is the oldest that is given."""

    def given(self, place: tuple[str, int], begin: int, end: int) -> bytes:
        return super().given(place, 0, end - begin)


class NamesAnotherQueue(GoodLogicalBroker):
    """What is read says that it lies in the next message queue."""

    def given(self, place: tuple[str, int], begin: int, end: int) -> bytes:
        found = self.disk.log.between(place, begin, end)
        return written([replace(each, queue_id=each.queue_id + 1) for each in found])


class NamesAnotherTopic(GoodLogicalBroker):
    def given(self, place: tuple[str, int], begin: int, end: int) -> bytes:
        found = self.disk.log.between(place, begin, end)
        return written([replace(each, topic=f"{each.topic}s") for each in found])


class StoresTheBit(GoodLogicalBroker):
    """What a client says of itself is stored with its message."""

    def stored(self, record: LogRecord) -> LogRecord:
        return replace(record, sys_flag=record.sys_flag | KNOWS)


class PeerGetsNoProperties(GoodLogicalBroker):
    """What is handed on has lost its tags and keys."""

    def handed_on(self, header: Fields, queue: int) -> Fields:
        found = super().handed_on(header, queue)
        return {**found, ("i" if "i" in found else "properties"): ""}


# Queues that begin behind what was in them before


class NextForgetsPlace(GoodLogicalBroker):
    """It counts the messages of a segment from the beginning of its message queue on."""

    def next_start(self, topic: str, index: int) -> int:
        known = self.disk.of_index(topic, index)
        return super().next_start(topic, index) + (known[-1].place if known else 0)

    def decided(self, segment: Held, target: Fields) -> Fields:
        found = super().decided(segment, target)
        return {**found, "logicalQueueDelta": found["logicalQueueDelta"] + segment.place}


class EndsOneShort(GoodLogicalBroker):
    """A segment in a queue that was taken again is sealed before its last message."""

    def end(self, segment: Held) -> None:
        was_written = segment.state == "Normal"
        super().end(segment)
        if was_written and segment.place and segment.end > segment.place:
            segment.end -= 1


class ForgetsPlaces(GoodLogicalBroker):
    def survives(self) -> None:
        for each in self.disk.held.values():
            each.place = 0


class RegistersNoPlaces(GoodLogicalBroker):
    def wrapper(self) -> Fields:
        return said_with(super().wrapper(), {"offsetDelta": 0})


class ReusesOnce(GoodLogicalBroker):
    """A message queue serves a second time, and never a third."""

    def may_reuse(self, segment: Held | None) -> bool:
        return super().may_reuse(segment) and not (segment is not None and segment.place)


class MakesNoTopic(GoodLogicalBroker):
    """A target is made where the topic is alone."""

    async def create(self, header: Fields, body: bytes) -> Told:
        self.topic_of(str(self.body_of(body).get("topic")))
        return await super().create(header, body)


# Numbers, and what is kept


class CutsStarts(GoodLogicalBroker):
    """Where a segment begins has 31 bits."""

    def begin(self, segment: Held, start: int, source: Mapping[str, Any]) -> None:
        super().begin(segment, start % INT31 if start >= INT31 else start, source)


class ForgetsWhatIsGone(GoodLogicalBroker):
    def survives(self) -> None:
        for each in self.disk.enabled.values():
            each["gone"] = {}


class RegistersOneIndex(GoodLogicalBroker):
    """Every segment says that it is one of logical queue 0."""

    def wrapper(self) -> Fields:
        return said_with(super().wrapper(), {"logicalQueueIndex": 0})


class RegistersOtherAddresses(GoodLogicalBroker):
    def wrapper(self) -> Fields:
        return said_with(super().wrapper(), {"brokerAddr": "10.1.1.1:1"})


def said_with(wrapper: Fields, changed: Fields) -> Fields:
    """A registration whose segments say something else."""
    topics = {
        topic: {index: [{**each, **changed} for each in listed] for index, listed in queues.items()}
        for topic, queues in wrapper["logicalQueuesInfoMap"].items()
    }
    return {**wrapper, "logicalQueuesInfoMap": topics}
