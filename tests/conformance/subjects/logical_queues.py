"""A broker that serves logical queues, in few lines: what administrators ask of it.

Every choice is a small method, so that a fault is one that is overridden. What clients ask of it is in
logical_clients.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import trio

from replispec.runtime.primitives import jsons
from replispec.runtime.primitives.errors import RemoteProtocolError
from tests.conformance.subjects.logical_disk import UNKNOWN, Held, LogicalDisk, number, place_of
from tests.conformance.subjects.static_topic_shell import Fields, Refused, StaticBrokerShell, Told

OFFSET_MAX = 2**62
DAY_MS = 86_400_000
SAID = "fromQueueRouteData", "toQueueRouteData"


class LogicalAdministration(StaticBrokerShell):
    """What becomes of segments."""

    disk: LogicalDisk
    make_disk = LogicalDisk
    registers_every_s = 10
    is_changed: trio.Event

    # What a fault overrides

    def state_at_end(self, segment: Held, end: int) -> str:
        """What a segment is once it has an end."""
        first = self.disk.first(segment.topic, segment.queue)
        return "ReadOnly" if end > max(segment.place, first) else "Expired"

    def next_start(self, topic: str, index: int) -> int:
        """Where a segment begins that follows those of its logical queue. Raises Refused where it is open."""
        known = self.disk.of_index(topic, index)
        if not known:
            return 0
        last = known[-1]
        if last.is_written or last.successor is not None or last.start < 0:
            raise Refused("SYSTEM_ERROR")
        return last.start + last.end - last.place

    def decided(self, segment: Held, target: Fields) -> Fields:
        """The target of a migration, with where it begins."""
        return (
            target
            if self.has_begun(target)
            else {**target, "logicalQueueDelta": segment.start + segment.end - segment.place}
        )

    def keeps_target(self, segment: Held, target: Fields) -> Fields:
        """Which target a segment goes on in, the first or another one that is named later."""
        return segment.successor if segment.successor is not None else self.decided(segment, target)

    def has_begun(self, target: Any) -> bool:
        """Whether a segment follows a source that was passed over: it knows already where it begins."""
        if not isinstance(target, dict):
            return False  # none that was looked at
        return target.get("state") != "WriteOnly" and target.get("logicalQueueDelta", UNKNOWN) >= 0

    def gives_way(self, segment: Held, target: Fields) -> None:
        """A source that was passed over ends where the one begins that follows. Raises Refused."""
        if segment.successor is None and self.has_begun(target):
            begins = segment.place + target["logicalQueueDelta"] - segment.start
            if begins < segment.place:
                raise Refused("SYSTEM_ERROR")
            segment.end = min(segment.end, begins)
            segment.state = self.state_at_end(segment, segment.end)

    def may_reuse(self, segment: Held | None) -> bool:
        """Whether a message queue may serve again."""
        if segment is None or segment.state != "Expired":
            return segment is None
        return self.disk.ends[segment.topic, segment.queue] > segment.place

    def rests(self, segment: Held, index: int) -> bool:
        """Whether another logical queue has to wait till clients forget which one it was: a minute, which is
        longer than any case."""
        return segment.index != index

    def reused_from(self, topic: str, queue: int) -> int:
        """From where on."""
        return self.disk.ends[topic, queue]

    def may_unmap(self, segment: Held) -> bool:
        """Whether a segment may become none."""
        written = self.disk.ends[segment.topic, segment.queue] > segment.place
        return segment.state == "Expired" or (segment.state == "WriteOnly" and not written)

    def is_other(self, segment: Held, said: Mapping[str, Any]) -> bool:
        """Whether what is said is of another life of its message queue."""
        return bool(segment.place != said["offsetDelta"])

    def begins_too_low(self, segment: Held, start: int, source: Mapping[str, Any]) -> bool:
        """Whether a target would begin below an end that is known."""
        end = source.get("offsetMax", UNKNOWN)
        known = [source["logicalQueueDelta"] + end - source["offsetDelta"]] if end > UNKNOWN else []
        own = self.disk.of_index(segment.topic, segment.index)
        known += [each.start + each.end - each.place for each in own if each.end > UNKNOWN]
        return any(start < each for each in known)

    def registered(self, topic: str) -> list[Held]:
        """The segments of a topic that it registers."""
        return self.disk.of_topic(topic)

    def shown(self, topic: str) -> Mapping[str, list[Fields]]:
        """What an administrator is told of a topic."""
        return self.said_of(self.disk.of_topic(topic))

    def hears(self, source: Fields, target: Fields) -> None:
        """Where a queue went is a hint, of which it has no need."""

    def is_older_statement(self, old: Fields, new: Fields) -> bool:
        """Whether it was said otherwise before."""
        same = [old[name] == new[name] for name in ("queues", "total")]
        return bool(new["epoch"] < old["epoch"] or (new["epoch"] == old["epoch"] and not all(same)))

    def body_of(self, body: bytes) -> Any:
        """A body that is to be an object. Raises Refused."""
        try:
            found = jsons.loads(body)
        except RemoteProtocolError:
            raise Refused("INVALID_PARAMETER") from None
        if not isinstance(found, dict):
            raise Refused("INVALID_PARAMETER")
        return found

    def checked_index(self, asked: Mapping[str, Any], name: str = "logicalQueueIndex", least: int = 0) -> int:
        """An index that can be. Raises Refused."""
        return number(asked, name, least, 1023)

    def checked_queue(self, asked: Mapping[str, Any], topic: str) -> int:
        """A message queue of a topic. Raises Refused."""
        queue = number(asked, "queueId")
        if queue >= self.disk.topics[topic]["readQueueNums"]:
            raise Refused("SYSTEM_ERROR")
        return queue

    def may_end(self, segment: Held) -> bool:
        """Whether a segment may be sealed."""
        return segment.state != "WriteOnly"

    def may_leave(self, segment: Held) -> bool:
        """Whether a logical queue may go on elsewhere behind it."""
        return segment.state != "WriteOnly"

    def may_forget(self, topic: str) -> bool:
        """Whether a topic may be forgotten."""
        return not self.disk.of_topic(topic)

    def new_queue(self, topic: str) -> int:
        """The number of one more message queue, which the topic has then."""
        queue: int = self.disk.topics.get(topic, {}).get("readQueueNums", 0)
        counts = {f"{name}QueueNums": queue + 1 for name in ("read", "write")}
        self.disk.topics[topic] = {"topicName": topic, "perm": 6, **counts}
        return queue

    def is_plain(self, topic: str) -> bool:
        """Whether a topic has message queues, and none is a segment."""
        known = self.disk.topics.get(topic)
        return known is not None and known["readQueueNums"] > 0 and not self.disk.of_topic(topic)

    def checked_source(self, source: Any, topic: str, target: Any) -> Held:
        """The segment that is to end, with what may follow it. Raises Refused."""
        name, broker, queue, index = place_of(source, topic)
        if broker != self.name:
            raise Refused("SYSTEM_ERROR")
        self.checked_target(target, topic, (broker, queue, index))
        return self.own(name, queue, index)

    def checked_target(self, target: Any, topic: str, source: tuple[str, int, int]) -> None:
        """What may follow a segment. Raises Refused."""
        _, broker, queue, index = place_of(target, topic)
        if (broker, queue) == source[:2] or index != source[2]:
            raise Refused("SYSTEM_ERROR")

    def is_topic(self, topic: str) -> bool:
        """Whether a topic may have this name."""
        return topic.isalnum() and topic != "TBW102"

    def own(self, topic: str, queue: int, index: int) -> Held:
        """A segment of its own. Raises Refused."""
        found = self.disk.held.get((topic, queue))
        if found is None or found.index != index:
            raise Refused("SYSTEM_ERROR")
        return found

    # What administrators ask

    async def map(self, _: Fields, body: bytes) -> Told:
        """411."""
        asked = self.body_of(body)
        topic = self.known_topic(asked)
        if "enabled" in asked:
            return self.enable(topic, asked["enabled"])
        index = self.checked_index(asked, "logicalQueueIdx", -1)
        queue = self.checked_queue(asked, topic)
        old = self.disk.held.get((topic, queue))
        if index < 0:
            if old is not None and not self.may_unmap(old):
                raise Refused("SYSTEM_ERROR")
            self.disk.held.pop((topic, queue), None)
        elif old is not None and old.index != index:
            return self.mapped_elsewhere(old, index)
        elif old is None:
            self.first_of(topic, queue, index)
        return self.changed()

    def mapped_elsewhere(self, segment: Held, index: int) -> Told:  # noqa: ARG002
        """A message queue of one logical queue is to be one of another. Raises Refused."""
        raise Refused("SYSTEM_ERROR")

    def first_of(self, topic: str, queue: int, index: int) -> None:
        """A message queue is the beginning of a logical queue. Raises Refused where there is one."""
        if self.disk.of_index(topic, index):
            raise Refused("SYSTEM_ERROR")
        self.disk.held[topic, queue] = Held(topic, queue, index)

    def enable(self, topic: str, said: Any) -> Told:
        """411 with the key of ours."""
        total = number(said, "total", 1, 1024)
        number(said, "queues", 0, total)
        number(said, "epoch", 0, self.now_ms() + DAY_MS)
        gone = said.get("gone") or {}
        if any(not 0 <= int(index) < total for index in gone):
            raise Refused("INVALID_PARAMETER")
        old = self.disk.enabled.get(topic)
        if old is not None and self.is_older_statement(old, said):
            raise Refused("SYSTEM_ERROR")
        self.disk.enabled[topic] = {**said, "gone": self.all_gone((old or {}).get("gone", {}), gone)}
        return self.changed()

    def all_gone(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> Fields:
        """Offsets that nobody has, once more are."""
        both = {index: [*old.get(index, []), *new.get(index, [])] for index in {**old, **new}}
        return {
            index: [each for at, each in enumerate(all_) if each not in all_[:at]]
            for index, all_ in both.items()
        }

    def now_ms(self) -> int:
        """The clock."""
        return 1_700_000_000_000

    async def forget(self, header: Fields, _: bytes) -> Told:
        """422."""
        if not self.may_forget(header["topic"]):
            raise Refused("SYSTEM_ERROR")
        return "SUCCESS", {}, b""

    async def show(self, header: Fields, _: bytes) -> Told:
        """413."""
        found = self.shown(header["topic"])
        return "SUCCESS", {}, jsons.dumps(found) if found else b"null"

    async def seal(self, _: Fields, body: bytes) -> Told:
        """414."""
        asked = self.body_of(body)
        topic = self.known_topic(asked)
        segment = self.own(topic, number(asked, "queueId"), self.checked_index(asked))
        if not self.may_end(segment):
            raise Refused("SYSTEM_ERROR")
        self.end(segment)
        return self.changed(self.said(segment))

    def end(self, segment: Held) -> None:
        """A segment ends where its messages end now, if it has not ended yet."""
        if segment.state == "Normal":
            segment.end = self.disk.ends[segment.topic, segment.queue]
            segment.state = self.state_at_end(segment, segment.end)

    async def create(self, _: Fields, body: bytes) -> Told:
        """416."""
        asked = self.body_of(body)
        topic, index = str(asked.get("topic", "")), self.checked_index(asked)
        state = self.checked_state(asked.get("messageQueueStatus"))
        if not self.is_topic(topic) or topic in self.disk.mappings:
            raise Refused("INVALID_PARAMETER")
        if self.is_plain(topic):
            raise Refused("SYSTEM_ERROR")
        waiting = [each for each in self.disk.of_index(topic, index) if each.state == "WriteOnly"]
        if state == "WriteOnly" and waiting and not self.makes_two():
            return self.changed(self.said(waiting[0]))
        start = UNKNOWN if state == "WriteOnly" else self.next_start(topic, index)
        queue = self.new_queue(topic)
        segment = self.disk.held[topic, queue] = Held(topic, queue, index, start, state=state)
        return self.changed(self.said(segment))

    def makes_two(self) -> bool:
        """Whether who asks for a target that is there gets a second one."""
        return False

    def checked_state(self, state: object) -> str:
        """What a new segment may be. Raises Refused."""
        if state not in ("Normal", "WriteOnly"):
            raise Refused("INVALID_PARAMETER")
        return str(state)

    async def reuse(self, _: Fields, body: bytes) -> Told:
        """415."""
        asked = self.body_of(body)
        topic, index = self.known_topic(asked), self.checked_index(asked)
        queue, state = (
            self.checked_queue(asked, topic),
            self.checked_state(asked.get("messageQueueRouteState")),
        )
        waiting = [each for each in self.disk.of_index(topic, index) if each.state == "WriteOnly"]
        if state == "WriteOnly" and waiting:
            return self.changed(self.said(waiting[0]))
        old = self.disk.held.get((topic, queue))
        if not self.may_reuse(old) or (old is not None and self.rests(old, index)):
            raise Refused("SYSTEM_ERROR")
        start = UNKNOWN if state == "WriteOnly" else self.next_start(topic, index)
        if old is not None:
            self.says_gone(old)
        place = self.reused_from(topic, queue)
        segment = self.disk.held[topic, queue] = Held(topic, queue, index, start, place, state=state)
        return self.changed(self.said(segment))

    def says_gone(self, segment: Held) -> None:
        """It says that the offsets of a segment are nobody's any more."""
        said = self.disk.enabled.get(segment.topic)
        if said is not None:
            gone = {"begin": segment.start, "end": segment.start + segment.end - segment.place}
            said["gone"] = self.all_gone(said["gone"], {str(segment.index): [gone]})

    async def prepare(self, _: Fields, body: bytes) -> Told:
        """417."""
        source, target = self.migration(body)
        topic = str(source.get("messageQueue", {}).get("topic", "")) if isinstance(source, dict) else ""
        segment = self.checked_source(source, topic, target)
        if not self.may_leave(segment) or self.is_other(segment, source):
            raise Refused("SYSTEM_ERROR")
        self.end(segment)
        self.gives_way(segment, target)
        segment.successor = self.keeps_target(segment, target)
        return self.changed(dict(zip(SAID, (self.said(segment), segment.successor), strict=True)))

    async def commit(self, _: Fields, body: bytes) -> Told:
        """418."""
        source, target = self.migration(body)
        topic, broker, queue, index = place_of(target)
        place_of(source, topic)
        segment = self.own(topic, queue, index)
        start = number(target, "logicalQueueDelta", UNKNOWN, OFFSET_MAX)
        if broker != self.name or self.is_other(segment, target):
            raise Refused("SYSTEM_ERROR")
        self.begin(segment, start, source)
        return self.changed(dict(zip(SAID, (source, self.said(segment)), strict=True)))

    def begin(self, segment: Held, start: int, source: Mapping[str, Any]) -> None:
        """A target is told where it begins. Raises Refused."""
        if segment.state != "WriteOnly":
            if start != segment.start:
                raise Refused("SYSTEM_ERROR")
        elif start < 0 or self.begins_too_low(segment, start, source):
            raise Refused("SYSTEM_ERROR")
        else:
            segment.start, segment.state = start, "Normal"

    async def notify(self, _: Fields, body: bytes) -> Told:
        """419."""
        with suppress(Refused):
            self.hears(*self.migration(body))
        return "SUCCESS", {}, b""

    def migration(self, body: bytes) -> tuple[Any, Any]:
        """Source and target as a body says them. Raises Refused."""
        asked = self.body_of(body)
        return asked.get(SAID[0]), asked.get(SAID[1])

    # What all of them need

    def known_topic(self, asked: Mapping[str, Any]) -> str:
        """The topic of a body, which is there and not a static one. Raises Refused."""
        topic = asked.get("topic")
        if topic not in self.disk.topics or topic in self.disk.mappings:
            raise Refused("SYSTEM_ERROR")
        return str(topic)

    def changed(self, said: object = None) -> Told:
        """What is answered when something is kept: name servers are told, too."""
        self.disk.version += 1
        self.is_changed.set()
        self.is_changed = trio.Event()
        self.tells()
        return "SUCCESS", {}, b"" if said is None else jsons.dumps(said)

    def tells(self) -> None:
        """Name servers are told of a change."""
        self.nursery.start_soon(self.register)

    def said(self, segment: Held) -> Fields:
        """A segment as it is said."""
        return {
            "brokerAddr": self.address,
            "firstMsgTimeMillis": -1,
            "lastMsgTimeMillis": -1,
            "logicalQueueDelta": segment.start,
            "logicalQueueIndex": segment.index,
            "messageQueue": {"brokerName": self.name, "queueId": segment.queue, "topic": segment.topic},
            "offsetDelta": segment.place,
            "offsetMax": segment.end,
            "state": segment.state,
        }

    def said_of(self, segments: list[Held]) -> dict[str, list[Fields]]:
        """Segments as they are said, by index."""
        found: dict[str, list[Fields]] = {}
        for each in segments:
            found.setdefault(str(each.index), []).append(self.said(each))
        return found

    def wrapper(self) -> Fields:
        """What it tells name servers of its topics."""
        mapped = {topic: self.said_of(self.registered(topic)) for topic in self.disk.topics}
        return {
            **super().wrapper(),
            "logicalQueuesInfoMap": {topic: queues for topic, queues in mapped.items() if queues},
            "logicalQueuesEnabledMap": self.disk.enabled,
        }

    async def run(self) -> None:
        self.is_changed = trio.Event()
        await super().run()

    async def serves(self) -> None:
        """Tell name servers again and again."""
        while True:
            await trio.sleep(self.registers_every_s)
            await self.register()
