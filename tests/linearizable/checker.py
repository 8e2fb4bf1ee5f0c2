"""Whether a history of concurrent operations is linearizable: some order of them that never puts one before
another that had ended when it began, each changing and seeing what the one before has left.

An operation without an answer may have happened at any time since it began, may happen yet, or never does.
Source: J. Wing, C. Gong, Testing and Verifying Concurrent Objects, 1993; G. Lowe, Testing for
linearizability, 2017, which remembers what was tried.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Generic, Protocol, TypeVar

STEPS_MAX: Final = 400_000
"""Steps after which a history cannot be decided; usual ones take a few for each operation."""

State = TypeVar("State", bound=Hashable)
What = TypeVar("What", bound=Hashable)
What_contra = TypeVar("What_contra", bound=Hashable, contravariant=True)


class Undecided(Exception):
    """The search was given up."""


@dataclass(frozen=True, slots=True)
class Operation(Generic[What]):
    """What somebody asked and was told. `called` and `returned` are places in the one order of all beginnings
    and ends; `returned` is None without an answer, and `what` then says only what was asked."""

    what: What
    called: int
    returned: int | None = None
    who: str = ""


class Model(Protocol[State, What_contra]):
    """An object as one client alone would see it."""

    @property
    def initial(self) -> State:
        """Before anything has happened."""
        ...

    def after(self, state: State, what: What_contra) -> Iterable[State]:
        """What it may be after this; nothing when this cannot happen to it. Without an answer: whatever it
        may be after what was asked, if that does anything."""
        ...


@dataclass(frozen=True, slots=True)
class Stuck(Generic[State, What]):
    """Why no order explains a history: the longest way that was found, as far as it goes. `before` were
    explained, after which the object is `state`, and none of `next_ones` fits."""

    before: int
    state: State
    next_ones: Sequence[Operation[What]]

    def __str__(self) -> str:
        """One paragraph for people."""
        shown = "; ".join(f"{each.who} {each.what}" for each in self.next_ones)
        return (
            f"after {self.before} operations that one order explains, at {self.state}, none fits of: {shown}"
        )


@dataclass(frozen=True, slots=True)
class _Node(Generic[State]):
    """Where a search is: all answered operations before `first` are in, of the others those of `extra` (bits
    from `first` on), of those without an answer `used`."""

    first: int
    extra: int
    used: int
    state: State


class _Search(Generic[State, What]):
    def __init__(self, history: Iterable[Operation[What]], model: Model[State, What]) -> None:
        ordered = sorted(history, key=lambda each: each.called)
        self.model = model
        self.answered = [each for each in ordered if each.returned is not None]
        self.open = [each for each in ordered if each.returned is None]
        self.ends = [each.returned or 0 for each in self.answered]
        # The same, asked before: of operations without an answer that are alike only the oldest is tried.
        self.alike: list[int | None] = []
        last: dict[What, int] = {}
        for place, each in enumerate(self.open):
            self.alike.append(last.get(each.what))
            last[each.what] = place

    def next_answered(self, node: _Node[State]) -> tuple[list[int], int | None]:
        """Those that may come next, whoever ended first before others; and when the first of them ended."""
        found: list[int] = []
        end: int | None = None
        for place in range(node.first, len(self.answered)):
            if end is not None and self.answered[place].called > end:
                break
            if not node.extra >> (place - node.first) & 1:
                found.append(place)
                end = self.ends[place] if end is None else min(end, self.ends[place])
        fitting = [place for place in found if end is None or self.answered[place].called <= end]
        return sorted(fitting, key=lambda place: self.ends[place]), end

    def ways(self, node: _Node[State]) -> Iterator[_Node[State]]:
        """One operation further."""
        fitting, end = self.next_answered(node)
        for place in fitting:
            first, extra = node.first, node.extra | 1 << (place - node.first)
            while extra & 1:
                first, extra = first + 1, extra >> 1
            for state in self.model.after(node.state, self.answered[place].what):
                yield _Node(first, extra, node.used, state)
        for place, each in enumerate(self.open):
            if end is None or each.called > end:
                break
            older = self.alike[place]
            if node.used >> place & 1 or (older is not None and not node.used >> older & 1):
                continue
            for state in self.model.after(node.state, each.what):
                if state != node.state:
                    yield _Node(node.first, node.extra, node.used | 1 << place, state)

    def stuck(self, node: _Node[State]) -> Stuck[State, What]:
        """What is told of the longest way."""
        places, _ = self.next_answered(node)
        before = node.first + node.extra.bit_count()
        return Stuck(before, node.state, tuple(self.answered[place] for place in places))


def contradiction(
    history: Iterable[Operation[What]], model: Model[State, What], *, steps_max: int = STEPS_MAX
) -> Stuck[State, What] | None:
    """None when the history is linearizable. Raises Undecided after `steps_max` steps."""
    search = _Search(history, model)
    count = len(search.answered)
    best = start = _Node(0, 0, 0, model.initial)
    # With fewer of those without an answer used up, all remains possible that is possible with more of them.
    seen: dict[tuple[int, int, State], list[int]] = {(0, 0, model.initial): [0]}
    ways = [search.ways(start)]
    for _ in range(steps_max):
        if best.first == count:
            return None
        if not ways:
            return search.stuck(best)
        node = next(ways[-1], None)
        if node is None:
            ways.pop()
            continue
        if not _is_new(seen, node):
            continue
        ways.append(search.ways(node))
        if node.first + node.extra.bit_count() > best.first + best.extra.bit_count():
            best = node
    raise Undecided(f"{count} operations with an answer, {len(search.open)} without, {steps_max} steps")


def _is_new(seen: dict[tuple[int, int, State], list[int]], node: _Node[State]) -> bool:
    """Whether nothing as good was there before; it is from now on."""
    known = seen.setdefault((node.first, node.extra, node.state), [])
    if any(each & node.used == each for each in known):
        return False
    known[:] = [each for each in known if each & node.used != node.used]
    known.append(node.used)
    return True


def shown(history: Iterable[Operation[What]], most: int = 40) -> str:
    """The last operations of a history, a line each."""
    ordered = sorted(history, key=lambda each: each.called)
    return "\n".join(
        f"  {each.called:>6} .. {'?' if each.returned is None else each.returned:>6} {each.who}: {each.what}"
        for each in islice(ordered, max(0, len(ordered) - most), None)
    )
