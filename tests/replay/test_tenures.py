"""The epoch of an acknowledged message is told by its broker and its place, and left open where neither
tells.
"""

from __future__ import annotations

import pytest

from replispec.replay.events.observation import Acknowledged, Observation
from replispec.replay.events.rocketmq.tenures import APART_NS, Tenure, epoch_of
from replispec.runtime.primitives.unknown import UNKNOWN

ONE, OTHER = "10.0.0.1:10911", "10.0.0.2:10911"
TOLD_NS = 10 * APART_NS


def acknowledged(offset: int, time_ns: int = 0, address: str = ONE) -> Observation:
    return Acknowledged("c", time_ns, time_ns, "a<->b#1", 0, 0, 0, address=address, offset=offset)


def tenures() -> dict[int, Tenure]:
    """One broker, another one, and the first one again, told a hundred seconds apart."""
    return {
        epoch: Tenure(address, address, (epoch - 1) * TOLD_NS, (epoch - 1) * TOLD_NS)
        for epoch, address in enumerate((ONE, OTHER, ONE), start=1)
    }


STARTS = {1: 0, 2: 1_000, 3: 2_000}


@pytest.mark.parametrize("time_ns", [0, TOLD_NS, 5 * TOLD_NS])
def test_a_broker_that_was_master_once_answered_then(time_ns: int) -> None:
    assert epoch_of(acknowledged(1_500, time_ns, OTHER), tenures(), STARTS) == 2


@pytest.mark.parametrize("time_ns", [0, 2 * TOLD_NS, 5 * TOLD_NS])
def test_what_lies_before_an_epoch_was_not_acknowledged_in_it(time_ns: int) -> None:
    assert epoch_of(acknowledged(1_500, time_ns), tenures(), STARTS) == 1


@pytest.mark.parametrize("late_ns", [1 - APART_NS, 0, APART_NS - 1])
def test_an_answer_near_a_change_may_be_of_both_epochs(late_ns: int) -> None:
    assert epoch_of(acknowledged(2_500, 2 * TOLD_NS + late_ns), tenures(), STARTS) is UNKNOWN


def test_what_lies_further_apart_than_connections_are_late_came_in_that_order() -> None:
    assert epoch_of(acknowledged(2_500, 2 * TOLD_NS - APART_NS), tenures(), STARTS) == 1
    assert epoch_of(acknowledged(2_500, 2 * TOLD_NS + APART_NS), tenures(), STARTS) == 3


def test_of_a_broker_that_no_fact_names_nothing_is_told() -> None:
    assert epoch_of(acknowledged(0, address="10.0.0.9:1"), tenures(), STARTS) is None


def test_a_master_has_no_name_but_the_one_that_a_controller_gave_it() -> None:
    """Requests call a master by its id, or by its address: one is never compared with the other."""
    told = Tenure("2", ONE, 0, 0, named_by="id")
    assert told.name("id") == "2"
    assert told.name("address") is UNKNOWN
    assert Tenure(ONE, ONE, 0, 0).name("address") is UNKNOWN
