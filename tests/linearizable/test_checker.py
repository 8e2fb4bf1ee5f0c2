"""The checker of histories: what it must refuse, what it must not, and the same by trying every order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pytest

from replispec.runtime.primitives.rng import Rng
from tests.linearizable.brute import is_linearizable
from tests.linearizable.checker import Operation, Undecided, contradiction, shown


class Written(NamedTuple):
    """A register got a value."""

    value: int


class Read(NamedTuple):
    """A register was read."""

    value: int


class Swapped(NamedTuple):
    """It got a value if it had another; `done` is None without an answer."""

    expected: int
    value: int
    done: bool | None = None


class Taken(NamedTuple):
    """The next number was taken, None without an answer: a counter."""

    number: int | None


class Register:
    """A register and a counter: 0 at first."""

    initial = 0

    def after(self, state: int, what: What) -> Sequence[int]:
        """What it may be after this."""
        match what:
            case Written():
                return [what.value]
            case Read():
                return [state] if state == what.value else []
            case Taken():
                return [state + 1] if what.number in (None, state) else []
            case Swapped(done=False):
                return [state] if state != what.expected else []
            case Swapped():
                return [what.value] if state == what.expected else []


What = Written | Read | Swapped | Taken
Timed = tuple[What, int, int | None]


def history(*operations: Timed) -> list[Operation[What]]:
    return [Operation(*each) for each in operations]


def explains(*operations: Timed) -> bool:
    found = contradiction(history(*operations), Register())
    return found is None


LINEARIZABLE: Mapping[str, tuple[Timed, ...]] = {
    "nothing": (),
    "one after the other": ((Written(1), 1, 2), (Read(1), 3, 4)),
    "a read beside a write sees it": ((Written(1), 1, 4), (Read(1), 2, 3)),
    "a read beside a write does not see it": ((Written(1), 1, 4), (Read(0), 2, 3)),
    "two writes side by side, in either order": ((Written(1), 1, 4), (Written(2), 2, 3), (Read(1), 5, 6)),
    "a write without an answer has happened": ((Written(1), 1, None), (Read(1), 2, 3)),
    "a write without an answer has not happened": ((Written(1), 1, None), (Read(0), 2, 3)),
    "a write without an answer happens late": ((Written(1), 1, None), (Read(0), 2, 3), (Read(1), 4, 5)),
    "the same without an answer twice": (
        (Taken(None), 1, None),
        (Taken(None), 2, None),
        (Taken(2), 3, 4),
    ),
    "one of two swaps": ((Swapped(0, 1, True), 1, 4), (Swapped(0, 2, False), 2, 3), (Read(1), 5, 6)),
}
NOT_LINEARIZABLE: Mapping[str, tuple[Timed, ...]] = {
    "a stale read": ((Written(1), 1, 2), (Read(0), 3, 4)),
    "a stale read after another": ((Written(1), 1, 8), (Read(1), 2, 3), (Read(0), 4, 5)),
    "a lost update": ((Taken(0), 1, 2), (Taken(1), 3, 4), (Read(1), 5, 6)),
    "a number that two got": ((Taken(0), 1, 4), (Taken(0), 2, 3)),
    "two swaps of the same": ((Swapped(0, 1, True), 1, 4), (Swapped(0, 2, True), 2, 3)),
    "in another order": ((Written(1), 1, 2), (Written(2), 3, 4), (Read(1), 5, 6)),
    "two readers see two orders": (
        (Written(1), 1, 20),
        (Written(2), 2, 20),
        (Read(1), 3, 4),
        (Read(2), 5, 6),
        (Read(1), 7, 8),
    ),
    "what nobody wrote": ((Written(1), 1, None), (Read(2), 2, 3)),
    "a write without an answer that happens and does not": (
        (Written(1), 1, None),
        (Read(1), 2, 3),
        (Read(0), 4, 5),
    ),
    "a write before it began": ((Read(1), 1, 2), (Written(1), 3, None)),
    "one without an answer for two that it takes": ((Taken(None), 1, None), (Taken(2), 2, 3)),
    "a refusal for no reason": ((Swapped(0, 1, False), 1, 2),),
}


@pytest.mark.parametrize("name", LINEARIZABLE)
def test_what_one_order_explains_is_explained(name: str) -> None:
    assert explains(*LINEARIZABLE[name])


@pytest.mark.parametrize("name", NOT_LINEARIZABLE)
def test_what_no_order_explains_is_refused(name: str) -> None:
    assert not explains(*NOT_LINEARIZABLE[name])


def test_a_refusal_says_how_far_it_goes_and_what_does_not_fit() -> None:
    found = contradiction(history((Written(1), 1, 2), (Read(0), 3, 4)), Register())
    assert found is not None
    assert (found.before, found.state, [each.what for each in found.next_ones]) == (1, 1, [Read(0)])
    assert "Read(value=0)" in str(found)
    assert len(shown(history((Written(1), 1, None), (Read(0), 3, 4))).splitlines()) == 2


def test_a_search_that_takes_too_long_is_no_verdict() -> None:
    many = history(*((Written(each), each, 100 + each) for each in range(1, 20)), (Read(99), 200, 201))
    with pytest.raises(Undecided):
        contradiction(many, Register(), steps_max=1_000)


def drawn(rng: Rng) -> list[Operation[What]]:
    """A few operations of three clients, most of them as they would be, some not; some without an answer."""
    ends: list[tuple[int, int]] = []
    free = [0, 0, 0]
    for _ in range(rng.between(2, 6)):
        client = rng.below(3)
        called = free[client] + rng.between(1, 6)
        free[client] = returned = called + rng.between(1, 8)
        ends.append((called * 3 + client, returned * 3 + client))
    found: list[Operation[What]] = []
    value = 0
    for called, returned in ends:
        kind, new = rng.below(4), rng.between(0, 2)
        is_open = rng.happens(250)
        seen = value if rng.happens(800) else rng.between(0, 2)
        what: What
        if kind == 0:
            what, value = Written(new), new
        elif kind == 1:
            what, is_open = Read(seen), False
        elif kind == 2:
            what, value = Taken(None if is_open else seen), value + 1
        else:
            done = None if is_open else rng.happens(600)
            what, value = Swapped(seen, new, done), new if done else value
        found.append(Operation(what, called, None if is_open else returned))
    return found


def test_it_says_what_trying_every_order_says() -> None:
    rng = Rng(1)
    verdicts = []
    for _ in range(3_000):
        one = drawn(rng)
        verdict = contradiction(one, Register()) is None
        assert verdict == is_linearizable(one, Register()), shown(one)
        verdicts.append(verdict)
    assert 500 < verdicts.count(True) < 2_500
