"""The controller beside its answers: who is told, what peers may do to it, what old releases hear."""

from __future__ import annotations

from typing import Any

import pytest

from replispec.controller.rocketmq import notifier
from replispec.controller.rocketmq.core import heartbeats
from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.world import Closed, Connected, Received, Writable
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import CONNECT_TIMEOUT_MS, NOTIFIER_IDLE_MS
from replispec.wire.rocketmq.controller import (
    AlterSyncStateSetRequest,
    ApplyBrokerIdResponse,
    BrokerHeartbeatRequest,
    ElectMasterRequest,
    GetMetadataRequest,
    GetMetadataResponse,
    GetReplicaInfoResponse,
    NotifyBrokerRoleChangedRequest,
    Properties,
)
from tests.controller import conversation


def led(*brokers: int, **options: Any) -> tuple[conversation.Talk, int]:
    """A controller of a set with these living brokers, the first of them master and all in sync."""
    talk = conversation.controller(None, **options)
    for broker in brokers:
        connection = talk.connect()
        assert connection == broker
        talk.ask(connection, RequestCode.CONTROLLER_APPLY_BROKER_ID, conversation.application(broker))
        talk.ask(connection, RequestCode.BROKER_HEARTBEAT, conversation.heartbeat(broker))
    asker = talk.connect()
    talk.ask(asker, RequestCode.CONTROLLER_ELECT_MASTER, conversation.election(brokers[0]))
    if len(brokers) > 1:
        body = conversation.members(1, *brokers)
        talk.ask(
            asker, RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, conversation.alteration(brokers[0], 1), body
        )
    return talk, asker


def notified(commands: list[Command]) -> list[tuple[int | None, int | None]]:
    """Master and masterEpoch of notifications."""
    assert all(each.header.code == RequestCode.NOTIFY_BROKER_ROLE_CHANGED for each in commands)
    assert all(each.header.flag == RemotingFlag.ONEWAY and each.header.version == 0 for each in commands)
    read = [NotifyBrokerRoleChangedRequest.from_ext_fields(each.header.ext_fields or {}) for each in commands]
    return [(each.master_broker_id, each.master_epoch) for each in read]


def test_all_living_brokers_are_told_of_a_new_master_each_for_itself() -> None:
    talk, _ = led(1, 2, 3)
    dials = talk.dialled()
    assert [each.address for each in dials] == [conversation.address(each) for each in (1, 2, 3)]
    talk.give(Closed(dials[1].connection, "refused", talk.now_ms))
    assert notified(talk.listens(dials[2])) == [(1, 1)]
    assert notified(talk.listens(dials[0])) == [(1, 1)]
    assert "broker not notified" in talk.noted()


def test_of_notifications_that_could_not_leave_only_the_newest_is_told() -> None:
    talk, asker = led(1, 2)
    first, second = talk.dialled()
    for broker in (2, 1, 2):
        designate = conversation.election(broker, designate=True)
        talk.ask(asker, RequestCode.CONTROLLER_ELECT_MASTER, designate)
        info = talk.ask(asker, RequestCode.CONTROLLER_GET_REPLICA_INFO, conversation.question())
        received = GetReplicaInfoResponse.from_ext_fields(info.header.ext_fields or {})
        set_epoch = int(info.body.partition(b'"syncStateSetEpoch":')[2].rstrip(b"}"))
        body = conversation.members(set_epoch, 1, 2)
        header = conversation.alteration(broker, received.master_epoch or 0)
        talk.ask(asker, RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, header, body)
    assert talk.dialled() == []
    assert notified(talk.listens(first)) == [(2, 4)]
    assert notified(talk.listens(second)) == [(2, 4)]


def test_a_broker_that_does_not_read_holds_one_notification_and_nobody_else() -> None:
    talk, asker = led(1, 2)
    first, second = talk.dialled()
    talk.give(Connected(first.connection, "127.0.0.1:1", talk.now_ms))
    assert notified(talk.listens(second)) == [(1, 1)]
    talk.ask(asker, RequestCode.CONTROLLER_ELECT_MASTER, conversation.election(2, designate=True))
    assert notified(talk.answers[second.connection]) == [(2, 2)]
    assert notified(talk.answers[first.connection]) == [(1, 1)]
    talk.give(Writable(first.connection, talk.now_ms))
    assert notified(talk.answers[first.connection]) == [(1, 1), (2, 2)]


def test_connections_of_notifications_end_when_nobody_answers_or_nobody_needs_them() -> None:
    talk, _ = led(1, 2)
    first, second = talk.dialled()
    talk.listens(first)
    talk.wait(CONNECT_TIMEOUT_MS)
    assert talk.closed() == [second.connection]
    talk.wait(NOTIFIER_IDLE_MS)
    assert talk.closed() == [second.connection, first.connection]


def test_no_more_brokers_are_dialled_than_the_bound_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifier, "ADDRESSES_MAX", 1)
    talk, _ = led(1, 2)
    assert len(talk.dialled()) == 1


def test_nobody_is_told_when_the_configuration_says_so() -> None:
    talk, _ = led(1, 2, notify_broker_role_changed=False)
    assert talk.dialled() == []


def test_the_master_is_told_first() -> None:
    talk, asker = led(1, 2, 3)
    talk.wait(CONNECT_TIMEOUT_MS)
    talk.dialled()
    talk.ask(asker, RequestCode.CONTROLLER_ELECT_MASTER, conversation.election(3, designate=True))
    assert [each.address for each in talk.dialled()] == [conversation.address(each) for each in (3, 1, 2)]


def test_a_late_end_of_an_old_connection_kills_nobody() -> None:
    talk, asker = led(1, 2)
    for _ in range(3):
        talk.ask(talk.connect(), RequestCode.BROKER_HEARTBEAT, conversation.heartbeat(1))
    for connection in (1, 4, 5):
        talk.close(connection)
    info = talk.ask(asker, RequestCode.CONTROLLER_GET_REPLICA_INFO, conversation.question())
    received = GetReplicaInfoResponse.from_ext_fields(info.header.ext_fields or {})
    assert (received.master_broker_id, received.master_epoch) == (1, 1)


def test_after_a_restart_a_master_that_stays_away_is_replaced_by_a_living_member() -> None:
    journal = conversation.StoredJournal()
    talk = conversation.controller(journal)
    connection = talk.connect()
    for broker in (1, 2):
        talk.ask(connection, RequestCode.CONTROLLER_APPLY_BROKER_ID, conversation.application(broker))
        talk.ask(connection, RequestCode.BROKER_HEARTBEAT, conversation.heartbeat(broker))
    talk.ask(connection, RequestCode.CONTROLLER_ELECT_MASTER, conversation.election(1))
    body = conversation.members(1, 1, 2)
    talk.ask(connection, RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, conversation.alteration(1, 1), body)
    talk = conversation.controller(journal)
    connection = talk.connect()
    talk.ask(connection, RequestCode.BROKER_HEARTBEAT, conversation.heartbeat(2))
    info = talk.ask(connection, RequestCode.CONTROLLER_GET_REPLICA_INFO, conversation.question())
    assert (info.header.ext_fields or {})["masterBrokerId"] == "1"
    talk.wait(5_000)
    info = talk.ask(connection, RequestCode.CONTROLLER_GET_REPLICA_INFO, conversation.question())
    assert (info.header.ext_fields or {})["masterBrokerId"] == "2"
    assert [each.address for each in talk.dialled()] == [conversation.address(2)]


def test_an_operator_who_names_nobody_deposes_nobody() -> None:
    talk, asker = led(1, 2)
    answer = talk.ask(asker, RequestCode.CONTROLLER_ELECT_MASTER, conversation.election(-1, designate=True))
    assert answer.header.code == ResponseCode.CONTROLLER_MASTER_STILL_EXIST


STRANGER: list[tuple[int, Header, bytes, ResponseCode]] = [
    (
        RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET,
        AlterSyncStateSetRequest(conversation.SET, master_address="127.0.0.1:1", master_epoch=1),
        b'{"syncStateSet":["127.0.0.1:1"],"syncStateSetEpoch":1}',
        ResponseCode.CONTROLLER_INVALID_MASTER,
    ),
    (
        RequestCode.CONTROLLER_ELECT_MASTER,
        ElectMasterRequest(conversation.CLUSTER, conversation.SET, broker_address="127.0.0.1:1"),
        b"",
        ResponseCode.CONTROLLER_ELECT_MASTER_FAILED_UNTIL_5_1_0,
    ),
    (
        RequestCode.BROKER_HEARTBEAT,
        BrokerHeartbeatRequest(conversation.CLUSTER, "127.0.0.1:1", conversation.SET, epoch=1, max_offset=1),
        b"",
        ResponseCode.CONTROLLER_INVALID_REQUEST,
    ),
    (
        RequestCode.BROKER_HEARTBEAT,
        BrokerHeartbeatRequest(conversation.CLUSTER, conversation.address(1), conversation.SET, epoch=1),
        b"",
        ResponseCode.CONTROLLER_INVALID_REQUEST,
    ),
]


@pytest.mark.parametrize(("code", "header", "body", "answer"), STRANGER, ids=lambda each: str(each)[:30])
def test_an_address_that_nobody_registered_speaks_for_nobody(
    code: int, header: Header, body: bytes, answer: ResponseCode
) -> None:
    talk, asker = led(1)
    before = talk.ask(asker, RequestCode.CONTROLLER_GET_REPLICA_INFO, conversation.question())
    refused = talk.ask(asker, code, header, body)
    assert (refused.header.code, bool(refused.header.remark)) == (answer, True)
    after = talk.ask(asker, RequestCode.CONTROLLER_GET_REPLICA_INFO, conversation.question())
    assert (after.header.ext_fields, after.body) == (before.header.ext_fields, before.body)


def test_a_refused_application_says_which_id_is_next() -> None:
    talk, asker = led(1, 2)
    refused = talk.ask(asker, RequestCode.CONTROLLER_APPLY_BROKER_ID, conversation.application(7))
    assert refused.header.code == ResponseCode.CONTROLLER_BROKER_ID_INVALID
    header = ApplyBrokerIdResponse.from_ext_fields(refused.header.ext_fields or {})
    assert header.next_broker_id == 3


def test_unregistered_brokers_are_remembered_up_to_a_bound_and_registered_ones_beyond_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(heartbeats, "UNREGISTERED_MAX", 2)
    talk = conversation.controller()
    connection = talk.connect()

    def beat(broker: int) -> int:
        return talk.ask(connection, RequestCode.BROKER_HEARTBEAT, conversation.heartbeat(broker)).header.code

    assert [beat(each) for each in (5, 6, 7, 5)] == [0, 0, ResponseCode.SYSTEM_BUSY, 0]
    talk.ask(connection, RequestCode.CONTROLLER_APPLY_BROKER_ID, conversation.application(1))
    assert beat(1) == ResponseCode.SUCCESS
    talk.close(connection)
    connection = talk.connect()
    assert beat(7) == ResponseCode.SUCCESS


@pytest.mark.parametrize("text", ["", "x" * 1_025])
def test_a_name_that_is_no_name_is_refused_and_never_logged(text: str) -> None:
    journal = conversation.StoredJournal()
    talk = conversation.controller(journal)
    connection = talk.connect()
    answer = talk.ask(connection, RequestCode.CONTROLLER_APPLY_BROKER_ID, conversation.application(1, text))
    assert answer.header.code == ResponseCode.CONTROLLER_INVALID_REQUEST
    assert len(journal.kept) == 1


def test_garbage_ends_the_connection_of_whoever_sent_it_alone() -> None:
    talk, asker = led(1)
    bad = talk.connect()
    talk.give(Received(bad, b"\x7f\xff\xff\xff\x00\x00\x00\x00", talk.now_ms))
    assert bad in talk.closed()
    assert talk.ask(asker, RequestCode.CONTROLLER_GET_REPLICA_INFO, conversation.question()).header.code == 0


def test_metadata_names_the_port_that_was_really_opened() -> None:
    talk = conversation.controller()
    answer = talk.ask(talk.connect(), RequestCode.CONTROLLER_GET_METADATA_INFO)
    header = GetMetadataResponse.from_ext_fields(answer.header.ext_fields or {})
    assert header.controller_leader_address == conversation.ADDRESS
    assert (header.is_leader, header.peers) == (True, f"n0:{conversation.ADDRESS};")


@pytest.mark.parametrize(
    "body",
    [
        rb"scanNotActiveBrokerInterval=\ud800",
        rb"scanNotActiveBrokerInterval=\u0000",
        rb"controllerThreadPoolNums=many",
        rb"mappedFileSize=\ud800",
        rb"mappedFileSize=a\nb",
        rb"configStorePath\udfff=1",
        rb"\ud800",
    ],
)
def test_a_configuration_that_cannot_be_shown_is_refused_and_the_controller_goes_on(body: bytes) -> None:
    talk, asker = led(1, 2)
    before = talk.ask(asker, RequestCode.GET_CONTROLLER_CONFIG).body
    answer = talk.ask(asker, RequestCode.UPDATE_CONTROLLER_CONFIG, body=body)
    assert answer.header.code == ResponseCode.INVALID_PARAMETER
    assert talk.ask(asker, RequestCode.GET_CONTROLLER_CONFIG).body == before


def test_a_shorter_interval_counts_at_once_and_no_change_puts_a_look_off() -> None:
    hour_ms = 3_600_000
    talk = conversation.controller(
        scan_not_active_broker_interval_ms=hour_ms, scan_inactive_master_interval_ms=hour_ms
    )
    asker = talk.connect()
    talk.ask(asker, RequestCode.CONTROLLER_APPLY_BROKER_ID, conversation.application(1))
    talk.ask(asker, RequestCode.BROKER_HEARTBEAT, conversation.heartbeat(1))
    talk.wait(hour_ms // 2)
    assert "broker lost" not in talk.noted()
    body = b"scanNotActiveBrokerInterval=1000\nscanInactiveMasterInterval=1000\n"
    for _ in range(4):
        talk.ask(asker, RequestCode.UPDATE_CONTROLLER_CONFIG, body=body)
        talk.wait(400)
    assert "broker lost" in talk.noted()


def test_a_change_of_the_configuration_takes_effect_whole_or_not_at_all() -> None:
    talk, asker = led(1, 2)

    def change(body: bytes) -> int:
        return talk.ask(asker, RequestCode.UPDATE_CONTROLLER_CONFIG, body=body).header.code

    def shown() -> dict[str, str | None]:
        body = talk.ask(asker, RequestCode.GET_CONTROLLER_CONFIG).body
        return {each.name or "": each.value for each in Properties.decode(body).properties}

    before = shown()
    assert change(b"enableElectUncleanMaster=true\nconfigStorePath=/x\n") == ResponseCode.NO_PERMISSION
    assert change(b"enableElectUncleanMaster=yes\n") == ResponseCode.INVALID_PARAMETER
    assert change(b"scanNotActiveBrokerInterval=0\n") == ResponseCode.INVALID_PARAMETER
    assert change(b"scanNotActiveBrokerInterval=3600001\n") == ResponseCode.INVALID_PARAMETER
    assert change(b"\xff=1\n") == ResponseCode.SYSTEM_ERROR
    assert shown() == before
    assert change(b"listenPort=1\n") == ResponseCode.NO_PERMISSION
    assert change(b"# more risk\nenableElectUncleanMaster=true\nnobodyKnows=1\n") == ResponseCode.SUCCESS
    assert shown() == {**before, "enableElectUncleanMaster": "true"}
    body = conversation.members(2, 1)
    talk.ask(asker, RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, conversation.alteration(1, 1), body)
    talk.close(1)
    info = talk.ask(asker, RequestCode.CONTROLLER_GET_REPLICA_INFO, conversation.question())
    assert (info.header.ext_fields or {})["masterBrokerId"] == "2"


def metadata(**options: Any) -> tuple[str | None, list[str]]:
    """Which leader 1005 names, and what the start noted."""
    talk = conversation.controller(None, **options)
    answer = talk.ask(talk.connect(), RequestCode.CONTROLLER_GET_METADATA_INFO, GetMetadataRequest())
    found = GetMetadataResponse.from_ext_fields(answer.header.ext_fields or {})
    return found.controller_leader_address, talk.noted()


def test_brokers_are_told_the_address_that_is_advertised() -> None:
    assert metadata() == (conversation.ADDRESS, [])
    advertised = "controller.example:9878"
    assert metadata(controller_advertised_address=advertised) == (advertised, [])


def test_a_controller_that_listens_everywhere_and_says_nowhere_where_warns() -> None:
    everywhere = (("n0", "0.0.0.0:9878"),)
    advertised = "10.0.0.1:9878"
    told, noted = metadata(controller_d_leger_peers=everywhere)
    assert told == "0.0.0.0:9878"
    assert noted[0].startswith("brokers are told an address")
    told, noted = metadata(controller_d_leger_peers=everywhere, controller_advertised_address=advertised)
    assert (told, noted) == (advertised, [])
