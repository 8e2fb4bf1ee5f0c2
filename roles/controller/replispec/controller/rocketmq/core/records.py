"""Records of the log: what an event of a broker set becomes when proposed, and the event again on apply.

A record carries all that decides and does not follow from the recorded state; what does, such as who holds
an id, is asked when the record is applied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from replispec.controller.rocketmq.core.broker_set import BrokerSet
from replispec.event.v1 import event_pb2 as log
from replispec.runtime.primitives.errors import LocalProtocolError
from replispec.wire.rocketmq.controller import BrokerHeartbeatRequest
from replispec.wire.rocketmq.machines.broker_set import (
    AlterationAsked,
    CleaningAsked,
    ElectionAsked,
    Event,
    IdApplied,
    MasterLost,
    MasterMissed,
    Registered,
)

NOBODY: Final = -1
"""The broker id of a request for an election that names none."""
UNSAID: Final = -1
"""The epoch and the offset of a broker whose heartbeats do not say them."""
LAST_PRIORITY: Final = 2**31 - 1
"""The election priority of a broker that names none."""


def record_of(event: Event, broker_name: str, cluster_name: str, now_ms: int) -> log.ControllerEvent:
    """The record that proposes an event, its number and term still open."""
    record = log.ControllerEvent(
        cluster_name=cluster_name, broker_name=broker_name, proposed_time_ns=now_ms * 1_000_000
    )
    match event:
        case IdApplied():
            record.apply_broker_id.broker_id = event.broker_id
            record.apply_broker_id.register_check_code = event.check_code
            record.apply_broker_id.broker_address = event.check_code.partition(";")[0]
        case Registered():
            record.update_broker_address.broker_id = event.broker_id
            record.update_broker_address.broker_address = event.address
        case AlterationAsked():
            _put_alteration(record.alter_sync_state_set, event)
        case CleaningAsked():
            record.clean_broker_data.broker_ids.extend(sorted(event.broker_ids or ()))
            record.clean_broker_data.alive_too = event.may_clean_living
            record.clean_broker_data.alive.extend(sorted(event.living))
        case ElectionAsked() | MasterLost() | MasterMissed():
            _put_election(record.elect_master, event)
        case _:
            raise LocalProtocolError(f"{type(event).__name__} is never recorded")
    return record


def _put_alteration(part: log.AlterSyncStateSet, event: AlterationAsked) -> None:
    part.master_broker_id = event.master
    part.master_epoch = event.master_epoch
    part.sync_state_set_epoch = event.sync_state_set_epoch
    part.new_sync_state_set.extend(sorted(event.members))
    part.alive.extend(sorted(event.living))


def _put_election(part: log.ElectMaster, event: ElectionAsked | MasterLost | MasterMissed) -> None:
    if isinstance(event, ElectionAsked):
        by_operator = event.preferred is not None
        part.cause = log.ELECTION_CAUSE_OPERATOR_ASKED if by_operator else log.ELECTION_CAUSE_BROKER_ASKED
        part.asking_broker_id = event.broker_id
        if event.preferred is not None:
            part.designated_broker_id = event.preferred
    else:
        is_missed = isinstance(event, MasterMissed)
        part.cause = log.ELECTION_CAUSE_MASTER_MISSED if is_missed else log.ELECTION_CAUSE_MASTER_SILENT
        part.silent_broker_id = event.silent
    part.unclean_allowed = event.unclean
    part.candidates.extend(_candidates(event.heartbeats))


def _candidates(heartbeats: Iterable[BrokerHeartbeatRequest]) -> list[log.Candidate]:
    return [
        log.Candidate(
            broker_id=beat.broker_id or 0,
            epoch=UNSAID if beat.epoch is None else beat.epoch,
            max_offset=UNSAID if beat.max_offset is None else beat.max_offset,
            election_priority=LAST_PRIORITY if beat.election_priority is None else beat.election_priority,
        )
        for beat in heartbeats
    ]


def event_of(record: log.ControllerEvent, broker_set: BrokerSet) -> Event | None:
    """The event that a record is, for the broker set as it is now; None for a record that decides nothing."""
    match record.WhichOneof("decision"):
        case "apply_broker_id":
            broker_id = record.apply_broker_id.broker_id
            owner_code = broker_set.check_codes.get(broker_id)
            return IdApplied(broker_id, record.apply_broker_id.register_check_code, owner_code)
        case "update_broker_address":
            address = record.update_broker_address
            return Registered(address.broker_id, address.broker_address)
        case "alter_sync_state_set":
            part = record.alter_sync_state_set
            return AlterationAsked(
                master=part.master_broker_id,
                master_epoch=part.master_epoch,
                sync_state_set_epoch=part.sync_state_set_epoch,
                members=frozenset(part.new_sync_state_set),
                living=frozenset(part.alive),
            )
        case "clean_broker_data":
            cleaning = record.clean_broker_data
            named = frozenset(cleaning.broker_ids) or None
            return CleaningAsked(named, frozenset(cleaning.alive), cleaning.alive_too)
        case "elect_master":
            return _election(record.elect_master)
    return None


def _election(part: log.ElectMaster) -> Event:
    heartbeats = _heartbeats(part.candidates)
    if part.cause == log.ELECTION_CAUSE_MASTER_SILENT:
        return MasterLost(part.silent_broker_id, heartbeats, part.unclean_allowed)
    if part.cause == log.ELECTION_CAUSE_MASTER_MISSED:
        return MasterMissed(part.silent_broker_id, heartbeats, part.unclean_allowed)
    preferred = part.designated_broker_id if part.HasField("designated_broker_id") else None
    return ElectionAsked(part.asking_broker_id, preferred, heartbeats, part.unclean_allowed)


def _heartbeats(candidates: Iterable[log.Candidate]) -> Sequence[BrokerHeartbeatRequest]:
    """What decides of each candidate that may be elected."""
    return [
        BrokerHeartbeatRequest(
            broker_id=each.broker_id,
            epoch=each.epoch,
            max_offset=each.max_offset,
            election_priority=each.election_priority,
        )
        for each in candidates
        if not each.async_learner
    ]
