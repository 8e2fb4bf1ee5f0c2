"""No peer makes the controller's memory grow for ever."""

import pytest

from replispec.controller.rocketmq.core import broker_sets
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import ApplyBrokerIdRequest
from tests.controller import conversation


def apply(talk: conversation.Talk, connection: int, name: str, broker_id: int) -> int:
    header = ApplyBrokerIdRequest(conversation.CLUSTER, name, broker_id, f"127.0.0.1:{broker_id};1")
    return talk.ask(connection, RequestCode.CONTROLLER_APPLY_BROKER_ID, header).header.code


def test_identities_and_sets_end_at_their_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_sets, "SETS_MAX", 2)
    monkeypatch.setattr(broker_sets, "BROKERS_MAX", 3)
    talk = conversation.controller()
    connection = talk.connect()
    codes = [apply(talk, connection, "one", broker_id) for broker_id in (1, 2, 3, 4)]
    assert codes == [ResponseCode.SUCCESS] * 3 + [ResponseCode.SYSTEM_BUSY]
    codes = [apply(talk, connection, name, 1) for name in ("two", "three", "two", "one")]
    busy = ResponseCode.SYSTEM_BUSY
    assert codes == [ResponseCode.SUCCESS, busy, ResponseCode.SUCCESS, ResponseCode.SUCCESS]
