"""A broker that serves static topics, in few lines.

Every choice is a small method of `GoodStaticBroker`, so that a fault is one that is overridden.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from replispec.conformance.rocketmq.names import VOCABULARY
from replispec.runtime.primitives import jsons
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.framing import decode_command
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.store import LogRecord
from tests.conformance.subjects.asking import RELEASE
from tests.conformance.subjects.static_topic_shell import (
    Fields,
    Handlers,
    Item,
    Items,
    Refused,
    StaticBrokerShell,
    Told,
    shaped,
)
from tests.conformance.subjects.stored import records_of, written

LOGICAL_SINCE = VOCABULARY.release_number((5, 0, 0))
WAITS, COMMITS = 2, 1
_PULLED = ("nextBeginOffset", "minOffset", "maxOffset")


class GoodStaticBroker(StaticBrokerShell):
    """A broker that does it right, while its process lives."""

    # What a fault overrides: mappings

    def refusal(self, old: Fields | None, new: Fields, topic: str) -> str:
        """Why a mapping is refused whatever is forced; empty when it is not."""
        if not self.is_credible(new["epoch"]):
            return "it is of an epoch that no clock will show"
        if self.is_foreign(new) or new["topic"] != topic or new["scope"] != "__global__":
            return "it is not of this broker and topic"
        queues = {**(old or {}).get("hostedQueues", {}), **new["hostedQueues"]}
        if any(not 0 <= int(index) < new["totalQueues"] for index in new["hostedQueues"]):
            return "a logical queue that there is not"
        if any(self.is_out_of_order(items) for items in queues.values()):
            return "items are out of order"
        return "a queue serves twice" if self.serves_twice(queues) else ""

    def is_credible(self, epoch: int) -> bool:
        """Whether a clock may have shown it."""
        return epoch < 1_800_000_000_000

    def is_foreign(self, new: Fields) -> bool:
        """Whether a mapping is for another broker."""
        return bool(new["bname"] != self.name)

    def is_out_of_order(self, items: Items) -> bool:
        """Whether generations or starts do not grow along the items."""
        for at, item in enumerate(items):
            later = items[at + 1] if at + 1 < len(items) else None
            end = item["endOffset"]
            if item["gen"] < 0 or item["queueId"] < 0 or -1 < end < item["startOffset"]:
                return True
            if later is not None and (item["gen"] >= later["gen"] or item["logicOffset"] < 0):
                return True
            if later is not None and 0 <= later["logicOffset"] <= item["logicOffset"] + max(end, 0):
                return True
        return False

    def serves_twice(self, queues: Mapping[str, Items]) -> bool:
        """Whether a physical queue is that of two items."""
        taken = [(item["bname"], item["queueId"]) for items in queues.values() for item in items]
        return len(set(taken)) < len(taken)

    def is_older(self, old: Fields, new: Fields) -> bool:
        """Whether a mapping is of an older epoch than the one that is there."""
        return bool(new["epoch"] < old["epoch"])

    def changes_leader(self, old: Items, new: Items) -> bool:
        """Whether a mapping of the same epoch has another leader."""
        names = ("bname", "gen", "queueId")
        return any(old[-1][name] != new[-1][name] for name in names)

    def changes_item(self, old: Items, new: Items) -> bool:
        """Whether an item says something else than it did."""
        by_gen = {item["gen"]: item for item in old}
        pairs = [(by_gen[item["gen"]], item) for item in new if item["gen"] in by_gen]
        return any(
            was["bname"] != item["bname"]
            or was["queueId"] != item["queueId"]
            or was["logicOffset"] not in (-1, item["logicOffset"])
            for was, item in pairs
        )

    def kept(self, old: Fields, new: Fields) -> Fields:
        """The logical queues once a mapping is taken."""
        return {**old["hostedQueues"], **new["hostedQueues"]}

    def led(self, detail: Fields) -> dict[str, int]:
        """Which logical queues it says that it leads."""
        queues = detail["hostedQueues"].items()
        return {index: items[-1]["queueId"] for index, items in queues if self.leads(items)}

    # What a fault overrides: offsets

    def leads(self, items: Items) -> bool:
        """Whether it leads a logical queue."""
        return bool(items) and items[-1]["bname"] == self.name

    def logical(self, item: Item, physical: int) -> int:
        """A physical offset of an item as one of the logical queue."""
        start: int = item["logicOffset"]
        return -1 if start < 0 else start + max(physical, 0)

    def physical(self, item: Item, logical: int) -> int:
        """The reverse."""
        return int(logical - item["logicOffset"])

    def decided(self, items: Items) -> Items:
        """The items that anything but a send is about."""
        return [item for item in items if item["logicOffset"] >= 0]

    def item_of(self, items: Items, offset: int) -> Item:
        """In which item an offset lies."""
        known = self.decided(items)
        return next((item for item in reversed(known) if offset >= item["logicOffset"]), known[0])

    def queue_of(self, item: Item, index: int) -> int:  # noqa: ARG002
        """The physical queue of an item."""
        return int(item["queueId"])

    def is_physical(self, header: Fields, version: int) -> bool:
        """Whether a request means physical queues."""
        old = version < LOGICAL_SINCE and not {"bname", "n"} & header.keys()
        return header.get("lo") == "false" or old

    def next_item(self, items: Items, item: Item) -> Item | None:
        """The item behind one that was read to its end."""
        known = self.decided(items)
        at = known.index(item) + 1
        return known[at] if at < len(known) else None

    def commit_of(self, item: Item, offset: int) -> int:
        """What is kept of the commit of a pull."""
        return self.physical(item, offset)

    def flags_of(self, flags: int) -> int:
        """The flags of a pull that is handed on."""
        return flags & ~(WAITS | COMMITS)

    def handed_on(self, item: Item, header: Fields) -> Fields:
        """What is the same in all that is handed on."""
        return {**header, "queueId": item["queueId"], "lo": "false", "bname": item["bname"]}

    async def not_led(self, command: str, header: Fields, items: Items, body: bytes) -> Told:  # noqa: ARG002
        """What is asked of a queue that it does not lead."""
        raise Refused("NOT_LEADER_FOR_QUEUE")

    def when_never_read(self) -> Told:
        """A group has read none of the items."""
        return "QUERY_NOT_FOUND", {}, b""

    # What administrators ask

    async def set_mapping(self, header: Fields, body: bytes) -> Told:
        """513."""
        topic = header["topic"]
        if not topic.isalnum() or topic == "TBW102":
            raise Refused("INVALID_PARAMETER")
        new = self.read(topic, body)
        old, forced = self.disk.mappings.get(topic), header.get("force") == "true"
        refusal = self.refusal(old, new, topic)
        if old is not None and not forced:
            queues = [
                (old["hostedQueues"][index], items)
                for index, items in new["hostedQueues"].items()
                if index in old["hostedQueues"]
            ]
            same = old["epoch"] == new["epoch"] and any(self.changes_leader(*pair) for pair in queues)
            changed = any(self.changes_item(*pair) for pair in queues)
            refusal = refusal or ("refused" if self.is_older(old, new) or same or changed else "")
        if refusal:
            raise Refused("SYSTEM_ERROR")
        new["hostedQueues"] = self.kept(old, new) if old is not None else new["hostedQueues"]
        self.disk.mappings[topic] = new
        self.disk.topics[topic] = {
            "topicName": topic,
            "perm": 6,
            **{f"{name}QueueNums": int(header[f"{name}QueueNums"]) for name in ("read", "write")},
        }
        self.disk.version += 1
        self.nursery.start_soon(self.register)
        return "SUCCESS", {}, b""

    def read(self, topic: str, body: bytes) -> Fields:  # noqa: ARG002
        """The mapping that a body is. Raises Refused."""
        try:
            return shaped(jsons.loads(body))
        except (RemoteProtocolError, KeyError, TypeError, ValueError, AttributeError):
            raise Refused("INVALID_PARAMETER") from None

    async def topic(self, header: Fields, _: bytes) -> Told:
        """351."""
        found = self.disk.topics.get(header["topic"])
        if found is None:
            raise Refused("TOPIC_NOT_EXIST")
        mapping = self.disk.mappings.get(header["topic"]) if header.get("lo") == "true" else None
        told = {**found, "mappingDetail": mapping} if mapping else found
        return "SUCCESS", {}, jsons.dumps(told)

    async def ends(self, header: Fields, _: bytes) -> Told:
        """202."""
        topic = header["topic"]
        count = self.disk.topics[topic]["readQueueNums"]
        offsets = ",".join(
            f'{{"brokerName":"{self.name}","queueId":{queue},"topic":"{topic}"}}:'
            f'{{"lastUpdateTimestamp":0,"maxOffset":{self.disk.ends[topic, queue]},"minOffset":0}}'
            for queue in range(count)
        )
        return "SUCCESS", {}, f'{{"offsetTable":{{{offsets}}},"topicPutTps":0.0}}'.encode()

    async def delete(self, header: Fields, _: bytes) -> Told:
        """215."""
        self.disk.topics.pop(header["topic"], None)
        self.disk.mappings.pop(header["topic"], None)
        return "SUCCESS", {}, b""

    async def plain_topic(self, *_: object) -> Told:
        """17."""
        raise Refused("INVALID_PARAMETER")

    async def yes(self, *_: object) -> Told:
        """What is granted to whoever asks."""
        return "SUCCESS", {}, b""

    # What clients ask

    async def send(
        self,
        header: Fields,
        body: bytes,
        version: int = LOGICAL_SINCE,
        command: str = "SEND_MESSAGE_V2",
    ) -> Told:
        """10, 310 and 320."""
        topic, index = header.get("b") or header["topic"], int(header.get("e") or header["queueId"])
        items = await self._items(topic, index, header, version)
        if items is None:
            moved = self.moved_from(topic, index, header, version)
            if moved is not None:
                return await self.sent_before(command, header, moved, body)
        if items is not None and not self.leads(items):
            return await self.not_led(command, header, items, body)
        queue = index if items is None else self.queue_of(items[-1], index)
        at = self.disk.ends[topic, queue]
        self.disk.ends[topic, queue] += self.messages(command, body)
        self.keeps((topic, queue), at, records_of(command, header, body))
        offset = at if items is None else self.logical(items[-1], at)
        return "SUCCESS", {"msgId": "0" * 32, "queueId": index, "queueOffset": offset}, b""

    def messages(self, command: str, body: bytes) -> int:
        """How many messages are sent, each with its size in front."""
        return len(records_of(command, {}, body))

    def keeps(self, place: tuple[str, int], at: int, records: list[LogRecord]) -> None:
        """Messages are in a physical queue from an offset on."""
        for offset, each in enumerate(records, at):
            self.disk.log.keep(place, offset, each)

    def given(self, place: tuple[str, int], begin: int, end: int) -> bytes:
        """What a pull is given of a physical queue."""
        return written(self.disk.log.between(place, begin, end))

    def moved_from(self, topic: str, queue: int, header: Fields, version: int) -> Items | None:
        """The items of the logical queue that left a physical one, for who cannot know it."""
        if topic not in self.disk.mappings or header.get("lo") == "false" or version >= LOGICAL_SINCE:
            return None
        queues: list[Items] = list(self.disk.mappings[topic]["hostedQueues"].values())
        led = (items[-1]["queueId"] for items in queues if items and self.leads(items))
        if queue in led:
            return None
        own = (self.name, queue)
        left = (items for items in queues if own in [(each["bname"], each["queueId"]) for each in items])
        return next(left, None)

    async def sent_before(self, command: str, header: Fields, items: Items, body: bytes) -> Told:
        """What a client of before static topics sends to a physical queue that was left."""
        named = header.get("e") or header["queueId"]
        if self.leads(items):
            again = {**header, ("e" if "e" in header else "queueId"): items[-1]["queueId"]}
            code, told, found = await self.send(again, body, 0, command)
        else:
            answer = await self.asked(command, header | {"bname": items[-1]["bname"]}, body)
            if answer is None or answer.code:
                raise Refused("SYSTEM_ERROR")
            code, told, found = "SUCCESS", answer.header, b""
        return code, {**told, "queueId": named}, found

    async def pull(self, header: Fields, _: bytes, version: int = LOGICAL_SINCE) -> Told:
        """11 and 361."""
        topic, index = header["topic"], int(header["queueId"])
        offset, flags = int(header["queueOffset"]), int(header["sysFlag"])
        items = await self._items(topic, index, header, version)
        if items is None:
            return self._found(topic, index, offset)
        if not self.leads(items):
            return await self.not_led("PULL_MESSAGE", header, items, b"")
        item = self.item_of(items, offset)
        at = self.physical(item, offset)
        if flags & COMMITS and int(header["commitOffset"]) > 0:
            await self.carried(self.item_of(items, int(header["commitOffset"])), header)
        if item["bname"] == self.name:
            queue = self.queue_of(item, index)
            code, told, body = self._found(topic, queue, at)
        else:
            asked = self.handed_on(item, header) | {"queueOffset": at, "sysFlag": self.flags_of(flags)}
            code, told, body = await self._asked("PULL_MESSAGE", asked, _PULLED)
        return self.told_of_pull(items, item, at, (code, told, body))

    async def carried(self, item: Item, header: Fields) -> None:
        """What a pull says of how far its group has read is kept where that item lies."""
        offset = self.commit_of(item, int(header["commitOffset"]))
        if item["bname"] != self.name:
            said = {name: header[name] for name in ("consumerGroup", "topic")} | {"commitOffset": offset}
            await self._asked("UPDATE_CONSUMER_OFFSET", self.handed_on(item, said))
            return
        place = header["consumerGroup"], header["topic"], self.queue_of(item, int(header["queueId"]))
        self.disk.read[place] = offset

    def handed_over(self, body: bytes) -> bytes:
        """What is told of the messages that another broker gave."""
        return body

    def told_of_pull(self, items: Items, item: Item, at: int, found: Told) -> Told:
        """What was found in an item, in offsets of the logical queue."""
        code, told, body = found
        following, low, top = (int(str(told[name])) for name in _PULLED)
        further = self.next_item(items, item)
        if code != "SUCCESS" and at >= top and further is not None:
            code, item, following, low, top = "PULL_RETRY_IMMEDIATELY", further, 0, 0, 0
        elif code != "SUCCESS" and at < low:
            code = "PULL_OFFSET_MOVED" if item is items[0] else "PULL_RETRY_IMMEDIATELY"
        header = {
            "suggestWhichBrokerId": 0,
            "nextBeginOffset": self.logical(item, following),
            "minOffset": self.logical(item, low),
            "maxOffset": max(self.logical(item, top), items[-1]["logicOffset"]),
            "offsetDelta": self.logical(item, 0),
        }
        return code, header, body

    async def first(self, header: Fields, _: bytes, version: int = LOGICAL_SINCE) -> Told:
        """31."""
        topic, index = header["topic"], int(header["queueId"])
        items = await self._items(topic, index, header, version)
        if items is None:
            return _offset(0)
        if not self.leads(items):
            return await self.not_led("GET_MIN_OFFSET", header, items, b"")
        item = self.decided(items)[0]
        return _offset(self.logical(item, await self._elsewhere("GET_MIN_OFFSET", item, header, 0)))

    async def last(self, header: Fields, _: bytes, version: int = LOGICAL_SINCE) -> Told:
        """30."""
        topic, index = header["topic"], int(header["queueId"])
        items = await self._items(topic, index, header, version)
        if items is None:
            return _offset(self.disk.ends[topic, index])
        if not self.leads(items):
            return await self.not_led("GET_MAX_OFFSET", header, items, b"")
        item = self.decided(items)[-1]
        own = self.disk.ends[topic, self.queue_of(item, index)]
        return _offset(self.logical(item, await self._elsewhere("GET_MAX_OFFSET", item, header, own)))

    async def search(self, header: Fields, _: bytes, version: int = LOGICAL_SINCE) -> Told:
        """29, as if everything was stored after the time that is asked for."""
        topic, index = header["topic"], int(header["queueId"])
        items = await self._items(topic, index, header, version)
        if items is None:
            return _offset(0)
        if not self.leads(items):
            return await self.not_led("SEARCH_OFFSET_BY_TIMESTAMP", header, items, b"")
        for item in self.decided(items):
            own = 0 if self.disk.ends[topic, self.queue_of(item, index)] else -1
            found = await self._elsewhere("SEARCH_OFFSET_BY_TIMESTAMP", item, header, own)
            if found >= 0:
                return _offset(self.logical(item, found))
        return _offset(self.logical(self.decided(items)[-1], 0))

    async def commit(self, header: Fields, _: bytes, version: int = LOGICAL_SINCE) -> Told:
        """15."""
        topic, index, offset = header["topic"], int(header["queueId"]), int(header["commitOffset"])
        items = await self._items(topic, index, header, version)
        if items is not None and not self.leads(items):
            return await self.not_led("UPDATE_CONSUMER_OFFSET", header, items, b"")
        if items is not None:
            item = self.item_of(items, offset)
            index, offset = self.queue_of(item, index), self.physical(item, offset)
            if item["bname"] != self.name:
                asked = self.handed_on(item, header) | {"commitOffset": offset}
                return await self._asked("UPDATE_CONSUMER_OFFSET", asked)
        self.disk.read[header["consumerGroup"], topic, index] = offset
        return "SUCCESS", {}, b""

    async def how_far(self, header: Fields, _: bytes, version: int = LOGICAL_SINCE) -> Told:
        """14."""
        topic, index, group = header["topic"], int(header["queueId"]), header["consumerGroup"]
        items = await self._items(topic, index, header, version)
        if items is None:
            read = self.disk.read.get((group, topic, index))
            return _offset(read) if read is not None else ("QUERY_NOT_FOUND", {}, b"")
        if not self.leads(items):
            return await self.not_led("QUERY_CONSUMER_OFFSET", header, items, b"")
        for item in self.looked_at(items):
            if item["bname"] == self.name:
                read = self.disk.read.get((group, topic, self.queue_of(item, index)))
            else:
                asked = self.handed_on(item, header) | {"setZeroIfNotFound": "false"}
                code, told, _body = await self._asked("QUERY_CONSUMER_OFFSET", asked)
                read = int(str(told["offset"])) if code == "SUCCESS" else None
            if read is not None:
                return _offset(self.logical(item, read))
        return self.when_never_read()

    def looked_at(self, items: Items) -> Items:
        """In which order items are looked at for what a group has read."""
        return [*reversed(self.decided(items))]

    # What all of them need

    async def _items(self, topic: str, index: int, header: Fields, version: int) -> Items | None:
        """The items of a logical queue; None where a request means a physical one."""
        if topic not in self.disk.topics:
            raise Refused("TOPIC_NOT_EXIST")
        if topic not in self.disk.mappings or self.is_physical(header, version):
            return None
        return self.led_items(topic, index)

    def led_items(self, topic: str, index: int) -> Items:
        """The items of a logical queue."""
        found: Items = self.disk.mappings[topic]["hostedQueues"].get(str(index), [])
        return found

    def _found(self, topic: str, queue: int, offset: int) -> Told:
        """What lies in a physical queue from an offset on."""
        end = self.disk.ends[topic, queue]
        code = "SUCCESS" if offset < end else "PULL_NOT_FOUND" if offset == end else "PULL_OFFSET_MOVED"
        body = self.given((topic, queue), offset, end)
        return code, {"suggestWhichBrokerId": 0, **dict(zip(_PULLED, (end, 0, end), strict=True))}, body

    async def _elsewhere(self, command: str, item: Item, header: Fields, own: int) -> int:
        """An offset of an item, its own or told by the broker of the item."""
        if item["bname"] == self.name:
            return own
        _, told, _ = await self._asked(command, self.handed_on(item, header), ("offset",))
        return int(str(told["offset"]))

    async def _asked(self, command: str, header: Fields, numbers: Sequence[str] = ()) -> Told:
        """What the broker of an item answers. Raises Refused."""
        answer = await self.asked(command, header)
        code = "" if answer is None else VOCABULARY.response_name(answer.code, RELEASE)
        if answer is None or (code not in ("SUCCESS", "QUERY_NOT_FOUND") and not code.startswith("PULL_")):
            raise Refused("SYSTEM_ERROR")
        if any(not str(answer.header.get(name, "")).isdecimal() for name in numbers):
            raise Refused("SYSTEM_ERROR")
        return code, answer.header, self.handed_over(decode_command(answer.data).body)

    def handlers(self, version: int) -> Handlers:
        by_client: dict[int, Callable[..., Awaitable[Told]]] = {
            RequestCode.SEND_MESSAGE: self.send,
            RequestCode.SEND_MESSAGE_V2: self.send,
            RequestCode.SEND_BATCH_MESSAGE: partial(self.send, command="SEND_BATCH_MESSAGE"),
            RequestCode.PULL_MESSAGE: self.pull,
            RequestCode.LITE_PULL_MESSAGE: self.pull,
            RequestCode.GET_MIN_OFFSET: self.first,
            RequestCode.GET_MAX_OFFSET: self.last,
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: self.search,
            RequestCode.UPDATE_CONSUMER_OFFSET: self.commit,
            RequestCode.QUERY_CONSUMER_OFFSET: self.how_far,
        }
        return {
            **{code: partial(handler, version=version) for code, handler in by_client.items()},
            RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC: self.set_mapping,
            RequestCode.GET_TOPIC_CONFIG: self.topic,
            RequestCode.GET_TOPIC_STATS_INFO: self.ends,
            RequestCode.DELETE_TOPIC_IN_BROKER: self.delete,
            RequestCode.UPDATE_AND_CREATE_TOPIC: self.plain_topic,
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: self.yes,
        }


def _offset(offset: int) -> Told:
    return "SUCCESS", {"offset": offset}, b""
