"""Requests of brokers and administrators: what of a broker set they ask, as an event of its machine.

Releases up to 5.1.0 name brokers by their address and are not served: what they send is read, and refused
with a code that its request knows. Source: apache/rocketmq rocketmq-all-5.0.0 to 5.5.0,
ControllerRequestProcessor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from replispec.controller.rocketmq.core.broker_set import BrokerSet
from replispec.controller.rocketmq.core.broker_sets import BrokerSets
from replispec.controller.rocketmq.core.records import NOBODY
from replispec.runtime.primitives.texts import INT64, parse_integer
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.remoting.answers import TEXT_MAX, Refused, need, text
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import (
    AlterSyncStateSetRequest,
    ApplyBrokerIdRequest,
    CleanBrokerDataRequest,
    ElectMasterRequest,
    GetNextBrokerIdRequest,
    GetReplicaInfoRequest,
    RegisterBrokerToControllerRequest,
    SyncStateSet,
)
from replispec.wire.rocketmq.machines.broker_set import (
    ANSWERS,
    AlterationAsked,
    CleaningAsked,
    ElectionAsked,
    Event,
    IdApplied,
    InfoAsked,
    NextIdAsked,
    Registered,
)
from replispec.wire.rocketmq.options import ControllerOptions


@dataclass(frozen=True, slots=True)
class Asked:
    """An event of a broker set, and the cluster as whoever asks calls it."""

    broker_set: BrokerSet
    event: Event
    cluster_name: str


Reader = Callable[[Command, BrokerSets, ControllerOptions], Asked]


def read_replica_info(command: Command, sets: BrokerSets, _options: ControllerOptions) -> Asked:
    """1004."""
    ask = GetReplicaInfoRequest.from_ext_fields(command.header.ext_fields or {})
    return Asked(sets.named(ask.broker_name or ""), InfoAsked(), "")


def read_next_id(command: Command, sets: BrokerSets, _options: ControllerOptions) -> Asked:
    """1012."""
    ask = GetNextBrokerIdRequest.from_ext_fields(command.header.ext_fields or {})
    name, cluster = text(ask.broker_name, "the broker's name"), text(ask.cluster_name, "the cluster's name")
    return Asked(sets.named(name), NextIdAsked(), cluster)


def read_application(command: Command, sets: BrokerSets, _options: ControllerOptions) -> Asked:
    """1013."""
    ask = ApplyBrokerIdRequest.from_ext_fields(command.header.ext_fields or {})
    name, cluster = text(ask.broker_name, "the broker's name"), text(ask.cluster_name, "the cluster's name")
    broker_id = need(ask.applied_broker_id, "the id applied for")
    check_code = text(ask.register_check_code, "the check code")
    broker_set = sets.named(name)
    owner_code = broker_set.check_codes.get(broker_id)
    if owner_code is None and not sets.has_room(broker_set):
        raise Refused(ResponseCode.SYSTEM_BUSY, f"no more identities: {name} would be one too many")
    return Asked(broker_set, IdApplied(broker_id, check_code, owner_code), cluster)


def read_registration(command: Command, sets: BrokerSets, _options: ControllerOptions) -> Asked:
    """1003."""
    ask = RegisterBrokerToControllerRequest.from_ext_fields(command.header.ext_fields or {})
    name, address = text(ask.broker_name, "the broker's name"), text(ask.broker_address, "the address")
    if ask.broker_id is None:
        remark = "a registration without broker id: releases before 5.1.1 are not served"
        raise Refused(ANSWERS["refuse_unregistered"], remark)
    return Asked(sets.named(name), Registered(ask.broker_id, address), ask.cluster_name or "")


def read_election(command: Command, sets: BrokerSets, options: ControllerOptions) -> Asked:
    """1002."""
    ask = ElectMasterRequest.from_ext_fields(command.header.ext_fields or {})
    if ask.broker_id is None and ask.broker_address is not None:
        remark = "an election by address: releases before 5.1.1 are not served"
        raise Refused(ResponseCode.CONTROLLER_INVALID_REQUEST, remark)
    broker_set = sets.named(text(ask.broker_name, "the broker's name"))
    broker_id = NOBODY if ask.broker_id is None else ask.broker_id
    event = ElectionAsked(
        broker_id=broker_id,
        preferred=broker_id if ask.designate_elect and broker_id != NOBODY else None,
        heartbeats=sets.heartbeats.living(broker_set.name, broker_set.variables.broker_ids),
        unclean=options.enable_elect_unclean_master,
    )
    return Asked(broker_set, event, ask.cluster_name or "")


def read_alteration(command: Command, sets: BrokerSets, _options: ControllerOptions) -> Asked:
    """1001."""
    ask = AlterSyncStateSetRequest.from_ext_fields(command.header.ext_fields or {})
    broker_set = sets.named(text(ask.broker_name, "the broker's name"))
    new = SyncStateSet.decode(command.body)
    event = AlterationAsked(
        master=need(ask.master_broker_id, "the master's id"),
        master_epoch=need(ask.master_epoch, "the masterEpoch"),
        sync_state_set_epoch=need(new.sync_state_set_epoch, "the epoch of the SyncStateSet"),
        members=_members(new),
        living=_living(sets, broker_set),
    )
    return Asked(broker_set, event, broker_set.cluster)


def _members(new: SyncStateSet) -> frozenset[int]:
    """The members; numbers in quotes are numbers for Java, too."""
    if new.addresses is not None:
        return frozenset(parse_integer(each, INT64, "the new SyncStateSet") for each in new.addresses)
    return frozenset(need(new.broker_ids, "the new SyncStateSet"))


def read_cleaning(command: Command, sets: BrokerSets, _options: ControllerOptions) -> Asked:
    """1011."""
    ask = CleanBrokerDataRequest.from_ext_fields(command.header.ext_fields or {})
    broker_set = sets.named(text(ask.broker_name, "the broker's name"))
    named = _ids_to_clean(ask.broker_controller_ids_to_clean)
    event = CleaningAsked(named, _living(sets, broker_set), bool(ask.is_clean_living_broker))
    return Asked(broker_set, event, ask.cluster_name or "")


def _ids_to_clean(listed: str | None) -> frozenset[int] | None:
    """The ids of a list such as `1;2`; None for no list. Raises Refused when it is none."""
    if not (listed or "").strip():
        return None
    parts = [part.strip() for part in (listed or "").split(";")]
    if not all(part.isascii() and part.isdigit() and len(part) < len(str(INT64[1])) for part in parts):
        raise Refused(ANSWERS["refuse_cleaning"], f"{(listed or '')[:TEXT_MAX]!r} is no list of ids")
    return frozenset(map(int, parts))


def _living(sets: BrokerSets, broker_set: BrokerSet) -> frozenset[int]:
    known = broker_set.variables.broker_ids
    return frozenset(each for each in known if sets.heartbeats.is_alive(broker_set.name, each))


READERS: Final[Mapping[int, Reader]] = MappingProxyType(
    {
        RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET: read_alteration,
        RequestCode.CONTROLLER_ELECT_MASTER: read_election,
        RequestCode.CONTROLLER_REGISTER_BROKER: read_registration,
        RequestCode.CONTROLLER_GET_REPLICA_INFO: read_replica_info,
        RequestCode.CLEAN_BROKER_DATA: read_cleaning,
        RequestCode.CONTROLLER_GET_NEXT_BROKER_ID: read_next_id,
        RequestCode.CONTROLLER_APPLY_BROKER_ID: read_application,
    }
)
"""The requests that ask something of one broker set."""
