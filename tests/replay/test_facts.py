"""What counts as a fact: answers that mean it, never their look-alikes."""

from __future__ import annotations

from unittest.mock import patch

from replispec.replay.events.observation import Observation, ObservationKind, Place
from replispec.replay.events.rocketmq.command import Command
from replispec.replay.events.rocketmq.commands import observe_command
from replispec.replay.events.rocketmq.facts import facts_of
from replispec.wire.rocketmq import controller
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode, ResponseCode

PLACE = Place("x.pcap", 1, 1, "connection", 0, 0, 0)


def command(code: int, flag: int, fields: dict[str, str | None], body: bytes | None) -> Command:
    return Command(
        row=0,
        code=code,
        flag=flag,
        source="here",
        destination="there",
        ext_fields=fields,
        json_body=body,
        place=PLACE,
        opaque=1,
        version=None,
        from_start=True,
    )


def asked(code: int, fields: dict[str, str | None], body: bytes | None = None) -> Command:
    return command(code, RemotingFlag.REQUEST, fields, body)


def answered(
    request: Command, code: int, fields: dict[str, str | None], body: bytes | None = None
) -> list[Observation]:
    answer = command(code, RemotingFlag.RESPONSE, fields, body)
    answer.request = request
    return [
        each
        for each in observe_command(answer)
        if each.kind in (ObservationKind.FACT, ObservationKind.CLEANED)
    ]


def election(broker_id: int | None, code: int) -> list[Observation]:
    request = controller.ElectMasterRequest(broker_name="b", broker_id=broker_id)
    answer = controller.ElectMasterResponse(master_broker_id=7, master_epoch=3, sync_state_set_epoch=4)
    body = controller.ElectMasterResponseBody(sync_state_set=[7])
    sent = asked(RequestCode.CONTROLLER_ELECT_MASTER, request.to_ext_fields())
    return answered(sent, code, answer.to_ext_fields(), body.encode())


def test_an_election_that_was_refused_because_the_master_lives_names_it() -> None:
    (fact,) = election(1, ResponseCode.CONTROLLER_MASTER_STILL_EXIST)
    assert (fact.kind, fact.master, fact.master_epoch, fact.members) == (ObservationKind.FACT, "7", 3, ["7"])


def test_the_same_number_of_an_old_release_is_a_plain_refusal() -> None:
    assert election(None, ResponseCode.CONTROLLER_ELECT_MASTER_FAILED_UNTIL_5_1_0) == []


def test_any_other_refusal_is_no_fact() -> None:
    assert election(1, ResponseCode.CONTROLLER_ELECT_MASTER_FAILED) == []


def cleaned(ids: str | None, living: bool) -> str | None:
    request = controller.CleanBrokerDataRequest(
        broker_name="b", broker_controller_ids_to_clean=ids, is_clean_living_broker=living
    )
    sent = asked(RequestCode.CLEAN_BROKER_DATA, request.to_ext_fields())
    (observation,) = answered(sent, ResponseCode.SUCCESS, {})
    assert observation.kind == ObservationKind.CLEANED
    return observation.text


def test_ids_are_removed_one_by_one_and_everything_without_them() -> None:
    assert cleaned("2;3", living=False) == "2;3"
    assert cleaned(None, living=False) is None


def test_where_living_brokers_may_be_cleaned_apache_reads_no_ids() -> None:
    assert cleaned("2;3", living=True) is None


def test_a_refused_registration_carries_no_fact() -> None:
    request = controller.RegisterBrokerToControllerRequest(broker_name="b", broker_id=1)
    sent = asked(RequestCode.CONTROLLER_REGISTER_BROKER, request.to_ext_fields())
    assert answered(sent, ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED, {}) == []


def test_what_a_command_says_is_read_once_however_many_ask() -> None:
    request = controller.AlterSyncStateSetRequest(broker_name="b", master_broker_id=1, master_epoch=2)
    body = controller.SyncStateSet(broker_ids=[1, 2], sync_state_set_epoch=4)
    sent = asked(RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, request.to_ext_fields())
    header = controller.AlterSyncStateSetResponse(new_sync_state_set_epoch=4)
    answer = command(ResponseCode.SUCCESS, RemotingFlag.RESPONSE, header.to_ext_fields(), body.encode())
    answer.request = sent
    told = list(observe_command(answer))
    with (
        patch.object(controller.AlterSyncStateSetRequest, "from_ext_fields", side_effect=AssertionError),
        patch.object(controller.AlterSyncStateSetResponse, "from_ext_fields", side_effect=AssertionError),
        patch.object(controller.SyncStateSet, "decode", side_effect=AssertionError),
    ):
        assert list(facts_of(answer)) == [each for each in told if each.kind == ObservationKind.FACT]
        assert sent.header(controller.AlterSyncStateSetRequest) == request
        assert answer.body(controller.SyncStateSet) == body
