"""Registrations of what changed alone: a name server knows as much as if it were told all, or asks for it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

import pytest

from replispec.nameserver.rocketmq import Limits, Routes
from replispec.nameserver.rocketmq.registered import RouteRegistration
from replispec.runtime.rocketmq.membership import Announcement
from replispec.runtime.rocketmq.queues import LogicalQueue
from replispec.runtime.rocketmq.queues.forms import message_of_queues
from replispec.runtime.rocketmq.queues.telling import Enabled, Statement, message_of_statement
from replispec.wire.rocketmq.broker import (
    DataVersion,
    GetRouteInfoRequest,
    RegisterBrokerBody,
    RegisterBrokerResponse,
    TopicConfigTable,
)
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode, RouteFlag
from replispec.wire.rocketmq.constants import ANNOUNCED_EVERY_MS
from replispec.wire.rocketmq.static_topic import DeleteTopicRouteRequest
from tests.controller import conversation
from tests.controller.test_nameserver import register, started, topic
from tests.queues.logical_sets import LogicalSet
from tests.queues.registering_queues import NOW_MS, NUMBERS, info, segment

TOPICS = ("T", "U", "V")
PERIOD_MS = 30_000
Hold = dict[str, tuple[int, int]]
"""By topic: up to where its first broker has logical queue 0, and how many message queues it has."""


def table(broker: str, counter: int, holds: Hold, *, enabled: bool = True) -> TopicConfigTable:
    """What a broker holds: of logical queue 0 of each topic the part before a border is of b1, that behind
    it of b2; b3 leads queues of a static topic."""
    queues = {}
    for name, (border, _) in holds.items():
        own = segment(broker, 0, 0, border) if broker == "b1" else segment(broker, 0, border)
        queues[name] = message_of_queues([LogicalQueue.of(0, [own])], name)
    stated = message_of_statement(Statement(Enabled(NOW_MS, 1, 1)))
    is_static = broker == "b3"
    return TopicConfigTable(
        DataVersion(counter, 1, NOW_MS),
        topic_config_table={name: topic(name, count) for name, (_, count) in holds.items()},
        topic_queue_mapping_info_map={"T": info(broker, NOW_MS + counter, {0: 0})} if is_static else {},
        logical_queues_info_map={} if is_static else queues,
        logical_queues_enabled_map=dict.fromkeys(holds, stated) if enabled and not is_static else {},
    )


class Names:
    """A name server, and the masters that it hears."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.talk = started(limits)
        self.talk.now_ms = NOW_MS
        self.connections: dict[str, int] = {}
        self.told: dict[str, Announcement] = {}

    def hears(self, broker: str, said: TopicConfigTable, *, all_of_it: bool, host: str = "127.0.0.1") -> bool:
        """A broker registers, what changed alone if it may; whether that was taken."""
        now = Announcement("C", broker, 0, conversation.address(NUMBERS[broker]), "", said)
        base = None if all_of_it else self.told.get(broker)
        body = RegisterBrokerBody([], said)
        if base is not None:
            part = now.since(base)
            body = RegisterBrokerBody([], part.topics, part.changed_since)
        if broker not in self.connections:
            self.connections[broker] = self.talk.connect(host)
        connection = self.connections[broker]
        answer = register(self.talk, connection, 0, body.encode(), broker=NUMBERS[broker], name=broker)
        fields = RegisterBrokerResponse.from_ext_fields(answer.header.ext_fields or {})
        self.told.pop(broker, None)
        if fields.changes_suffice:
            self.told[broker] = now
        return answer.header.code == ResponseCode.SUCCESS

    def loses(self, broker: str) -> None:
        """A broker's connection ends."""
        if broker in self.connections:
            self.talk.close(self.connections.pop(broker))

    def forgets(self, name: str) -> None:
        """An administrator has a topic forgotten."""
        header = DeleteTopicRouteRequest(name)
        self.talk.ask(self.talk.connect(), RequestCode.DELETE_TOPIC_IN_NAMESRV, header)

    def answers(self) -> Iterator[tuple[int, str | None, bytes]]:
        """All that anybody can ask."""
        client = self.talk.connect()
        for name in TOPICS:
            for flag in (RouteFlag.NONE, RouteFlag.LOGICAL_QUEUE):
                header = GetRouteInfoRequest(name, sys_flag=flag)
                answer = self.talk.ask(client, RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
                yield answer.header.code, answer.header.remark, answer.body
        for code in (RequestCode.GET_BROKER_CLUSTER_INFO, RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER):
            yield 0, None, self.talk.ask(client, code, None).body


@pytest.mark.parametrize("seed", range(12))
def test_who_is_told_what_changed_alone_answers_as_who_is_told_all(seed: int) -> None:
    """And what it told before is told no more once it changed."""
    rng = random.Random(seed)
    names, history = Names(), list[Callable[[Names], object]]()
    holds: dict[str, Hold] = {each: {} for each in ("b1", "b2", "b3")}
    borders = dict.fromkeys(TOPICS, 5)
    parts = 0
    for counter in range(1, 40):
        what, broker, name = rng.randrange(8), rng.choice(list(holds)), rng.choice(TOPICS)
        if what == 0:
            history.append(partial(Names.loses, broker=broker))
            names.loses(broker)
        elif what == 1:
            history.append(partial(Names.forgets, name=name))
            names.forgets(name)
        else:
            borders[name] += rng.randrange(2)
            holds[broker][name] = borders[name], rng.randrange(1, 3)
            said = table(broker, counter, dict(holds[broker]), enabled=rng.random() < 0.9)
            parts += broker in names.told
            if not names.hears(broker, said, all_of_it=False):
                assert names.hears(broker, said, all_of_it=True)
            history.append(partial(Names.hears, broker=broker, said=said, all_of_it=True))
        told = list(names.answers())
        if counter % 6 == 0:
            fresh = Names()
            for each in history:
                each(fresh)
            assert told == list(fresh.answers())
    assert parts


def test_what_changed_is_refused_of_whom_not_all_is_known() -> None:
    """It started empty, lost the connection, an administrator had a topic forgotten, or it has another
    version."""
    one: Hold = {"T": (5, 1)}
    spoils: list[Callable[[Names], object]] = [
        lambda names: names.loses("b1"),
        lambda names: names.forgets("T"),
        lambda names: names.hears("b1", table("b1", 7, one), all_of_it=True),
    ]
    for spoil in spoils:
        names = Names()
        names.hears("b1", table("b1", 1, one), all_of_it=True)
        known = names.told["b1"]
        assert names.hears("b1", table("b1", 2, one), all_of_it=False)
        names.told["b1"] = replace(known, topics=table("b1", 2, one))
        spoiled = dict(names.told)
        spoil(names)
        names.told = spoiled
        assert not names.hears("b1", table("b1", 3, one), all_of_it=False)
        assert names.hears("b1", table("b1", 3, one), all_of_it=True)
        assert "b1" in names.told


def test_who_was_not_taken_whole_is_asked_for_all_again() -> None:
    """One topic has more segments than there is room for."""
    names = Names(Limits(segments=2))
    names.hears("b1", table("b1", 1, {"T": (5, 1)}), all_of_it=True)
    assert "b1" in names.told
    names.hears("b1", table("b1", 2, {"T": (5, 1), "U": (5, 1)}), all_of_it=False)
    assert "b1" not in names.told


def test_who_has_more_topics_than_there_is_room_for_tells_all_each_time() -> None:
    names = Names(Limits(topics=1))
    names.hears("b1", table("b1", 1, {"T": (5, 1)}), all_of_it=True)
    assert "b1" in names.told
    names.hears("b1", table("b1", 2, {"U": (5, 1)}), all_of_it=True)
    assert "b1" not in names.told


def test_a_broker_that_had_to_give_way_is_asked_for_all_again() -> None:
    """And of its topics is told what is left."""
    first = table("b1", 1, {"T": (5, 1), "U": (5, 1), "V": (5, 1)})
    second = table("b2", 1, {"T": (5, 1)})
    told = []
    for is_asked in (True, False):
        names = Names(Limits(segments=6))
        names.hears("b1", first, all_of_it=True, host="h1")
        assert "b1" in names.told
        for _ in names.answers() if is_asked else ():
            pass
        names.hears("b2", second, all_of_it=True, host="h2")
        told.append(list(names.answers()))
    assert told[0] == told[1]
    assert not names.hears("b1", table("b1", 2, {"T": (6, 1)}), all_of_it=False)


def test_changes_suffice_of_masters_alone() -> None:
    talk = started()
    talk.now_ms = NOW_MS
    body = RegisterBrokerBody([], table("b1", 1, {"T": (5, 1)})).encode()
    replica = register(talk, talk.connect(), 2, body, broker=1, name="b1")
    assert replica.header.ext_fields is None


def test_a_master_that_another_one_replaced_is_asked_for_all() -> None:
    """Both are heard, under one stateVersion; what one said is not built on by the other."""
    names = Names()
    names.hears("b1", table("b1", 1, {"T": (5, 1)}), all_of_it=True)
    other = register(
        names.talk,
        names.talk.connect(),
        0,
        RegisterBrokerBody([], table("b1", 1, {"U": (5, 1)})).encode(),
        broker=5,
        name="b1",
    )
    assert other.header.code == ResponseCode.SUCCESS
    assert not names.hears("b1", table("b1", 2, {"T": (6, 1)}), all_of_it=False)


def logical(brokers: LogicalSet) -> Mapping[int, object] | None:
    """The logical queues that clients are told."""
    found = brokers.route()
    return None if found is None else found.logical_queues_info


def test_a_broker_of_ours_tells_one_that_changed_and_a_name_server_that_began_anew_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[set[str]] = []
    register_at = Routes.register

    def register(self: Routes, new: RouteRegistration, connection: int, host: str, now_ms: int) -> bool:
        told.append(set(new.topics))
        return register_at(self, new, connection, host, now_ms)

    monkeypatch.setattr(Routes, "register", register)
    brokers = LogicalSet()
    broker = brokers.alone()
    brokers.mapped(broker)
    brokers.world.run_for(PERIOD_MS)
    assert brokers.commit(broker, NOW_MS, 2) == (0, "")
    brokers.world.run_for(2 * ANNOUNCED_EVERY_MS)
    assert told[-1] == {"L"}
    brokers.world.run_for(2 * PERIOD_MS)
    assert told[-1] == set()
    assert sorted(logical(brokers) or ()) == [0, 1]
    brokers.world.kill("nameserver")
    brokers.start("nameserver")
    brokers.until(lambda: logical(brokers) is not None)
    assert told[-1] > {"L"}
    assert sorted(logical(brokers) or ()) == [0, 1]
