"""Whatever a peer sends is answered once or ends its own connection; nobody else notices."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.nameserver.rocketmq import NameServerNode
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.world import Received
from replispec.wire.rocketmq.codes import WIRE_KEYS, RequestCode, ResponseCode
from replispec.wire.rocketmq.options import NameServerOptions
from replispec.wire.rocketmq.remoting import RemotingHeader
from tests.controller import conversation

CONTROLLER_CODES = (*range(1001, 1014), RequestCode.BROKER_HEARTBEAT)
NAME_SERVER_CODES = (103, 104, 105, 106, 319, 322, RequestCode.BROKER_HEARTBEAT)
ROLES = ("controller", "nameserver")
texts = st.one_of(
    st.sampled_from(
        (
            "",
            "1",
            "-1",
            "0",
            "true",
            conversation.SET,
            conversation.CLUSTER,
            "127.0.0.1:30910;1",
            "1;2",
            ";",
            "#",
        )
    ),
    st.integers(-(2**70), 2**70).map(str),
    st.text(max_size=20),
    st.none(),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**64), 2**64), st.text(max_size=10)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=8,
)


def started(role: str) -> conversation.Talk:
    """A node that has started; a controller knows two brokers, one of them master."""
    if role == "nameserver":
        return conversation.Talk(NameServerNode(NameServerOptions()), role).start()
    talk = conversation.controller()
    connection = talk.connect()
    for broker in (1, 2):
        talk.ask(connection, RequestCode.CONTROLLER_APPLY_BROKER_ID, conversation.application(broker))
        talk.ask(connection, RequestCode.BROKER_HEARTBEAT, conversation.heartbeat(broker))
    talk.ask(connection, RequestCode.CONTROLLER_ELECT_MASTER, conversation.election(1))
    return talk


def serves(talk: conversation.Talk, role: str) -> bool:
    """Whether somebody else is still served as before."""
    connection = talk.connect()
    if role == "nameserver":
        return talk.ask(connection, RequestCode.GET_BROKER_CLUSTER_INFO).header.code == ResponseCode.SUCCESS
    answer = talk.ask(connection, RequestCode.CONTROLLER_GET_REPLICA_INFO, conversation.question())
    return answer.header.code in (ResponseCode.SUCCESS, ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST)


@pytest.mark.parametrize("role", ROLES)
@given(
    data=st.data(),
    fields=st.dictionaries(st.sampled_from(sorted(WIRE_KEYS)), texts, max_size=8),
    body=st.one_of(st.binary(max_size=40), values.map(lambda value: json.dumps(value).encode())),
)
def test_any_fields_and_any_body_are_answered_exactly_once(
    role: str, data: st.DataObject, fields: dict[str, str | None], body: bytes
) -> None:
    talk = started(role)
    code = data.draw(st.sampled_from(CONTROLLER_CODES if role == "controller" else NAME_SERVER_CODES))
    named = {"brokerName": conversation.SET, "clusterName": conversation.CLUSTER, **fields}
    header = RemotingHeader(code=code, opaque=77, ext_fields=named)
    connection = talk.connect()
    talk.give(Received(connection, Command(header, body).encode(), talk.now_ms))
    if connection not in talk.closed():
        assert [each.header.opaque for each in talk.answers[connection]] == [77]
    assert talk.halted() is None
    assert serves(talk, role)


@pytest.mark.parametrize("role", ROLES)
@given(st.lists(st.binary(min_size=1, max_size=60), max_size=5))
def test_garbage_ends_at_most_the_connection_that_it_came_on(role: str, pieces: list[bytes]) -> None:
    talk = started(role)
    connection = talk.connect()
    for piece in pieces:
        talk.give(Received(connection, piece, talk.now_ms))
    assert set(talk.closed()) <= {connection}
    assert serves(talk, role)


@pytest.mark.parametrize("role", ROLES)
@given(cuts=st.lists(st.integers(0, 400), max_size=6))
def test_answers_do_not_depend_on_how_tcp_cuts_the_bytes(role: str, cuts: list[int]) -> None:
    code = (
        RequestCode.CONTROLLER_GET_REPLICA_INFO
        if role == "controller"
        else RequestCode.GET_BROKER_CLUSTER_INFO
    )
    talk = started(role)
    connection = talk.connect()
    stream = b"".join(talk.frame(code, conversation.question()) for _ in range(3))
    ends = sorted({*(cut for cut in cuts if 0 < cut < len(stream)), len(stream)})
    for start, end in zip([0, *ends], ends, strict=False):
        talk.give(Received(connection, stream[start:end], talk.now_ms))
    found = talk.answers[connection]
    assert len(found) == 3
    assert len({(each.header.code, each.body) for each in found}) == 1
