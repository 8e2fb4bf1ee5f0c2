"""The controller's machine of a broker set walked over real traffic, decision by decision.

A request is decided when it is answered. What the machine decides must agree with the answer: refused
or not, and the master and epoch that it names. What no frame shows (lost masters, heartbeats) stays open.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from replispec.runtime.primitives.machines import Configuration, Machine, distinct, ways
from replispec.runtime.primitives.unknown import UNKNOWN, PartlySeen, Unseen
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq import controller
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode, ResponseCode
from replispec.wire.rocketmq.machines import broker_set
from tests.replay.test_machines_on_captures import frames

# Captures whose brokers and controller are of 5.4.0, seen from their start.
NAMES = ("a_first_start", "c_syncstateset", "d_async_learner", "failover_lost", "hung_master", "m_mtu1500")
Fields = dict[str, str | None]
Configurations = tuple[Configuration[Any, Any], ...]


def alteration(fields: Fields, body: bytes) -> SimpleNamespace:
    asked = controller.AlterSyncStateSetRequest.from_ext_fields(fields)
    members = controller.SyncStateSet.decode(body)
    return PartlySeen(
        master=asked.master_broker_id,
        master_epoch=asked.master_epoch,
        sync_state_set_epoch=members.sync_state_set_epoch,
        members=frozenset(members.broker_ids or ()),
        living=UNKNOWN,
    )


def application(fields: Fields, _: bytes) -> SimpleNamespace:
    asked = controller.ApplyBrokerIdRequest.from_ext_fields(fields)
    return PartlySeen(
        broker_id=asked.applied_broker_id, check_code=asked.register_check_code, owner_code=UNKNOWN
    )


def registration(fields: Fields, _: bytes) -> SimpleNamespace:
    asked = controller.RegisterBrokerToControllerRequest.from_ext_fields(fields)
    return PartlySeen(broker_id=asked.broker_id)


def election(fields: Fields, _: bytes) -> SimpleNamespace:
    asked = controller.ElectMasterRequest.from_ext_fields(fields)
    return PartlySeen(broker_id=asked.broker_id, preferred=UNKNOWN, heartbeats=UNKNOWN, unclean=UNKNOWN)


def nothing(_: Fields, __: bytes) -> SimpleNamespace:
    return PartlySeen()


EVENTS: dict[int, tuple[type, Callable[[Fields, bytes], SimpleNamespace]]] = {
    RequestCode.CONTROLLER_GET_NEXT_BROKER_ID: (broker_set.NextIdAsked, nothing),
    RequestCode.CONTROLLER_APPLY_BROKER_ID: (broker_set.IdApplied, application),
    RequestCode.CONTROLLER_REGISTER_BROKER: (broker_set.Registered, registration),
    RequestCode.CONTROLLER_GET_REPLICA_INFO: (broker_set.InfoAsked, nothing),
    RequestCode.CONTROLLER_ELECT_MASTER: (broker_set.ElectionAsked, election),
    RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET: (broker_set.AlterationAsked, alteration),
}


def decisions(name: str) -> Iterator[tuple[str, type, SimpleNamespace, bool, Fields]]:
    """(broker name, class of the event, facts, refused, the answer's fields) of every decision."""
    asked: dict[tuple[str, int, int], tuple[int, Fields, bytes]] = {}
    owners: dict[int, str] = {}
    for row in frames(name):
        if row["protocol"] != "remoting":
            continue
        fields: Fields = dict(row["ext_fields"] or ())
        if not row["flag"] & RemotingFlag.RESPONSE:
            key = (row["connection"], row["direction"], row["opaque"])
            asked[key] = (row["code"], fields, row["json_body"] or b"{}")
            continue
        code, request, body = asked.pop(
            (row["connection"], 1 - row["direction"], row["opaque"]), (-1, fields, b"")
        )
        if code in EVENTS:
            kind, of = EVENTS[code]
            facts = of(request, body)
            allowed = (ResponseCode.SUCCESS, ResponseCode.CONTROLLER_MASTER_STILL_EXIST)
            refused = row["code"] not in allowed
            if kind is broker_set.IdApplied:
                # The capture shows every grant, so that the owner of an id is known.
                facts.owner_code = owners.get(facts.broker_id)
                if not refused:
                    owners[facts.broker_id] = facts.check_code
            yield request["brokerName"] or "", kind, facts, refused, fields


def agrees(one: Configuration[Any, Any], answer: Fields) -> bool:
    """True unless the answer names another master or masterEpoch than the machine surely has."""
    for key, value in (("masterBrokerId", one.variables.master), ("masterEpoch", one.variables.master_epoch)):
        told = answer.get(key)
        if told is not None and value is not UNKNOWN and int(told) != value:
            return False
    return True


def lost(machine: Machine[Any, Any], before: Configurations) -> Configurations:
    """The master may have been lost before the next request; a controller tells nobody of that."""
    kind = broker_set.MasterLost
    after = [way.configuration for one in before for way in ways(machine, one, Unseen(), kind, rules)]
    return distinct((*before, *after))


@pytest.mark.parametrize("name", NAMES)
def test_every_decision_of_a_controller_is_one_of_the_machine(name: str) -> None:
    machine = broker_set.MACHINE.for_release("apache", (5, 4, 0))
    first = (Configuration(machine.initial, machine.variables),)
    possible: dict[str, Configurations] = defaultdict(lambda: first)
    decided = 0
    for broker, kind, facts, refused, answer in decisions(name):
        after = [
            way.configuration
            for one in lost(machine, possible[broker])
            for way in ways(machine, one, facts, kind, rules)
            if any(effect.startswith("refuse") for effect in way.edge.do) is refused
            and agrees(way.configuration, {} if refused else answer)
        ]
        assert after, (broker, kind, facts, refused, answer, possible[broker])
        possible[broker] = distinct(after)
        decided += 1
    assert decided > 0


def test_a_decision_that_the_machine_would_not_make_is_seen() -> None:
    """The first application of a set is granted in the capture; refusing it would be no step."""
    machine = broker_set.MACHINE.for_release("apache", (5, 4, 0))
    _, kind, facts, refused, _ = next(each for each in decisions(NAMES[0]) if each[1] is broker_set.IdApplied)
    first = Configuration(machine.initial, machine.variables)
    (way,) = ways(machine, first, facts, kind, rules)
    assert not refused
    assert not any(effect.startswith("refuse") for effect in way.edge.do)
