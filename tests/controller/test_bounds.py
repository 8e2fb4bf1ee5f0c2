"""No peer makes the controller's memory grow for ever."""

import pytest

from replispec.controller.rocketmq.core import broker_sets
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import ApplyBrokerIdRequest
from tests.controller import conversation


def apply(talk: conversation.Talk, connection: int, name: str, broker_id: int) -> int:
    header = ApplyBrokerIdRequest(conversation.CLUSTER, name, broker_id, f"127.0.0.1:{broker_id};1")
    return talk.ask(connection, RequestCode.CONTROLLER_APPLY_BROKER_ID, header).header.code


OK, BUSY = ResponseCode.SUCCESS, ResponseCode.SYSTEM_BUSY


def test_identities_and_sets_end_at_their_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_sets, "SETS_MAX", 2)
    monkeypatch.setattr(broker_sets, "BROKERS_MAX", 3)
    talk = conversation.controller()
    first, second, third, fourth = (talk.connect(f"10.0.0.{number}") for number in range(4))
    asked = [(first, 1), (first, 2), (second, 3), (third, 4)]
    assert [apply(talk, whose, "one", broker_id) for whose, broker_id in asked] == [OK, OK, OK, BUSY]
    assert [apply(talk, fourth, name, 1) for name in ("two", "three", "two")] == [OK, BUSY, OK]
    assert [apply(talk, first, name, 1) for name in ("one", "three")] == [OK, BUSY]


def test_who_has_taken_half_of_the_identities_or_sets_leaves_the_rest_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(broker_sets, "SETS_MAX", 12)
    monkeypatch.setattr(broker_sets, "BROKERS_MAX", 10)
    talk = conversation.controller()
    early, greedy, late = (talk.connect(f"10.0.0.{number}") for number in range(3))
    assert apply(talk, early, "broker-a", 1) == OK
    taken = [apply(talk, greedy, "broker-a", broker_id) for broker_id in range(2, 20)]
    assert taken.count(OK) == 5, "nine were left, and five is more than the four that are left now"
    founded = [apply(talk, greedy, f"set-{number}", 1) for number in range(20)]
    assert founded.count(OK) == 6
    assert apply(talk, late, "broker-a", 7) == OK
    assert [apply(talk, late, name, 1) for name in ("broker-b", "broker-c")] == [OK, OK]
    assert apply(talk, early, "broker-a", 1) == OK, "who is in stays in"
