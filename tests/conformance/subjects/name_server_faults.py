"""Name servers that do it wrong: each overrides one choice of the good one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.broker import (
    DataVersion,
    RegisterBrokerRequest,
    RegisterBrokerResponse,
    TopicConfig,
    TopicRouteData,
    UnregisterBrokerRequest,
)
from replispec.wire.rocketmq.codes import ResponseCode
from replispec.wire.rocketmq.controller import Property
from tests.conformance.subjects.name_server import MASTER, Broker, GoodNameServer
from tests.conformance.subjects.records import Answer, Channel, Refused


class HearsNoEnd(GoodNameServer):
    """The end of a connection takes nobody away."""

    def ended(self, channel: Channel) -> None:
        pass


class KnowsNoHeartbeats(GoodNameServer):
    """Heartbeats are for controllers."""

    def live(self, request: Command) -> Answer:  # noqa: ARG002
        raise Refused(ResponseCode.SYSTEM_ERROR, "heartbeats are for controllers")


class HearsNoGoodbye(GoodNameServer):
    """Who says that it stops is still named."""

    def unregistered(self, said: UnregisterBrokerRequest) -> None:
        pass


class KeepsTheSilent(GoodNameServer):
    """Who is silent is named for ever."""

    def is_silent(self, broker: Broker) -> bool:  # noqa: ARG002
        return False

    def deadline_s(self) -> float:
        return math.inf


class ForgetsTheSilentOnce(GoodNameServer):
    """Once somebody was forgotten for silence nobody else is."""

    forgot = False

    def is_silent(self, broker: Broker) -> bool:
        silent = not self.forgot and super().is_silent(broker)
        self.forgot = self.forgot or silent
        return silent

    def deadline_s(self) -> float:
        return math.inf if self.forgot else super().deadline_s()


class DropsTheSet(GoodNameServer):
    """With one broker its whole set is gone."""

    def leaving(self, broker: Broker) -> Iterable[Broker]:
        return self.of_set(broker.said.broker_name)


class TakesTheDamaged(GoodNameServer):
    """The checksum of a body is not looked at."""

    def is_whole(self, said: RegisterBrokerRequest, body: bytes) -> bool:  # noqa: ARG002
        return True


class TakesTheOlder(GoodNameServer):
    """Whoever says last that it is master is it."""

    def is_older(self, before: Broker, version: DataVersion) -> bool:  # noqa: ARG002
        return False


class KeepsTheFirst(GoodNameServer):
    """While there is a master there is no other."""

    def is_older(self, before: Broker, version: DataVersion) -> bool:  # noqa: ARG002
        return True


class TellsNoMaster(GoodNameServer):
    """A replica is not told of its master."""

    def told(self, said: RegisterBrokerRequest) -> RegisterBrokerResponse:  # noqa: ARG002
        return RegisterBrokerResponse(None, None)


class InventsAMaster(GoodNameServer):
    """Where there is no master a replica is told of itself."""

    def told(self, said: RegisterBrokerRequest) -> RegisterBrokerResponse:
        if self.master_of(said.broker_name) is None:
            return RegisterBrokerResponse(said.ha_server_addr, said.broker_addr)
        return super().told(said)


class RemembersTheFirstMaster(GoodNameServer):
    """Replicas are told of whoever was master first."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self.first: dict[str | None, RegisterBrokerResponse] = {}

    def told(self, said: RegisterBrokerRequest) -> RegisterBrokerResponse:
        answer = super().told(said)
        return self.first.setdefault(said.broker_name, answer) if answer.master_addr else answer


class KeepsEarlierIds(GoodNameServer):
    """A broker that got another id has both."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self.ids: dict[str, dict[int, str]] = {}

    def keep(self, broker: Broker) -> None:
        super().keep(broker)
        found = self.ids.setdefault(broker.said.broker_name or "", {})
        found.setdefault(broker.number, broker.said.broker_addr or "")

    def addresses(self, name: str) -> dict[int, str]:
        return {**self.ids[name], **super().addresses(name)}


class OneSizeForAll(GoodNameServer):
    """Every topic has four queues."""

    def queues(self, _topic: str, config: TopicConfig) -> tuple[int, int]:  # noqa: ARG002
        return 4, 4


class OneSetForATopic(GoodNameServer):
    """A client is told of the first set alone."""

    def holders(self, topic: str) -> list[str]:
        return super().holders(topic)[:1]


class HidesTheEmpty(GoodNameServer):
    """Sets without topics are not shown."""

    def shown_sets(self) -> list[str]:
        return [name for name in super().shown_sets() if any(each.topics for each in self.of_set(name))]


class HidesReplicas(GoodNameServer):
    """Only masters are told of."""

    def addresses(self, name: str) -> dict[int, str]:
        return {number: where for number, where in super().addresses(name).items() if number == MASTER}


class EveryTopicExists(GoodNameServer):
    """A topic that nobody holds has a route without brokers."""

    def nobody_holds(self, topic: str) -> Answer:  # noqa: ARG002
        return Answer(body=TopicRouteData([], {}, [], None).encode())


class NothingEverChanged(GoodNameServer):
    """Topics are never said to have changed."""

    def has_changed(self, known: DataVersion | None, asked: DataVersion) -> bool:  # noqa: ARG002
        return False


class EverythingChanged(GoodNameServer):
    """Topics are always said to have changed."""

    def has_changed(self, known: DataVersion | None, asked: DataVersion) -> bool:  # noqa: ARG002
        return True


class RefusesStrangers(GoodNameServer):
    """Who was never there may not leave."""

    def unregistered(self, said: UnregisterBrokerRequest) -> None:
        if said.broker_addr not in self.brokers:
            raise Refused(ResponseCode.SYSTEM_ERROR, "who is that")
        super().unregistered(said)


class KeepsFirstTopics(GoodNameServer):
    """What a broker registers later adds no topic."""

    def keep(self, broker: Broker) -> None:
        known = self.first.setdefault(broker.said.broker_addr or "", broker.topics)
        super().keep(Broker(broker.said, known, broker.version, broker.channel, broker.heard_s))

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self.first: dict[str, dict[str, TopicConfig]] = {}


class ListsNoTopics(GoodNameServer):
    """Administrators are told of no topic."""

    def listed_topics(self) -> list[str]:
        return []


class HidesItsSettings(GoodNameServer):
    """Administrators are told nothing of its configuration."""

    def settings(self) -> list[Property]:
        return []


CAUGHT: Mapping[type[GoodNameServer], str] = {
    HearsNoEnd: "leave/WIRE-ROUTE-6/1",
    HearsNoGoodbye: "leave/WIRE-ROUTE-2/1",
    KeepsTheSilent: "leave/WIRE-ROUTE-6/4",
    ForgetsTheSilentOnce: "leave/WIRE-ROUTE-6/6",
    DropsTheSet: "leave/WIRE-ROUTE-2/2",
    TakesTheDamaged: "register/WIRE-ROUTE-1/6",
    TakesTheOlder: "register/WIRE-ROUTE-7/1",
    KeepsTheFirst: "register/WIRE-ROUTE-7/2",
    TellsNoMaster: "register/WIRE-ROUTE-1/2",
    InventsAMaster: "register/WIRE-ROUTE-1/3",
    RemembersTheFirstMaster: "register/WIRE-ROUTE-1/4",
    KeepsEarlierIds: "route/WIRE-ROUTE-3/9",
    OneSizeForAll: "route/WIRE-ROUTE-3/3",
    OneSetForATopic: "route/WIRE-ROUTE-3/5",
    HidesTheEmpty: "cluster/WIRE-ROUTE-4/3",
    HidesReplicas: "cluster/WIRE-ROUTE-4/2",
    EveryTopicExists: "route/WIRE-ROUTE-3/2",
    NothingEverChanged: "register/WIRE-ROUTE-1/8",
    EverythingChanged: "register/WIRE-ROUTE-1/7",
    RefusesStrangers: "leave/WIRE-ROUTE-2/3",
    KeepsFirstTopics: "route/WIRE-ROUTE-3/6",
    ListsNoTopics: "cluster/WIRE-ROUTE-3/1",
    HidesItsSettings: "cluster/WIRE-ROUTE-5/1",
    KnowsNoHeartbeats: "register/WIRE-ROUTE-1/10",
}
