"""What is measured is done right, here by ours alone: less of it, and no figure is judged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.family import Bench, WrongResultError
from benchmarks.kafka import brokers, fail_over, stores
from benchmarks.kafka.__main__ import QUICK, WHOLE, main, parts
from benchmarks.kafka.sinks import TakenCommand
from benchmarks.kafka.stages import BenchStage
from benchmarks.tables import table
from lab.cluster import Cluster
from replispec.wire.kafka.apache import ApacheLeaderAndIsr, ApacheLeaderAndIsrRequest
from replispec.wire.kafka.codes import ApiKey

FEW = 40


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[BenchStage]:
    with Cluster(tmp_path / "cluster") as cluster:
        yield BenchStage(cluster, fail_over.GENERATION, "tried")


def test_a_fail_over_is_told_by_phase(stage: BenchStage) -> None:
    bench = Bench(fail_over.figures([FEW]))
    fail_over.measure_one(bench, stage, "ours on ours", FEW)
    seen = {figure: values["ours on ours"] for figure, values in bench.seen.items()}
    assert seen.keys() == bench.figures.keys()
    first, last = (seen[f"{FEW} partitions: {each}"][0] for each in ("first command", "last command"))
    assert 0 < first <= last


def command(leaders: list[int]) -> TakenCommand:
    states = [
        ApacheLeaderAndIsr("t0", number, 1, leader, 0, [leader], 0, [7, 8], is_new=False)
        for number, leader in enumerate(leaders)
    ]
    body = ApacheLeaderAndIsrRequest(1, 1, partitions=states).encode(version=1)
    return TakenCommand(0.0, ApiKey.LEADER_AND_ISR, 1, body)


@pytest.mark.parametrize("leaders", [[8, 7], [8]], ids=["one is led as before", "one is not led"])
def test_what_is_not_led_elsewhere_is_no_fail_over(leaders: list[int]) -> None:
    with pytest.raises(WrongResultError):
        fail_over.commands([command(leaders)], "whoever", 2)


def test_a_command_says_how_many_partitions_it_names() -> None:
    assert command([8, 8, 7]).partitions == 3


def test_a_broker_ends_and_others_lead_what_it_led(stage: BenchStage) -> None:
    bench = Bench(brokers.figures(6))
    brokers.measure_one(bench, stage, "ours", 6)
    assert bench.seen.keys() == bench.figures.keys()


def test_a_store_is_read_and_written(stage: BenchStage) -> None:
    bench = Bench(stores.FIGURES)
    stores.measure_one(bench, stage, "ours", 0.01)
    assert bench.seen.keys() == bench.figures.keys()


def test_parts_are_named_and_a_quick_run_measures_the_same_of_less() -> None:
    assert parts(QUICK).keys() == parts(WHOLE).keys() == {"failover", "brokers", "copies", "stores"}
    with pytest.raises(SystemExit):
        main(["--only", "nothing"])


def test_ratios_are_of_the_same_round() -> None:
    bench = Bench({"rate": ("/s", True)})
    for ours, theirs in ((4.0, 2.0), (9.0, 3.0), (1.0, 1.0)):
        bench.note("rate", "ours", ours)
        bench.note("rate", "theirs", theirs)
    lines = table(bench, ["ours", "theirs"], "theirs")
    assert lines[-1] == "| rate | /s | 4 (1 to 9) | 2.00 | 2 (1 to 3) |"
