"""The steps of a broker's start beside its heartbeats, by the bindings of the machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from replispec.replay.events.content import content_of, fields_of
from replispec.replay.events.observation import Start
from replispec.replay.events.rocketmq.command import Command
from replispec.wire.rocketmq.broker import RegisterBrokerRequest
from replispec.wire.rocketmq.commands import REQUEST_HEADERS
from replispec.wire.rocketmq.controller import BrokerHeartbeatRequest
from replispec.wire.rocketmq.machines.replicas_manager import MACHINE
from replispec.wire.rocketmq.machines.replicas_manager_wire import OUTCOMES, REQUESTS, event_of, outcome_of

SENT: Final = {name: info.name for info in MACHINE.events.values() if info.sends for name in info.messages}
"""The events of what a broker sends, by the name of the message."""
HEARTBEAT: Final = SENT[BrokerHeartbeatRequest.__name__]
"""Seen in rows of another kind already."""
_SENT_BY_CODE: Final = {
    code: SENT[header.__name__]
    for code, header in REQUEST_HEADERS.items()
    if header.__name__ in SENT and SENT[header.__name__] != HEARTBEAT
}
_LEADING_ON: Final = {
    kind
    for (state, kind), edges in MACHINE.transitions.items()
    if any(edge.to is not state for edge in edges) and MACHINE.events[kind].messages
}
CODES: Final = (*_SENT_BY_CODE, *REQUESTS)
"""Requests that are steps."""
ANSWERS: Final = tuple(asked for asked, kinds in OUTCOMES.items() if _LEADING_ON.intersection(kinds))
"""Requests whose answers are steps, when they lead on."""


def starting_of(command: Command) -> Iterator[Start]:
    """The step that a command is. Raises RemoteProtocolError for broken fields.

    `address` is the broker's where the command tells it; else the connection has to.
    """
    asked, body = command.asked, command.json_body or b""
    step = Start(*command.place, duration_ns=command.duration_ns, from_start=command.from_start, code=asked)
    if asked is None:
        return
    if command.is_answer:
        if asked in ANSWERS:
            event = outcome_of(asked, command.code, command.ext_fields, body)
            if type(event) in _LEADING_ON:
                row = replace(step, controller=command.source, message=MACHINE.events[type(event)].name)
                yield replace(row, content=content_of(fields_of(event)))
    elif asked in _SENT_BY_CODE:
        yield _sent(command, replace(step, message=_SENT_BY_CODE[asked]))
    elif asked in REQUESTS:
        event = event_of(asked, command.ext_fields, body)
        name = MACHINE.events[type(event)].name
        yield replace(step, message=name, address=command.destination, content=content_of(fields_of(event)))


def _sent(command: Command, step: Start) -> Start:
    """A name server is told the broker's address; to a controller the connection is the broker's."""
    if REQUEST_HEADERS[command.code] is RegisterBrokerRequest:
        return replace(step, address=command.header(RegisterBrokerRequest).broker_addr)
    return replace(step, controller=command.destination)
