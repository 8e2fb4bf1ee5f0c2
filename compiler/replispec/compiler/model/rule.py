"""The pure algorithms that guards may call: their signatures and golden vectors.

An algorithm is written by hand in the runtime; the specification holds its signature, what it
means, and examples with their answers, which decide what any implementation of it must return.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from replispec.compiler.model.message import Place
from replispec.compiler.model.value_types import Type


@dataclass(frozen=True, slots=True)
class RuleType:
    """The signature of a pure algorithm."""

    parameters: Mapping[str, Type]
    result: Type

    @property
    def named(self) -> tuple[str, ...]:
        """The parameters that a call has to name: from the first truth value on, which says nothing alone."""
        names = tuple(self.parameters)
        first = next(
            (at for at, kind in enumerate(self.parameters.values()) if kind.kind == "bool"), len(names)
        )
        return names[first:]


@dataclass(frozen=True, slots=True)
class Vector:
    """One example: arguments by parameter, and the answer, as plain values."""

    name: str
    about: str
    arguments: Mapping[str, object]
    result: object
    place: Place


@dataclass(frozen=True, slots=True)
class RuleSource:
    """One algorithm with its examples."""

    name: str
    about: str
    clauses: tuple[str, ...]
    type: RuleType
    vectors: tuple[Vector, ...]
    place: Place
