"""The machines of the specification walked over real traffic: each frame is a step of both sides.

What a capture does not show (log ends, epochs on disk, timers, files) stays unknown on the way, and
Apache's known deviations are let pass by the overlays of its releases, and by nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from replispec.replay.engines.decoding import decode_capture
from replispec.runtime.primitives.errors import LocalProtocolError
from replispec.runtime.primitives.machines import Configuration, Machine, distinct, everywhere, step_all
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode, ResponseCode
from replispec.wire.rocketmq.commands import REQUEST_HEADERS, RESPONSE_HEADERS
from replispec.wire.rocketmq.machines import broker_registration, ha_master, ha_replica, replicas_manager

FOLDER = Path(__file__).parents[2] / "spark_replay/captures"
CAPTURES = sorted(path.stem for path in FOLDER.glob("*.pcap"))
SIDES: dict[str, Machine[Any, Any]] = {"ha_replica": ha_replica.MACHINE, "ha_master": ha_master.MACHINE}
REGISTRATION = (
    RequestCode.CONTROLLER_GET_NEXT_BROKER_ID,
    RequestCode.CONTROLLER_APPLY_BROKER_ID,
    RequestCode.CONTROLLER_REGISTER_BROKER,
)
Configurations = tuple[Configuration[Any, Any], ...]


@cache
def frames(name: str) -> list[dict[str, Any]]:
    """The frames of a capture in the order in which they were seen."""
    rows: list[dict[str, Any]] = decode_capture(FOLDER / f"{name}.pcap").frames.to_pylist()
    return sorted(rows, key=lambda row: (row["time_ns"], row["record_offset"], row["sequence"]))


def release(name: str) -> tuple[int, ...]:
    return (5, 1, 0) if name.startswith("f1_510") else (5, 4, 0)


def replication(name: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    connections: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in frames(name):
        if row["protocol"] in SIDES:
            connections[row["connection"]].append(row)
    yield from connections.items()


def begin(machine: Machine[Any, Any], rows: list[dict[str, Any]]) -> Configurations:
    """Every state when the beginning was not seen, else the initial one; variables are unknown."""
    possible = everywhere(machine)
    if all(row["from_start"] for row in rows):
        return tuple(each for each in possible if each.state is machine.initial)
    return possible


def walk(machine: Machine[Any, Any], side: str, rows: list[dict[str, Any]]) -> Configurations:
    """Where one side may be after all frames of a connection. Raises when a frame is no step."""
    possible = begin(machine, rows)
    for row in rows:
        epochs = [SimpleNamespace(**entry) for entry in row["epochs"] or ()]
        facts = SimpleNamespace(**{**row, "entries": epochs})
        kind = machine.kind_of(row["message"], facts, rules, sent=row["protocol"] == side)
        assert kind is not None
        possible = step_all(machine, possible, facts, rules, kind)
    return possible


@pytest.mark.parametrize("name", CAPTURES)
def test_every_replication_frame_is_a_step_of_both_sides(name: str) -> None:
    for side, machine in SIDES.items():
        for _, rows in replication(name):
            assert walk(machine.for_release("apache", release(name)), side, rows)


def test_a_handshake_sent_twice_is_let_pass_by_the_overlay_alone() -> None:
    """The capture of a stopped and continued replica holds one; without the overlay it is a fault."""
    refused = []
    for connection, rows in replication("c_syncstateset"):
        try:
            walk(ha_replica.MACHINE, "ha_replica", rows)
        except LocalProtocolError as error:
            refused.append((connection, str(error)))
    assert len(refused) == 1
    assert refused[0][1].endswith("on handshake_sent")


def registrations(name: str) -> Iterator[tuple[str, type, Any]]:
    """(connection, class of the event, facts) of every registration request and its answer."""
    asked: dict[tuple[str, int, int], int] = {}
    machine = broker_registration.MACHINE
    for row in frames(name):
        if row["protocol"] != "remoting":
            continue
        if not row["flag"] & RemotingFlag.RESPONSE:
            if row["code"] not in REGISTRATION:
                continue
            asked[row["connection"], row["direction"], row["opaque"]] = row["code"]
            header = REQUEST_HEADERS[row["code"]]
        else:
            code = asked.pop((row["connection"], 1 - row["direction"], row["opaque"]), None)
            if code is None:
                continue
            header = RESPONSE_HEADERS[code]
            if row["code"] != ResponseCode.SUCCESS:
                unknown = row["code"] == ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED
                refused = broker_registration.RegistrationRefused
                failed = refused if unknown else broker_registration.RequestFailed
                yield row["connection"], failed, SimpleNamespace()
                continue
        facts = header.from_ext_fields(dict(row["ext_fields"] or ()))
        kind = machine.kind_of(header.__name__, facts, rules, sent=not row["flag"] & RemotingFlag.RESPONSE)
        assert kind is not None
        yield row["connection"], kind, facts


@pytest.mark.parametrize("name", CAPTURES)
def test_every_registration_ends_registered_unless_the_controller_never_grants_it(name: str) -> None:
    machine = broker_registration.MACHINE.for_release("apache", (5, 4, 0))
    possible: dict[str, Configurations] = defaultdict(lambda: everywhere(machine))
    for connection, kind, facts in registrations(name):
        possible[connection] = step_all(machine, possible[connection], facts, rules, kind)
    ends = [{each.state.name for each in found} for found in possible.values()]
    assert ends
    if name.startswith(("k1", "k2", "g_")):
        assert all(states != {"REGISTERED"} for states in ends)
    else:
        assert all(states == {"REGISTERED"} for states in ends)


def brokers_of(name: str) -> dict[str, str]:
    """The broker's address of each connection that carried its heartbeats or registrations."""
    owners = {}
    for row in frames(name):
        told = dict(row["ext_fields"] or ())
        if (
            row["protocol"] == "remoting"
            and row["code"] in OWNING
            and not row["flag"] & RemotingFlag.RESPONSE
        ):
            owners[row["connection"]] = told.get("brokerAddr") or told["brokerAddress"]
    return owners


def starts(name: str) -> Iterator[tuple[str, str, str, Any]]:
    """(broker, connection, message, facts) of everything that a broker's way to serving shows."""
    owners, asked = brokers_of(name), {}
    for row in frames(name):
        if row["protocol"] != "remoting":
            continue
        told = dict(row["ext_fields"] or ())
        if not row["flag"] & RemotingFlag.RESPONSE:
            asked[row["connection"], row["direction"], row["opaque"]] = code = row["code"]
            headers = REQUEST_HEADERS
        else:
            code = asked.pop((row["connection"], 1 - row["direction"], row["opaque"]), -1)
            headers = RESPONSE_HEADERS
            if row["code"] != ResponseCode.SUCCESS:
                continue
        broker = owners.get(row["connection"])
        if code == RequestCode.REGISTER_BROKER:
            broker = told.get("brokerAddr")
        elif code == RequestCode.NOTIFY_BROKER_ROLE_CHANGED:
            broker = row["destination"]
        if broker and code in headers and headers[code].__name__ in STARTING:
            yield broker, row["connection"], headers[code].__name__, headers[code].from_ext_fields(told)


OWNING = (RequestCode.BROKER_HEARTBEAT, RequestCode.CONTROLLER_REGISTER_BROKER)
STARTING = {message for info in replicas_manager.MACHINE.events.values() for message in info.messages}
SENT = {m for info in replicas_manager.MACHINE.events.values() if info.sends for m in info.messages}


@pytest.mark.parametrize("name", CAPTURES)
def test_no_broker_makes_itself_known_before_its_role_is(name: str) -> None:
    """Every frame of a broker's start is a step. A new connection may be that of a new process."""
    machine = replicas_manager.MACHINE.for_release("apache", release(name))
    fresh = tuple(each for each in everywhere(machine) if each.state is machine.initial)
    whole = all(row["from_start"] for row in frames(name) if row["protocol"] == "remoting")
    possible: dict[str, Configurations] = defaultdict(lambda: fresh if whole else everywhere(machine))
    known: set[str] = set()
    for broker, connection, message, facts in starts(name):
        kind = machine.kind_of(message, facts, rules, sent=message in SENT)
        assert kind is not None
        before = possible[broker]
        if connection not in known:
            before = distinct((*before, *fresh))
            known.add(connection)
        possible[broker] = step_all(machine, before, facts, rules, kind)


def test_a_broker_that_announces_itself_before_it_is_registered_is_refused() -> None:
    machine = replicas_manager.MACHINE
    fresh = tuple(each for each in everywhere(machine) if each.state is machine.initial)
    with pytest.raises(LocalProtocolError, match="no edge from INITIAL on announced"):
        step_all(machine, fresh, SimpleNamespace(), rules, replicas_manager.Announced)
