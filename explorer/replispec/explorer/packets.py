"""Messages on their way between the instances of a system."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass

from replispec.runtime.primitives.bindings import Answer

Fields = tuple[tuple[str, str | None], ...]


class PacketKind(enum.Enum):
    """What a message is to whom it reaches."""

    REQUEST = "asks"
    NOTICE = "tells"
    ANSWER = "answers"
    SILENCE = "hears no answer from"
    FRAME = "says on a connection"
    END = "says nothing more on a connection"


@dataclass(frozen=True, slots=True)
class Channel:
    """A connection by its name and the places of its ends."""

    connection: str
    dialler: int
    acceptor: int

    def other(self, place: int) -> int:
        """The other end."""
        return self.acceptor if place == self.dialler else self.dialler


@dataclass(frozen=True, slots=True)
class Packet:
    """One message; `to` and `sender` are places of instances, `code` that of the command.

    Of an answer, `asked` is the code of the request. `waited`: its sender still waits for the answer. A
    silence reaches the sender of a request when nothing else will. What is said on a `channel` arrives in
    order: `rank` is how many frames to the same end are before it, for whoever keeps messages in no order.
    """

    kind: PacketKind
    to: int
    sender: int
    code: int
    name: str
    fields: Fields = ()
    body: bytes = b""
    asked: int = 0
    waited: bool = True
    remark: str = ""
    channel: Channel | None = None
    rank: int = 0

    def ext_fields(self) -> dict[str, str | None]:
        """The fields of the header, as readers want them."""
        return dict(self.fields)

    def answered(self, answer: Answer, name: str) -> Packet:
        """The answer to this request."""
        fields = tuple((answer.ext_fields or {}).items())
        remark = answer.remark or ""
        return Packet(
            PacketKind.ANSWER,
            self.sender,
            self.to,
            answer.code,
            name,
            fields,
            answer.body,
            self.code,
            remark=remark,
        )

    def given_up(self) -> Packet:
        """This request, for whose answer nobody waits any more."""
        return Packet(
            self.kind,
            self.to,
            self.sender,
            self.code,
            self.name,
            self.fields,
            self.body,
            self.asked,
            waited=False,
        )

    def silence(self) -> Packet:
        """What reaches whoever waits when this request or answer does not."""
        is_answer = self.kind is PacketKind.ANSWER
        asked = self.asked if is_answer else self.code
        to, peer = (self.to, self.sender) if is_answer else (self.sender, self.to)
        return Packet(PacketKind.SILENCE, to, peer, 0, self.name, asked=asked)

    @property
    def question(self) -> tuple[int, int] | None:
        """Who waits for an answer to a request of which code; None when nobody does."""
        match self.kind:
            case PacketKind.REQUEST:
                return (self.sender, self.code) if self.waited else None
            case PacketKind.ANSWER | PacketKind.SILENCE:
                return self.to, self.asked
        return None

    @property
    def asker(self) -> int:
        """Who asked, whether it still waits or not; -1 for a notice."""
        match self.kind:
            case PacketKind.REQUEST:
                return self.sender
            case PacketKind.ANSWER | PacketKind.SILENCE:
                return self.to
        return -1

    def said(self) -> str:
        """What it says, in one line."""
        parts = [f"{name}={value}" for name, value in self.fields if value not in (None, "0", "")]
        if self.body and self.channel is None:
            parts.append(_body_text(self.body))
        return ", ".join((*parts, *filter(None, (self.remark,))))


def _body_text(body: bytes) -> str:
    """A body of JSON as `name=value`, any other one by its length."""
    try:
        found = json.loads(body)
    except ValueError:
        return f"{len(body)} bytes"
    return (
        ", ".join(f"{name}={value}" for name, value in found.items())
        if isinstance(found, Mapping)
        else f"{found}"
    )
