"""Whole clusters whose settings come from the seed too: each keeps what its settings promise.

`python -m tests.sim.run SEED --drawn` plays one run again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Final
from unittest.mock import patch

import pytest

from replispec.broker.rocketmq.core.pulls import Pulls
from replispec.broker.rocketmq.core.replicated import Replicated
from replispec.broker.rocketmq.core.role import Role
from replispec.controller.rocketmq.core.hearings import Hearings, _Hearing
from replispec.runtime.rocketmq.remoting.calls import _Channel
from tests.sim.run import run
from tests.sim.settings import Promise, drawn

SEEDS = int(os.environ.get("REPLISPEC_SEEDS", "200")) // 2
BATCH = 10


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_nothing_acknowledged_is_lost_whatever_the_settings(first: int) -> None:
    results = [run(seed, drawn(seed)) for seed in range(first, first + BATCH)]
    assert [str(result) for result in results if not result.acknowledged] == []
    wrong = [str(result) for result in results if result.wrong]
    assert wrong == [], "\n".join(wrong)


def test_the_seeds_vary_every_setting_with_every_promise() -> None:
    settings = [drawn(seed) for seed in range(SEEDS)]
    assert {each.drops for each in settings} == {True, False}
    assert {each.brokers for each in settings} == {2, 3, 4, 5}
    assert {(each.flush, each.all_ack, each.loses_power, each.forgets) for each in settings} >= {
        (flush, all_ack, power, forgets)
        for flush in ("SYNC_FLUSH", "ASYNC_FLUSH")
        for all_ack in (True, False)
        for power in (True, False)
        for forgets in (True, False)
    }
    assert {each.promise for each in settings} == set(Promise)


@contextmanager
def _never_hung_up() -> Iterator[None]:
    """A connection counts as heard of, whatever came."""
    with patch.object(_Channel, "heard_ms", property(lambda _: 1 << 60, lambda *_: None)):
        yield


def _elected_at_once(hearings: Hearings, name: str, silent: int, *others: int) -> None:
    """Nobody is heard."""
    hearings._elect(name, silent, others[-1])


Mutant = Callable[[], AbstractContextManager[object]]
BROKEN: Final[Mapping[str, tuple[Mutant, int, str]]] = {
    "a master goes on in its epoch with a log that may lack what it acknowledged": (
        lambda: patch.object(Replicated, "is_sure", True),
        14,
        "is lost",
    ),
    "minInSyncReplicas counts when a message comes, not when it is answered": (
        lambda: patch.object(Role, "members_at_least", 1 << 30),
        182,
        "copies of",
    ),
    "whoever has less moves consumers back": (
        lambda: patch.multiple(Pulls, knows=True, _may_move=lambda *_: True),
        2,
        "moved a consumer",
    ),
    "a master that was cut off moves consumers back": (
        lambda: patch.object(Pulls, "_may_move", lambda *_: True),
        12,
        "moved a consumer",
    ),
    "an election goes by what was said before the loss": (
        lambda: patch.object(Hearings, "lost", _elected_at_once),
        545,
        "is lost",
    ),
    "nobody lets go of a master that only its controller misses": (
        lambda: patch.object(_Hearing, "tell_members", lambda *_: ()),
        5248,
        "is lost",
    ),
    "a connection without answers is kept": (_never_hung_up, 335, "not whole"),
}
"""Promises broken one at a time: how, from which seed on one of ten finds it, and what it says."""


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_promise_is_found(name: str) -> None:
    mutant, first, says = BROKEN[name]
    with mutant():
        found = (wrong for seed in range(first, first + 10) for wrong in run(seed, drawn(seed)).wrong)
        assert next((wrong for wrong in found if says in wrong), None) is not None
