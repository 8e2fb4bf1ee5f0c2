"""Whether what came is one of the allowed outcomes, and if not, what the nearest difference is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from replispec.conformance.adapter_requests import AdapterRefused
from replispec.conformance.family import SubjectKind
from replispec.conformance.model import AllowedOutcome, CaseStep, Sent
from replispec.conformance.observed import allowed
from replispec.conformance.received import (
    Ended,
    Received,
    ReceivedAnswer,
    ReceivedLog,
    ReceivedMessage,
    ReceivedRequest,
)
from replispec.conformance.results import CaseVerdict
from replispec.conformance.values import Variables, difference, filled, names_in, number
from replispec.conformance.vocabulary import Dialect, message_values

GONE = "the subject is gone"
# A member of a list by its place, from its end with a minus.
_AT = re.compile(r"-?[0-9]{1,9}")
Judgement = tuple[CaseVerdict, str, str]
"""The verdict, its reason for people, and the symptom of a failure."""

# How near an outcome came: another kind of thing, another code, another field.
_OTHER, _CODE, _FIELD = 3, 2, 1


class OutcomeDifference(NamedTuple):
    """Why an outcome does not fit; the smallest distance is told."""

    distance: int
    text: str


def fitting(
    outcomes: Sequence[AllowedOutcome],
    received: Received | ReceivedLog,
    variables: Variables,
    dialect: Dialect,
) -> AllowedOutcome | OutcomeDifference:
    """The first outcome that fits, else the nearest difference."""
    nearest: OutcomeDifference | None = None
    for outcome in allowed(outcomes, lenient=dialect.lenient):
        left = _difference(outcome, received, variables, dialect)
        if left is None:
            return outcome
        nearest = left if nearest is None else min(nearest, left, key=lambda each: each.distance)
    assert nearest is not None
    return nearest


def _difference(
    outcome: AllowedOutcome, received: Received | ReceivedLog, variables: Variables, dialect: Dialect
) -> OutcomeDifference | None:
    match received:
        case ReceivedAnswer() if outcome.codes:
            return _answer(outcome, received, variables, dialect)
        case ReceivedRequest() if outcome.command is not None:
            if received.code != dialect.request_code(outcome.command):
                name = dialect.request_name(received.code)
                return OutcomeDifference(_CODE, f"{name} instead of {outcome.command}")
            return _parts(outcome, received, variables)
        case ReceivedMessage() if outcome.message is not None:
            if received.name != outcome.message:
                return OutcomeDifference(_CODE, f"{received.name} instead of {outcome.message}")
            return _fields(message_values(received.value), outcome.fields, variables, "field")
        case Ended() if outcome.closed:
            return None
        case ReceivedLog() if outcome.replicated is not None:
            return _fields(received.counts, outcome.replicated, variables, "replicated")
        case _:
            return OutcomeDifference(_OTHER, f"{_named(received, dialect)} instead of {_wanted(outcome)}")


def _answer(
    outcome: AllowedOutcome, received: ReceivedAnswer, variables: Variables, dialect: Dialect
) -> OutcomeDifference | None:
    if outcome.opaque is not None and received.opaque != filled(outcome.opaque, variables):
        return OutcomeDifference(_OTHER, "the answer to another request")
    codes = [_code(each, variables, dialect) for each in outcome.codes]
    if not dialect.fits_code(received.code, codes):
        name = dialect.response_name(received.code)
        return OutcomeDifference(_CODE, f"code {name} instead of {' or '.join(codes)}")
    return _parts(outcome, received, variables)


def _code(word: str, variables: Variables, dialect: Dialect) -> str:
    """The name of a code that a case names, or that an earlier answer had: `$granted`."""
    return dialect.response_name(number(filled(word, variables))) if word.startswith("$") else word


def _parts(
    outcome: AllowedOutcome, received: ReceivedAnswer | ReceivedRequest, variables: Variables
) -> OutcomeDifference | None:
    found = {"flag": received.flag, "header": received.header, "body": received.body}
    wanteds = {"flag": outcome.flag, "header": outcome.header or None, "body": outcome.body}
    for name, wanted in wanteds.items():
        if wanted is not None:
            left = difference(found[name], filled(wanted, variables), name)
            if left is not None:
                return OutcomeDifference(_FIELD, left)
    return None


def _fields(
    found: Mapping[str, object], wanted: Mapping[str, object], variables: Variables, name: str
) -> OutcomeDifference | None:
    left = difference(found, filled(wanted, variables), name)
    return None if left is None else OutcomeDifference(_FIELD, left)


def _named(received: Received | ReceivedLog, dialect: Dialect) -> str:
    match received:
        case ReceivedAnswer():
            return f"code {dialect.response_name(received.code)}"
        case ReceivedRequest():
            return f"request {dialect.request_name(received.code)}"
        case ReceivedMessage():
            return received.name
        case Ended():
            return "the end of the connection"
        case _:
            return "something else"


def _wanted(outcome: AllowedOutcome) -> str:
    if outcome.codes:
        return " or ".join(outcome.codes)
    if outcome.closed:
        return "its end"
    if outcome.silence:
        return "silence"
    return outcome.command or outcome.message or "transfers"


class Lacking(Exception):
    """What came fits, but lacks a value that later steps go on with."""


def saved(outcome: AllowedOutcome, received: Received | ReceivedLog) -> dict[str, object]:
    """What the outcome wants kept, by name. Raises Lacking for a path that leads nowhere."""
    parts = _saveable(received)
    kept = {name: _followed(parts, path.split(".")) for name, path in outcome.save.items()}
    lacking = [path for name, path in outcome.save.items() if kept[name] is None]
    if lacking:
        raise Lacking(f"no {' and no '.join(lacking)} to go on with")
    return kept


def _saveable(received: Received | ReceivedLog) -> dict[str, object]:
    match received:
        case ReceivedAnswer() | ReceivedRequest():
            return {"code": received.code, "header": received.header, "body": received.body}
        case ReceivedMessage():
            return {"fields": message_values(received.value)}
        case ReceivedLog():
            return {"replicated": received.counts}
        case _:
            return {}


def _followed(value: object, path: Sequence[str]) -> object:
    for name in path:
        if isinstance(value, Mapping):
            value = value.get(name)
        elif isinstance(value, list) and _AT.fullmatch(name) and -len(value) <= int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value


def mentioned(step: CaseStep) -> list[str]:
    """The variables in what a step expects, in their order."""
    parts = ((each.header, each.body, each.fields, each.replicated) for each in step.expect)
    return list(dict.fromkeys(name for part in parts for name in names_in(part)))


def not_prepared(step: CaseStep, failure: Judgement, *, told: bool) -> Judgement:
    """A case that cannot be prepared says nothing about its clause.

    Only what a subject told says that it is not as an optional given wants it; an end or silence does not.
    """
    verdict, reason, symptom = failure
    if verdict is not CaseVerdict.FAIL or symptom == GONE:
        return failure
    if step.optional and told:
        return CaseVerdict.SKIPPED, f"not applicable: {reason}", ""
    return CaseVerdict.SKIPPED, f"could not be prepared: {reason}", symptom


def not_judged(step: CaseStep, label: str, what: str) -> Judgement:
    """The subject's answer fits, but with what it told a case cannot go on: nothing is said of its clause."""
    return CaseVerdict.SKIPPED, f"could not go on: {label} ({step.place}): {what}", f"{label}: {what}"


def not_done(step: CaseStep, label: str, refused: AdapterRefused) -> Judgement:
    """The adapter did not do what a step asks for: its subject's fault, or it says that it never can."""
    reason = f"{label} ({step.place}): {refused}"
    if refused.by_suite:
        return CaseVerdict.ERROR, reason, ""
    verdict = CaseVerdict.UNSUPPORTED if refused.unsupported else CaseVerdict.FAIL
    return verdict, reason, f"{label}: the adapter could not do it"


def says(received: Received | None, code: str | None, dialect: Dialect) -> bool:
    """Whether an answer with this code came."""
    return isinstance(received, ReceivedAnswer) and dialect.response_name(received.code) == code


def missing(step: CaseStep, received: Received, kind: SubjectKind, dialect: Dialect) -> str:
    """How an answer says that the subject does not do what a step asks for; empty when it does not say so."""
    if not isinstance(received, ReceivedAnswer):
        return ""
    code = dialect.response_name(received.code)
    if any(code in each.codes for each in step.expect):
        return ""
    if code == kind.unknown_command:
        return "does not know"
    command = step.action.command if isinstance(step.action, Sent) else None
    party = dialect.vocabulary.sender(command) if command else ""
    return "permits nobody" if code == kind.forbidden and party == kind.administrator else ""
