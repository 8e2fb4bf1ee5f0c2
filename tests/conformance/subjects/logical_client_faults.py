"""Brokers that serve logical queues wrongly as clients see it."""

from __future__ import annotations

from replispec.conformance.model import Sent
from replispec.conformance.received import ReceivedAnswer
from replispec.runtime.primitives import jsons
from tests.conformance.subjects.logical_clients import KNOWS, PREVIEW, GoodLogicalBroker
from tests.conformance.subjects.logical_disk import Held
from tests.conformance.subjects.static_topic_shell import Fields, Refused, Told

# Clients that know logical queues


class RedirectsToNobody(GoodLogicalBroker):
    def sent_on(self, segment: Held, following: Fields | None) -> bytes:  # noqa: ARG002
        return b""


class RedirectsInReverse(GoodLogicalBroker):
    def sent_on(self, segment: Held, following: Fields | None) -> bytes:
        return jsons.dumps([following, self.said(segment)]) if following is not None else b""


class RedirectsToTheNextAlone(GoodLogicalBroker):
    def sent_on(self, segment: Held, following: Fields | None) -> bytes:  # noqa: ARG002
        return jsons.dumps([following]) if following is not None else b""


class RedirectsToItself(GoodLogicalBroker):
    """Where nobody follows it names the segment that was asked."""

    def sent_on(self, segment: Held, following: Fields | None) -> bytes:
        return super().sent_on(segment, following or self.said(segment))


class SaysLessOfSegments(GoodLogicalBroker):
    """Nobody learns at which address a segment is."""

    def sent_on(self, segment: Held, following: Fields | None) -> bytes:
        if following is None:
            return b""
        both = (self.said(segment), following)
        return jsons.dumps([{name: each[name] for name in each if name != "brokerAddr"} for each in both])


class RedirectsWithoutSaying(GoodLogicalBroker):
    """The answer has both segments, and not the mark."""

    async def send(self, header: Fields, body: bytes, command: str = "SEND_MESSAGE_V2") -> Told:
        code, told, found = await super().send(header, body, command)
        return code, {name: value for name, value in told.items() if name != "REDIRECT"}, found


class RedirectsByNotices(GoodLogicalBroker):
    """Where a queue went it knows of notices alone, which are in its memory."""

    hint: Fields | None = None

    def hears(self, source: Fields, target: Fields) -> None:  # noqa: ARG002
        self.hint = target

    def next_of(self, segment: Held) -> Fields | None:  # noqa: ARG002
        return self.hint


class RedirectsOneForm(GoodLogicalBroker):
    """A send of the longer form is refused without a word."""

    async def send(self, header: Fields, body: bytes, command: str = "SEND_MESSAGE_V2") -> Told:
        code, told, found = await super().send(header, body, command)
        return (code, told, found) if command == "SEND_MESSAGE_V2" or code == "SUCCESS" else (code, {}, b"")


class StoresBatches(GoodLogicalBroker):
    """A batch is stored wherever it was sent."""

    async def send(self, header: Fields, body: bytes, command: str = "SEND_MESSAGE_V2") -> Told:
        if command != "SEND_BATCH_MESSAGE":
            return await super().send(header, body, command)
        place = header["b"], int(header["e"])
        self.disk.ends[place] += 2
        return "SUCCESS", {"msgId": "0" * 32, "queueId": place[1], "queueOffset": 0}, b""


class ReadsNothingThatIsSealed(GoodLogicalBroker):
    """Who reads a segment that was left is sent on at once."""

    def pulled(self, segment: Held, offset: int, most: int) -> Told:
        if segment.is_written:
            return super().pulled(segment, offset, most)
        return super().pulled(segment, max(offset, segment.end), most)


class ReadsWithoutEnd(GoodLogicalBroker):
    """It sends nobody on who reads."""

    def pulled(self, segment: Held, offset: int, most: int) -> Told:
        return self.found(segment.topic, segment.queue, offset, most)


class GoesOnAtZero(GoodLogicalBroker):
    def pulled(self, segment: Held, offset: int, most: int) -> Told:
        code, told, found = super().pulled(segment, offset, most)
        return code, {**told, "nextBeginOffset": 0} if "REDIRECT" in told else told, found


class GoesOnWhereAsked(GoodLogicalBroker):
    def pulled(self, segment: Held, offset: int, most: int) -> Told:
        code, told, found = super().pulled(segment, offset, most)
        return code, {**told, "nextBeginOffset": offset} if "REDIRECT" in told else told, found


class FindsTheEndOpen(GoodLogicalBroker):
    """Who has read a segment behind which none is known begins anew."""

    def pulled(self, segment: Held, offset: int, most: int) -> Told:
        if not segment.is_written and offset >= segment.end and self.next_of(segment) is None:
            return "PULL_OFFSET_MOVED", self.offsets(0, segment.end), b""
        return super().pulled(segment, offset, most)


class MovesFromExpired(GoodLogicalBroker):
    """Who reads what was deleted is told that it was deleted."""

    def pulled(self, segment: Held, offset: int, most: int) -> Told:
        if segment.state == "Expired":
            return "PULL_OFFSET_MOVED", self.offsets(segment.end, segment.end), b""
        return super().pulled(segment, offset, most)


class StaysBelowZero(GoodLogicalBroker):
    def stays_at(self, segment: Held, offset: int) -> int:  # noqa: ARG002
        return segment.end


class SendsBelowZero(GoodLogicalBroker):
    """The end of a segment that there is not is -1."""

    async def pull(self, header: Fields, body: bytes, version: int = PREVIEW) -> Told:
        code, told, found = await super().pull(header, body, version)
        place = header["topic"], int(header["queueId"])
        return code, told if place in self.disk.held else {**told, "nextBeginOffset": -1}, found


class ReadsTargets(GoodLogicalBroker):
    def pulled(self, segment: Held, offset: int, most: int) -> Told:
        if segment.state == "WriteOnly":
            return self.found(segment.topic, segment.queue, offset, most)
        return super().pulled(segment, offset, most)


class WaitsOn(GoodLogicalBroker):
    """A pull that waits waits on when its segment ends."""

    def waits_on(self, segment: Held | None) -> bool:  # noqa: ARG002
        return True


class EndsWhereAsked(GoodLogicalBroker):
    """It tells the end of the message queue whatever is asked for."""

    async def last(self, header: Fields, body: bytes) -> Told:
        return await super().last(header | {"logicalQueue": "false"}, body)


class EndsElsewhere(GoodLogicalBroker):
    """It tells where the logical queue goes on whoever asks."""

    async def last(self, header: Fields, body: bytes) -> Told:
        return await super().last(header | {"logicalQueue": "true"}, body)


class KnowsNoEnd(GoodLogicalBroker):
    """Who asks for the end of a logical queue is always sent on."""

    async def last(self, header: Fields, body: bytes) -> Told:
        code, told, found = await super().last(header, body)
        return code, {**told, "REDIRECT": "1"} if header.get("logicalQueue") == "true" else told, found


class TakesWhatIsSealed(GoodLogicalBroker):
    def takes(self, segment: Held | None) -> bool:  # noqa: ARG002
        return True


class CountsLogically(GoodLogicalBroker):
    """Clients are told logical offsets of message queues."""

    async def send(self, header: Fields, body: bytes, command: str = "SEND_MESSAGE_V2") -> Told:
        code, told, found = await super().send(header, body, command)
        segment = self.disk.held.get((str(header.get("b")), int(header.get("e") or 0)))
        if code != "SUCCESS" or segment is None:
            return code, told, found
        return code, {**told, "queueOffset": int(str(told["queueOffset"])) + segment.start}, found


class ServesNothingPlain(GoodLogicalBroker):
    """A topic is to be mapped before a client that knows logical queues may write it."""

    async def send(self, header: Fields, body: bytes, command: str = "SEND_MESSAGE_V2") -> Told:
        flags = int(header.get("f") or header.get("sysFlag") or 0)
        place = str(header.get("b") or header["topic"]), int(header.get("e") or header["queueId"])
        if flags & KNOWS and place not in self.disk.held:
            return "NO_PERMISSION", {"REDIRECT": "1"}, b""
        return await super().send(header, body, command)


# Older clients


class ProxiesNothing(GoodLogicalBroker):
    """What is sent to a segment that was left is stored there."""

    async def proxied(self, following: Fields, sent: Sent, queue: int) -> Told:  # noqa: ARG002
        self.disk.ends[str(sent.header.get("b") or sent.header["topic"]), queue] += 1
        return "SUCCESS", {"msgId": "0" * 32, "queueId": queue, "queueOffset": 0}, b""


class StoresWhatItHandsOn(GoodLogicalBroker):
    async def proxied(self, following: Fields, sent: Sent, queue: int) -> Told:
        self.disk.ends[str(sent.header.get("b") or sent.header["topic"]), queue] += 1
        return await super().proxied(following, sent, queue)


class KnowsNoOlder(GoodLogicalBroker):
    """Older clients are sent on as new ones are, when they send."""

    sent_once = False

    async def send(self, header: Fields, body: bytes, command: str = "SEND_MESSAGE_V2") -> Told:
        old = not int(header.get("f") or header.get("sysFlag") or 0)
        place = str(header.get("b") or header["topic"]), int(header.get("e") or header["queueId"])
        if old and self.sent_once and not self.takes(self.disk.held.get(place)):
            return "NO_PERMISSION", {"REDIRECT": "1"}, b""
        self.sent_once = self.sent_once or (old and not self.takes(self.disk.held.get(place)))
        return await super().send(header, body, command)


class ProxiesOneForm(KnowsNoOlder):
    """Only a send of the shorter form is handed on."""

    async def send(self, header: Fields, body: bytes, command: str = "SEND_MESSAGE_V2") -> Told:
        self.sent_once = command == "SEND_MESSAGE"
        return await super().send(header, body, command)


class ProxiesToItsOwnNumber(GoodLogicalBroker):
    def handed_on(self, header: Fields, queue: int) -> Fields:  # noqa: ARG002
        return header


class ProxiesTwice(GoodLogicalBroker):
    """What was taken is handed on once more."""

    async def proxied(self, following: Fields, sent: Sent, queue: int) -> Told:
        told = await super().proxied(following, sent, queue)
        self.nursery.start_soon(super().proxied, following, sent, queue)
        return told


class ProxiesWithoutBody(GoodLogicalBroker):
    async def proxied(self, following: Fields, sent: Sent, queue: int) -> Told:
        return await super().proxied(following, Sent(command=sent.command, header=sent.header), queue)


class TellsTheRealQueue(GoodLogicalBroker):
    def told_of_send(self, asked: int, told: Fields) -> Fields:  # noqa: ARG002
        return told


class AcknowledgesRefusals(GoodLogicalBroker):
    """What it handed on is acknowledged, whatever the peer says."""

    def told_by_peer(self, answer: ReceivedAnswer | None, queue: int) -> Told:
        try:
            return super().told_by_peer(answer, queue)
        except Refused:
            return "SUCCESS", {"msgId": "0" * 32, "queueId": queue, "queueOffset": 0}, b""


class TakesBack(GoodLogicalBroker):
    """What a peer sends back is stored here."""

    def told_by_peer(self, answer: ReceivedAnswer | None, queue: int) -> Told:
        if answer is not None and answer.header.get("REDIRECT") == "1":
            self.disk.ends["LogicalCase", queue] += 1
            return "SUCCESS", {"msgId": "0" * 32, "queueId": queue, "queueOffset": 3}, b""
        return super().told_by_peer(answer, queue)


class AsksOthersAlone(GoodLogicalBroker):
    """A segment of its own that follows is none to hand on to."""

    async def send(self, header: Fields, body: bytes, command: str = "SEND_MESSAGE_V2") -> Told:
        place = str(header.get("b") or header["topic"]), int(header.get("e") or header["queueId"])
        segment = self.disk.held.get(place)
        following = None if segment is None else self.next_of(segment)
        if following is not None and following["messageQueue"]["brokerName"] == self.name:
            raise Refused("NO_PERMISSION")
        return await super().send(header, body, command)


class TakesOlderForNew(GoodLogicalBroker):
    def knows(self, header: Fields, flags: int, version: int) -> bool:  # noqa: ARG002
        return True


class TakesLaterForNew(GoodLogicalBroker):
    """Whoever is no older than the preview knows logical queues."""

    def knows(self, header: Fields, flags: int, version: int) -> bool:
        return super().knows(header, flags, version) or version >= PREVIEW


class ServesNoOlder(GoodLogicalBroker):
    """An older client is refused where a topic is mapped."""

    async def send(self, header: Fields, body: bytes, command: str = "SEND_MESSAGE_V2") -> Told:
        flags = int(header.get("f") or header.get("sysFlag") or 0)
        segment = self.disk.held.get((str(header.get("b")), int(header.get("e") or 0)))
        if segment is not None and segment.is_written and not flags & KNOWS:
            raise Refused("NO_PERMISSION")
        return await super().send(header, body, command)

    async def pull(self, header: Fields, body: bytes, version: int = PREVIEW) -> Told:
        if version < PREVIEW and (header["topic"], int(header["queueId"])) in self.disk.held:
            raise Refused("NO_PERMISSION")
        return await super().pull(header, body, version)

    async def first(self, header: Fields, body: bytes) -> Told:
        if (header["topic"], int(header["queueId"])) in self.disk.held:
            raise Refused("NO_PERMISSION")
        return await super().first(header, body)

    async def commit_offset(self, header: Fields, body: bytes) -> Told:
        if (header["topic"], int(header["queueId"])) in self.disk.held:
            raise Refused("NO_PERMISSION")
        return await super().commit_offset(header, body)
