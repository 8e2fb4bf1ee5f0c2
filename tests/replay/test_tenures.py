"""The epoch of an acknowledged message is told by its broker and its place, and left open where neither
tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from replispec.replay.events.observation import Acknowledged, Observation
from replispec.replay.events.rocketmq.tenures import Offices, Present, Tenure
from replispec.runtime.primitives.unknown import UNKNOWN

ONE, OTHER = "10.0.0.1:10911", "10.0.0.2:10911"
TOLD_NS = 100 * 10**9


def acknowledged(offset: int, time_ns: int = 0, address: str = ONE) -> Observation:
    return Acknowledged("c", time_ns, time_ns, "a<->b#1", 0, 0, 0, address=address, offset=offset)


def tenure(epoch: int, address: str) -> Tenure:
    return Tenure(address, address, epoch * TOLD_NS, epoch * TOLD_NS)


def told(epoch: int, at_ns: int | None = None, **more: Any) -> Present:
    at = epoch * TOLD_NS if at_ns is None else at_ns
    return Present(at, epoch, **more)


STARTS = {1: 0, 2: 1_000, 3: 2_000}


def offices(*masters: str | None, present: Sequence[Present] | None = None, **more: Any) -> Offices:
    """Masters of the epochs from 1 on, each told a hundred seconds after the one before; None is not told."""
    known = {
        epoch: tenure(epoch, address) for epoch, address in enumerate(masters, start=1) if address is not None
    }
    every = [told(epoch) for epoch in known] if present is None else present
    return Offices(**{"tenures": known, "starts": STARTS, "epochs": STARTS, "present": every, **more})


THREE = offices(ONE, OTHER, ONE)
TWO = offices(ONE, OTHER, None, starts={1: 0, 2: 1_000}, epochs=(1, 2))


def test_a_broker_that_was_master_once_answered_then() -> None:
    for time_ns in (TOLD_NS, 2 * TOLD_NS, 5 * TOLD_NS):
        assert THREE.epoch_of(acknowledged(1_500, time_ns, OTHER)) == 2


@pytest.mark.parametrize("time_ns", [0, 3 * TOLD_NS, 5 * TOLD_NS])
def test_what_lies_before_an_epoch_was_not_acknowledged_in_it(time_ns: int) -> None:
    assert THREE.epoch_of(acknowledged(1_500, time_ns)) == 1


def acknowledging(*places: int, torn: Sequence[str] = ()) -> Offices:
    """The first broker is master before and after the other one; it acknowledged messages at these places."""
    return offices(ONE, OTHER, ONE, acknowledged={ONE: np.array(places, np.int64)}, torn=torn)


@pytest.mark.parametrize("time_ns", [0, 2 * TOLD_NS, 5 * TOLD_NS])
def test_who_acknowledged_nothing_behind_the_next_epochs_start_is_in_its_later_office(time_ns: int) -> None:
    """Whenever the answer was captured: its log would have come to that place through messages."""
    assert acknowledging(500, 2_000, 2_500).epoch_of(acknowledged(2_500, time_ns)) == 3


@pytest.mark.parametrize("place", [1_000, 1_500, 1_999])
def test_who_wrote_on_behind_the_next_epochs_start_may_have_answered_in_either_office(place: int) -> None:
    assert acknowledging(place, 2_500).epoch_of(acknowledged(2_500, 3 * TOLD_NS)) is UNKNOWN
    assert acknowledging(place, 2_500).epoch_of(acknowledged(place, 3 * TOLD_NS)) == 1


def test_where_answers_were_not_seen_a_broker_may_have_written_on() -> None:
    assert acknowledging(500, 2_500, torn=[ONE]).epoch_of(acknowledged(2_500)) is UNKNOWN
    assert acknowledging(500, 2_000, 2_500, torn=[OTHER]).epoch_of(acknowledged(2_500)) == 3


def test_who_is_acknowledged_nothing_where_its_later_office_starts_may_have_stored_more_before() -> None:
    """What lies before the first message was acknowledged to nobody, in whichever office it was."""
    assert acknowledging(500, 2_100, 2_500).epoch_of(acknowledged(2_500)) is UNKNOWN


def test_where_both_later_epochs_start_at_one_place_either_office_may_have_begun_there() -> None:
    both = offices(ONE, OTHER, ONE, starts={1: 0, 2: 1_000, 3: 1_000})
    assert both.epoch_of(acknowledged(1_500)) is UNKNOWN


def test_behind_all_that_was_told_a_deposed_master_may_be_master_again() -> None:
    assert TWO.epoch_of(acknowledged(1_500, 3 * TOLD_NS)) is UNKNOWN
    assert TWO.epoch_of(acknowledged(1_500, TOLD_NS)) == 1
    assert TWO.epoch_of(acknowledged(500, 3 * TOLD_NS)) == 1


def test_of_a_log_that_is_known_to_have_held_a_place_nothing_later_is_needed() -> None:
    own = Present(TOLD_NS, 1, speaker=ONE, log_end=1_501)
    present = [told(1), told(2), own]
    both = offices(ONE, OTHER, starts={1: 0, 2: 1_000}, epochs=(1, 2), present=present)
    assert both.epoch_of(acknowledged(1_500, 3 * TOLD_NS)) == 1
    assert both.epoch_of(acknowledged(1_501, 3 * TOLD_NS)) is UNKNOWN


def test_an_epoch_without_a_master_may_have_been_any_brokers() -> None:
    gap = offices(ONE, None, OTHER)
    assert gap.epoch_of(acknowledged(2_500, 2 * TOLD_NS)) is UNKNOWN
    assert gap.epoch_of(acknowledged(500, 2 * TOLD_NS)) == 1
    assert gap.epoch_of(acknowledged(2_500, TOLD_NS // 2)) == 1


def test_an_epoch_that_a_broker_calls_its_own_was_no_other_ones() -> None:
    assert offices(ONE, None, OTHER, claims={2: OTHER}).epoch_of(acknowledged(2_500, 2 * TOLD_NS)) == 1
    assert offices(ONE, None, OTHER, claims={2: ONE}).epoch_of(acknowledged(2_500, 2 * TOLD_NS)) is UNKNOWN


def test_before_all_that_was_told_a_master_may_have_been_master_before() -> None:
    late = offices(None, OTHER, ONE)
    assert late.epoch_of(acknowledged(2_500, TOLD_NS)) is UNKNOWN
    assert late.epoch_of(acknowledged(2_500, 4 * TOLD_NS)) == 3


def test_of_a_broker_that_no_fact_names_nothing_is_told() -> None:
    assert THREE.epoch_of(acknowledged(0, address="10.0.0.9:1")) is None


def test_a_master_has_no_name_but_the_one_that_a_controller_gave_it() -> None:
    """Requests call a master by its id, or by its address: one is never compared with the other."""
    told = Tenure("2", ONE, 0, 0, named_by="id")
    assert told.name("id") == "2"
    assert told.name("address") is UNKNOWN
    assert Tenure(ONE, ONE, 0, 0).name("address") is UNKNOWN
