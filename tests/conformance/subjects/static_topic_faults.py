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
            return {**known, "epoch": 2**62, "totalQueues": 1, "hostedQueues": {}}


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


CAUGHT: Mapping[str, tuple[type[GoodStaticBroker], ...]] = {
    "refused/ST-UPDATE-1/1": (TakesOlder,),
    "refused/ST-UPDATE-3/1": (ChangesLeader,),
    "refused/ST-UPDATE-3/2": (ChangesLeader, LooksAtBrokersAlone),
    "refused/ST-UPDATE-2/1": (ChangesItems,),
    "refused/ST-UPDATE-2/2": (ChangesItems,),
    "refused/ST-UPDATE-2/3": (ChangesItems,),
    "refused/ST-UPDATE-5/1": (TakesForeign,),
    "refused/ST-MAPPING-2/1": (TakesAnyOrder,),
    "refused/ST-MAPPING-2/2": (TakesAnyOrder,),
    "refused/ST-MAPPING-2/3": (TakesAnyOrder,),
    "refused/ST-MAPPING-2/4": (TakesAnyOrder,),
    "refused/ST-MAPPING-2/6": (TakesAnyOrder,),
    "refused/ST-MAPPING-3/1": (ServesTwice,),
    "refused/ST-MAPPING-3/2": (ServesTwice,),
    "mapping/ST-UPDATE-2/1": (NeverDecides,),
    "mapping/ST-UPDATE-2/2": (NeverDecides,),
    "mapping/ST-UPDATE-4/1": (ForgetsUnnamed,),
    "mapping/ST-UPDATE-4/2": (ForgetsUnnamed,),
    "mapping/ST-UPDATE-4/3": (ForgetsUnnamed,),
    "mapping/ST-MAPPING-4/3": (KeepsOwnItemsAlone,),
    "mapping/ST-MAPPING-5/1": (ForgetsUnnamed,),
    "mapping/ST-MAPPING-5/2": (DeletesWhatIsPlain,),
    "mapping/ST-DELETE-1/1": (KeepsDeletedMappings,),
    "registers/ST-ROUTE-1/3": (RegistersAllItems,),
    "registers/ST-ROUTE-1/4": (RegistersDecidedAlone,),
    "registers/ST-ROUTE-1/5": (ForgetsMappings,),
    "restart/ST-MAPPING-4/1": (ForgetsMappings, ForgetsEpochs),
    "restart/ST-UPDATE-1/1": (ForgetsEpochs,),
    "restart/ST-OFFSET-1/1": (ForgetsMessages, ForgetsMappings),
    "restart/ST-LEADER-1/1": (ForgetsMappings,),
    "restart/ST-LEADER-2/1": (ForgetsMappings,),
    "offsets/ST-OFFSET-1/2": (StoresByIndex,),
    "offsets/ST-OFFSET-1/3": (TellsPhysical,),
    "offsets/ST-OFFSET-1/4": (TellsPhysical,),
    "offsets/ST-OFFSET-1/6": (TellsPhysical,),
    "offsets/ST-OFFSET-1/9": (TellsPhysical,),
    "offsets/ST-OFFSET-1/10": (TellsPhysical,),
    "borders/ST-OFFSET-1/3": (StaysAtBorders,),
    "borders/ST-OFFSET-1/4": (StaysAtBorders,),
    "borders/ST-OFFSET-1/5": (StaysAtBorders,),
    "borders/ST-OFFSET-1/6": (OffByOne, LooksFromTheFront),
    "borders/ST-OFFSET-1/7": (LooksFromTheFront, StoresByIndex, TellsPhysical),
    "borders/ST-OFFSET-1/9": (StaysAtBorders,),
    "borders/ST-LEADER-2/1": (CrossesOpenBorders,),
    "leader/ST-LEADER-1/1": (LeadsEverything, SendsUnknownToTheFirst),
    "leader/ST-LEADER-1/2": (SendsUnknownToTheFirst,),
    "leader/ST-LEADER-1/3": (SendsUnknownToTheFirst,),
    "leader/ST-LEADER-1/4": (LeadsEverything,),
    "leader/ST-LEADER-1/5": (LeadsEverything,),
    "leader/ST-LEADER-1/6": (LeadsEverything,),
    "leader/ST-LEADER-1/7": (LeadsEverything,),
    "leader/ST-LEADER-1/8": (LeadsEverything,),
    "leader/ST-LEADER-1/9": (LeadsEverything,),
    "leader/ST-LEADER-2/1": (CountsOpenStarts,),
    "leader/ST-LEADER-2/3": (CrossesOpenBorders,),
    "forward/ST-LEADER-4/2": (HandsOnLogical, HandsOnIndexes, HandsOnFlags),
    "forward/ST-LEADER-4/4": (StaysAtBorders,),
    "forward/ST-LEADER-4/6": (HandsOnOffsets, HandsOnIndexes),
    "forward/ST-LEADER-4/7": (SaysNothingIsThere,),
    "forward/ST-LEADER-4/8": (SaysNothingIsThere,),
    "forward/ST-LEADER-4/10": (LooksFromTheFront,),
    "forward/ST-OFFSET-1/1": (HandsOnOffsets,),
    "hostile/ST-LEADER-4/1": (SaysNothingIsThere,),
    "hostile/ST-LEADER-4/2": (SaysNothingIsThere,),
    "offsets/ST-OFFSET-1/7": (TellsPhysical,),
    "offsets/ST-OFFSET-1/8": (TellsPhysical,),
    "offsets/ST-OFFSET-1/12": (TellsPhysical,),
    "leader/ST-LEADER-1/11": (TellsPhysical,),
    "leader/ST-LEADER-2/2": (TellsPhysical,),
    "forward/ST-OFFSET-1/2": (TellsPhysical,),
    "forward/ST-LEADER-2/1": (HandsOnIndexes, HandsOnLogical),
    "forward/ST-LEADER-2/2": (HandsOnIndexes, CrossesOpenBorders),
    "forward/ST-LEADER-4/1": (HandsOnLogical, HandsOnIndexes),
    "forward/ST-LEADER-4/3": (StaysAtBorders,),
    "forward/ST-LEADER-4/5": (HandsOnLogical,),
    "forward/ST-LEADER-4/9": (HandsOnLogical, HandsOnIndexes),
    "physical/ST-LEADER-3/7": (NeverPhysical,),
    "consumers/ST-OFFSET-1/1": (TellsPhysical,),
    "consumers/ST-OFFSET-1/3": (LooksFromTheBack,),
    "borders/ST-OFFSET-1/8": (TellsPhysical,),
    "mapping/ST-MAPPING-1/2": (TellsMappingsAlways,),
    "mapping/ST-UPDATE-1/1": (KnowsNoForce,),
    "mapping/ST-UPDATE-3/1": (TellsPhysical,),
    "refused/ST-MAPPING-1/1": (LooksAtNothing,),
    "refused/ST-MAPPING-1/2": (LooksAtNothing,),
    "refused/ST-MAPPING-2/5": (TakesAnyOrder,),
    "registers/ST-ROUTE-1/1": (RegistersIndexes,),
    "registers/ST-ROUTE-1/6": (RegistersOnce,),
    "registers/ST-ROUTE-1/7": (ForgetsUnnamed,),
    "hostile/ST-MAPPING-1/8": (LooksAtNothing,),
    "hostile/ST-MAPPING-1/9": (LooksAtNothing,),
    **{f"hostile/ST-MAPPING-1/{number}": (GuessesMappings,) for number in range(1, 8)},
    "hostile/ST-MAPPING-2/1": (TakesAnyOrder,),
    "hostile/ST-MAPPING-2/2": (TakesAnyOrder,),
    "consumers/ST-OFFSET-1/2": (StoresByIndex,),
    "consumers/ST-OFFSET-1/4": (ReadsOldestFirst,),
    "consumers/ST-OFFSET-1/5": (ReadsZero,),
    "consumers/ST-OFFSET-1/6": (KeepsCommitsOfPulls,),
    "consumers/ST-LEADER-4/1": (HandsOnLogical, HandsOnIndexes),
    "consumers/ST-LEADER-4/2": (ReadsOwnAlone, HandsOnLogical),
    "consumers/ST-LEADER-4/3": (ReadsZero,),
    "consumers/ST-LEADER-4/4": (ReadsOldestFirst,),
    "consumers/ST-LEADER-4/5": (SaysNothingIsThere,),
    "physical/ST-LEADER-3/1": (NeverPhysical,),
    "physical/ST-LEADER-3/2": (NeverPhysical,),
    "physical/ST-LEADER-3/3": (NeverPhysical,),
    "physical/ST-LEADER-3/4": (NeverPhysical,),
    "physical/ST-LEADER-3/5": (NeverPhysical,),
    "physical/ST-LEADER-3/6": (NeverPhysical,),
    "physical/ST-LEADER-3/11": (NeverPhysical,),
    "physical/ST-LEADER-3/8": (NeverPhysical,),
    "physical/ST-LEADER-3/9": (OldIsLogical,),
    "physical/ST-LEADER-3/10": (OldIsLogical,),
}
"""The case that names a fault, and who has it."""
