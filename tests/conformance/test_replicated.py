"""What a replica saw of a log: the counts that a `replicate` step is judged by."""

import hashlib

import pytest

from replispec.conformance.rocketmq.replicated import Counts, LogAccount
from replispec.wire.rocketmq.ha import HaEpochEntry, HaTransferHeader

ENTRIES = (HaEpochEntry(epoch=5, start_offset=100), HaEpochEntry(epoch=2, start_offset=0))
START = {2: 0, 5: 100}


def _run(
    offset: int, size: int, epoch: int = 2, confirm: int = 0, start: int | None = None
) -> HaTransferHeader:
    return HaTransferHeader(
        offset=offset,
        epoch=epoch,
        epoch_start_offset=START.get(epoch, 0) if start is None else start,
        confirm_offset=confirm,
        body=bytes(size),
    )


def _seen(*runs: HaTransferHeader, log_end: int = 200) -> Counts:
    account = LogAccount(ENTRIES, log_end)
    for run in runs:
        account.add(run)
    return account.seen


def _faults(seen: Counts) -> dict[str, int]:
    names = ("gaps", "overlaps", "crosses_epoch", "mislabelled")
    confirms = ("confirm_decreased", "confirm_beyond_log", "confirm_negative")
    return {name: getattr(seen, name) for name in (*names, *confirms) if getattr(seen, name)}


def test_runs_that_follow_each_other_have_no_fault() -> None:
    seen = _seen(_run(0, 60), _run(60, 40, confirm=60), _run(100, 100, 5, 100), _run(200, 0, 5, 200))
    assert _faults(seen) == {}
    assert (seen.first, seen.end, seen.bytes, seen.frames, seen.heartbeats) == (0, 200, 200, 3, 1)
    assert (seen.largest, seen.epochs, seen.last_epoch) == (100, [2, 5], 5)
    assert seen.digest == hashlib.sha256(bytes(200)).hexdigest()


@pytest.mark.parametrize(
    ("runs", "faults"),
    [
        ((_run(0, 10), _run(11, 10)), {"gaps": 1}),
        ((_run(0, 10), _run(9, 10)), {"overlaps": 1}),
        ((_run(0, 10), _run(0, 10), _run(20, 10)), {"overlaps": 1, "gaps": 1}),
        ((_run(90, 11),), {"crosses_epoch": 1}),
        ((_run(90, 10), _run(100, 10, 5)), {}),
        ((_run(100, 10, 2),), {"mislabelled": 1}),
        ((_run(90, 10, 5),), {"mislabelled": 1}),
        ((_run(110, 10, 5, start=110),), {"mislabelled": 1}),
        ((_run(0, 10, confirm=-1),), {"confirm_negative": 1}),
        ((_run(0, 10, confirm=201),), {"confirm_beyond_log": 1}),
        ((_run(0, 10, confirm=200),), {}),
        ((_run(100, 150, 5, confirm=250),), {}),
        ((_run(100, 150, 5), _run(250, 0, 5, confirm=250)), {}),
        ((_run(0, 10, confirm=5), _run(10, 0, confirm=4)), {"confirm_decreased": 1}),
        ((_run(0, 10, confirm=5), _run(10, 0, confirm=5)), {}),
    ],
)
def test_each_fault_is_counted_once_and_under_its_name(
    runs: tuple[HaTransferHeader, ...], faults: dict[str, int]
) -> None:
    assert _faults(_seen(*runs)) == faults


def test_a_heartbeat_moves_neither_the_end_nor_the_digest() -> None:
    seen = _seen(_run(50, 0), _run(0, 10))
    assert (seen.first, seen.end, seen.heartbeats, seen.digest) == (
        0,
        10,
        1,
        hashlib.sha256(bytes(10)).hexdigest(),
    )


def test_nothing_seen_is_nothing() -> None:
    assert _seen() == Counts()


def test_without_entries_no_label_is_judged() -> None:
    account = LogAccount((), 0)
    account.add(_run(100, 10, 9))
    assert _faults(account.seen) == {}
