"""What compiled conditions ask of numbers, found by asking them once.

A generated condition, or a whole step of a machine, is plain Python over attributes. Called with a `Number`
in the place of an int it does what it always does, and every comparison becomes a question whose answer
decides where it goes. Trying both answers of each gives a tree: questions inside, outcomes at the leaves. The
tree then answers for any numbers, also for whole columns of them, and is that same condition: no second
form of it is written down anywhere.

An expression is an int, ("event", attribute), ("slot", number), or ("+" or "-", expression, expression).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

LEAVES_MAX: Final = 64
"""Outcomes of one tree; what has more is not worth a tree."""
TERMS_MAX: Final = 7
"""Numbers that one expression adds up: as many of at most NUMBER_MAX fit in 64 bits."""
NUMBER_MAX: Final = 1 << 60
"""The largest amount of a number that is reckoned with in columns."""

OutcomeT = TypeVar("OutcomeT")
Expression = Any
LESS, AT_MOST, SAME = "<", "<=", "=="


class UntraceableError(Exception):
    """What was called does something with a number that only a number that is known can answer."""


@dataclass(frozen=True, slots=True)
class Question:
    """Whether `left` is less than, at most, or the same as `right`."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Asked(Generic[OutcomeT]):
    """A question, and the trees below its answers."""

    question: Question
    yes: Tree[OutcomeT]
    no: Tree[OutcomeT]


@dataclass(frozen=True, slots=True)
class Leaf(Generic[OutcomeT]):
    """What a call comes to once all its questions are answered."""

    outcome: OutcomeT


Tree = Asked[OutcomeT] | Leaf[OutcomeT]


@dataclass(slots=True)
class Path:
    """One call: the answers it is given, and the questions it has asked. Beyond them every answer is yes."""

    answers: list[bool]
    questions: list[Question] = field(default_factory=list)
    _known: dict[Question, bool] = field(default_factory=dict)

    def answer(self, operator: str, left: Expression, right: Expression) -> bool:
        """The answer to a question; the same one whenever it is asked again."""
        if left == right:
            return operator != LESS
        question = Question(operator, left, right)
        if question not in self._known:
            if len(self.questions) == len(self.answers):
                self.answers.append(True)
            self._known[question] = self.answers[len(self.questions)]
            self.questions.append(question)
        return self._known[question]

    def number(self, expression: Expression) -> Number:
        """A number that this call is given, or makes."""
        return Number(self, expression)


def explore(call: Callable[[Path], OutcomeT]) -> Tree[OutcomeT]:
    """The tree of a call that decides by comparisons of the path's numbers alone.

    Raises UntraceableError when it does anything else with them, or asks too much.
    """
    leaves = 0

    def grown(answers: list[bool]) -> Tree[OutcomeT]:
        nonlocal leaves
        leaves += 1
        if leaves > LEAVES_MAX:
            raise UntraceableError("too many outcomes")
        path = Path(answers)
        given = len(answers)
        try:
            tree: Tree[OutcomeT] = Leaf(call(path))
        except TypeError as fault:
            raise UntraceableError(str(fault)) from fault
        for at in reversed(range(given, len(path.questions))):
            tree = Asked(path.questions[at], tree, grown([*path.answers[:at], False]))
        return tree

    return grown([])


def terms(expression: Expression) -> int:
    """How many numbers an expression adds up."""
    if isinstance(expression, tuple) and expression[0] in ("+", "-"):
        return terms(expression[1]) + terms(expression[2])
    return 1


class Number:
    """Stands for an int of which nothing is known yet."""

    __slots__ = ("expression", "path")

    def __init__(self, path: Path, expression: Expression) -> None:
        self.path = path
        self.expression = expression

    def __lt__(self, other: object) -> Any:
        return self._asked(LESS, other)

    def __le__(self, other: object) -> Any:
        return self._asked(AT_MOST, other)

    def __gt__(self, other: object) -> Any:
        return self._asked(LESS, other, turned=True)

    def __ge__(self, other: object) -> Any:
        return self._asked(AT_MOST, other, turned=True)

    def __eq__(self, other: object) -> Any:
        return self._asked(SAME, other)

    def __ne__(self, other: object) -> Any:
        answer = self._asked(SAME, other)
        return answer if answer is NotImplemented else not answer

    def __bool__(self) -> bool:
        return not self.path.answer(SAME, self.expression, 0)

    def __add__(self, other: object) -> Any:
        return self._reckoned("+", other)

    def __radd__(self, other: object) -> Any:
        return self._reckoned("+", other, turned=True)

    def __sub__(self, other: object) -> Any:
        return self._reckoned("-", other)

    def __rsub__(self, other: object) -> Any:
        return self._reckoned("-", other, turned=True)

    def __neg__(self) -> Any:
        return self._reckoned("-", 0, turned=True)

    def __hash__(self) -> int:
        raise UntraceableError("a number is looked up")

    def __index__(self) -> int:
        raise UntraceableError("a number is used as a place")

    def __format__(self, _: str) -> str:
        return "a number"

    def __str__(self) -> str:
        return "a number"

    def _asked(self, operator: str, other: object, *, turned: bool = False) -> Any:
        theirs = _expression(other)
        if theirs is None:
            return NotImplemented
        pair = (theirs, self.expression) if turned else (self.expression, theirs)
        return self.path.answer(operator, *pair)

    def _reckoned(self, operator: str, other: object, *, turned: bool = False) -> Any:
        theirs = _expression(other)
        if theirs is None:
            return NotImplemented
        found = (operator, theirs, self.expression) if turned else (operator, self.expression, theirs)
        if terms(found) > TERMS_MAX:
            raise UntraceableError("a sum of too many numbers")
        return self.path.number(found)


def _expression(value: object) -> Expression | None:
    """The expression of a number, or a known int; None for what is no number (and answers for itself)."""
    if isinstance(value, Number):
        return value.expression
    if isinstance(value, float):
        raise UntraceableError("a fraction")
    if isinstance(value, int):
        if not -NUMBER_MAX <= value <= NUMBER_MAX:
            raise UntraceableError("a number of more than 60 bits")
        return int(value)
    return None
