"""A write-ahead log that was damaged is named; what a crash leaves of one is read."""

import shutil
from pathlib import Path

import pytest

from replispec.runtime.storage import StorageFailed
from replispec.runtime.storage.journal_shell import WAL, DiskJournal

RECORDS = [(number, b"record %d" % number) for number in range(12)]
LONG = b"x" * 100_000
"""After fifty records of this SQLite begins its log anew."""


def left_by_a_kill(place: Path, count: int = len(RECORDS), more: bytes = b"") -> tuple[Path, Path]:
    """A journal of one transaction for each record, as a kill leaves it, and its write-ahead log."""
    (place / "used").mkdir(parents=True)
    journal = DiskJournal(place / "used" / "journal")
    for number in range(count):
        journal.append([(number, b"record %d" % number + more)])
    shutil.copytree(place / "used", place / "left")
    journal.close()
    return place / "left" / "journal", place / "left" / f"journal{WAL}"


def opened(path: Path) -> list[tuple[int, bytes]]:
    """The records of a copy of a journal: to open one changes it."""
    copy = path.parent.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(path.parent, copy)
    journal = DiskJournal(copy / path.name)
    try:
        return list(journal.records())
    finally:
        journal.close()


def test_a_turned_bit_before_the_last_transactions_is_named_or_changes_nothing(tmp_path: Path) -> None:
    path, wal = left_by_a_kill(tmp_path)
    whole = wal.read_bytes()
    named = 0
    for at in range(0, len(whole) - 3 * 4_120, 331):
        data = bytearray(whole)
        data[at] ^= 1
        wal.write_bytes(data)
        try:
            found = opened(path)
        except StorageFailed as error:
            named += WAL in str(error)
            continue
        assert found == RECORDS, at
    assert named > 50


@pytest.mark.parametrize("at", [0, 3, 9, 17, 25, 31])
def test_a_turned_bit_in_the_head_of_the_log_is_named(at: int, tmp_path: Path) -> None:
    path, wal = left_by_a_kill(tmp_path)
    data = bytearray(wal.read_bytes())
    data[at] ^= 1
    wal.write_bytes(data)
    with pytest.raises(StorageFailed, match=WAL):
        opened(path)


def test_what_a_crash_leaves_of_the_last_transaction_is_no_damage(tmp_path: Path) -> None:
    path, wal = left_by_a_kill(tmp_path)
    whole = wal.read_bytes()
    for size in range(977, len(whole), 977):
        wal.write_bytes(whole[:size])
        found = opened(path)
        assert found == RECORDS[: len(found)]
    wal.write_bytes(whole[:-4_000] + bytes(4_000))
    assert opened(path) == RECORDS[:-1]


def test_what_a_log_held_before_it_began_anew_is_no_damage(tmp_path: Path) -> None:
    for count in (50, 61, 103):
        path, wal = left_by_a_kill(tmp_path / str(count), count, LONG)
        assert wal.stat().st_size < 50 * len(LONG)
        assert len(opened(path)) == count
