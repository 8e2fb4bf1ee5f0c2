"""States without their numbers: what is the same of a state before and after most events.

A shape is all that is known of a state but its numbers, which are slots. Shapes are looked up.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any, Final, Generic, TypeVar

from replispec.replay.machines.traces import NUMBER_MAX, Asked, Expression, Number, Tree, UntraceableError
from replispec.runtime.primitives.unknown import UNKNOWN, AtLeast

OutcomeT = TypeVar("OutcomeT", bound=Hashable)
Structure = Any
"""Whatever can be looked up and compared."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Stands in a shape for a number."""

    number: int


@dataclass(slots=True)
class Shape:
    """All of a state but its numbers. `values` holds a Slot for each of those."""

    key: Hashable
    structure: Structure
    values: list[Any]
    slots: int


@dataclass(slots=True)
class Left(Generic[OutcomeT]):
    """What a step leaves: its outcome, and of the state its structure and values, numbers as expressions.

    `moves`: of a state of the same shape the slots that change; None when the shape does.
    """

    outcome: OutcomeT
    structure: Structure
    values: list[Any]
    moves: list[tuple[int, Expression]] | None


def usual_moves(tree: Tree[Left[Any]]) -> list[tuple[int, Expression]]:
    """What is moved where a run goes on, questions answered with yes if they can be; nothing if it ends."""
    if isinstance(tree, Asked):
        return usual_moves(tree.yes) or usual_moves(tree.no)
    return tree.outcome.moves or []


def added_by(tree: Tree[Left[Any]]) -> set[str]:
    """The attributes of events that the expressions of a tree add up."""
    if isinstance(tree, Asked):
        own = _sums(tree.question.left) | _sums(tree.question.right)
        return own | added_by(tree.yes) | added_by(tree.no)
    found: set[str] = set()
    for value in tree.outcome.values:
        found |= _sums(value.expression) if isinstance(value, Number) else set()
    return found


def _sums(expression: Expression, *, inside: bool = False) -> set[str]:
    if isinstance(expression, int):
        return set()
    if expression[0] in ("+", "-"):
        return _sums(expression[1], inside=True) | _sums(expression[2], inside=True)
    return {expression[1]} if inside and expression[0] == "event" else set()


def filled(values: Sequence[Any], numbers: Sequence[int]) -> list[Any]:
    return [numbers[each.number] if isinstance(each, Slot) else each for each in values]


def shape_of(structure: Structure, named: Sequence[tuple[str, Any]]) -> tuple[Shape, list[int]] | None:
    """The shape of a state and its numbers; None when it has none. Equal numbers of one name share a slot:
    they are the same variable under different assumptions."""
    slots: dict[tuple[str, int], int] = {}
    values: list[Any] = []
    for name, value in named:
        if type(value) is int and -NUMBER_MAX <= value <= NUMBER_MAX:
            values.append(Slot(slots.setdefault((name, value), len(slots))))
        elif isinstance(value, AtLeast) or type(value) is int:
            return None
        else:
            values.append(value)
    try:
        key = (structure, tuple(each if isinstance(each, Slot) else frozen(each) for each in values))
    except UntraceableError:
        return None
    return Shape(key, structure, values, len(slots)), [number for _, number in slots]


def left_of(
    shape: Shape, outcome: OutcomeT, structure: Structure, named: Sequence[tuple[str, Any]]
) -> Left[OutcomeT]:
    values = [value for _, value in named]
    for value in values:
        if not isinstance(value, Number):
            frozen(value)
    return Left(outcome, structure, values, _moves(shape, structure, values))


def _moves(shape: Shape, structure: Structure, values: Sequence[Any]) -> list[tuple[int, Expression]] | None:
    """The slots that change, each with its expression; None when the values do not have this shape."""
    if structure != shape.structure:
        return None
    found: dict[int, Expression] = {}
    for before, after in zip(shape.values, values, strict=True):
        if isinstance(before, Slot):
            if isinstance(after, Number):
                expression = after.expression
            elif type(after) is int:
                expression = after
            else:
                return None
            if found.setdefault(before.number, expression) != expression:
                return None
        elif isinstance(after, Number) or type(after) is int or frozen(before) != frozen(after):
            return None
    return [(slot, each) for slot, each in found.items() if each != ("slot", slot)]


_PLAIN: Final = (str, bytes, bool, int, float, Enum, type(None))


def frozen(value: Any) -> Hashable:
    """Something equal for equal values, with which they can be looked up.

    Raises UntraceableError for a value that holds a number of a trace, or is of no known kind.
    """
    if value is UNKNOWN:
        return _UNSEEN
    if isinstance(value, _PLAIN):
        return (type(value), value)
    if isinstance(value, (tuple, list)):
        return (tuple, *(frozen(each) for each in value))
    if isinstance(value, (set, frozenset)):
        return (frozenset, frozenset(frozen(each) for each in value))
    if is_dataclass(value) and not isinstance(value, type):
        return (type(value), *(frozen(getattr(value, each.name)) for each in fields(value)))
    raise UntraceableError(f"a {type(value).__name__} is not looked up")


_UNSEEN: Final = ("unseen",)
