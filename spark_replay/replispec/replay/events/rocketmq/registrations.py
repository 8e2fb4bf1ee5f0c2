"""The steps of a broker's registration: requests and their answers, by the bindings of the machine.

Only brokers with persistent ids take them; a registration by address alone is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from replispec.replay.events.content import content_of, fields_of
from replispec.replay.events.observation import Registration
from replispec.replay.events.rocketmq.command import Command
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq import controller
from replispec.wire.rocketmq.commands import REQUEST_HEADERS
from replispec.wire.rocketmq.machines.broker_registration import MACHINE
from replispec.wire.rocketmq.machines.broker_registration_wire import outcome_of

SENT: Final = {name: info.name for info in MACHINE.events.values() if info.sends for name in info.messages}
"""The events of the requests that are steps, by the name of the request."""
STEPS: Final[Mapping[int, Any]] = {
    code: header for code, header in REQUEST_HEADERS.items() if header.__name__ in SENT
}
"""Those requests, by code."""


def steps_of(command: Command) -> Iterator[Registration]:
    """The step that a request, or an answer to one, is. Raises RemoteProtocolError for broken fields."""
    asked = command.asked
    asking = command.request if command.is_answer else command
    if asked is None or asked not in STEPS or asking is None:
        return
    request = asking.header(STEPS[asked])
    if isinstance(request, controller.RegisterBrokerToControllerRequest) and request.broker_id is None:
        return
    step = Registration(
        *command.place,
        duration_ns=command.duration_ns,
        name=request.broker_name,
        cluster=request.cluster_name,
        controller=asking.destination,
        address=_address(request),
        opaque=asking.opaque,
        version=asking.version,
        from_start=command.from_start,
        code=asked,
    )
    if not command.is_answer:
        yield replace(step, message=SENT[type(request).__name__])
        return
    event = outcome_of(asked, command.code, command.ext_fields, command.json_body or b"")
    if event is not None:
        yield replace(step, message=MACHINE.events[type(event)].name, content=content_of(fields_of(event)))


def _address(request: Any) -> str | None:
    """The broker's own address, as far as the request tells it."""
    if isinstance(request, controller.ApplyBrokerIdRequest):
        return rules.address_of(request.register_check_code or "") or None
    if isinstance(request, controller.RegisterBrokerToControllerRequest):
        return request.broker_address
    return None
