"""Long runs of events stepped at once, with the results of stepping one by one.

A fold goes from state to state: an invariant's variables, or where a machine may be. Its step is traced
(`traces.py`) for each shape of the state (`shapes.py`). While a run of events leaves the shape as it is, only
its numbers change. They are guessed for every event of the run, all events are stepped at once, and what they
leave is the next guess. Once nothing changes any more the guess was right: the first event's was, and every
other's is what the event before it leaves. What ends a run, or does not settle, is stepped as before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from replispec.replay.events.event_tables import EventTable, Rows, Template, Templates
from replispec.replay.machines.shapes import (
    Left,
    OutcomeT,
    Shape,
    Slot,
    Structure,
    added_by,
    filled,
    frozen,
    left_of,
    shape_of,
    usual_moves,
)
from replispec.replay.machines.traces import (
    LESS,
    NUMBER_MAX,
    SAME,
    Asked,
    Expression,
    Leaf,
    Number,
    Path,
    Question,
    Tree,
    UntraceableError,
    explore,
)

BLOCK_MIN: Final = 16
BLOCK_MAX: Final = 1 << 16
ROUNDS_MAX: Final = 12
"""Guesses that a block is given to settle."""
TREES_MAX: Final = 1 << 12
"""Trees that are remembered; more are made again."""
TEMPLATES_SHARE: Final = 8
"""Events a template must stand for, on the average, to be worth tracing."""
TEMPLATES_FREE: Final = 32

StateT = TypeVar("StateT")
Outcome_co = TypeVar("Outcome_co", bound=Hashable, covariant=True)
Array = npt.NDArray[np.int64]


class Fold(Protocol[StateT, Outcome_co]):
    """What is folded over events. A step is a function of its arguments alone."""

    def apart(self, state: StateT) -> tuple[Structure, list[tuple[str, Any]]]:
        """The state's structure, and its values with their names."""
        ...

    def together(self, structure: Structure, values: Sequence[Any]) -> StateT:
        """The inverse."""
        ...

    def step(self, state: StateT, name: str, event: Any) -> tuple[Outcome_co, StateT]:
        """What an event of this kind comes to, and the state after it."""
        ...


@dataclass(frozen=True, slots=True)
class _Traced(Generic[OutcomeT]):
    """A tree, and the attributes that it adds up: those alone must be small enough for that."""

    tree: Tree[Left[OutcomeT]]
    added: frozenset[str]


@dataclass(slots=True)
class _Run(Generic[StateT]):
    """Events from `start` on: their states before them, one by one, or a shape and its slots."""

    start: int
    states: list[StateT] = field(default_factory=list)
    shape: Shape | None = None
    slots: list[Array] = field(default_factory=list)


@dataclass(slots=True)
class Folded(Generic[StateT, OutcomeT]):
    """What a run of events comes to: `outcomes[codes[row]]` for each, and the state after all of them."""

    codes: Array
    outcomes: list[OutcomeT]
    state: StateT
    _fold: Fold[StateT, OutcomeT]
    _runs: list[_Run[StateT]]

    def before(self, row: int) -> StateT:
        """The state before one event."""
        run = self._runs[bisect_right(self._runs, row, key=lambda run: run.start) - 1]
        at = row - run.start
        if run.shape is None:
            return run.states[at]
        numbers = [int(slot[at]) for slot in run.slots]
        return self._fold.together(run.shape.structure, filled(run.shape.values, numbers))


class ColumnFold(Generic[StateT, OutcomeT]):
    """Folds tables of events; remembers the trees of its fold."""

    def __init__(self, fold: Fold[StateT, OutcomeT]) -> None:
        self._fold = fold
        self._trees: dict[Hashable, _Traced[OutcomeT] | None] = {}
        # Attributes that a kind of event was ever asked for: nothing else tells its trees apart.
        self._asked: dict[str, set[str]] = {}

    def run(
        self, state: StateT, table: EventTable, templates: Templates | None = None
    ) -> Folded[StateT, OutcomeT]:
        """Fold all events of a table, beginning with `state`."""
        found = templates or table.templates()
        return _Running(self, self._fold, state, table, found).folded()

    def tree(self, shape: Shape, template: Template, numbers: Sequence[str]) -> _Traced[OutcomeT] | None:
        """The tree of one kind of event in states of a shape; None when there is none."""
        key = self._key(shape, template)
        if key not in self._trees:
            found = self._traced(shape, template, numbers)
            if len(self._trees) >= TREES_MAX:
                self._trees.clear()
            self._trees[self._key(shape, template)] = found
            return found
        return self._trees[key]

    def _key(self, shape: Shape, template: Template) -> Hashable:
        asked = sorted(self._asked.get(template.name, ()))
        known = template.known
        return (
            shape.key,
            template.name,
            tuple((each, frozen(known[each])) for each in asked if each in known),
        )

    def _traced(self, shape: Shape, template: Template, numbers: Sequence[str]) -> _Traced[OutcomeT] | None:
        asked = self._asked.setdefault(template.name, set())

        def call(path: Path) -> Left[OutcomeT]:
            event = _TracedEvent(path, template, numbers, asked)
            values = [
                path.number(("slot", each.number)) if isinstance(each, Slot) else each
                for each in shape.values
            ]
            state = self._fold.together(shape.structure, values)
            outcome, after = self._fold.step(state, template.name, event)
            return left_of(shape, outcome, *self._fold.apart(after))

        try:
            tree = explore(call)
        except UntraceableError:
            return None
        return _Traced(tree, frozenset(added_by(tree)))


class _TracedEvent:
    """An event whose numbers are not known, and which notes what it is asked for."""

    def __init__(self, path: Path, template: Template, numbers: Sequence[str], asked: set[str]) -> None:
        self._path = path
        self._template = template
        self._numbers = numbers
        self._asked = asked

    def __getattr__(self, name: str) -> Any:
        if name in self._template.known:
            self._asked.add(name)
            return self._template.known[name]
        if name in self._numbers:
            self._asked.add(name)
            return self._path.number(("event", name))
        raise AttributeError(name)


class _Running(Generic[StateT, OutcomeT]):
    """One table while it is folded."""

    def __init__(
        self,
        owner: ColumnFold[StateT, OutcomeT],
        fold: Fold[StateT, OutcomeT],
        state: StateT,
        table: EventTable,
        templates: Templates,
    ) -> None:
        self._owner = owner
        self._fold = fold
        self._state = state
        self._table = table
        self._templates = templates
        self._numbers = {name: column.numbers for name, column in table.numbers.items()}
        self._codes = np.zeros(len(table), dtype=np.int64)
        self._outcomes: dict[OutcomeT, int] = {}
        self._runs: list[_Run[StateT]] = []

    def folded(self) -> Folded[StateT, OutcomeT]:
        """Fold everything."""
        row, block, end = 0, 4 * BLOCK_MIN, len(self._table)
        # Where hardly two events have anything in common nothing is to be gained.
        many = len(np.unique(self._templates.codes)) > TEMPLATES_FREE + end // TEMPLATES_SHARE
        while row < end:
            stop = min(row + block, end)
            taken = 0
            if not many and stop - row >= BLOCK_MIN:
                taken = self._block(row, stop)
            if taken == 0:
                stop = end if many else min(row + BLOCK_MIN, end)
                self._one_by_one(row, stop)
                row, block = stop, 2 * BLOCK_MIN
            else:
                settled = row + taken == stop
                row += taken
                block = min(4 * block, BLOCK_MAX) if settled else max(2 * taken, BLOCK_MIN)
        return Folded(self._codes, list(self._outcomes), self._state, self._fold, self._runs)

    def _one_by_one(self, start: int, stop: int) -> None:
        run: _Run[StateT] = _Run(start)
        for row in range(start, stop):
            run.states.append(self._state)
            outcome, self._state = self._fold.step(self._state, self._table.name(row), self._table.event(row))
            self._codes[row] = self._code(outcome)
        self._runs.append(run)

    def _code(self, outcome: OutcomeT) -> int:
        return self._outcomes.setdefault(outcome, len(self._outcomes))

    def _block(self, start: int, stop: int) -> int:
        """Step events at once; how many of them, from `start` on, are settled. 0: none can be."""
        shaped = shape_of(*self._fold.apart(self._state))
        if shaped is None:
            return 0
        shape, slots = shaped
        codes = self._templates.codes[start:stop]
        trees: dict[int, Tree[Left[OutcomeT]]] = {}
        added: set[str] = set()
        for code in np.unique(codes):
            traced = self._owner.tree(shape, self._templates.each[code], list(self._numbers))
            if traced is None:
                codes = codes[: int(np.argmax(codes == code))] if (codes == code).any() else codes
            else:
                trees[int(code)] = traced.tree
                added |= traced.added
        codes = codes[: self._small(start, start + len(codes), added)]
        if len(codes) < BLOCK_MIN:
            return 0
        return self._settled(start, _Block(shape, slots, codes, trees, self._numbers, start))

    def _small(self, start: int, stop: int, added: Collection[str]) -> int:
        """The number of events before the first one with a number that is too large to be added up."""
        large = np.zeros(stop - start + 1, dtype=np.bool_)
        large[-1] = True
        for name in added:
            numbers = self._numbers[name][start:stop]
            large[:-1] |= (numbers > NUMBER_MAX) | (numbers < -NUMBER_MAX)
        return int(np.argmax(large))

    def _settled(self, start: int, block: _Block[OutcomeT]) -> int:
        taken, after = block.settle()
        if taken == 0:
            return 0
        own = np.array([self._code(each.outcome) for each in block.lefts], dtype=np.int64)
        self._codes[start : start + taken] = own[block.left[:taken]]
        self._runs.append(_Run(start, [], block.shape, [slot[:taken] for slot in block.into]))
        self._state = self._fold.together(*after)
        return taken


class _Block(Generic[OutcomeT]):
    """Consecutive events that are stepped at once, in states of one shape.

    `into` are the slots before each event, as guessed so far; `left` says what each comes to (of `lefts`).
    """

    def __init__(
        self,
        shape: Shape,
        slots: Sequence[int],
        codes: Array,
        trees: dict[int, Tree[Left[OutcomeT]]],
        numbers: dict[str, Array],
        start: int,
    ) -> None:
        count = len(codes)
        self.shape = shape
        self.lefts: list[Left[OutcomeT]] = []
        self.left = np.zeros(count, dtype=np.int64)
        self.into = [np.full(count, slot, dtype=np.int64) for slot in slots]
        self._slots = slots
        self._codes = codes
        self._trees = trees
        self._numbers = {name: column[start : start + count] for name, column in numbers.items()}
        self._places: dict[int, int] = {}
        self._moved = [np.zeros(count, dtype=np.bool_) for _ in slots]
        self._values = [np.zeros(count, dtype=np.int64) for _ in slots]

    def settle(self) -> tuple[int, tuple[Structure, list[Any]]]:
        """How many events are settled, and structure and values of the state after the last of them."""
        count = len(self._codes)
        rows: Rows = np.arange(count)
        settled = count
        for _ in range(ROUNDS_MAX):
            self._step(rows)
            guess = self._forward()
            changed = np.zeros(count + 1, dtype=np.bool_)
            for before, now in zip(self.into, guess, strict=True):
                changed[:count] |= before != now[:count]
            # Whatever stands behind the end of a run is stepped again, from another shape.
            ends = self._end()
            rows = np.flatnonzero(changed[:ends])
            settled = int(rows[0]) if len(rows) else ends
            self.into = [now[:count].copy() for now in guess]
            if not len(rows):
                break
            rows = np.flatnonzero(changed[:count])
        if settled == 0:
            return 0, (self.shape.structure, self.shape.values)
        return settled, self._after(settled - 1)

    def _end(self) -> int:
        """The number of events up to the first one that leaves another shape, or a number too large."""
        ending = np.array([each.moves is None for each in self.lefts], dtype=np.bool_)[self.left]
        for moved, values in zip(self._moved, self._values, strict=True):
            ending |= moved & ((values > NUMBER_MAX) | (values < -NUMBER_MAX))
        at = int(np.argmax(ending)) if len(ending) else 0
        return at + 1 if len(ending) and ending[at] else len(ending)

    def _step(self, rows: Rows) -> None:
        for code, tree in self._trees.items():
            own = rows[self._codes[rows] == code]
            if len(own):
                # Where a wrong guess ends the run the next one goes on as if it had not.
                self._move(usual_moves(tree), own)
                self._descend(tree, own)

    def _descend(self, tree: Tree[Left[OutcomeT]], rows: Rows) -> None:
        while isinstance(tree, Asked):
            yes = self._answers(tree.question, rows)
            if yes.all():
                tree = tree.yes
            elif not yes.any():
                tree = tree.no
            else:
                self._descend(tree.no, rows[~yes])
                tree, rows = tree.yes, rows[yes]
        self._arrive(tree, rows)

    def _arrive(self, leaf: Leaf[Left[OutcomeT]], rows: Rows) -> None:
        left = leaf.outcome
        place = self._places.setdefault(id(left), len(self._places))
        if place == len(self.lefts):
            self.lefts.append(left)
        self.left[rows] = place
        if left.moves is not None:
            self._move(left.moves, rows)

    def _move(self, moves: Sequence[tuple[int, Expression]], rows: Rows) -> None:
        for moved in self._moved:
            moved[rows] = False
        for slot, expression in moves:
            self._moved[slot][rows] = True
            self._values[slot][rows] = self._value(expression, rows)

    def _answers(self, question: Question, rows: Rows) -> npt.NDArray[np.bool_]:
        left, right = self._value(question.left, rows), self._value(question.right, rows)
        if question.operator == SAME:
            found = left == right
        else:
            found = left < right if question.operator == LESS else left <= right
        return np.broadcast_to(found, len(rows))

    def _value(self, expression: Expression, rows: Rows) -> Any:
        if isinstance(expression, int):
            return np.int64(expression)
        kind, first = expression[0], expression[1]
        if kind == "event":
            return self._numbers[first][rows]
        if kind == "slot":
            return self.into[first][rows]
        one, other = self._value(first, rows), self._value(expression[2], rows)
        return one + other if kind == "+" else one - other

    def _forward(self) -> list[Array]:
        """The slots before each event, and after the last one, if every event leaves what it now does."""
        found = []
        for first, moved, values in zip(self._slots, self._moved, self._values, strict=True):
            last = np.maximum.accumulate(np.where(moved, np.arange(len(moved)), -1))
            left = np.where(last >= 0, values[last], first)
            found.append(np.concatenate(([first], left)))
        return found

    def _after(self, row: int) -> tuple[Structure, list[Any]]:
        """Structure and values of the state after an event that is settled."""
        left, one = self.lefts[self.left[row]], np.array([row])

        def known(value: Any) -> Any:
            if not isinstance(value, Number):
                return value
            return int(np.broadcast_to(self._value(value.expression, one), 1)[0])

        return left.structure, [known(value) for value in left.values]
