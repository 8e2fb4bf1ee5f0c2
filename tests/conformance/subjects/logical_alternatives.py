"""Brokers that serve logical queues otherwise than most, where clauses leave it open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.conformance.subjects.logical_clients import KNOWS, PREVIEW, GoodLogicalBroker
from tests.conformance.subjects.logical_disk import Held
from tests.conformance.subjects.static_topic_shell import Fields, Refused, Told


class TakesMore(GoodLogicalBroker):
    """It maps an empty queue anew, and says yes to a seal of nothing and to a plain change."""

    def mapped_elsewhere(self, segment: Held, index: int) -> Told:
        if self.disk.ends[segment.topic, segment.queue] or self.disk.of_index(segment.topic, index):
            raise Refused("SYSTEM_ERROR")
        segment.index = index
        return self.changed()

    async def seal(self, header: Fields, body: bytes) -> Told:
        asked = self.body_of(body)
        if (asked.get("topic"), asked.get("queueId")) not in self.disk.held:
            return "SUCCESS", {}, b""
        return await super().seal(header, body)

    async def show(self, header: Fields, body: bytes) -> Told:
        code, told, found = await super().show(header, body)
        return code, told, b"{}" if found == b"null" else found

    def mapped_topic(self, header: Fields) -> Told:  # noqa: ARG002
        return self.changed()

    def knows(self, header: Fields, flags: int, version: int) -> bool:
        """Of a pull it asks the version alone."""
        return super().knows(header, flags, version) or version == PREVIEW


class RefusesMore(GoodLogicalBroker):
    """It makes no target twice, hears of no queue that it never had, and refuses a commit that comes late."""

    async def create(self, header: Fields, body: bytes) -> Told:
        asked = self.body_of(body)
        waiting = self.disk.of_index(str(asked.get("topic")), self.checked_index(asked))
        if any(each.state == "WriteOnly" for each in waiting):
            raise Refused("SYSTEM_ERROR")
        return await super().create(header, body)

    async def show(self, header: Fields, body: bytes) -> Told:
        if not self.disk.of_topic(header["topic"]):
            raise Refused("TOPIC_NOT_EXIST")
        return await super().show(header, body)

    async def notify(self, header: Fields, body: bytes) -> Told:
        source, _ = self.migration(body)
        if not self.disk.of_topic(str(source.get("messageQueue", {}).get("topic"))):
            raise Refused("SYSTEM_ERROR")
        return await super().notify(header, body)

    def begin(self, segment: Held, start: int, source: Mapping[str, Any]) -> None:
        if not segment.is_written:
            raise Refused("SYSTEM_ERROR")
        super().begin(segment, start, source)


class AnswersOtherwise(GoodLogicalBroker):
    """Other codes where the clauses name none, and its registrations are whole and by time besides."""

    async def last(self, header: Fields, body: bytes) -> Told:
        code, told, found = await super().last(header, body)
        return "NO_PERMISSION" if "REDIRECT" in told else code, told, found

    def pulled(self, segment: Held, offset: int, most: int) -> Told:
        code, told, found = super().pulled(segment, offset, most)
        if segment.state == "ReadOnly" and offset >= segment.end and segment.successor is None:
            return "PULL_RETRY_IMMEDIATELY", {**told, "REDIRECT": "1"}, b""
        if segment.place > offset:
            return self.found(segment.topic, segment.queue, offset, most)
        return code, told, found

    def handed_on(self, header: Fields, queue: int) -> Fields:
        return {**super().handed_on(header, queue), "UNIT": "other"}

    async def forget(self, header: Fields, body: bytes) -> Told:
        try:
            return await super().forget(header, body)
        except Refused:
            raise Refused("INVALID_PARAMETER") from None


class NumbersOtherwise(GoodLogicalBroker):
    """Its queues have other numbers, what is mapped stays mapped, and whoever sends is served by the next
    broker: the proposal says nothing of it."""

    def new_queue(self, topic: str) -> int:
        super().new_queue(topic)
        return super().new_queue(topic)

    async def map(self, header: Fields, body: bytes) -> Told:
        asked = self.body_of(body)
        known = self.disk.held.get((str(asked.get("topic")), asked.get("queueId", -1)))
        if known is not None and asked.get("logicalQueueIdx") == known.index and "enabled" not in asked:
            raise Refused("SYSTEM_ERROR")
        return await super().map(header, body)

    def may_unmap(self, segment: Held) -> bool:  # noqa: ARG002
        return False

    async def send(self, header: Fields, body: bytes, command: str = "SEND_MESSAGE_V2") -> Told:
        name = "f" if "f" in header else "sysFlag"
        plain = str(int(header.get(name) or 0) & ~KNOWS)
        return await super().send({**header, name: plain}, body, command)


class ShowsOtherwise(GoodLogicalBroker):
    """A segment without a message is sealed as one that is read; what expired is told without numbers."""

    def state_at_end(self, segment: Held, end: int) -> str:  # noqa: ARG002
        return "ReadOnly"

    def said(self, segment: Held) -> Fields:
        found = super().said(segment)
        if segment.state != "Expired":
            return found
        return {**found, "logicalQueueDelta": -1, "offsetMax": -1}


ALTERNATIVES = (TakesMore, RefusesMore, AnswersOtherwise)
OF_PROPOSALS = (NumbersOtherwise, ShowsOtherwise)
"""What the proposals alone leave open."""
