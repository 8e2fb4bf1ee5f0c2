"""Batches that come together are one run: taken in one go, to the end that they come to one by one."""

from __future__ import annotations

import random

import pytest

from replispec.runtime.world import Close
from replispec.wire.rocketmq.ha import HaTransferHeader
from replispec.wire.rocketmq.machines import ha_replica
from tests.runtime.log.sample_logs import log_bytes
from tests.runtime.replication.test_edges import ANSWER, MASTER, Replica

BROKEN = bytes(60)


def _spoken(seed: int) -> list[bytes]:
    """Frames of a master that mostly does what it should: batches, heartbeats, new epochs; some with a gap,
    or of no kind."""
    rng = random.Random(seed)
    frames, end, epoch, start = [], 0, 1, 0
    for _ in range(rng.randrange(2, 14)):
        if rng.random() < 0.15:
            epoch, start = epoch + 1, rng.choice((start, end))
        size = 0 if rng.random() < 0.15 else rng.randrange(1, 200)
        gap = rng.choice((-1, 1, 4096)) if rng.random() < 0.03 else 0
        body = rng.randbytes(size)
        frames.append(HaTransferHeader(end + gap, epoch, start, rng.randrange(end + 1), body).encode())
        end += size
    return frames + [BROKEN] * (rng.random() < 0.2)


def _heard(events: list[bytes]) -> tuple[Replica, bool]:
    replica = Replica().connected()
    effects = replica.says(ANSWER, *events)
    return replica, any(isinstance(effect, Close) for effect in effects)


@pytest.mark.parametrize("seed", range(60))
def test_a_run_ends_as_its_batches_do_one_by_one(seed: int) -> None:
    frames = _spoken(seed)
    (one, left), (other, other_left) = _heard([b"".join(frames)]), _heard(frames)
    assert (left, one.ha.state, one.ha._variables) == (other_left, other.ha.state, other.ha._variables)
    assert log_bytes(one.store) == log_bytes(other.store)
    assert one.store.epochs.entries == other.store.epochs.entries
    assert one.ha.confirm_offset == other.ha.confirm_offset
    # Of a connection that ends with the event nothing more is told.
    assert left or one.reader.received[-1:] == other.reader.received[-1:]


def test_batches_that_come_together_are_one_write_and_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    replica = Replica().connected()
    replica.says(ANSWER)
    writes, steps = list[int](), list[str]()
    append, step = replica.store.log.append_bytes, replica.ha._step

    def counted(event: object, kind: type | None = None) -> None:
        steps.append((kind or type(event)).__name__)
        step(event, kind)

    def written(offset: int, data: bytes | memoryview) -> None:
        writes.append(len(data))
        append(offset, data)

    monkeypatch.setattr(replica.store.log, "append_bytes", written)
    monkeypatch.setattr(replica.ha, "_step", counted)
    replica.says(b"".join(HaTransferHeader(50 * each, 1, 0, 0, bytes(50)).encode() for each in range(40)))
    # An empty log is given a beginning first.
    assert writes == [50, 39 * 50]
    assert steps.count(ha_replica.BatchReceived.__name__) == 2
    assert replica.ha.owns(MASTER)
    assert replica.store.log.end == 2_000
