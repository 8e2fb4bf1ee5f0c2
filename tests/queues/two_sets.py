"""Broker sets that share static topics, and a broker that lies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from replispec.runtime.rocketmq.remoting.server import Request, RequestServer
from replispec.runtime.world import Accepted, Closed, Effect, Event, Member, Outbox, Received, Writable
from replispec.wire.rocketmq.broker import (
    DataVersion,
    RegisterBrokerBody,
    RegisterBrokerRequest,
    TopicConfig,
    TopicConfigTable,
)
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.constants import SINGLE_TAG
from replispec.wire.rocketmq.options import RemotingLimits
from tests.broker.simulated_set import NAME_SERVER, OK, BrokerSet
from tests.queues.test_static_topics import Place, detail, put

Mapped = list[Place]
"""The items of one logical queue."""


class Sets(BrokerSet):
    """Sets broker-a, broker-b, ... of one broker each; their addresses are by name."""

    def __init__(self, names: str = "ab", **options: Any) -> None:
        super().__init__()
        self.at = {
            f"broker-{name}": self.add_broker(number, broker_name=f"broker-{name}", **options)
            for number, name in enumerate(names, 1)
        }
        self.start(*(f"broker{number}" for number in range(1, len(names) + 1)))
        for number in range(1, len(names) + 1):
            self.until(lambda number=number: self.broker(number).serves)  # type: ignore[misc]

    def map(self, epoch: int, *queues: Mapped, to: Iterable[str] = ("broker-a", "broker-b")) -> None:
        """Set a mapping at brokers, one after the other."""
        for name in to:
            said = detail(epoch, *queues, bname=name)
            assert put(self, self.at[name], said)[0] == OK
        self.world.run_for(3_000)


class Liar:
    """A broker that registers as one of a set, and answers whatever a test has it say."""

    def __init__(self, address: str) -> None:
        self._outbox = Outbox()
        self.server = RequestServer(self._outbox, self._asked, limits=RemotingLimits())
        self.address = address
        self.heard: list[Request] = []
        self.says: Callable[[Request], None] = lambda _request: None

    @property
    def listeners(self) -> Mapping[str, str]:
        """Where it listens."""
        return {"main": self.address}

    def deadline_ms(self) -> int | None:
        """Never."""
        return None

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event."""
        match event:
            case Accepted():
                self.server.accepted(event)
            case Received():
                self.server.received(event)
            case Closed():
                self.server.closed(event)
            case Writable():
                self.server.writable(event)
            case _:
                pass
        return self._outbox.take()

    def _asked(self, request: Request) -> None:
        self.heard.append(request)
        self.says(request)

    def sees(self, code: int) -> list[dict[str, str | None]]:
        """The header fields of what it was asked with a code."""
        return [each.command.header.ext_fields or {} for each in self.heard if each.code == code]


def with_liar(items: Mapped) -> tuple[Sets, str, Liar]:
    """Broker-a leads, and a liar is broker-b."""
    sets = Sets("a")
    liar = Liar("10.0.9.9:10911")
    sets.world.add("liar", "10.0.9.9", lambda _storage: [Member("liar", liar)])
    sets.world.start("liar")
    register(sets, liar.address)
    sets.map(5, items, to=["broker-a"])
    return sets, sets.at["broker-a"], liar


def register(sets: BrokerSet, address: str, name: str = "broker-b", topic: str = "S") -> None:
    """Have the name server know a broker of the topic."""
    config = TopicConfig({}, False, 6, 8, SINGLE_TAG, topic, 0, 8)
    table = TopicConfigTable(DataVersion(1, 1, 0), topic_config_table={topic: config})
    asked = RegisterBrokerRequest(
        broker_name=name,
        broker_addr=address,
        cluster_name="C",
        ha_server_addr=address,
        broker_id=0,
        compressed=False,
        body_crc32=0,
    )
    answer = sets.ask(NAME_SERVER, RequestCode.REGISTER_BROKER, asked, RegisterBrokerBody([], table).encode())
    assert answer.header.code == OK
