"""Constants as the compiler sees them: names for numbers and texts that stand in no message."""

from __future__ import annotations

from dataclasses import dataclass

from replispec.compiler.model.message import Place


@dataclass(frozen=True, slots=True)
class NamedConstant:
    """One name and its value; `source` says in words where it comes from, empty when it stands there."""

    name: str
    value: int | str
    about: str
    source: str
    place: Place
