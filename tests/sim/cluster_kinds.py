"""Kinds of networks, disks and clocks, drawn for each run."""

from __future__ import annotations

from replispec.runtime.sim import Chance, Pace, Weather


def some_weather(chance: Chance) -> Weather:
    """A network of this or that kind."""
    return Weather(
        latency_us=chance.one_of((50, 200, 2_000)),
        jitter_us=chance.one_of((50, 500, 5_000, 100_000)),
        spike_per_mille=chance.one_of((0, 2, 10)),
        spike_us=chance.one_of((50_000, 500_000)),
        kernel_bytes=chance.one_of((2_000, 65_536)),
        cut_per_mille=chance.one_of((0, 30, 300)),
        slow_per_mille=chance.one_of((0, 0, 50)),
    )


def some_pace(chance: Chance) -> Pace:
    """Disks and clocks of this or that kind."""
    return Pace(
        write_us=chance.one_of((300, 1_500, 20_000, 100_000)),
        slow_write_per_mille=chance.one_of((0, 5, 20)),
        drift_per_mille=chance.one_of((0, 1, 50)),
    )
