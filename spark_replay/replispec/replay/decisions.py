"""What a controller is asked about a broker set, and how it decides.

A request and its answer are a row each, joined by connection, direction and number. Only requests that name
brokers by their ids are decisions here; releases up to 5.1.0 name addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from replispec.replay.command import Command
from replispec.replay.facts import BY_ADDRESS, facts_of
from replispec.replay.observation import Kind, Observation
from replispec.wire.rocketmq import controller
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode

NOTIFIED: Final = "notified"
"""Not an event of the machine but what it does: the notification of a role."""


def decisions_of(command: Command) -> Iterator[Observation]:
    """The rows of a request, an answer or a notification. Raises RemoteProtocolError for broken fields."""
    asked = command.asked
    if asked == RequestCode.NOTIFY_BROKER_ROLE_CHANGED and not command.is_answer:
        for fact in facts_of(command):
            if fact.named_by != BY_ADDRESS:
                yield replace(fact, kind=Kind.DECISION, message=NOTIFIED)
        return
    asking = command.request if command.is_answer else command
    if asked is None or asking is None or asked not in _QUESTIONS:
        return
    event, read = _QUESTIONS[asked]
    for question in read(asking):
        row = replace(question, kind=Kind.DECISION, message=event, opaque=command.opaque)
        if not command.is_answer:
            yield replace(row, controller=command.destination)
        else:
            yield from _answered(command, row)


def _answered(command: Command, row: Observation) -> Iterator[Observation]:
    """What the answer tells; of a refusal its code alone."""
    plain = replace(
        command.seen,
        kind=Kind.DECISION,
        name=row.name,
        message=row.message,
        opaque=command.opaque,
        controller=command.source,
        accepted=command.code == ResponseCode.SUCCESS,
        code=command.code,
    )
    still_exists = (
        command.asked == RequestCode.CONTROLLER_ELECT_MASTER
        and command.code == ResponseCode.CONTROLLER_MASTER_STILL_EXIST_B
    )
    if not plain.accepted and not still_exists:
        yield plain
    elif command.asked == RequestCode.CONTROLLER_GET_NEXT_BROKER_ID:
        next_id = command.header(controller.GetNextBrokerIdResponse).next_broker_id
        yield replace(plain, broker_id=next_id)
    elif command.asked in (RequestCode.CONTROLLER_APPLY_BROKER_ID, RequestCode.CLEAN_BROKER_DATA):
        yield plain
    else:
        for fact in facts_of(command):
            if fact.name == row.name and fact.named_by != BY_ADDRESS:
                told = replace(fact, kind=Kind.DECISION, message=row.message, opaque=command.opaque)
                yield replace(told, accepted=plain.accepted, code=command.code)


# ---- questions -----------------------------------------------------------------------------------


def _next_id(command: Command) -> Iterator[Observation]:
    yield replace(command.seen, name=command.header(controller.GetNextBrokerIdRequest).broker_name)


def _application(command: Command) -> Iterator[Observation]:
    asked = command.header(controller.ApplyBrokerIdRequest)
    yield replace(
        command.seen,
        name=asked.broker_name,
        broker_id=asked.applied_broker_id,
        text=asked.register_check_code,
    )


def _registration(command: Command) -> Iterator[Observation]:
    asked = command.header(controller.RegisterBrokerToControllerRequest)
    if asked.broker_id is not None:
        yield replace(command.seen, name=asked.broker_name, broker_id=asked.broker_id)


def _info(command: Command) -> Iterator[Observation]:
    yield replace(command.seen, name=command.header(controller.GetReplicaInfoRequest).broker_name)


def _query(command: Command) -> Iterator[Observation]:
    if command.json_body is not None:
        for name in controller.BrokerNames.decode(command.json_body).names or ():
            yield replace(command.seen, name=name)


def _election(command: Command) -> Iterator[Observation]:
    asked = command.header(controller.ElectMasterRequest)
    if asked.broker_id is not None:
        yield replace(command.seen, name=asked.broker_name, broker_id=asked.broker_id)


def _alteration(command: Command) -> Iterator[Observation]:
    asked = command.header(controller.AlterSyncStateSetRequest)
    if asked.master_broker_id is None or command.json_body is None:
        return
    wanted = controller.SyncStateSet.decode(command.json_body)
    yield replace(
        command.seen,
        name=asked.broker_name,
        broker_id=asked.master_broker_id,
        master_epoch=asked.master_epoch,
        sync_state_set_epoch=wanted.sync_state_set_epoch,
        members=[str(each) for each in wanted.broker_ids or ()],
    )


def _cleaning(command: Command) -> Iterator[Observation]:
    """Apache reads no ids when living brokers may be cleaned, and removes the whole set."""
    asked = command.header(controller.CleanBrokerDataRequest)
    ids = None if asked.is_clean_living_broker else asked.broker_controller_ids_to_clean
    yield replace(
        command.seen,
        name=asked.broker_name,
        text=(ids or "").strip() or None,
        accepted=asked.is_clean_living_broker,
    )


_Question = Callable[["Command"], Iterator[Observation]]
_QUESTIONS: Final[Mapping[int, tuple[str, _Question]]] = {
    RequestCode.CONTROLLER_GET_NEXT_BROKER_ID: ("next_id_asked", _next_id),
    RequestCode.CONTROLLER_APPLY_BROKER_ID: ("id_applied", _application),
    RequestCode.CONTROLLER_REGISTER_BROKER: ("registered", _registration),
    RequestCode.CONTROLLER_GET_REPLICA_INFO: ("info_asked", _info),
    RequestCode.CONTROLLER_GET_SYNC_STATE_DATA: ("info_asked", _query),
    RequestCode.CONTROLLER_ELECT_MASTER: ("election_asked", _election),
    RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET: ("alteration_asked", _alteration),
    RequestCode.CLEAN_BROKER_DATA: ("cleaning_asked", _cleaning),
}
"""The event of the machine that a request is, and how its fields are read; by code."""
CODES: Final = (*_QUESTIONS, RequestCode.NOTIFY_BROKER_ROLE_CHANGED)
