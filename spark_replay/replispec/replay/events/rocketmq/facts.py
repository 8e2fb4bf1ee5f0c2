"""Facts about a broker group in the answers of controllers and in notifications of a role change.

A fact names master, masterEpoch, SyncStateSet and its epoch as far as the frame carries them. Error
answers carry meaningless values and are no facts; the one exception is the refusal of an election
because the master still exists, which names it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from replispec.replay.events.observation import Fact
from replispec.replay.events.rocketmq.command import Command
from replispec.wire.rocketmq import controller
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.machines.broker_set import ANSWERS
from replispec.wire.rocketmq.machines.broker_set_wire import COUNTS_AS

BY_ID, BY_ADDRESS = "id", "address"
COUNTED: Final = frozenset(ANSWERS[name] for name in COUNTS_AS)
"""Codes of refusals that count as an answer, and tell as much."""


def facts_of(command: Command) -> tuple[Fact, ...]:
    """The facts of one command. Raises RemoteProtocolError when its fields or body break their types."""
    return command.once(_facts)


def facts_by_name(command: Command) -> Mapping[str | None, Sequence[Fact]]:
    """The facts of one command by the broker set that they are about."""
    return command.once(_by_name)


def _by_name(command: Command) -> dict[str | None, list[Fact]]:
    found: dict[str | None, list[Fact]] = {}
    for fact in facts_of(command):
        found.setdefault(fact.name, []).append(fact)
    return found


def _facts(command: Command) -> tuple[Fact, ...]:
    return tuple(_read(command))


def _read(command: Command) -> Iterator[Fact]:
    asked = command.asked
    if asked == RequestCode.NOTIFY_BROKER_ROLE_CHANGED:
        yield _notified(command)
    elif asked == RequestCode.CONTROLLER_GET_SYNC_STATE_DATA:
        yield from _queried(command)
    elif asked == RequestCode.CONTROLLER_ELECT_MASTER:
        yield from _elected(command)
    elif asked == RequestCode.CONTROLLER_REGISTER_BROKER:
        yield _registered(command)
    elif asked == RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET:
        yield _altered(command)
    else:
        yield _replica_info(command)


def _fact(command: Command, name: str | None) -> Fact:
    """A fact without content yet; the code is the request's."""
    return Fact(
        *command.place,
        duration_ns=command.duration_ns,
        code=command.asked,
        name=name,
        controller=command.source,
    )


def _identity(broker_id: int | None, address: str | None, named_by: str | None) -> str | None:
    """The master's name: its id in decimal, in old releases its address; None when there is none."""
    if named_by == BY_ADDRESS:
        return address or None
    return None if broker_id is None else str(broker_id)


def _with_set(fact: Fact, body: controller.SyncStateSet) -> Fact:
    """The fact with the members and the epoch of the set in its body."""
    named_by, members = fact.named_by, None
    if body.addresses:
        named_by, members = BY_ADDRESS, list(body.addresses)
    elif body.broker_ids is not None:
        members = [str(each) for each in body.broker_ids]
        named_by = BY_ID if members and named_by is None else named_by
    told = body.sync_state_set_epoch
    if fact.sync_state_set_epoch is None:
        return replace(fact, named_by=named_by, members=members, sync_state_set_epoch=told)
    return replace(fact, named_by=named_by, members=members, body_epoch=told)


def _body_set(command: Command, fact: Fact) -> Fact:
    body = command.body(controller.SyncStateSet)
    return fact if body is None else _with_set(fact, body)


def _altered(command: Command) -> Fact:
    assert command.request is not None
    request = command.request.header(controller.AlterSyncStateSetRequest)
    header = command.header(controller.AlterSyncStateSetResponse)
    fact = _fact(command, request.broker_name)
    named_by = BY_ID if request.master_broker_id is not None else BY_ADDRESS
    return _body_set(
        command, replace(fact, named_by=named_by, sync_state_set_epoch=header.new_sync_state_set_epoch)
    )


def _elected(command: Command) -> Iterator[Fact]:
    assert command.request is not None
    request = command.request.header(controller.ElectMasterRequest)
    by_id = request.broker_id is not None
    # The number has this meaning only in releases whose requests name a broker id.
    counts = command.code in COUNTED and by_id
    if command.code != ResponseCode.SUCCESS and not counts:
        return
    header = command.header(controller.ElectMasterResponse)
    named_by = BY_ID if header.master_broker_id is not None else BY_ADDRESS
    address = header.master_address or header.new_master_address
    fact = replace(
        _fact(command, request.broker_name),
        named_by=named_by,
        master=_identity(header.master_broker_id, address, named_by),
        master_address=address,
        master_epoch=header.master_epoch,
        sync_state_set_epoch=header.sync_state_set_epoch,
        designated=bool(request.designate_elect),
    )
    body = command.body(controller.ElectMasterResponseBody) if named_by == BY_ID else None
    if body is not None and body.sync_state_set is not None:
        fact = replace(fact, members=[str(each) for each in body.sync_state_set])
    yield fact


def _registered(command: Command) -> Fact:
    assert command.request is not None
    request = command.request.header(controller.RegisterBrokerToControllerRequest)
    header = command.header(controller.RegisterBrokerToControllerResponse)
    named_by = BY_ID if header.cluster_name is not None else BY_ADDRESS
    fact = replace(
        _fact(command, request.broker_name),
        named_by=named_by,
        master=_identity(header.master_broker_id, header.master_address, named_by),
        master_address=header.master_address,
        master_epoch=header.master_epoch,
        sync_state_set_epoch=header.sync_state_set_epoch,
        requester=_identity(request.broker_id, request.broker_address, named_by),
    )
    return _body_set(command, fact)


def _replica_info(command: Command) -> Fact:
    assert command.request is not None
    request = command.request.header(controller.GetReplicaInfoRequest)
    header = command.header(controller.GetReplicaInfoResponse)
    named_by = None
    if header.master_broker_id is not None:
        named_by = BY_ID
    elif header.broker_id is not None:
        named_by = BY_ADDRESS
    fact = replace(
        _fact(command, request.broker_name),
        named_by=named_by,
        master=_identity(header.master_broker_id, header.master_address, named_by),
        master_address=header.master_address,
        master_epoch=header.master_epoch,
    )
    return _body_set(command, fact)


def _notified(command: Command) -> Fact:
    """A notification names no broker set: `address` is the notified broker's, which tells it.

    It comes from a port that the controller does not listen on, which therefore names no controller.
    """
    header = command.header(controller.NotifyBrokerRoleChangedRequest)
    named_by = BY_ID if header.master_broker_id is not None else BY_ADDRESS
    fact = replace(
        _fact(command, None),
        controller=None,
        address=command.destination,
        named_by=named_by,
        master=_identity(header.master_broker_id, header.master_address, named_by),
        master_address=header.master_address,
        master_epoch=header.master_epoch,
        sync_state_set_epoch=header.sync_state_set_epoch,
    )
    return _body_set(command, fact)


def _queried(command: Command) -> Iterator[Fact]:
    body = command.body(controller.BrokerReplicasInfo)
    if body is None:
        return
    for name, info in (body.replicas_info_table or {}).items():
        yield _set_query(command, name, info, info.in_sync_replicas or [])
    for name, data in (body.in_sync_state_table or {}).items():
        yield _set_query(command, name, data, data.in_sync_members or [])


def _set_query(
    command: Command,
    name: str,
    info: controller.ReplicasInfo | controller.InSyncStateData,
    members: list[controller.ReplicaIdentity],
) -> Fact:
    broker_id = info.master_broker_id if isinstance(info, controller.ReplicasInfo) else None
    by_address = broker_id is None and any(member.address is not None for member in members)
    named_by = BY_ADDRESS if by_address else BY_ID
    names = [member.address if by_address else str(member.broker_id) for member in members]
    return replace(
        _fact(command, name),
        named_by=named_by,
        master=_identity(broker_id, info.master_address, named_by),
        master_address=info.master_address,
        master_epoch=info.master_epoch,
        sync_state_set_epoch=info.sync_state_set_epoch,
        members=[each for each in names if each is not None],
    )
