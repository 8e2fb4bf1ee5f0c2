"""The order of packets in a file alters nothing: within a connection the bytes themselves tell the order."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import pytest

from replispec.replay.engines.decoding import decode_capture
from replispec.replay.engines.local import capture_row
from replispec.replay.engines.results import CaptureResult, Options, judged
from replispec.replay.events.observe import observe
from tests.replay import mess

CAPTURES = Path(__file__).parents[2] / "spark_replay/captures"
SEEDS = int(os.environ.get("REPLISPEC_MESS", "1"))
MILLISECOND = 10**6


class Mess(Protocol):
    """One way in which the packets of a connection are seen."""

    def __call__(self, packets: Sequence[mess.Seen], rng: random.Random) -> list[mess.Seen]: ...


MESSES: dict[str, Mess] = {
    "1 ms": lambda packets, rng: mess.jitter(packets, rng, MILLISECOND),
    "50 ms": lambda packets, rng: mess.jitter(packets, rng, 50 * MILLISECOND),
    "one direction late, 1 ms": lambda packets, rng: mess.one_way_late(packets, rng, MILLISECOND),
    "one direction late, 50 ms": lambda packets, rng: mess.one_way_late(packets, rng, 50 * MILLISECOND),
}
# With losses, with replication, a learner, several segments a message, an election: all kinds of connections.
NAMES = ("failover_lost", "hung_master", "c_syncstateset", "d_async_learner", "m_mtu1500", "a_first_start")


def _judged(path: Path) -> tuple[list[object], list[object]]:
    """Findings and losses of a capture, without what says where and when they were seen."""
    decoded = decode_capture(path)
    events = observe(decoded.frames, decoded.holes, decoded.streams)
    result: CaptureResult = judged(capture_row(path, decoded), events, Options())
    findings: list[object] = [
        (each.group, each.invariant, each.verdict, each.counts) for each in result.findings
    ]
    losses: list[object] = [
        (each.epoch, each.from_offset, each.to_offset, each.acknowledged) for each in result.losses
    ]
    return findings, losses


@pytest.mark.parametrize("name", NAMES)
def test_packets_of_a_connection_out_of_order_alter_no_verdict_and_no_loss(name: str, tmp_path: Path) -> None:
    clean = _judged(CAPTURES / f"{name}.pcap")
    header, packets = mess.read((CAPTURES / f"{name}.pcap").read_bytes())
    path = tmp_path / f"{name}.pcap"
    for kind, make in MESSES.items():
        for seed in range(SEEDS):
            rng = random.Random(f"{name} {kind} {seed}")
            messed = mess.within_connections(packets, partial(make, rng=rng))
            path.write_bytes(mess.written(header, messed))
            assert _judged(path) == clean, f"{kind}, seed {seed}"
