"""What a replica saw of a log: the counts that a `replicate` step is judged by."""

import hashlib

import pytest

from replispec.conformance.rocketmq.records import LogRecords
from replispec.conformance.rocketmq.replicated import Counts, LogAccount
from replispec.wire.rocketmq.codes import LogMagic
from replispec.wire.rocketmq.ha import HaEpochEntry, HaTransferHeader
from replispec.wire.rocketmq.store import LogBlankFixed
from tests.conformance.subjects.ha_master import log_record

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


def _log(records: int = 5) -> bytes:
    log = b""
    for number in range(records):
        log += log_record(len(log), number)
    return log


def _fault(log: bytes, run_bytes: int, first: int = 0) -> str:
    records = LogRecords({0})
    for at in range(first, len(log), run_bytes):
        records.add(at, log[at : at + run_bytes])
    return records.fault


@pytest.mark.parametrize("run_bytes", [1, 7, 100, 10_000])
def test_whole_records_have_no_fault_however_they_are_cut(run_bytes: int) -> None:
    filled = _log() + LogBlankFixed(100, LogMagic.BLANK).encode() + bytes(92)
    assert _fault(filled + log_record(len(filled), 9), run_bytes) == ""


@pytest.mark.parametrize("run_bytes", [7, 10_000])
def test_a_turned_bit_of_a_body_or_of_where_a_record_lies_is_a_fault(run_bytes: int) -> None:
    log = bytearray(_log())
    second = len(log_record(0, 0))
    places = {
        "no record begins where the one before ends": second + 4,
        "a record says that it lies elsewhere": second + 35,
        "the body of a record is not what its checksum says": log.index(b"message 1") + 3,
    }
    for fault, at in places.items():
        log[at] ^= 1
        assert _fault(bytes(log), run_bytes) == fault
        log[at] ^= 1
    assert _fault(bytes(log), run_bytes) == ""


def test_bytes_that_begin_within_a_record_are_not_judged() -> None:
    assert _fault(_log(), 100, first=50) == ""
