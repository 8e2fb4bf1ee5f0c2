"""A playbook: what goes into a core that asks by `Calls` and what comes out of it, in, out, in, out.

    playbook = Playbook({CONTROLLER: answer})
    registration = Registration(playbook.outbox, ..., playbook.calls, ...)
    playbook >> registration.ticked << [RequestCode.CONTROLLER_REGISTER_BROKER]

`>>` lets something happen; requests that the core sends go to `peers`, functions that answer them, and the
answers go back in until nothing more is sent. `<<` names the codes of the requests that must have left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from replispec.runtime.rocketmq.framing import Command, FrameBuffer, decode_command
from replispec.runtime.rocketmq.remoting import Calls
from replispec.runtime.storage import Files, Stores
from replispec.runtime.world import (
    Closed,
    Connected,
    Dial,
    Effect,
    Event,
    Halt,
    Note,
    Outbox,
    Persist,
    Persisted,
    PersistFailed,
    Received,
    Send,
    Writes,
)
from replispec.wire.rocketmq.codes import RemotingFlag
from replispec.wire.rocketmq.remoting import RemotingHeader
from replispec.wire.rocketmq.streams import REMOTING
from tests.runtime.storage.writing import carried_out

Action = Callable[[int], object]
"""Something that happens to a core, at a time in milliseconds."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a peer answers."""

    code: int = 0
    ext_fields: Mapping[str, str | None] = field(default_factory=dict)
    body: bytes = b""


Peer = Callable[[Command], Answer | None]
"""Takes a request and answers it; with None, never."""


class Playbook:
    """The outbox, calls and writes of one core, and its peers by address; an address without a peer refuses
    the connection. What is to be written is, into `files`. Keeps every request as (address, command), every
    note, and a halt's reason. `now_ms` is the time, which only the test moves."""

    def __init__(self, peers: Mapping[str, Peer], *, files: Files | None = None, now_ms: int = 1_000) -> None:
        self.peers = dict(peers)
        self.now_ms = now_ms
        self.outbox = Outbox()
        self.calls = Calls(self.outbox)
        self.writes = Writes(self.outbox)
        self._stores = Stores(files)
        self.requests: list[tuple[str, Command]] = []
        self.notes: list[Note] = []
        self.halted: str | None = None
        self._named = 0
        self._addresses: dict[int, str] = {}
        self._buffers: dict[int, FrameBuffer] = {}

    def __rshift__(self, action: Action) -> Playbook:
        """In: let this happen now, and carry requests and answers until nothing more is sent."""
        action(self.now_ms)
        self.calls.ticked(self.now_ms)
        while events := self._carried_out(self.outbox.take()):
            for event in events:
                assert deliver(self.calls, event, self.writes)
            self.calls.ticked(self.now_ms)
        return self

    def __lshift__(self, codes: Iterable[int]) -> Playbook:
        """Out: these requests have left since the last `<<`, in this order, and no others."""
        sent, self._named = self.codes()[self._named :], len(self.requests)
        assert sent == list(codes), f"sent {sent}"
        return self

    def codes(self) -> list[int]:
        """The codes of all requests so far, in order."""
        return [command.header.code for _, command in self.requests]

    def _carried_out(self, effects: Iterable[Effect]) -> list[Event]:
        """The events that follow from effects."""
        events: list[Event] = []
        for effect in effects:
            match effect:
                case Dial(connection, address):
                    events.append(self._dialled(connection, address))
                case Send(connection, data, _):
                    events += self._answers(connection, bytes(data))
                case Persist():
                    events.append(carried_out(effect, self._stores, self.now_ms))
                case Note():
                    self.notes.append(effect)
                case Halt(reason):
                    self.halted = reason
                case _:
                    pass
        return events

    def _dialled(self, connection: int, address: str) -> Event:
        if address not in self.peers:
            return Closed(connection, "refused", self.now_ms)
        self._addresses[connection] = address
        self._buffers[connection] = FrameBuffer(REMOTING)
        return Connected(connection, "127.0.0.1:50000", self.now_ms)

    def _answers(self, connection: int, data: bytes) -> list[Event]:
        answers = b""
        for frame in self._buffers[connection].receive(data):
            command = decode_command(frame)
            address = self._addresses[connection]
            self.requests.append((address, command))
            answer = self.peers[address](command)
            if answer is not None and command.wants_answer:
                header = RemotingHeader(
                    code=answer.code,
                    opaque=command.header.opaque,
                    flag=RemotingFlag.RESPONSE,
                    ext_fields=dict(answer.ext_fields),
                )
                answers += Command(header, answer.body).encode()
        return [Received(connection, answers, self.now_ms)] if answers else []


def deliver(calls: Calls, event: Event, writes: Writes | None = None) -> bool:
    """Hand calls what happened to a connection, and writes what was written; False for any other event."""
    match event:
        case Connected():
            calls.connected(event)
        case Received():
            calls.received(event)
        case Closed():
            calls.closed(event)
        case Persisted() | PersistFailed() if writes is not None:
            writes.answered(event)
        case _:
            return False
    return True
