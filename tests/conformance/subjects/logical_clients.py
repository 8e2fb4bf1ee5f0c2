"""A broker that serves logical queues, in few lines: what clients ask of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import trio

from replispec.conformance.model import Sent
from replispec.conformance.received import ReceivedAnswer
from replispec.conformance.rocketmq.names import VOCABULARY
from replispec.runtime.primitives import jsons
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.store import LogRecord
from tests.conformance.subjects.asking import RELEASE, Peer
from tests.conformance.subjects.logical_disk import UNKNOWN, Held
from tests.conformance.subjects.logical_queues import LogicalAdministration
from tests.conformance.subjects.static_topic_shell import Fields, Handlers, Refused, Told
from tests.conformance.subjects.stored import record_of, written

PREVIEW = VOCABULARY.release_number((5, 0, 0))
KNOWS, WAITS = 64, 2
COUNTS, WRITE = ("readQueueNums", "writeQueueNums"), 2
FILLER, FULL, DELETE_OLD = "LogicalFiller", 200, 329
_SENDS = {
    RequestCode.SEND_MESSAGE: "SEND_MESSAGE",
    RequestCode.SEND_MESSAGE_V2: "SEND_MESSAGE_V2",
    RequestCode.SEND_BATCH_MESSAGE: "SEND_BATCH_MESSAGE",
}


class GoodLogicalBroker(LogicalAdministration):
    """A broker that does it right, while its process lives."""

    # What a fault overrides

    def led(self, detail: Fields) -> dict[str, int]:
        """A static topic is nothing that it leads."""
        return dict.fromkeys(detail["hostedQueues"], 0)

    def takes(self, segment: Held | None) -> bool:
        """Whether a message queue takes messages."""
        return segment is None or segment.is_written

    def knows(self, header: Fields, flags: int, version: int) -> bool:
        """Whether a client that pulls knows logical queues."""
        return bool(flags & KNOWS) or (version == PREVIEW and not {"bname", "lo"} & header.keys())

    def next_of(self, segment: Held) -> Fields | None:
        """The segment that follows one that has ended: its own where the logical queue is back."""
        own = [each for each in self.disk.of_index(segment.topic, segment.index) if each.is_written]
        return self.said(own[-1]) if own and own[-1] is not segment else segment.successor

    def end_of(self, segment: Held) -> int:
        """Up to where a segment is read."""
        return self.disk.ends[segment.topic, segment.queue] if segment.end == UNKNOWN else segment.end

    def stays_at(self, segment: Held, offset: int) -> int:  # noqa: ARG002
        """Where who reads a segment that begins nowhere yet is to go on."""
        return offset

    def waits_on(self, segment: Held | None) -> bool:
        """Whether a pull that waits goes on to wait when segments have changed."""
        return segment is None or segment.state == "Normal"

    def told_of_send(self, asked: int, told: Fields) -> Fields:
        """What an older client is told of a message that another broker took."""
        real = {"PROPERTY_FORWARD_QUEUE_ID": told["queueId"]}
        return {**told, **real, "queueId": asked}

    def handed_on(self, header: Fields, queue: int) -> Fields:
        """What another broker is sent."""
        return {**header, ("e" if "b" in header else "queueId"): queue}

    def old_ones_go(self) -> None:
        """Old messages are deleted, and what had them expires."""
        for (topic, queue), end in self.disk.ends.items():
            if topic != FILLER:
                self.disk.kept_from[topic, queue] = end
        for each in self.disk.held.values():
            if each.state == "ReadOnly" and self.disk.first(each.topic, each.queue) >= each.end:
                each.state = "Expired"
        self.changed()

    # What clients ask

    async def send(self, header: Fields, body: bytes, command: str = "SEND_MESSAGE_V2") -> Told:
        """10, 310 and 320."""
        topic, queue = header.get("b") or header["topic"], int(header.get("e") or header["queueId"])
        flags = int(header.get("f") or header.get("sysFlag") or 0)
        if queue >= self.topic_of(topic)["writeQueueNums"]:
            raise Refused("SYSTEM_ERROR")
        if not self.may_be_written(self.topic_of(topic)):
            raise Refused("NO_PERMISSION")
        segment = self.disk.held.get((topic, queue))
        if segment is None or self.takes(segment):
            at = self.disk.ends[topic, queue]
            self.disk.ends[topic, queue] += 1
            self.disk.log.keep((topic, queue), at, self.stored(record_of(header, body)))
            return "SUCCESS", {"msgId": "0" * 32, "queueId": queue, "queueOffset": at}, b""
        following = self.next_of(segment)
        if flags & KNOWS:
            return "NO_PERMISSION", {"REDIRECT": "1"}, self.sent_on(segment, following)
        if following is None:
            raise Refused("NO_PERMISSION")
        to = int(following["messageQueue"]["queueId"])
        if following["messageQueue"]["brokerName"] == self.name:
            code, told, _ = await self.send(self.handed_on(header, to), body, command)
            return code, self.told_of_send(queue, dict(told)), b""
        return await self.proxied(
            following,
            Sent(command=command, header=self.handed_on(header, to), body_text=body.decode("latin-1")),
            queue,
        )

    def sent_on(self, segment: Held, following: Fields | None) -> bytes:
        """Which segments a client is told that knows them."""
        return b"" if following is None else jsons.dumps([self.said(segment), following])

    async def proxied(self, following: Fields, sent: Sent, queue: int) -> Told:
        """What the broker of the next segment answers. Raises Refused."""
        peer = Peer(following["brokerAddr"])
        try:
            answer = await peer.answer(sent)
        except AssertionError:  # what came breaks the protocol
            answer = None
        finally:
            peer.leave()
        return self.told_by_peer(answer, queue)

    def told_by_peer(self, answer: ReceivedAnswer | None, queue: int) -> Told:
        """What an older client is told. Raises Refused where its message is not known to be stored."""
        if answer is None or VOCABULARY.response_name(answer.code, RELEASE) != "SUCCESS":
            raise Refused("SYSTEM_ERROR")
        if any(not str(answer.header.get(name, "")).isdecimal() for name in ("queueId", "queueOffset")):
            raise Refused("SYSTEM_ERROR")
        return "SUCCESS", self.told_of_send(queue, dict(answer.header)), b""

    async def pull(self, header: Fields, _: bytes, version: int = PREVIEW) -> Told:
        """11."""
        topic, queue = header["topic"], int(header["queueId"])
        offset, flags = int(header["queueOffset"]), int(header["sysFlag"])
        self.topic_of(topic)
        segment = self.disk.held.get((topic, queue))
        if flags & WAITS and offset >= self.disk.ends[topic, queue]:
            with trio.move_on_after(int(header["suspendTimeoutMillis"]) / 1000):
                while self.waits_on(segment) and offset >= self.disk.ends[topic, queue]:
                    await self.is_changed.wait()
        if segment is None or not self.knows(header, flags, version):
            return self.found(topic, queue, offset, int(header["maxMsgNums"]))
        return self.pulled(segment, offset, int(header["maxMsgNums"]))

    def pulled(self, segment: Held, offset: int, most: int) -> Told:
        """What a client that knows logical queues is told."""
        following, end = self.next_of(segment), self.end_of(segment)
        if segment.state == "WriteOnly":
            return "PULL_NOT_FOUND", self.offsets(self.stays_at(segment, offset), end), b""
        if offset < segment.place:
            return "PULL_RETRY_IMMEDIATELY", {**self.offsets(offset, end), "REDIRECT": "1"}, b""
        if not segment.is_written and (offset >= end or segment.state == "Expired"):
            if following is None:
                return "PULL_NOT_FOUND", self.offsets(end, end), b""
            told = {**self.offsets(end, end), "REDIRECT": "1"}
            return "PULL_RETRY_IMMEDIATELY", told, self.sent_on(segment, following)
        left = most if segment.is_written else min(most, end - offset)
        return self.found(segment.topic, segment.queue, offset, left)

    def found(self, topic: str, queue: int, offset: int, most: int) -> Told:
        """What lies in a message queue from an offset on."""
        end, first = self.disk.ends[topic, queue], self.disk.first(topic, queue)
        if offset < first:
            return "PULL_OFFSET_MOVED", self.offsets(first, end), b""
        if offset >= end:
            code = "PULL_NOT_FOUND" if offset == end else "PULL_OFFSET_MOVED"
            return code, self.offsets(end, end), b""
        upto = min(offset + most, end)
        return "SUCCESS", self.offsets(upto, end), self.given((topic, queue), offset, upto)

    def given(self, place: tuple[str, int], begin: int, end: int) -> bytes:
        """What a pull is given of a message queue."""
        return written(self.disk.log.between(place, begin, end))

    def stored(self, record: LogRecord) -> LogRecord:
        """What is kept of a message."""
        return record

    def offsets(self, following: int, end: int) -> Fields:
        """The header of a pull's answer."""
        told = {"nextBeginOffset": following, "minOffset": 0, "maxOffset": end}
        return {"suggestWhichBrokerId": 0, **told}

    async def last(self, header: Fields, _: bytes) -> Told:
        """30."""
        topic, queue = header["topic"], int(header["queueId"])
        self.topic_of(topic)
        segment, told = self.disk.held.get((topic, queue)), {"offset": self.disk.ends[topic, queue]}
        if header.get("logicalQueue") != "true" or segment is None or self.next_of(segment) is None:
            return "SUCCESS", told, b""
        return "SUCCESS", {**told, "REDIRECT": "1"}, self.sent_on(segment, self.next_of(segment))

    async def first(self, header: Fields, _: bytes) -> Told:
        """31."""
        self.topic_of(header["topic"])
        return "SUCCESS", {"offset": self.disk.first(header["topic"], int(header["queueId"]))}, b""

    async def commit_offset(self, header: Fields, _: bytes) -> Told:
        """15."""
        place = header["consumerGroup"], header["topic"], int(header["queueId"])
        self.disk.read[place] = int(header["commitOffset"])
        return "SUCCESS", {}, b""

    async def how_far(self, header: Fields, _: bytes) -> Told:
        """14."""
        place = header["consumerGroup"], header["topic"], int(header["queueId"])
        if place not in self.disk.read:
            raise Refused("QUERY_NOT_FOUND")
        return "SUCCESS", {"offset": self.disk.read[place]}, b""

    # Topics

    def topic_of(self, topic: str) -> Fields:
        """A topic that is there. Raises Refused."""
        if topic not in self.disk.topics:
            raise Refused("TOPIC_NOT_EXIST")
        return self.disk.topics[topic]

    async def topic(self, header: Fields, _: bytes) -> Told:
        """351."""
        return "SUCCESS", {}, jsons.dumps(self.topic_of(header["topic"]))

    async def plain_topic(self, header: Fields, _: bytes) -> Told:
        """17."""
        if not self.disk.of_topic(header["topic"]):
            return self.made(header)
        topic = self.topic_of(header["topic"])
        if any(int(header[name]) != topic[name] for name in COUNTS):
            return self.mapped_topic(header)
        # What clients may do says nothing of queues.
        topic["perm"] = int(header["perm"])
        return self.changed()

    def may_be_written(self, topic: Fields) -> bool:
        """Whether producers may send to a topic."""
        return bool(topic["perm"] & WRITE)

    def mapped_topic(self, header: Fields) -> Told:  # noqa: ARG002
        """A plain change of a topic that is mapped."""
        raise Refused("INVALID_PARAMETER")

    def made(self, header: Fields) -> Told:
        """The topic is as it was said."""
        counts = {name: int(header[name]) for name in COUNTS}
        self.disk.topics[header["topic"]] = {"topicName": header["topic"], "perm": 6, **counts}
        return self.changed()

    async def static_topic(self, header: Fields, body: bytes) -> Told:
        """513."""
        if self.disk.of_topic(header["topic"]):
            return self.mapped_topic(header)
        self.disk.mappings[header["topic"]] = jsons.loads(body)
        return self.made(header)

    async def delete_old(self, *_: object) -> Told:
        """329."""
        if self.disk.ends[FILLER, 0] >= FULL:
            self.old_ones_go()
        return "SUCCESS", {}, b""

    async def yes(self, *_: object) -> Told:
        """What is granted to whoever asks."""
        return "SUCCESS", {}, b""

    def handlers(self, version: int) -> Handlers:
        sends: Mapping[int, Any] = {code: partial(self.send, command=name) for code, name in _SENDS.items()}
        return {
            **sends,
            RequestCode.PULL_MESSAGE: partial(self.pull, version=version),
            RequestCode.GET_MAX_OFFSET: self.last,
            RequestCode.GET_MIN_OFFSET: self.first,
            RequestCode.UPDATE_CONSUMER_OFFSET: self.commit_offset,
            RequestCode.QUERY_CONSUMER_OFFSET: self.how_far,
            RequestCode.UPDATE_AND_CREATE_TOPIC: self.plain_topic,
            RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC: self.static_topic,
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: self.yes,
            RequestCode.GET_TOPIC_CONFIG: self.topic,
            DELETE_OLD: self.delete_old,
            RequestCode.UPDATE_TOPIC_LOGICAL_QUEUE_MAPPING: self.map,
            RequestCode.DELETE_TOPIC_LOGICAL_QUEUE_MAPPING: self.forget,
            RequestCode.QUERY_TOPIC_LOGICAL_QUEUE_MAPPING: self.show,
            RequestCode.SEAL_TOPIC_LOGICAL_QUEUE: self.seal,
            RequestCode.REUSE_TOPIC_LOGICAL_QUEUE: self.reuse,
            RequestCode.CREATE_MESSAGE_QUEUE_FOR_LOGICAL_QUEUE: self.create,
            RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_PREPARE: self.prepare,
            RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_COMMIT: self.commit,
            RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_NOTIFY: self.notify,
        }
