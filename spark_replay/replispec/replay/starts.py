"""The steps of a broker's start beside its heartbeats: leader, registration, role, announcement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from replispec.replay.command import Command
from replispec.replay.observation import Kind, Observation
from replispec.wire.rocketmq import broker, controller
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode

REQUESTS: Final = (
    RequestCode.CONTROLLER_GET_METADATA_INFO,
    RequestCode.NOTIFY_BROKER_ROLE_CHANGED,
    RequestCode.REGISTER_BROKER,
)
ANSWERS: Final = (
    RequestCode.CONTROLLER_GET_METADATA_INFO,
    RequestCode.CONTROLLER_REGISTER_BROKER,
    RequestCode.CONTROLLER_ELECT_MASTER,
)


def starting_of(command: Command) -> Iterator[Observation]:
    """The step that a command is. Raises RemoteProtocolError for broken fields.

    `address` is the broker's where the command tells it; else the connection has to. Of the answers only
    those with success are steps.
    """
    asked = command.asked
    step = replace(command.seen, kind=Kind.START, from_start=command.from_start, code=asked)
    if command.is_answer:
        if asked in ANSWERS and _is_success(command):
            yield _answered(command, replace(step, controller=command.source))
    elif asked in REQUESTS:
        yield _sent(command, step)


def _is_success(command: Command) -> bool:
    """True also for the refusal of an election because the master, which it names, still exists."""
    if command.code == ResponseCode.SUCCESS:
        return True
    is_election = command.asked == RequestCode.CONTROLLER_ELECT_MASTER
    return is_election and command.code == ResponseCode.CONTROLLER_MASTER_STILL_EXIST_B


def _answered(command: Command, step: Observation) -> Observation:
    if command.asked == RequestCode.CONTROLLER_GET_METADATA_INFO:
        told = command.header(controller.GetMetadataResponse)
        leader = told.controller_leader_address or None
        return replace(step, message=controller.GetMetadataResponse.__name__, text=leader)
    if command.asked == RequestCode.CONTROLLER_ELECT_MASTER:
        return replace(step, message=controller.ElectMasterResponse.__name__)
    registered = command.header(controller.RegisterBrokerToControllerResponse)
    name = controller.RegisterBrokerToControllerResponse.__name__
    return replace(step, message=name, broker_id=registered.master_broker_id)


def _sent(command: Command, step: Observation) -> Observation:
    if command.asked == RequestCode.CONTROLLER_GET_METADATA_INFO:
        name = controller.GetMetadataRequest.__name__
        return replace(step, message=name, controller=command.destination)
    if command.asked == RequestCode.NOTIFY_BROKER_ROLE_CHANGED:
        name = controller.NotifyBrokerRoleChangedRequest.__name__
        return replace(step, message=name, address=command.destination)
    announced = command.header(broker.RegisterBrokerRequest)
    name = broker.RegisterBrokerRequest.__name__
    return replace(step, message=name, address=announced.broker_addr)
