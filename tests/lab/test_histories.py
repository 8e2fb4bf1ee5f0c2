"""What cannot be where nothing is lost is told of a history, by its name; nothing of a sound one."""

from __future__ import annotations

import pytest

from lab.rocketmq.histories import History, Place

STORED = {0: [(0, b"a"), (1, b"c")], 1: [(0, b"b")]}


def _history(acknowledged: dict[bytes, Place], *consumed: tuple[Place, bytes]) -> History:
    history = History()
    for body, place in acknowledged.items():
        history.acknowledge(body, place)
    for place, body in consumed:
        history.consume(place, body)
    return history


def test_nothing_is_said_of_a_history_that_can_be() -> None:
    # c was never answered, and a consumer need not have read all.
    history = _history({b"a": (0, 0), b"b": (1, 0)}, ((0, 0), b"a"), ((0, 1), b"c"), ((0, 1), b"c"))
    assert history.complaints(STORED) == []


@pytest.mark.parametrize(
    ("history", "stored", "told"),
    [
        (
            _history({b"a": (0, 0), b"d": (1, 1)}),
            STORED,
            "acknowledged d at position 1 of queue 1 is lost: nothing is there",
        ),
        (
            _history({b"d": (0, 1)}),
            STORED,
            "acknowledged d at position 1 of queue 0 is lost: c is there",
        ),
        (
            _history({}, ((1, 0), b"x")),
            STORED,
            "x was read at position 0 of queue 1: b is there",
        ),
        (
            _history({}, ((0, 1), b"x"), ((0, 1), b"c")),
            {0: [(0, b"a"), (1, b"x")]},
            "position 1 of queue 0 gave x first, later c",
        ),
        (_history({}), {0: [(0, b"a"), (2, b"c")]}, "queue 0 gives position 2 where 1 is next"),
        (_history({}), {0: [(1, b"a")]}, "queue 0 gives position 1 where 0 is next"),
        (_history({}), {0: [(0, b"a"), (0, b"a")]}, "queue 0 gives position 0 where 1 is next"),
        (
            _history({}),
            {0: [(0, b"a")], 1: [(0, b"a")]},
            "a lies at position 0 of queue 0 and at position 0 of queue 1",
        ),
    ],
)
def test_what_cannot_be_is_told(
    history: History, stored: dict[int, list[tuple[int, bytes]]], told: str
) -> None:
    assert history.complaints(stored) == [told]


def test_a_position_that_was_given_to_two_is_told_beside_the_loss() -> None:
    complaints = _history({b"a": (0, 0), b"d": (0, 0)}).complaints(STORED)
    assert complaints == [
        "position 0 of queue 0 was acknowledged for a and for d",
        "acknowledged d at position 0 of queue 0 is lost: a is there",
    ]
