"""Brokers of releases before 5.1.1 as they come: by their address, with what later ones say in a heartbeat.

Source: apache/rocketmq rocketmq-all-5.1.0, ControllerManager, where a registration is the first heartbeat.
"""

from __future__ import annotations

from collections.abc import Mapping

from replispec.controller.rocketmq.core.broker_sets import BrokerSets
from replispec.runtime.rocketmq.remoting import Request
from replispec.wire.rocketmq.controller import BrokerHeartbeatRequest, RegisterBrokerToControllerRequest
from replispec.wire.rocketmq.machines import broker_set as machine


def came(sets: BrokerSets, name: str, event: machine.Event, request: Request) -> bool:
    """Count a registration as the heartbeat that it is, once its broker has an id, and let who registers
    speak for it; false for what is none, or of a broker without an id."""
    if isinstance(event, machine.Registered):
        sets.heartbeats.registered(request.peer, name, event.broker_id)
        return False
    if not isinstance(event, machine.RegisteredByAddress):
        return False
    broker_id = sets.id_at(name, event.address)
    if broker_id is None or not sets.heartbeats.admits(name, broker_id):
        return False
    sets.heartbeats.registered(request.peer, name, broker_id)
    said = _heartbeat(broker_id, request.command.header.ext_fields or {})
    return sets.heartbeats.heartbeat_received(request.connection, request.peer, name, broker_id, said)


def _heartbeat(broker_id: int, ext_fields: Mapping[str, str | None]) -> BrokerHeartbeatRequest:
    header = RegisterBrokerToControllerRequest.from_ext_fields(ext_fields)
    return BrokerHeartbeatRequest(
        broker_id=broker_id,
        epoch=header.epoch,
        max_offset=header.max_offset,
        confirm_offset=header.confirm_offset,
        heartbeat_timeout_mills=header.heartbeat_timeout_millis,
        election_priority=header.election_priority,
    )
