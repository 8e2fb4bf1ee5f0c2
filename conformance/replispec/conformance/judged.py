"""Whom a run judges: where the subject is, what it speaks, and how patient the suite is with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from replispec.conformance.adapters import Adapter
from replispec.conformance.family import Family, SubjectKind
from replispec.conformance.vocabulary import Release


@dataclass(frozen=True, slots=True)
class JudgedSubject:
    """Where the subject is, what it speaks, and how patient the suite is with it.

    `addresses` holds `target` and perhaps others; `kind` says what the target speaks; `patience` multiplies
    every wait of a case and every time that it names. `lenient`: what rests on an
    implementation alone is not judged. `one_at_a_time`: a subject that is gone
    after a case has spoken to it has died of that case. `adapter` starts what cases ask for.
    """

    addresses: Mapping[str, str]
    family: Family
    kind: SubjectKind
    release: Release
    known: Mapping[str, object] = field(default_factory=dict)
    patience: float = 1.0
    lenient: bool = False
    one_at_a_time: bool = False
    adapter: Adapter | None = None
