"""A name server and brokers that were passed over (`-fd`), and do not know it yet."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replispec.runtime.rocketmq.queues import Enabled
from tests.queues.registering_queues import NOW_MS, TOPIC, NameServer, Says, segment

ONE = Enabled(NOW_MS, 1, 1)
PASSED = f"logical queues of {TOPIC}: b1 was passed over at offset 15 of queue 0, and not told so yet"
FIRST = Says("b1", segments={0: [segment("b1", 0, 0)]}, enabled=ONE)
SECOND = Says("b2", segments={0: [segment("b2", 0, 15)]}, enabled=ONE, gone={0: ((0, 15),)})
THIRD = Says("b3", segments={0: [segment("b3", 0, 60)]}, enabled=ONE, gone={0: ((15, 60),)})


@pytest.mark.parametrize("is_empty", [False, True])
def test_whoever_passed_over_a_broker_is_believed_of_where_it_ended_and_not_that_broker(
    is_empty: bool,
) -> None:
    """The first was passed over for the second, which is lost, too: what the first holds from there on is of
    no logical offset. The name server knows all that was, or begins empty."""
    names = NameServer()
    if not is_empty:
        names.hears(FIRST, SECOND)
        names.loses("b1")
        names.loses("b2")
    names.hears(THIRD)
    if not is_empty:
        assert names.told() == {0: [("b3", 60, -1)]}
    names.hears(FIRST)
    assert names.refusal() == PASSED
    ended = replace(FIRST, counter=2, segments={0: [segment("b1", 0, 0, 15)]})
    names.hears(ended)
    assert names.told() == {0: [("b1", 0, 15), ("b3", 60, -1)]}


def test_a_broker_that_was_passed_over_is_not_told_as_the_one_that_writes() -> None:
    """Nobody is heard who holds the queue from there on, and somebody says that all up to there is gone."""
    names = NameServer()
    names.hears(FIRST, Says("b3", segments={}, enabled=ONE, gone={0: ((0, 15),)}, queues=0))
    assert names.refusal() == PASSED
    # Who follows is known: it reaches up to there.
    names.hears(SECOND)
    assert names.told() == {0: [("b1", 0, -1), ("b2", 15, -1)]}
