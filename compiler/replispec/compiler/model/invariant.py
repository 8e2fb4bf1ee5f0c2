"""Invariants as the emitters see them: checked data with parsed and typed expressions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from replispec.compiler.model.expressions import Expression
from replispec.compiler.model.machine import VariableSpec
from replispec.compiler.model.message import Place
from replispec.compiler.model.value_types import Type

PLACEHOLDER: Final = re.compile(r"\{(?:(?P<of>event|other)\.)?(?P<name>[a-z_][a-z0-9_]*)\}")
"""What a sentence says of the event, of the event compared with, or of a variable."""


@dataclass(frozen=True, slots=True)
class StreamEventSpec:
    """One kind of event of a stream; `origins` says where each field comes from."""

    name: str
    fields: Mapping[str, Type]
    origins: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class EventStream:
    """A stream of events that a judge of traffic makes of frames."""

    name: str
    about: str
    order: str
    events: Mapping[str, StreamEventSpec]
    place: Place


@dataclass(frozen=True, slots=True)
class OtherwiseSpec:
    """How a failed check is judged when `condition` holds (None: always)."""

    verdict: str
    condition: Expression | None
    divergence: str
    says: str
    place: Place


@dataclass(frozen=True, slots=True)
class CheckSpec:
    """A condition that must hold."""

    holds: Expression
    otherwise: tuple[OtherwiseSpec, ...]
    says: str
    place: Place


@dataclass(frozen=True, slots=True)
class FoldStepSpec:
    """What one event does to the fold of its key."""

    event: str
    condition: Expression | None
    checks: tuple[CheckSpec, ...]
    assign: Mapping[str, Expression]
    place: Place


@dataclass(frozen=True, slots=True)
class Pairing:
    """The events that ask, tell and answer."""

    request: str
    one_way: str
    answer: str


@dataclass(frozen=True, slots=True)
class InvariantSpec:
    """One invariant of shape set, order, pairing or as_of.

    `event`, `where`, `value` and `otherwise` belong to set and as_of; `variables` and `steps` to
    the folds; `check` to as_of. `unseen` says what the capture lacks where something was not seen.
    """

    id: str
    about: str
    shape: str
    stream: EventStream
    group: tuple[str, ...]
    key: tuple[str, ...]
    evaluated: str
    says: str
    clauses: tuple[str, ...]
    place: Place
    unseen: str = ""
    event: str = ""
    where: Expression | None = None
    value: Expression | None = None
    otherwise: tuple[OtherwiseSpec, ...] = ()
    variables: Mapping[str, VariableSpec] = field(default_factory=dict)
    steps: tuple[FoldStepSpec, ...] = ()
    pairing: Pairing | None = None
    check: CheckSpec | None = None

    def divergences(self) -> dict[str, None]:
        """The texts of the known deviations, in order, each once."""
        lists = [self.otherwise] + [check.otherwise for step in self.steps for check in step.checks]
        if self.check is not None:
            lists.append(self.check.otherwise)
        return {entry.divergence: None for entries in lists for entry in entries if entry.divergence}


def runtime_template(says: str) -> str:
    """The sentence with variables under `v.`, as the engine fills it in."""
    return PLACEHOLDER.sub(lambda match: match[0] if match["of"] else f"{{v.{match['name']}}}", says)
