"""A controller that refuses, knows nobody, or says nothing of use is asked again after pauses that grow, and
told of in one line. Whatever it refuses, with whatever code: nobody asks at the speed of the wire."""

from __future__ import annotations

import os
from collections import Counter
from itertools import pairwise

import pytest

from replispec.controller.rocketmq.node import ControllerNode
from replispec.runtime.rocketmq.remoting import Request
from replispec.runtime.world import Note
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.options import BrokerOptions
from tests.broker.simulated_set import BrokerSet
from tests.broker.test_role import US, fresh

PER_MINUTE = 26
"""Questions of one kind of one process in a minute: what is asked every five seconds, every ten, and tried
again after 1, 2, 4, 8, 8 ... s."""
SETS_PER_MINUTE = 62
"""For a set that may have been decided senders wait: it is asked for each second."""
ASKED = {
    "all": frozenset(RequestCode),
    "who leads": frozenset({RequestCode.CONTROLLER_GET_METADATA_INFO}),
    "the next id": frozenset({RequestCode.CONTROLLER_GET_NEXT_BROKER_ID}),
    "an id": frozenset({RequestCode.CONTROLLER_APPLY_BROKER_ID}),
    "a registration": frozenset({RequestCode.CONTROLLER_REGISTER_BROKER}),
    "an election": frozenset({RequestCode.CONTROLLER_ELECT_MASTER}),
    "who is master": frozenset({RequestCode.CONTROLLER_GET_REPLICA_INFO}),
    "a set": frozenset({RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET}),
}
OPTIONS = BrokerOptions(broker_name="broker-a")
IS_FULL = "REPLISPEC_REFUSALS" in os.environ
CODES = [
    ResponseCode.SUCCESS,
    ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED,
    ResponseCode.CONTROLLER_BROKER_ID_INVALID,
    ResponseCode.CONTROLLER_MASTER_STILL_EXIST,
]
"""Those that one of the machines does something of its own with; `make test-full` tries all."""
if IS_FULL:
    CODES = [each for each in ResponseCode if each == 0 or each.name.startswith("CONTROLLER_")]


class Refusing:
    """Makes the controller of a set answer these requests with a code and nothing else. Keeps when each host
    asked for it, in milliseconds, by host and code."""

    def __init__(self, brokers: BrokerSet, asked: frozenset[int], code: int) -> None:
        self._asked, self._code = asked, code
        self.refused: dict[tuple[str, int], list[int]] = {}
        node = brokers.world.processes["controller"].nodes[0]
        assert isinstance(node, ControllerNode)
        self._really = node._requests.take
        node._server._handle = self._handle

    def _handle(self, request: Request) -> None:
        if request.code in self._asked and request.wants_answer:
            host = request.peer.rpartition(":")[0]
            self.refused.setdefault((host, request.code), []).append(request.now_ms)
            request.answer(self._code)
        else:
            self._really(request)

    def pauses(self, code: int) -> list[int]:
        """The pauses between these questions of the first broker, in whole seconds."""
        asked = self.refused.get(("10.0.1.1", code), [])
        return [round((later - before) / 1_000) for before, later in pairwise(asked)]


def lines(brokers: BrokerSet) -> Counter[tuple[str, str]]:
    """How often each process says the same."""
    return Counter((name, _said(note)) for name, note in brokers.notes if name != "controller")


def _said(note: Note) -> str:
    return f"{note.what} {note.values}"


def refused_from_the_start(asked: frozenset[int], code: int) -> tuple[BrokerSet, Refusing]:
    """Two brokers and a learner that begin where a controller refuses, after a minute."""
    brokers = BrokerSet()
    refusing = Refusing(brokers, asked, code)
    for number in (1, 2):
        brokers.add_broker(number)
    brokers.add_learner(3)
    brokers.start("broker1", "broker2", "learner3")
    brokers.world.run_for(60_000)
    return brokers, refusing


def refused_later(asked: frozenset[int], code: int) -> tuple[BrokerSet, Refusing]:
    """A whole set whose controller refuses from now on, after a minute."""
    brokers = BrokerSet()
    brokers.pair()
    brokers.add_learner(3)
    brokers.start("learner3")
    del brokers.notes[:]
    refusing = Refusing(brokers, asked, code)
    brokers.world.run_for(60_000)
    return brokers, refusing


@pytest.mark.parametrize("asked", ASKED)
def test_whatever_is_refused_is_asked_for_no_oftener_than_its_pauses_say(asked: str) -> None:
    scenes = [refused_from_the_start]
    if IS_FULL or asked in {"all", "who is master"}:
        scenes.append(refused_later)
    for code in CODES:
        for scene in scenes:
            brokers, refusing = scene(ASKED[asked], code)
            for who, times in refusing.refused.items():
                at_most = SETS_PER_MINUTE if ASKED["a set"] == {who[1]} else PER_MINUTE
                assert len(times) <= at_most, (scene.__name__, code, who, len(times))
            often = {said: count for said, count in lines(brokers).items() if count > 2}
            assert not often, (scene.__name__, code, often)


@pytest.mark.parametrize(
    ("asked", "code", "expected"),
    [
        ("the next id", ResponseCode.CONTROLLER_NOT_LEADER, [1, 2, 4, 8, 8]),
        # Another broker may have been quicker, once.
        ("an id", ResponseCode.CONTROLLER_BROKER_ID_INVALID, [0, 1, 2, 4, 8, 8]),
        ("a registration", ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED, [1, 2, 4, 8, 8]),
    ],
)
def test_each_pause_is_twice_the_one_before_up_to_the_longest(
    asked: str, code: int, expected: list[int]
) -> None:
    (request,) = ASKED[asked]
    _, refusing = refused_from_the_start(ASKED[asked], code)
    assert refusing.pauses(request)[: len(expected)] == expected
    assert max(refusing.pauses(request)) == OPTIONS.registration_retry_interval_max_ms // 1_000


def test_who_is_registered_after_all_begins_with_short_pauses_again() -> None:
    brokers = BrokerSet()
    asked = ASKED["a registration"]
    refusing = Refusing(brokers, asked, ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED)
    brokers.add_broker(1)
    brokers.start("broker1")
    brokers.world.run_for(20_000)
    refusing._asked = frozenset()
    brokers.until(lambda: brokers.broker(1).serves, at_most_ms=10_000)
    refusing.refused.clear()
    refusing._asked = asked | ASKED["who is master"]
    brokers.world.run_for(20_000)
    (request,) = asked
    assert refusing.pauses(request)[:3] == [1, 2, 4]


def test_the_oftener_a_set_is_refused_the_longer_is_the_pause_until_one_is_granted() -> None:
    broker = fresh()
    broker.replica_info_received(US, 5, frozenset({1}), 7)
    broker.controller.code = ResponseCode.CONTROLLER_BROKER_NOT_ALIVE

    def seconds_until_asked() -> int:
        before = len(broker.controller.asked)
        for passed in range(60):
            broker.caught_up(2)
            if len(broker.controller.asked) > before:
                return passed
            broker.wait(1_000)
        return 60

    assert [seconds_until_asked() for _ in range(6)] == [0, 1, 2, 4, 8, 8]
    broker.controller.code = ResponseCode.SUCCESS
    seconds_until_asked()
    broker.controller.code = ResponseCode.CONTROLLER_BROKER_NOT_ALIVE
    broker.lagging(2)
    broker.replica_info_received(US, 5, frozenset({1}), 9)
    assert [seconds_until_asked() for _ in range(3)] == [0, 1, 2]
