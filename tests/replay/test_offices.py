"""Who was master when, and where epochs begin: what is believed of it, and of what one frame says alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.epoch_starts import (
    EPOCHS_MAX,
    ToldStarts,
    Witnesses,
    epochs_taken_back,
)
from replispec.replay.events.rocketmq.offices import filled
from tests.replay.faults import written
from tests.replay.test_faults import clean
from tests.replay.test_judgement import replayed
from tests.replay.test_stream_events import FIRST, SECOND, fact, seen

CONTROLLER_PORT = 39_871


@pytest.mark.parametrize(
    ("name", "lost"), [("failover_lost", 220), ("hung_master", 2), ("d_async_learner", 0)]
)
def test_handshakes_and_the_name_server_tell_losses_without_a_controller(
    name: str, lost: int, tmp_path: Path
) -> None:
    frames = [
        frame for frame in clean(name) if CONTROLLER_PORT not in (frame.source[1], frame.destination[1])
    ]
    judgement = replayed(written(frames), tmp_path / "without.pcap")
    assert [loss.acknowledged for loss in judgement.losses] == [lost] * bool(lost)
    assert "violated" not in {each.verdict.value for each in judgement.findings} or lost


# ---- masters by their own words ------------------------------------------------------------------

ROW = seen(ObservationKind.ANSWER, 5, address=FIRST)


def test_a_broker_that_held_two_offices_is_not_told_apart_by_handshakes() -> None:
    once = {1: (FIRST, ROW), 2: (SECOND, ROW)}
    assert filled({}, once, [1, 2]).keys() == {1, 2}
    assert filled({}, once | {3: (FIRST, ROW)}, [1, 2, 3]).keys() == {2}
    assert filled({3: FIRST}, once, [1, 2, 3]).keys() == {2}


def test_a_later_epoch_without_a_master_may_have_been_anybodys() -> None:
    told = {1: (FIRST, ROW), 3: (SECOND, ROW)}
    assert filled({}, told, [1, 2, 3]).keys() == {3}
    assert filled({2: "10.0.0.9:1"}, told, [1, 2, 3]).keys() == {1, 3}


# ---- one frame alone -----------------------------------------------------------------------------


def header(epoch: int, start: int, *, offset: int | None = None) -> Observation:
    at = start if offset is None else offset
    return seen(ObservationKind.BATCH, 9, epoch=epoch, epoch_start_offset=start, offset=at)


def listed(*entries: tuple[int, int]) -> Observation:
    epochs = [{"epoch": epoch, "start_offset": start} for epoch, start in entries]
    return seen(ObservationKind.ANSWER, 8, epochs=epochs)


def believed(*rows: Observation, named: tuple[int, ...] = ()) -> dict[int, int]:
    witnesses = Witnesses()
    for row in rows:
        witnesses.hear(row)
    return dict(witnesses.believed(named))


def test_a_header_alone_begins_no_epoch_that_no_controller_knows() -> None:
    assert believed(header(8, 0)) == {}
    assert believed(header(8, 0), named=(8,)) == {8: 0}
    assert believed(header(8, 0), header(8, 0)) == {8: 0}
    assert believed(listed((8, 0))) == {8: 0}


def test_of_two_starts_of_an_epoch_the_one_that_several_frames_tell_is_believed() -> None:
    many = [header(2, 500), header(2, 500)]
    assert believed(*many, header(2, 100), named=(2,)) == {2: 500}
    assert believed(*many, listed((2, 900))) == {2: 500}
    assert believed(header(2, 500), header(2, 100), named=(2,)) == {}
    assert believed(*many, header(2, 100), header(2, 100)) == {2: 100}


def test_a_start_that_one_answer_tells_ahead_of_several_headers_leaves_both_open() -> None:
    """It may be the one before the master began again."""
    assert believed(header(2, 500), header(2, 500), listed((2, 100))) == {}


def test_a_header_that_contradicts_its_connection_teaches_nothing() -> None:
    told = ToldStarts()
    told.answered(listed((1, 0), (3, 900)))
    assert told.header(header(2, 950))["lower_start"] == 0
    after = told.header(header(2, 400, offset=450))
    assert (after["start_before"], after["upper_start"], after["epoch_at_offset"]) == (None, 900, 1)
    assert told.header(header(2, 400, offset=1000))["epoch_at_offset"] == 3


def test_a_connection_that_tells_ever_more_epochs_is_remembered_up_to_a_bound() -> None:
    told = ToldStarts()
    for number in range(EPOCHS_MAX + 10):
        told.header(header(number, number))
    assert len(told.starts) == EPOCHS_MAX


def test_an_epoch_that_one_answer_names_and_the_next_takes_back_has_no_master() -> None:
    told = [fact(1, 1, "1", FIRST), fact(2, 99, "1", FIRST), fact(3, 1, "1", FIRST)]
    rows = [replace(row, group="G/a") for row in told]
    assert epochs_taken_back(rows) == {("G/a", 99)}
    assert epochs_taken_back(rows[:2]) == set()
    assert epochs_taken_back([*rows[:2], rows[1], rows[2]]) == set()
