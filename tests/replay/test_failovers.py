"""The moments of real fail-overs, and what became of the old master's log."""

from __future__ import annotations

from pathlib import Path

import pytest

from replispec.replay.engines.decoding import decode_capture
from replispec.replay.events.observe import observe
from replispec.replay.judges.rocketmq.judge import judge_capture
from replispec.replay.report.failover import anatomy
from replispec.replay.report.model import FailOver
from replispec.replay.report.moments import Moment, MomentKind
from replispec.replay.report.rocketmq.failovers import failovers
from replispec.replay.report.timeline import RIGHT, WIDTH
from replispec.replay.report.wording import failover_sentence

CAPTURES = Path(__file__).parents[2] / "spark_replay/captures"
MS = 1_000_000


def told(name: str) -> list[FailOver]:
    decoded = decode_capture(CAPTURES / f"{name}.pcap")
    events = observe(decoded.frames, decoded.holes, decoded.streams)
    judgement = judge_capture(f"{name}.pcap", events)
    return failovers(f"{name}.pcap", judgement.own)


def steps(failover: FailOver) -> list[tuple[str, int]]:
    """Each moment and the milliseconds since the one before it."""
    moments = failover.moments
    return [
        (moment.kind.value, (moment.time_ns - before.time_ns) // MS)
        for before, moment in zip([moments[0], *moments], moments, strict=False)
    ]


def test_a_killed_master_loses_what_its_replica_did_not_have() -> None:
    (failover,) = told("failover_lost")
    assert steps(failover) == [
        ("last_frame", 0),
        ("closed", 310),
        ("elected", 26),
        ("notified", 0),
        ("accepted", 9989),
        ("returned", 14_736),
        ("reported", 5051),
    ]
    assert (failover.log_end, failover.returned_end, failover.truncated) == (396_140, 122_390, True)
    assert failover_sentence(failover) == (
        "broker 1 to broker 2 in masterEpoch 2. The old master's log went up to offset 396,140 at least;"
        " it came back with 122,390: 273,750 bytes or more had been cut off."
    )


def test_a_hung_master_is_noticed_by_its_silence_and_stores_on_when_it_wakes() -> None:
    (failover,) = told("hung_master")
    assert [name for name, _ in steps(failover)] == [
        "last_frame", "elected", "notified", "returned", "accepted", "reported",
    ]  # fmt: skip
    assert steps(failover)[1] == ("elected", 9541)
    assert (failover.log_end, failover.returned_end, failover.truncated) == (35_068, 33_264, True)


def test_an_ordered_change_cuts_nothing() -> None:
    (failover,) = told("g_mqadmin")
    assert not failover.truncated
    assert failover_sentence(failover) == (
        "broker 1 to broker 2 in masterEpoch 2. The old master came back with its log up to offset 8,970."
    )


@pytest.mark.parametrize("name", ["a_first_start", "n_learner_alone"])
def test_without_another_master_there_is_nothing_to_tell(name: str) -> None:
    assert told(name) == []


def test_an_old_master_that_stays_away_is_said_to() -> None:
    lonely = FailOver("G/a", "f", 3, "broker 1", "broker 2", (Moment(MomentKind.ELECTED, 5),))
    assert (
        failover_sentence(lonely)
        == "broker 1 to broker 2 in masterEpoch 3. The old master was not seen to come back."
    )
    kept = FailOver("G/a", "f", 3, "broker 1", "broker 2", lonely.moments, 448, 448)
    assert failover_sentence(kept).endswith("nothing that it is known to have held was cut off.")


def test_bars_follow_each_other_and_stay_inside_the_picture() -> None:
    (failover,) = told("failover_lost")
    drawn = anatomy(failover)
    assert [step.label for step in drawn.steps] == [
        "",
        "0.310 s",
        "0.026 s",
        "0.000 s",
        "9.989 s",
        "14.737 s",
        "5.052 s",
    ]
    for before, step in zip(drawn.steps, drawn.steps[1:], strict=False):
        assert step.y > before.y
        assert step.x >= before.x
        assert drawn.left <= step.x <= step.x + step.width <= WIDTH - RIGHT + 2
    assert drawn.steps[-1].since_ns == failover.moments[-1].time_ns - failover.moments[0].time_ns
    single = anatomy(FailOver("G/a", "f", 3, "broker 1", "broker 2", (Moment(MomentKind.ELECTED, 5),)))
    assert len(single.steps) == 1
