"""Messages as a program gives and gets them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from replispec.runtime.rocketmq.client.routes import ClientQueue
from replispec.runtime.rocketmq.framing import FrameBuffer
from replispec.runtime.rocketmq.log.properties import properties_of
from replispec.wire.rocketmq.constants import (
    KEYS_PROPERTY,
    PROPERTY_NAME_END,
    PROPERTY_VALUE_END,
    TAG_PROPERTY,
)
from replispec.wire.rocketmq.store import LogRecord
from replispec.wire.rocketmq.streams import COMMIT_LOG


@dataclass(frozen=True, slots=True)
class MessageToSend:
    """A message to be sent; `queue`: to this one alone."""

    topic: str
    body: bytes
    key: str = ""
    tag: str = ""
    queue: ClientQueue | None = None

    @property
    def properties(self) -> str:
        """As they travel."""
        said = {KEYS_PROPERTY: self.key, TAG_PROPERTY: self.tag}
        return "".join(
            f"{name}{PROPERTY_NAME_END}{value}{PROPERTY_VALUE_END}" for name, value in said.items() if value
        )


@dataclass(frozen=True, slots=True)
class ReadMessage:
    """A message that was read: its queue and offset are those that programs see."""

    queue: ClientQueue
    offset: int
    body: bytes
    born_ms: int = 0
    stored_ms: int = 0
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """What its sender called it."""
        return self.properties.get(KEYS_PROPERTY, "")

    @property
    def tag(self) -> str:
        """The tag of its sender."""
        return self.properties.get(TAG_PROPERTY, "")


def messages_in(body: bytes, queue: ClientQueue, delta: int) -> Sequence[ReadMessage]:
    """The messages of a pull's answer; `delta` is added to the offsets that they have where they lie.
    Raises RemoteProtocolError."""
    records = [LogRecord.decode(frame) for frame in FrameBuffer(COMMIT_LOG).receive(body)]
    return [
        ReadMessage(
            queue,
            each.queue_offset + delta,
            each.body,
            each.born_timestamp,
            each.store_timestamp,
            properties_of(each.properties),
        )
        for each in records
    ]
