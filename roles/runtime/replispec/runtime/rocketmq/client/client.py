"""Carries a client's steps out: asks name servers and brokers, keeps routes, waits."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.client.asking import Ask, Failed, Learn, LookUp, Pausing, Steps, Told
from replispec.runtime.rocketmq.client.routes import Route, route_of
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.remoting import BROKER_RELEASE
from replispec.runtime.rocketmq.remoting.calls import REQUESTS_MAX, Calls, Outcome, Sign
from replispec.runtime.world import Closed, Connected, Event, Outbox, Received
from replispec.wire.rocketmq.broker import GetRouteInfoRequest, TopicRouteData
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode, RouteFlag
from replispec.wire.rocketmq.constants import ANSWER_TIMEOUT_MS, ROUTE_REFRESH_MS, TEMPLATE_TOPIC

Then = Callable[[Any, int], None]
"""Called once: with what steps came to, or Failed, and the time."""


@dataclass(slots=True)
class _Running:
    steps: Steps[Any]
    then: Then
    makes: bool = False


@dataclass(slots=True)
class _Topic:
    """What is known of a topic, as of a time, and who waits for its route."""

    route: Route | None = None
    at_ms: int = 0
    waiting: list[_Running] = field(default_factory=list)


class Client:
    """A part of a node. Each `then` is called once, never from inside `start`.

    A route is asked for again when it is old, and when a broker says that it does not answer for a queue.
    Whoever has a route keeps it where nobody tells a newer one.
    """

    def __init__(
        self,
        outbox: Outbox,
        name_servers: Sequence[str],
        *,
        answer_ms: int = ANSWER_TIMEOUT_MS,
        sign: Sign | None = None,
        requests_max: int = REQUESTS_MAX,
    ) -> None:
        self._name_servers = list(name_servers)
        self._answer_ms = answer_ms
        self._calls = Calls(
            outbox,
            version=BROKER_RELEASE,
            connect_timeout_ms=answer_ms,
            requests_max=requests_max,
            sign=sign,
        )
        self._topics: dict[str, _Topic] = {}
        self._pauses: list[tuple[int, int, _Running]] = []
        self._begun: list[_Running] = []
        self._serial = 0

    def start(self, steps: Steps[Any], then: Then) -> None:
        """Carry these out, from the next `ticked` on."""
        self._begun.append(_Running(steps, then))

    def take(self, event: Event) -> None:
        """Take one event that the node received; `ticked` follows."""
        match event:
            case Connected():
                self._calls.connected(event)
            case Received():
                self._calls.received(event)
            case Closed():
                self._calls.closed(event)
            case _:
                pass

    def ticked(self, now_ms: int) -> None:
        """To be called after every event that the node received."""
        self._calls.ticked(now_ms)
        while self._pauses and self._pauses[0][0] <= now_ms:
            self._go_on(heapq.heappop(self._pauses)[2], now_ms, now_ms)
        begun, self._begun = self._begun, []
        for each in begun:
            self._go_on(each, None, now_ms)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        if self._begun:
            return 0
        due = [self._calls.deadline_ms(), self._pauses[0][0] if self._pauses else None]
        return min((at for at in due if at is not None), default=None)

    # ---- steps -----------------------------------------------------------------------------------

    def _go_on(self, running: _Running, told: Told | Failed | None, now_ms: int) -> None:
        try:
            if isinstance(told, Failed):
                wanted = running.steps.throw(told)
            elif told is None:
                wanted = next(running.steps)
            else:
                wanted = running.steps.send(told)
        except StopIteration as end:
            running.then(end.value, now_ms)
            return
        except Failed as failure:
            running.then(failure, now_ms)
            return
        match wanted:
            case Ask():
                self._ask(running, wanted, now_ms)
            case Pausing(for_ms):
                self._serial += 1
                heapq.heappush(self._pauses, (now_ms + for_ms, self._serial, running))
            case LookUp():
                self._look_up(running, wanted, now_ms)
            case Learn():
                self._learn(running, wanted, now_ms)

    def _ask(self, running: _Running, wanted: Ask, now_ms: int) -> None:
        def answered(outcome: Outcome, at_ms: int) -> None:
            self._go_on(running, outcome, at_ms)

        self._calls.ask(
            wanted.address,
            wanted.code,
            answered,
            now_ms=now_ms,
            timeout_ms=self._answer_ms + wanted.more_ms,
            ext_fields=wanted.header.to_ext_fields(),
            body=wanted.body,
        )

    # ---- routes ----------------------------------------------------------------------------------

    def _look_up(self, running: _Running, wanted: LookUp, now_ms: int) -> None:
        topic = self._topics.setdefault(wanted.topic, _Topic())
        is_old = now_ms - topic.at_ms >= ROUTE_REFRESH_MS
        if topic.route is not None and topic.route is not wanted.wrong and not is_old:
            self._go_on(running, topic.route, now_ms)
            return
        running.makes = wanted.makes
        topic.waiting.append(running)
        if len(topic.waiting) == 1:
            self._ask_route(wanted.topic, wanted.topic, 0, Failed("no name server is named"), now_ms)

    def _learn(self, running: _Running, wanted: Learn, now_ms: int) -> None:
        topic = self._topics[wanted.topic]
        # Whoever was told to ask elsewhere had a route.
        assert topic.route is not None
        topic.route = topic.route.learnt(wanted.index, wanted.segments)
        self._go_on(running, topic.route, now_ms)

    def _ask_route(self, topic: str, asked: str, turn: int, failure: Failed, now_ms: int) -> None:
        if turn >= len(self._name_servers):
            is_new = failure.code == ResponseCode.TOPIC_NOT_EXIST and asked != TEMPLATE_TOPIC
            if is_new and any(each.makes for each in self._topics[topic].waiting):
                # Brokers make a topic that somebody sends to, if they may: where, says that of all such.
                self._ask_route(topic, TEMPLATE_TOPIC, 0, failure, now_ms)
                return
            self._route_known(topic, failure, now_ms)
            return
        self._calls.ask(
            self._name_servers[turn],
            RequestCode.GET_ROUTEINFO_BY_TOPIC,
            partial(self._route_told, topic, asked, turn),
            now_ms=now_ms,
            timeout_ms=self._answer_ms,
            ext_fields=GetRouteInfoRequest(topic=asked, sys_flag=RouteFlag.LOGICAL_QUEUE).to_ext_fields(),
        )

    def _route_told(self, topic: str, asked: str, turn: int, outcome: Outcome, now_ms: int) -> None:
        server = self._name_servers[turn]
        if not isinstance(outcome, Command):
            failure = Failed(f"{server}: {outcome.reason}")
        elif outcome.header.code != ResponseCode.SUCCESS:
            failure = Failed(f"no route to {topic}, says {server}", code=outcome.header.code)
        else:
            try:
                route = route_of(topic, TopicRouteData.decode(outcome.body), self._topics[topic].route)
            except RemoteProtocolError as error:
                failure = Failed(f"{server} tells a route that cannot be read: {error}")
            else:
                self._route_known(topic, route, now_ms, is_new=asked != topic)
                return
        self._ask_route(topic, asked, turn + 1, failure, now_ms)

    def _route_known(self, name: str, told: Route | Failed, now_ms: int, *, is_new: bool = False) -> None:
        topic = self._topics[name]
        if is_new and isinstance(told, Route):
            waiting, topic.waiting = topic.waiting, []
            absent = Failed(f"there is no topic {name}", code=ResponseCode.TOPIC_NOT_EXIST)
            for each in waiting:
                self._go_on(each, told.of_new_topic() if each.makes else absent, now_ms)
            return
        if isinstance(told, Route):
            topic.route = told
        if topic.route is not None:
            topic.at_ms = now_ms
        waiting, topic.waiting = topic.waiting, []
        for each in waiting:
            self._go_on(each, topic.route or told, now_ms)
