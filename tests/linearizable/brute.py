"""The same question answered by trying every order of every choice: for histories of a few operations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations, permutations

from tests.linearizable.checker import Model, Operation, State, What


def is_linearizable(history: Sequence[Operation[What]], model: Model[State, What]) -> bool:
    """Whether some order explains a history."""
    answered = [each for each in history if each.returned is not None]
    open_ones = [each for each in history if each.returned is None]
    chosen = chain.from_iterable(combinations(open_ones, count) for count in range(len(open_ones) + 1))
    return any(
        _keeps_time(order) and _fits(order, model)
        for some in chosen
        for order in permutations([*answered, *some])
    )


def _keeps_time(order: Sequence[Operation[What]]) -> bool:
    """Whether nothing comes after what began when it had ended."""
    return all(
        later.returned is None or later.returned >= earlier.called
        for place, earlier in enumerate(order)
        for later in order[place + 1 :]
    )


def _fits(order: Sequence[Operation[What]], model: Model[State, What]) -> bool:
    states = {model.initial}
    for each in order:
        states = {after for state in states for after in model.after(state, each.what)}
    return bool(states)
