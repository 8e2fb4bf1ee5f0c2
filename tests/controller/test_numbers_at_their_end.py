"""Whatever numbers brokers and operators say, a controller's log of it is read at the next start, and gives
the same."""

from __future__ import annotations

import json

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from replispec.controller.rocketmq.node import ControllerNode
from replispec.event.v1.event_pb2 import BrokerSetState
from replispec.runtime.primitives.texts import INT32, INT64
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.world import Received
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.remoting import RemotingHeader
from tests.controller import conversation

NUMBERS = st.sampled_from(
    [
        INT64[0],
        INT32[0] - 1,
        INT32[0],
        -1,
        0,
        1,
        2,
        3,
        INT32[1],
        INT32[1] + 1,
        INT64[1] - 1,
        INT64[1],
        1 << 64,
    ]
)
KEYS = (
    "brokerId",
    "masterBrokerId",
    "masterEpoch",
    "epoch",
    "maxOffset",
    "confirmOffset",
    "heartbeatTimeoutMillis",
    "heartbeatTimeoutMills",
    "electionPriority",
    "appliedBrokerId",
    "invokeTime",
)
CODES = (
    RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET,
    RequestCode.CONTROLLER_ELECT_MASTER,
    RequestCode.CONTROLLER_REGISTER_BROKER,
    RequestCode.BROKER_HEARTBEAT,
    RequestCode.CLEAN_BROKER_DATA,
    RequestCode.CONTROLLER_APPLY_BROKER_ID,
)
REQUESTS = st.lists(
    st.tuples(
        st.sampled_from(CODES),
        st.dictionaries(st.sampled_from(KEYS), NUMBERS, max_size=6),
        st.lists(NUMBERS, max_size=3),
        NUMBERS,
    ),
    min_size=1,
    max_size=8,
)


def states(talk: conversation.Talk) -> list[BrokerSetState]:
    """All broker sets as records have made them."""
    assert isinstance(talk.node, ControllerNode)
    return [each.recorded() for each in talk.node._sets]


@pytest.mark.parametrize("snapshot_records", [1_000, 2])
@given(REQUESTS)
@settings(max_examples=40, deadline=None, phases=(Phase.explicit, Phase.generate))
def test_what_any_numbers_made_is_there_at_the_next_start(
    snapshot_records: int, requests: list[tuple[int, dict[str, int], list[int], int]]
) -> None:
    journal = conversation.StoredJournal()
    talk = conversation.controller(journal, snapshot_records=snapshot_records)
    connection = talk.connect()
    for broker in (1, 2):
        talk.ask(connection, RequestCode.CONTROLLER_APPLY_BROKER_ID, conversation.application(broker))
        talk.ask(connection, RequestCode.BROKER_HEARTBEAT, conversation.heartbeat(broker))
    talk.ask(connection, RequestCode.CONTROLLER_ELECT_MASTER, conversation.election(1))
    for code, numbers, members, epoch in requests:
        fields: dict[str, str | None] = {
            "brokerName": conversation.SET,
            "clusterName": conversation.CLUSTER,
            "brokerAddr": conversation.address(1),
            "brokerAddress": conversation.address(1),
            "registerCheckCode": "127.0.0.1:30930;1",
            "cleanLivingBroker": "true",
            "brokerControllerIdsToClean": ";".join(map(str, members)),
            **{key: str(number) for key, number in numbers.items()},
        }
        body = json.dumps({"syncStateSet": members, "syncStateSetEpoch": epoch}).encode()
        asked = talk.connect()
        frame = Command(RemotingHeader(code=code, opaque=1, ext_fields=fields), body).encode()
        talk.give(Received(asked, frame, talk.now_ms))
        assert talk.halted() is None
    assert states(talk)
    talk.wait(20_000)
    assert talk.halted() is None
    again = conversation.controller(journal, snapshot_records=snapshot_records)
    assert states(again) == states(talk)
