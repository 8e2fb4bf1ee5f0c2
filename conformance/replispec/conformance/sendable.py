"""What a case sends is tried before anything runs: what has no bytes is a fault of the file, at its line."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from replispec.conformance.encoding import NO_COMMAND, Encoder, Question, Unsendable
from replispec.conformance.family import Family
from replispec.conformance.model import Answered, CaseError, CasePlace, Raw, Sent
from replispec.conformance.steps import matcherless
from replispec.conformance.values import UnknownVariable, filled, names_in
from replispec.runtime.primitives.texts import INT32

# What stands for a value that only a run has, an address or what an earlier step saved.
_LATER = 1
_NOW_MS = 1_700_000_000_000


def check_bytes(action: Sent | Raw, place: CasePlace, family: Family) -> None:
    """Refuse what can have no bytes, whatever a run brings.

    Where a value is missing that only a run has, the lengths are not those of the run: only places that the
    bytes themselves name are tried then. Raises CaseError.
    """
    fresh = family.fresh(random.Random(0), _NOW_MS)
    later = set(names_in(action)) - fresh.keys()
    variables = {**fresh, **dict.fromkeys(later, _LATER)}
    # Its opaques have ten digits, as most of a run have.
    encoder = family.encoder(family.vocabulary.known_releases()[-1], INT32[1] // 2)
    try:
        data = encoder.sent(action, variables) if isinstance(action, Sent) else encoder.raw(action, variables)
    except (Unsendable, UnknownVariable) as fault:
        if later:
            return
        raise CaseError(place, str(fault)) from None
    if isinstance(action, Raw):
        named = tuple(each for each in action.split if isinstance(each, str))
        _check_cuts(replace(action, split=named) if later else action, data.data, encoder, place)


def check_answer(answered: Answered, place: CasePlace, family: Family) -> None:
    """Refuse an answer that can be written to a subject of no release. Raises CaseError."""
    if not matcherless((answered.header, answered.body)):
        raise CaseError(place, "a tag compares what came; it cannot be answered")
    fresh = family.fresh(random.Random(0), _NOW_MS)
    variables = {**fresh, **dict.fromkeys(set(names_in(answered)) - fresh.keys(), _LATER)}
    faults = []
    for release in reversed(family.vocabulary.known_releases()):
        try:
            header, body = filled(answered.header, variables), filled(answered.body, variables)
            asked = Question(1, NO_COMMAND, oneway=False)
            said = cast("Mapping[str, object]", header)
            family.encoder(release, 1).answer(answered.code, asked, said, body)
        except (Unsendable, UnknownVariable) as fault:
            faults.append(str(fault))
        else:
            return
    raise CaseError(place, faults[-1])


def _check_cuts(raw: Raw, data: bytes, encoder: Encoder, place: CasePlace) -> None:
    try:
        encoder.pieces(raw, data)
    except Unsendable as fault:
        raise CaseError(place, str(fault)) from None
