"""The steps of a broker's registration: its requests 1012, 1013 and 1003, and what they were answered.

Only brokers with persistent ids take them; a registration by address alone is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from replispec.replay.command import Command
from replispec.replay.observation import Kind, Observation
from replispec.wire.rocketmq import controller
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.commands import RESPONSE_HEADERS

Request = (
    controller.GetNextBrokerIdRequest
    | controller.ApplyBrokerIdRequest
    | controller.RegisterBrokerToControllerRequest
)
STEPS: Final[Mapping[int, type[Request]]] = {
    RequestCode.CONTROLLER_GET_NEXT_BROKER_ID: controller.GetNextBrokerIdRequest,
    RequestCode.CONTROLLER_APPLY_BROKER_ID: controller.ApplyBrokerIdRequest,
    RequestCode.CONTROLLER_REGISTER_BROKER: controller.RegisterBrokerToControllerRequest,
}
"""The requests that are steps, by code."""
REFUSED, UNKNOWN_HERE, FAILED = "application_refused", "unknown_here", "request_failed"
"""Events of the machine that an answer without success is."""
_REFUSALS: Final[Mapping[tuple[int, int], str]] = {
    (
        RequestCode.CONTROLLER_APPLY_BROKER_ID,
        ResponseCode.CONTROLLER_BROKER_ID_INVALID,
    ): REFUSED,
    (
        RequestCode.CONTROLLER_REGISTER_BROKER,
        ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED_B,
    ): UNKNOWN_HERE,
}


def steps_of(command: Command) -> Iterator[Observation]:
    """The step that a request, or an answer to one, is. Raises RemoteProtocolError for broken fields."""
    asked = command.asked
    asking = command.request if command.is_answer else command
    if asked is None or asked not in STEPS or asking is None:
        return
    request = asking.header(STEPS[asked])
    if isinstance(request, controller.RegisterBrokerToControllerRequest) and request.broker_id is None:
        return
    step = replace(
        command.seen,
        kind=Kind.REGISTRATION,
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
        yield replace(step, message=type(request).__name__)
    elif command.code != ResponseCode.SUCCESS:
        yield replace(step, message=_REFUSALS.get((asked, command.code), FAILED))
    else:
        next_id = None
        if isinstance(request, controller.GetNextBrokerIdRequest):
            next_id = command.header(controller.GetNextBrokerIdResponse).next_broker_id
        yield replace(step, message=RESPONSE_HEADERS[asked].__name__, broker_id=next_id)


def _address(request: Request) -> str | None:
    """The broker's own address, as far as the request tells it."""
    if isinstance(request, controller.ApplyBrokerIdRequest):
        return (request.register_check_code or "").partition(";")[0] or None
    if isinstance(request, controller.RegisterBrokerToControllerRequest):
        return request.broker_address
    return None
