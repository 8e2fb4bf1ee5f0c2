"""Brokers that serve static topics wrongly, and those that do otherwise what the clauses leave open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import trio

from replispec.conformance.rocketmq.names import VOCABULARY
from replispec.runtime.primitives import jsons
from tests.conformance.subjects.asking import RELEASE
from tests.conformance.subjects.static_topic import LOGICAL_SINCE, GoodStaticBroker
from tests.conformance.subjects.static_topic_shell import Fields, Item, Items, Refused, Told


class HandsOn(GoodStaticBroker):
    """What it does not lead it has answered by who leads."""

    async def not_led(self, command: str, header: Fields, items: Items, body: bytes) -> Told:
        if not items:
            raise Refused("NOT_LEADER_FOR_QUEUE")
        answer = await self.asked(command, header | {"bname": items[-1]["bname"]}, body)
        if answer is None:
            raise Refused("NOT_LEADER_FOR_QUEUE")
        told = b"" if answer.body is None else jsons.dumps(answer.body)
        return VOCABULARY.response_name(answer.code, RELEASE), answer.header, told


class RefusesLess(GoodStaticBroker):
    """It takes a mapping of its own epoch that leaves queues out, and keeps them; old clients are as new."""

    def is_physical(self, header: Fields, version: int) -> bool:
        return super().is_physical(header, max(version, LOGICAL_SINCE))

    def serves_twice(self, queues: Mapping[str, Items]) -> bool:  # noqa: ARG002
        return False


class RefusesMore(GoodStaticBroker):
    """It takes no mapping of its own epoch that leaves queues out, and no number of queues beyond reason."""

    def refusal(self, old: Fields | None, new: Fields, topic: str) -> str:
        if new["totalQueues"] > 1_000_000:
            return "too many"
        known = (old or {}).get("hostedQueues", {})
        left_out = known.keys() - new["hostedQueues"].keys()
        if old is not None and old["epoch"] == new["epoch"] and left_out:
            return "a queue is missing"
        return super().refusal(old, new, topic)


class WakesLate(GoodStaticBroker):
    """It listens before it serves: what is asked again meanwhile is answered as often as it was asked."""

    SLEEPS_S = 7.0

    async def run(self) -> None:
        self.wakes_at = trio.current_time() + self.SLEEPS_S
        await super().run()

    async def awake(self) -> None:
        await trio.sleep_until(self.wakes_at)


ALTERNATIVES = (HandsOn, RefusesLess, RefusesMore, WakesLate)


# Mappings


class TakesOlder(GoodStaticBroker):
    def is_older(self, old: Fields, new: Fields) -> bool:  # noqa: ARG002
        return False


class TakesForeign(GoodStaticBroker):
    def is_foreign(self, new: Fields) -> bool:  # noqa: ARG002
        return False


class ChangesLeader(GoodStaticBroker):
    def changes_leader(self, old: Items, new: Items) -> bool:  # noqa: ARG002
        return False


class LooksAtBrokersAlone(GoodStaticBroker):
    """Another queue of the same broker is no other leader to it."""

    def changes_leader(self, old: Items, new: Items) -> bool:
        return bool(old[-1]["bname"] != new[-1]["bname"])


class ChangesItems(GoodStaticBroker):
    def changes_item(self, old: Items, new: Items) -> bool:  # noqa: ARG002
        return False


class NeverDecides(GoodStaticBroker):
    """A start that becomes decided is a change to it."""

    def changes_item(self, old: Items, new: Items) -> bool:
        starts = {item["gen"]: item["logicOffset"] for item in old}
        return any(starts.get(item["gen"], item["logicOffset"]) != item["logicOffset"] for item in new)


class TakesAnyOrder(GoodStaticBroker):
    def is_out_of_order(self, items: Items) -> bool:  # noqa: ARG002
        return False


class ServesTwice(GoodStaticBroker):
    def serves_twice(self, queues: Mapping[str, Items]) -> bool:  # noqa: ARG002
        return False


class ForgetsUnnamed(GoodStaticBroker):
    def kept(self, old: Fields, new: Fields) -> Fields:  # noqa: ARG002
        return dict(new["hostedQueues"])


class KeepsOwnItemsAlone(GoodStaticBroker):
    def kept(self, old: Fields, new: Fields) -> Fields:
        found = super().kept(old, new)
        return {
            index: [item for item in items if item["bname"] == self.name] for index, items in found.items()
        }


class ForgetsMappings(GoodStaticBroker):
    """A mapping is in its memory alone."""

    def survives(self) -> None:
        self.disk.mappings.clear()


class ForgetsEpochs(GoodStaticBroker):
    """Of a mapping it keeps the items alone."""

    def survives(self) -> None:
        for mapping in self.disk.mappings.values():
            mapping["epoch"] = 0


class ForgetsMessages(GoodStaticBroker):
    def survives(self) -> None:
        self.disk.ends.clear()


class KeepsDeletedMappings(GoodStaticBroker):
    async def delete(self, header: Fields, _: bytes) -> Told:
        self.disk.topics.pop(header["topic"], None)
        return "SUCCESS", {}, b""


class RegistersAllItems(GoodStaticBroker):
    """It registers as led what it ever led."""

    def led(self, detail: Fields) -> dict[str, int]:
        queues = detail["hostedQueues"].items()
        own = [(index, item) for index, items in queues for item in items if item["bname"] == self.name]
        return {index: item["queueId"] for index, item in own}


class RegistersDecidedAlone(GoodStaticBroker):
    def led(self, detail: Fields) -> dict[str, int]:
        found = super().led(detail)
        return {index: queue for index, queue in found.items() if self._is_decided(detail, index)}

    def _is_decided(self, detail: Fields, index: str) -> bool:
        return bool(detail["hostedQueues"][index][-1]["logicOffset"] >= 0)


class GuessesMappings(GoodStaticBroker):
    """A body that is no mapping is one without logical queues to it."""

    def read(self, topic: str, body: bytes) -> Fields:
        try:
            return super().read(topic, body)
        except Refused:
            known = {"bname": self.name, "topic": topic, "scope": "__global__", "dirty": False}
            return {**known, "epoch": 1_799_999_999_999, "totalQueues": 1, "hostedQueues": {}}


class LooksAtNothing(GoodStaticBroker):
    """It takes a mapping of whatever topic, scope and logical queues."""

    def refusal(self, old: Fields | None, new: Fields, topic: str) -> str:  # noqa: ARG002
        self.disk.topics.setdefault(new["topic"], {"topicName": new["topic"]})
        return ""


class KnowsNoForce(GoodStaticBroker):
    async def set_mapping(self, header: Fields, body: bytes) -> Told:
        return await super().set_mapping(header | {"force": "false"}, body)


class TellsMappingsAlways(GoodStaticBroker):
    async def topic(self, header: Fields, body: bytes) -> Told:
        return await super().topic(header | {"lo": "true"}, body)


class RegistersIndexes(GoodStaticBroker):
    """It registers the index of a logical queue as its physical queue."""

    def led(self, detail: Fields) -> dict[str, int]:
        return {index: int(index) + 7 for index in super().led(detail)}


class RegistersOnce(GoodStaticBroker):
    """All that it registers has one version."""

    async def register(self) -> None:
        self.disk.version = 1
        await super().register()


class DeletesWhatIsPlain(GoodStaticBroker):
    """A change of the topic that knows of no mapping is the end of the mapping."""

    async def plain_topic(self, *_: object) -> Told:
        self.disk.mappings.clear()
        return "SUCCESS", {}, b""


# Offsets


class TellsPhysical(GoodStaticBroker):
    def logical(self, item: Item, physical: int) -> int:  # noqa: ARG002
        return physical


class StoresByIndex(GoodStaticBroker):
    """The index of a logical queue is a physical queue to it."""

    def queue_of(self, item: Item, index: int) -> int:  # noqa: ARG002
        return index


class StaysAtBorders(GoodStaticBroker):
    def next_item(self, items: Items, item: Item) -> Item | None:  # noqa: ARG002
        return None


class CrossesOpenBorders(GoodStaticBroker):
    """An open start counts as the next block."""

    def decided(self, items: Items) -> Items:
        return [{**item, "logicOffset": item["logicOffset"] % 10_001} for item in items]


class LooksFromTheFront(GoodStaticBroker):
    """An offset lies in the first item that begins below it."""

    def item_of(self, items: Items, offset: int) -> Item:  # noqa: ARG002
        return self.decided(items)[0]


class LooksFromTheBack(GoodStaticBroker):
    """An offset lies in the newest item."""

    def item_of(self, items: Items, offset: int) -> Item:  # noqa: ARG002
        return self.decided(items)[-1]


class OffByOne(GoodStaticBroker):
    """A start belongs to the item before."""

    def item_of(self, items: Items, offset: int) -> Item:
        return super().item_of(items, max(offset - 1, 0))


class CountsOpenStarts(GoodStaticBroker):
    """The offset of what it takes with an open start is told as if it began at 0."""

    def logical(self, item: Item, physical: int) -> int:
        return int(max(item["logicOffset"], 0) + max(physical, 0))


# Who leads, and who is asked


class LeadsEverything(GoodStaticBroker):
    """Whoever has an item of a queue leads it."""

    def leads(self, items: Items) -> bool:
        return any(item["bname"] == self.name for item in items)


class SendsUnknownToTheFirst(GoodStaticBroker):
    """A send to a queue that it does not lead is stored in its first."""

    async def not_led(self, command: str, header: Fields, items: Items, body: bytes) -> Told:
        if command != "SEND_MESSAGE_V2":
            return await super().not_led(command, header, items, body)
        self.disk.ends[header["b"], 0] += 1
        return "SUCCESS", {"msgId": "0" * 32, "queueId": header["e"], "queueOffset": 0}, b""


class HandsOnLogical(GoodStaticBroker):
    """What it hands on does not say that it is physical."""

    def handed_on(self, item: Item, header: Fields) -> Fields:
        found = super().handed_on(item, header)
        del found["lo"]
        return found


class HandsOnIndexes(GoodStaticBroker):
    """What it hands on names the logical queue."""

    def handed_on(self, item: Item, header: Fields) -> Fields:
        return super().handed_on(item, header) | {"queueId": header["queueId"]}


class HandsOnOffsets(GoodStaticBroker):
    """What it hands on names the logical offset."""

    def physical(self, item: Item, logical: int) -> int:
        return logical if item["bname"] != self.name else super().physical(item, logical)


class HandsOnFlags(GoodStaticBroker):
    def flags_of(self, flags: int) -> int:
        return flags


class SaysNothingIsThere(GoodStaticBroker):
    """A broker that does not answer has no messages to it."""

    async def _asked(self, command: str, header: Fields, numbers: Sequence[str] = ()) -> Told:
        try:
            return await super()._asked(command, header, numbers)
        except Refused:
            offsets = {"nextBeginOffset": 0, "minOffset": 0, "maxOffset": 0, "offset": 0}
            return "QUERY_NOT_FOUND" if "CONSUMER" in command else "PULL_NOT_FOUND", offsets, b""


class NeverPhysical(GoodStaticBroker):
    """It does not know `lo`."""

    def is_physical(self, header: Fields, version: int) -> bool:  # noqa: ARG002
        return False


class OldIsLogical(GoodStaticBroker):
    """A client of an old release is one of a new release to it."""

    def is_physical(self, header: Fields, version: int) -> bool:
        return super().is_physical(header, max(version, LOGICAL_SINCE))


class StoresWhereNamed(GoodStaticBroker):
    """What is sent to a physical queue that was left is stored there."""

    def moved_from(self, topic: str, queue: int, header: Fields, version: int) -> Items | None:  # noqa: ARG002
        return None


class RefusesOlderSends(GoodStaticBroker):
    def is_physical(self, header: Fields, version: int) -> bool:
        if version < LOGICAL_SINCE and "b" in header:
            raise Refused("NOT_LEADER_FOR_QUEUE")
        return super().is_physical(header, version)


class CountsBatchesAsOne(GoodStaticBroker):
    def messages(self, command: str, body: bytes) -> int:  # noqa: ARG002
        return 1


class BelievesAnyEpoch(GoodStaticBroker):
    def is_credible(self, epoch: int) -> bool:  # noqa: ARG002
        return True


# Consumers


class ReadsOldestFirst(GoodStaticBroker):
    def looked_at(self, items: Items) -> Items:
        return self.decided(items)


class ReadsOwnAlone(GoodStaticBroker):
    def looked_at(self, items: Items) -> Items:
        return [item for item in super().looked_at(items) if item["bname"] == self.name]


class KeepsCommitsOfPulls(GoodStaticBroker):
    """The commit of a pull is kept as it was said."""

    def commit_of(self, item: Item, offset: int) -> int:  # noqa: ARG002
        return offset


class ReadsZero(GoodStaticBroker):
    def when_never_read(self) -> Told:
        return "SUCCESS", {"offset": 0}, b""
