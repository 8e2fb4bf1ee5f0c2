"""Kinds of networks, disks and clocks, drawn for each run."""

from __future__ import annotations

from replispec.runtime.sim import NetworkConditions, Pace, Rng


def some_conditions(rng: Rng) -> NetworkConditions:
    """A network of this or that kind."""
    return NetworkConditions(
        latency_us=rng.one_of((50, 200, 2_000)),
        jitter_us=rng.one_of((50, 500, 5_000, 100_000)),
        spike_per_mille=rng.one_of((0, 2, 10)),
        spike_us=rng.one_of((50_000, 500_000)),
        kernel_bytes=rng.one_of((2_000, 65_536)),
        cut_per_mille=rng.one_of((0, 30, 300)),
        slow_per_mille=rng.one_of((0, 0, 50)),
    )


def some_pace(rng: Rng) -> Pace:
    """Disks and clocks of this or that kind."""
    return Pace(
        write_us=rng.one_of((300, 1_500, 20_000, 100_000)),
        slow_write_per_mille=rng.one_of((0, 5, 20)),
        drift_per_mille=rng.one_of((0, 1, 50)),
    )
