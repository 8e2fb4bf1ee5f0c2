"""Brokers that serve static topics wrongly where only the messages themselves, great numbers, many items or
what is kept over a restart show it."""

from __future__ import annotations

from dataclasses import replace

from tests.conformance.subjects.static_topic import GoodStaticBroker
from tests.conformance.subjects.static_topic_shell import Fields, Item, Items
from tests.conformance.subjects.stored import written

INT31 = 2**31
FEW = 3


class ServesNoMessages(GoodStaticBroker):
    """Where who reads is to go on is right, and there is nothing to read."""

    def given(self, place: tuple[str, int], begin: int, end: int) -> bytes:  # noqa: ARG002
        return b""


class ServesGarbage(GoodStaticBroker):
    def given(self, place: tuple[str, int], begin: int, end: int) -> bytes:  # noqa: ARG002
        return b"log"


class TurnsABit(GoodStaticBroker):
    """A body is not what was sent, and its checksum is of what was."""

    def given(self, place: tuple[str, int], begin: int, end: int) -> bytes:
        data = bytearray(super().given(place, begin, end))
        data[data.find(b"message")] ^= 1
        return bytes(data)


class ServesFromTheStart(GoodStaticBroker):
    """Whatever is asked for, it is the oldest that is given."""

    def given(self, place: tuple[str, int], begin: int, end: int) -> bytes:
        return super().given(place, 0, end - begin)


class NamesAnotherQueue(GoodStaticBroker):
    """What is read says that it lies in the next physical queue."""

    def given(self, place: tuple[str, int], begin: int, end: int) -> bytes:
        found = self.disk.log.between(place, begin, end)
        return written([replace(each, queue_id=each.queue_id + 1) for each in found])


class DropsWhatIsHandedOver(GoodStaticBroker):
    """Of what another broker gives of an older item the offsets alone are told."""

    def handed_over(self, body: bytes) -> bytes:  # noqa: ARG002
        return b""


class CutsOffsets(GoodStaticBroker):
    """Offsets that are told have 31 bits."""

    def logical(self, item: Item, physical: int) -> int:
        found = super().logical(item, physical)
        return found if found < INT31 else found - 2 * INT31


class KeepsFewItems(GoodStaticBroker):
    """Of a queue of many items it forgets the oldest."""

    def decided(self, items: Items) -> Items:
        return super().decided(items)[-FEW:]


class ServesFewQueues(GoodStaticBroker):
    """Queues with greater numbers are nobody's."""

    def led_items(self, topic: str, index: int) -> Items:
        return super().led_items(topic, index) if index < FEW else []


class ForgetsPositions(GoodStaticBroker):
    def survives(self) -> None:
        self.disk.read.clear()


class CountsQueuesAnew(GoodStaticBroker):
    """How many queues there are is read off those that it has, when it is started again."""

    def survives(self) -> None:
        for mapping in self.disk.mappings.values():
            mapping["totalQueues"] = max((int(each) + 1 for each in mapping["hostedQueues"]), default=1)


class DropsCarriedCommits(GoodStaticBroker):
    """The commit of a pull that is handed on is lost."""

    async def carried(self, item: Item, header: Fields) -> None:
        if item["bname"] == self.name:
            await super().carried(item, header)
