"""Attacks are bounded, and what is told of them is a table."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from benchmarks import bench_hostile
from benchmarks.family import Attacked, Hostile, MeasuredFamily
from benchmarks.rocketmq.family import FAMILY


def told(monkeypatch: pytest.MonkeyPatch, elections: int) -> int:
    """The exit code when an attack made so many elections."""
    one = Attacked("idle", "things", 7, {"broker": 12.4, "controller": 3.0}, elections, 30.0, 41.0)
    hostile = Hostile(("idle", "halves"), lambda names, _seconds: iter([one] * len(names)))
    monkeypatch.setattr(bench_hostile, "measured_family", lambda _: _family(hostile))
    monkeypatch.setattr(bench_hostile, "end_in_order", lambda: None)
    monkeypatch.setattr(sys, "argv", ["bench_hostile", "--only", "idle"])
    return bench_hostile.main()


def _family(hostile: Hostile) -> MeasuredFamily:
    return replace(FAMILY, hostile=hostile)


@pytest.mark.parametrize(("elections", "code"), [(0, 0), (2, 1)])
def test_a_master_that_was_replaced_is_a_failure_and_a_slow_machine_is_none(
    elections: int,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: object,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(bench_hostile, "OUT", tmp_path)
    assert told(monkeypatch, elections) == code
    assert f"| 7 things | idle | 12 | 3 | {elections} | 30 | 41 |" in capsys.readouterr().out
