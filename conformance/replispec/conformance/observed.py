"""What of an outcome rests on an implementation alone, and what is left of it where only proposals count.

A case marks a value with `!observed`, an outcome that no release of the implementation shows with
`unobserved: true`, and a refusal by its code. Where only the proposals count, a marked value may be anything
(or what stands second), such an outcome is allowed, and one refusal is as good as another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from replispec.conformance.model import AllowedOutcome, Matcher

TAG = "observed"
_ANYTHING = Matcher("one_of", [Matcher("present", None), Matcher("absent", None)])
_PAIR = 2


def allowed(outcomes: Sequence[AllowedOutcome], *, lenient: bool) -> list[AllowedOutcome]:
    """The outcomes to compare with: as the implementation was observed, or leniently, as proposals allow."""
    return [_settled_outcome(each, lenient) for each in outcomes if lenient or not each.unobserved]


def _settled_outcome(outcome: AllowedOutcome, lenient: bool) -> AllowedOutcome:
    return replace(
        outcome,
        header=_settled_fields(outcome.header, lenient),
        body=settled(outcome.body, lenient=lenient),
        fields=_settled_fields(outcome.fields, lenient),
        replicated=None if outcome.replicated is None else _settled_fields(outcome.replicated, lenient),
    )


def _settled_fields(fields: Mapping[str, object], lenient: bool) -> Mapping[str, object]:
    return {name: settled(value, lenient=lenient) for name, value in fields.items()}


def settled(value: object, *, lenient: bool) -> object:
    """A value of an outcome without marks."""
    if isinstance(value, Matcher) and value.tag == TAG:
        pair = value.value
        if isinstance(pair, list) and len(pair) == _PAIR:
            return settled(pair[lenient], lenient=lenient)
        return _ANYTHING if lenient else settled(pair, lenient=lenient)
    if isinstance(value, Matcher):
        return Matcher(value.tag, settled(value.value, lenient=lenient))
    if isinstance(value, Mapping):
        return {name: settled(each, lenient=lenient) for name, each in value.items()}
    if isinstance(value, list):
        return [settled(each, lenient=lenient) for each in value]
    return value
