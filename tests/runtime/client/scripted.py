"""A client beside a name server and brokers that a test speaks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq.client import Client
from replispec.runtime.rocketmq.client.asking import Steps
from replispec.runtime.rocketmq.framing import Command, FrameBuffer, decode_command
from replispec.runtime.world import (
    Close,
    Closed,
    Connected,
    Dial,
    Effect,
    Event,
    Outbox,
    Received,
    Send,
    Started,
    Ticked,
)
from replispec.wire.rocketmq.broker import BrokerData, QueueData, TopicRouteData
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import MAPPING_SCOPE
from replispec.wire.rocketmq.remoting import RemotingHeader
from replispec.wire.rocketmq.static_topic import TopicQueueMappingInfo
from replispec.wire.rocketmq.streams import REMOTING

NAME_SERVER, TOPIC = "10.0.0.1:9876", "TopicS"
Said = Command | None
Script = Callable[[Command], Said]
"""What a process answers; None: it closes the connection."""


@dataclass(slots=True)
class Scripted:
    """The client, what peers answer by address, and what was asked of whom."""

    peers: dict[str, Script] = field(default_factory=dict)
    asked: list[tuple[str, Command]] = field(default_factory=list)
    now_ms: int = 0
    _outbox: Outbox = field(default_factory=Outbox)
    _addresses: dict[int, str] = field(default_factory=dict)
    client: Client = field(init=False)

    def __post_init__(self) -> None:
        self.client = Client(self._outbox, [NAME_SERVER])

    def carried_out(self, steps: Steps[Any]) -> Any:
        """What steps come to; Failed is given, not raised."""
        came: list[Any] = []
        self.client.start(steps, lambda what, _now_ms: came.append(what))
        self._take(Started(self.now_ms))
        while not came:
            due = self.client.deadline_ms()
            assert due is not None, "nothing is waited for"
            self.now_ms = max(self.now_ms, due)
            self._take(Ticked(self.now_ms))
        (found,) = came
        return found

    def questions(self, code: RequestCode) -> list[tuple[str, Command]]:
        """Of this kind, in order."""
        return [each for each in self.asked if each[1].header.code == code]

    def _take(self, event: Event) -> None:
        events = [event]
        while events:
            one = events.pop(0)
            self.client.take(one)
            self.client.ticked(self.now_ms)
            for effect in self._outbox.take():
                events += self._followed(effect)

    def _followed(self, effect: Effect) -> Sequence[Event]:
        match effect:
            case Dial(connection, address):
                self._addresses[connection] = address
                if address not in self.peers:
                    return [Closed(connection, "Connection refused", self.now_ms)]
                return [Connected(connection, address, self.now_ms)]
            case Send(connection, data):
                return self._answers(connection, bytes(data))
            case Close(connection):
                del self._addresses[connection]
        return []

    def _answers(self, connection: int, data: bytes) -> Sequence[Event]:
        address, events = self._addresses[connection], list[Event]()
        for frame in FrameBuffer(REMOTING).receive(data):
            command = decode_command(frame)
            self.asked.append((address, command))
            said = self.peers[address](command)
            if said is None:
                return [*events, Closed(connection, "reset", self.now_ms)]
            said.header.opaque = command.header.opaque
            events.append(Received(connection, said.encode(), self.now_ms))
        return events


def answer(code: int, header: Header | None = None, body: bytes = b"") -> Command:
    """An answer."""
    fields = header.to_ext_fields() if header is not None else None
    return Command(RemotingHeader(code=code, flag=RemotingFlag.RESPONSE, ext_fields=fields), body)


def place(broker: str) -> str:
    """Where a broker is."""
    return f"{broker}:10911"


def static(leads: Mapping[str, tuple[int, Mapping[int, int]]], total: int, *members: str) -> TopicRouteData:
    """The route of a static topic: epoch and what it leads, by broker."""
    brokers = sorted({*leads, *members})
    return TopicRouteData(
        broker_datas=[BrokerData({0: place(each)}, each, "C") for each in brokers],
        queue_datas=[
            QueueData(broker_name=each, perm=6, read_queue_nums=4, write_queue_nums=4) for each in brokers
        ],
        topic_queue_mapping_by_broker={
            name: TopicQueueMappingInfo(name, dict(led), False, epoch, MAPPING_SCOPE, TOPIC, total)
            for name, (epoch, led) in leads.items()
        },
    )


def telling(*routes: TopicRouteData) -> Script:
    """A name server that tells one after the other, the last one for ever."""
    left = list(routes)

    def script(_command: Command) -> Said:
        found = left.pop(0) if len(left) > 1 else left[0]
        return answer(ResponseCode.SUCCESS, body=found.encode())

    return script
