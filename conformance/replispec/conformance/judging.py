"""Whether what came is one of the allowed outcomes, and if not, what the nearest difference is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from replispec.conformance.model import Outcome
from replispec.conformance.received import Answer, Ended, Message, Received, Replicated, Request
from replispec.conformance.values import Variables, difference, filled
from replispec.conformance.vocabulary import Dialect, message_values

# How near an outcome came: another kind of thing, another code, another field.
_OTHER, _CODE, _FIELD = 3, 2, 1


class Difference(NamedTuple):
    """Why an outcome does not fit; the smallest distance is told."""

    distance: int
    text: str


def fitting(
    outcomes: Sequence[Outcome],
    received: Received | Replicated,
    variables: Variables,
    dialect: Dialect,
) -> Outcome | Difference:
    """The first outcome that fits, else the nearest difference."""
    nearest: Difference | None = None
    for outcome in outcomes:
        left = _difference(outcome, received, variables, dialect)
        if left is None:
            return outcome
        nearest = left if nearest is None else min(nearest, left, key=lambda each: each.distance)
    assert nearest is not None
    return nearest


def _difference(
    outcome: Outcome, received: Received | Replicated, variables: Variables, dialect: Dialect
) -> Difference | None:
    match received:
        case Answer() if outcome.codes:
            return _answer(outcome, received, variables, dialect)
        case Request() if outcome.command is not None:
            if received.code != dialect.request_code(outcome.command):
                name = dialect.request_name(received.code)
                return Difference(_CODE, f"{name} instead of {outcome.command}")
            return _parts(outcome, {"header": received.header, "body": received.body}, variables)
        case Message() if outcome.message is not None:
            if received.name != outcome.message:
                return Difference(_CODE, f"{received.name} instead of {outcome.message}")
            return _fields(message_values(received.value), outcome.fields, variables, "field")
        case Ended() if outcome.closed:
            return None
        case Replicated() if outcome.replicated is not None:
            return _fields(received.counts, outcome.replicated, variables, "replicated")
        case _:
            return Difference(_OTHER, f"{_named(received, dialect)} instead of {_wanted(outcome)}")


def _answer(outcome: Outcome, received: Answer, variables: Variables, dialect: Dialect) -> Difference | None:
    if outcome.opaque is not None and received.opaque != filled(outcome.opaque, variables):
        return Difference(_OTHER, "the answer to another request")
    if received.code not in [dialect.response_code(each) for each in outcome.codes]:
        name = dialect.response_name(received.code)
        return Difference(_CODE, f"code {name} instead of {' or '.join(outcome.codes)}")
    return _parts(outcome, {"header": received.header, "body": received.body}, variables)


def _parts(outcome: Outcome, found: Mapping[str, object], variables: Variables) -> Difference | None:
    for name, wanted in (("header", outcome.header or None), ("body", outcome.body)):
        if wanted is not None:
            left = difference(found[name], filled(wanted, variables), name)
            if left is not None:
                return Difference(_FIELD, left)
    return None


def _fields(
    found: Mapping[str, object], wanted: Mapping[str, object], variables: Variables, name: str
) -> Difference | None:
    left = difference(found, filled(wanted, variables), name)
    return None if left is None else Difference(_FIELD, left)


def _named(received: Received | Replicated, dialect: Dialect) -> str:
    match received:
        case Answer():
            return f"code {dialect.response_name(received.code)}"
        case Request():
            return f"request {dialect.request_name(received.code)}"
        case Message():
            return received.name
        case Ended():
            return "the end of the connection"
        case _:
            return "something else"


def _wanted(outcome: Outcome) -> str:
    if outcome.codes:
        return " or ".join(outcome.codes)
    if outcome.closed:
        return "its end"
    if outcome.silence:
        return "silence"
    return outcome.command or outcome.message or "transfers"


class Lacking(Exception):
    """What came fits, but lacks a value that later steps go on with."""


def saved(outcome: Outcome, received: Received | Replicated) -> dict[str, object]:
    """What the outcome wants kept, by name. Raises Lacking for a path that leads nowhere."""
    parts = _saveable(received)
    kept = {name: _followed(parts, path.split(".")) for name, path in outcome.save.items()}
    lacking = [path for name, path in outcome.save.items() if kept[name] is None]
    if lacking:
        raise Lacking(f"no {' and no '.join(lacking)} to go on with")
    return kept


def _saveable(received: Received | Replicated) -> dict[str, object]:
    match received:
        case Answer() | Request():
            return {"code": received.code, "header": received.header, "body": received.body}
        case Message():
            return {"fields": message_values(received.value)}
        case Replicated():
            return {"replicated": received.counts}
        case _:
            return {}


def _followed(value: object, path: Sequence[str]) -> object:
    for name in path:
        if isinstance(value, Mapping):
            value = value.get(name)
        elif isinstance(value, list) and name.lstrip("-").isdigit() and -len(value) <= int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value
