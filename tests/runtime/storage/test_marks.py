"""A journal that lost one of its files is refused by name: SQLite would begin anew without a word."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from replispec.runtime.storage import StorageFailed
from replispec.runtime.storage.journal_shell import WAL, DiskJournal
from replispec.runtime.storage.mark_shell import MARK

CRASHED = """
import os, sys
from pathlib import Path
from replispec.runtime.storage.journal_shell import DiskJournal
journal = DiskJournal(Path(sys.argv[1]))
for index in range(int(sys.argv[2]), int(sys.argv[2]) + 3):
    journal.append([(index, b"acknowledged")], state=b"voted")
os._exit(0)
"""


def crashed(path: Path, first: int = 0) -> Path:
    """A journal whose process ended without giving it back, after three records."""
    subprocess.run([sys.executable, "-c", CRASHED, str(path), str(first)], check=True, timeout=60)
    return path


def beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


@pytest.mark.parametrize("is_emptied", [False, True])
@pytest.mark.parametrize("suffix", ["", WAL])
@pytest.mark.parametrize("starts", [1, 2])
def test_after_a_crash_a_file_that_is_gone_is_named(
    tmp_path: Path, starts: int, suffix: str, is_emptied: bool
) -> None:
    path = tmp_path / "journal"
    for start in range(starts):
        crashed(path, 3 * start)
    lost = beside(path, suffix)
    lost.unlink()
    if is_emptied:
        lost.touch()
    left = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    with pytest.raises(StorageFailed, match=f"^{lost}: gone or empty, as journal-mark tells"):
        DiskJournal(path)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == left


def test_a_log_without_its_file_is_named_without_a_mark_too(tmp_path: Path) -> None:
    path = crashed(tmp_path / "journal")
    path.unlink()
    beside(path, MARK).unlink()
    with pytest.raises(StorageFailed, match="journal: gone or empty, as journal-wal tells"):
        DiskJournal(path)


def test_what_was_given_back_is_in_one_file_and_its_loss_is_named(tmp_path: Path) -> None:
    path = crashed(tmp_path / "journal")
    DiskJournal(path).close()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["journal", "journal-mark"]
    again = DiskJournal(path)
    assert [index for index, _ in again.records()] == [0, 1, 2]
    again.close()
    path.unlink()
    with pytest.raises(StorageFailed, match="journal: gone or empty, as journal-mark tells"):
        DiskJournal(path)


def test_a_store_of_a_release_before_is_opened_and_marked(tmp_path: Path) -> None:
    path = crashed(tmp_path / "journal")
    beside(path, MARK).unlink()
    crashed(path, 3)
    beside(path, WAL).unlink()
    with pytest.raises(StorageFailed, match="journal-wal: gone or empty"):
        DiskJournal(path)


def test_a_crash_at_any_step_of_opening_and_closing_is_no_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of the folder at each flush and each end is opened, and has what was acknowledged."""
    folder = tmp_path / "live"
    folder.mkdir()
    copies: list[tuple[int, Path]] = []
    acknowledged = 0
    flush, truncate = os.fsync, os.ftruncate

    def copied() -> None:
        copy = tmp_path / f"copy-{len(copies)}"
        shutil.copytree(folder, copy)
        copies.append((acknowledged, copy))

    def flushed(descriptor: int) -> None:
        copied()
        flush(descriptor)

    def truncated(descriptor: int, size: int) -> None:
        copied()
        truncate(descriptor, size)
        copied()

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "ftruncate", truncated)
    for start in range(3):
        journal = DiskJournal(folder / "journal")
        copied()
        journal.append([(start, b"acknowledged")])
        acknowledged = start + 1
        copied()
        journal.close()
        copied()
    monkeypatch.undo()
    assert len(copies) > 20
    for expected, copy in copies:
        journal = DiskJournal(copy / "journal")
        assert len(journal.records()) == expected, copy
        journal.close()


def test_no_room_for_a_mark_is_no_reason_not_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal"
    DiskJournal(path).close()

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    journal = DiskJournal(path)
    journal.append([(0, b"acknowledged")])
    assert beside(path, MARK).read_bytes() == b""
    journal.close()
    monkeypatch.undo()
    assert len(DiskJournal(path).records()) == 1


def test_who_ends_without_giving_the_journal_back_starts_again(tmp_path: Path) -> None:
    """SQLite closes it by itself, with the interpreter, and removes its log."""
    path = tmp_path / "journal"
    ended = CRASHED.replace("os._exit(0)", "raise SystemExit('it ends')")
    for start in range(2):
        subprocess.run([sys.executable, "-c", ended, str(path), str(3 * start)], check=False, timeout=60)
        assert not beside(path, WAL).exists()
    assert len(DiskJournal(path).records()) == 6
