"""Clauses: what the documents and the implementations demand, each under an id that others cite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from replispec.compiler.model.message import Place

SEVERITIES: Final = ("REQUIRED", "RECOMMENDED", "OPTIONAL")
BASES: Final = {
    "proposal": "the proposal",
    "implementation": "an implementation's source or measured behaviour",
    "both": "the proposal and an implementation",
    "ours": "a decision of this specification",
}


@dataclass(frozen=True, slots=True)
class ClauseSpec:
    """One requirement in our own words, with its source and the known deviations by release."""

    id: str
    requirement: str
    severity: str
    basis: str
    document: str
    section: str
    divergence: Mapping[str, str]
    place: Place
    case: str = ""  # what a case of the conformance suite has to do
    not_yet: str = ""  # why nothing checks it
