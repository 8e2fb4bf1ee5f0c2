"""What the machines of requests and operations decide, as the tree and those who serve clients know it."""

from __future__ import annotations

from typing import Final

from replispec.metastore.zookeeper.core.values import TreeRefusal, TreeRefused
from replispec.runtime.primitives.machines import edge_of
from replispec.runtime.zookeeper import rules
from replispec.wire.zookeeper.machines import metastore_operation as operation
from replispec.wire.zookeeper.machines import metastore_request as request

CODES: Final = {**request.ANSWERS, **operation.ANSWERS}
"""The error of each effect that answers."""
_REFUSALS: Final = {each.effect: each for each in TreeRefusal}
_VARIABLES: Final = operation.MACHINE.variables


def look_at(event: operation.Event) -> None:
    """Whether an operation may be done as it stands. Raises Refused."""
    _decide(operation.State.ASKED, event)


def decide(event: operation.Event) -> None:
    """Whether an operation is done that has its turn. Raises Refused."""
    _decide(operation.State.TAKEN, event)


def refusal_of(event: request.Event) -> TreeRefusal | None:
    """With what a request is refused that is on its way to the record; None: it is not."""
    edge = edge_of(request.MACHINE, request.State.PROPOSED, request.MACHINE.variables, event, rules)
    return _REFUSALS[edge.do[0]] if edge.to is request.State.ANSWERED else None


def _decide(state: operation.State, event: operation.Event) -> None:
    edge = edge_of(operation.MACHINE, state, _VARIABLES, event, rules)
    if edge.to is operation.State.REFUSED:
        raise TreeRefused(_REFUSALS[edge.do[0]])
