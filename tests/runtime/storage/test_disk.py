"""What only a real disk can do: be full, be broken, be damaged, be another's."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from replispec.runtime.storage import StorageFailed, StorageFull
from replispec.runtime.storage.disk_shell import LOCK_NAME, UNFINISHED, DiskFiles, DiskStorage
from replispec.runtime.storage.journal_shell import DiskJournal
from tests.runtime.storage.writing import made

# 2 is FULL.
PRAGMAS = {"synchronous": 2, "journal_mode": "wal", "locking_mode": "exclusive"}
FULL_DISK = """
import resource, sys
from replispec.runtime.storage import StorageFailed, StorageFull
from replispec.runtime.storage.disk_shell import DiskStorage
files = DiskStorage().files(sys.argv[1])
files.make("small", 4096)
small = files.region("small")
files.replace("epochs", b"old")
journal = DiskStorage().journal(sys.argv[1] + "/journal")
journal.append([(0, b"kept")], state=b"kept")
resource.setrlimit(resource.RLIMIT_FSIZE, (65536, resource.RLIM_INFINITY))
def refused(expected, call, first, second, state=None):
    try:
        call(first, second) if state is None else call(first, state=state)
    except expected as error:
        print(error)
    else:
        sys.exit(f"{call.__name__} was not refused")
refused(StorageFull, files.make, "large", 1 << 20)
refused(StorageFull, files.replace, "epochs", bytes(1 << 20))
refused(StorageFailed, journal.append, [(1, b'one'), (2, bytes(1 << 20))], None, state=b'lost')
small.write(0, b"still")
files.flush(["small"])
assert files.read("epochs") == b"old"
assert files.names() == ["epochs", "journal", "journal-mark", "journal-wal", "small"], files.names()
"""


def test_no_room_is_told_and_leaves_what_was_there(tmp_path: Path) -> None:
    """By a limit on the size of files; the process is not ended by a signal."""
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 3
    journal = DiskJournal(tmp_path / "journal")
    assert (list(journal.records()), journal.state()) == ([(0, b"kept")], b"kept")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("call", ["pwrite", "fdatasync", "fsync", "posix_fallocate", "open"])
def test_whatever_the_disk_refuses_is_told_with_its_place(
    call: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = DiskFiles(tmp_path)
    region = made(files, "log", 100)

    def refuse(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    def use() -> None:
        region.write(0, b"x")
        files.flush(["log"])
        files.replace("epochs", b"new")
        made(files, "next", 100)

    monkeypatch.setattr(os, call, refuse)
    with pytest.raises(StorageFailed, match=os.strerror(code)) as caught:
        use()
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE])
def test_without_a_descriptor_nothing_is_begun_and_the_same_may_be_asked_again(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = DiskFiles(tmp_path)
    made(files, "log", 100).write(0, b"kept")
    files.replace("epochs", b"old")

    def refuse(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patched:
        patched.setattr(os, "dup", refuse)
        patched.setattr(os, "open", refuse)
        with pytest.raises(StorageFull, match="log"):
            files.flush(["log"])
        with pytest.raises(StorageFull, match="epochs"):
            files.replace("epochs", b"new")
    assert files.read("epochs") == b"old"
    files.flush(["log"])


def test_a_folder_of_nobody_is_refused_by_name() -> None:
    with pytest.raises(StorageFailed, match="~nobody-of-this-name/store"):
        DiskStorage().files("~nobody-of-this-name/store")


def test_a_short_write_is_carried_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    region = made(DiskFiles(tmp_path), "log", 100)
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda handle, data, at: real(handle, bytes(data)[:3], at))
    region.write(5, b"0123456789")
    assert bytes(region.view(5, 10)) == b"0123456789"


def test_the_room_of_a_region_is_taken_when_it_is_made(tmp_path: Path) -> None:
    made(DiskFiles(tmp_path), "log", 1 << 20)
    assert (tmp_path / "log").stat().st_blocks * 512 >= 1 << 20


def test_a_view_outlives_its_region_and_a_closed_region_is_still_flushed(tmp_path: Path) -> None:
    files = DiskFiles(tmp_path)
    region = made(files, "log", 100)
    region.write(0, b"abc")
    view = region.view(0, 3)
    region.close()
    region.close()
    files.flush(["log", "never there"])
    del region
    assert bytes(view) == b"abc"


def test_a_folder_belongs_to_one_process(tmp_path: Path) -> None:
    first = DiskStorage().files(str(tmp_path))
    with pytest.raises(StorageFailed, match="another process has it open"):
        DiskStorage().files(str(tmp_path))
    first.close()
    DiskStorage().files(str(tmp_path)).close()


def test_a_journal_belongs_to_one_process(tmp_path: Path) -> None:
    first = DiskJournal(tmp_path / "log")
    with pytest.raises(StorageFailed, match="locked"):
        DiskJournal(tmp_path / "log")
    first.close()
    DiskJournal(tmp_path / "log").close()


def test_what_a_crash_left_half_made_is_removed_and_never_shown(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    half = tmp_path / "deep" / f"log{UNFINISHED}"
    half.write_bytes(b"half")
    files = DiskFiles(tmp_path)
    assert not half.exists()
    half.write_bytes(b"half")
    assert files.names("deep") == files.names() == []
    assert (tmp_path / LOCK_NAME).exists()


@pytest.mark.parametrize("name", ["", "/x", "../x", "a/../b", "a//b", LOCK_NAME])
def test_a_name_cannot_leave_the_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        DiskFiles(tmp_path).read(name)


def test_a_journal_outlives_its_process(tmp_path: Path) -> None:
    first = DiskJournal(tmp_path / "log")
    first.append([(0, b"zero"), (1, b"one")], state=b"vote")
    first.close()
    second = DiskJournal(tmp_path / "log")
    second.append([(2, b"two")])
    assert list(second.records()) == [(0, b"zero"), (1, b"one"), (2, b"two")]
    assert second.state() == b"vote"


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE records SET data = X'00' WHERE position = 1", "record 1 is not what was written"),
        ("UPDATE records SET position = 9 WHERE position = 2", "record 9 is not what was written"),
        ("DELETE FROM records WHERE position = 1", "a record is missing"),
        ("UPDATE records SET data = 'text' WHERE position = 1", "record 1 is not what was written"),
    ],
)
def test_a_damaged_journal_is_refused(statement: str, said: str, tmp_path: Path) -> None:
    journal = DiskJournal(tmp_path / "log")
    journal.append([(0, b"zero"), (1, b"one"), (2, b"two")], state=b"vote")
    journal.close()
    base = sqlite3.connect(tmp_path / "log")
    base.execute(statement)
    base.commit()
    base.close()
    with pytest.raises(StorageFailed, match=said):
        DiskJournal(tmp_path / "log").records()


def test_a_damaged_value_is_refused(tmp_path: Path) -> None:
    journal = DiskJournal(tmp_path / "log")
    journal.append([], state=b"vote")
    journal.close()
    base = sqlite3.connect(tmp_path / "log")
    base.execute("UPDATE records SET data = X'00'")
    base.commit()
    base.close()
    with pytest.raises(StorageFailed, match="not what was written"):
        DiskJournal(tmp_path / "log").state()


@pytest.fixture
def order(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is brought to the disk and what gets its name, in the order in which it happens."""
    happened: list[str] = []
    real_fsync, real_fdatasync, real_replace = os.fsync, os.fdatasync, Path.replace

    def fsync(descriptor: int) -> None:
        happened.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        real_fsync(descriptor)

    def fdatasync(descriptor: int) -> None:
        happened.append("data")
        real_fdatasync(descriptor)

    def replace(path: Path, target: Path) -> Path:
        happened.append("name")
        return real_replace(path, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "fdatasync", fdatasync)
    monkeypatch.setattr(Path, "replace", replace)
    return happened


def test_a_name_is_given_to_what_is_on_the_disk_and_brought_there_itself(
    tmp_path: Path, order: list[str]
) -> None:
    files = DiskFiles(tmp_path)
    order.clear()
    files.replace("epochs", b"new")
    assert order == ["file", "name", "folder"]
    order.clear()
    files.make("log", 100)
    assert order == ["file", "name", "folder"]
    order.clear()
    files.rename("epochs", "deep/epochs")
    assert order == ["folder", "name", "folder", "folder"]
    order.clear()
    files.remove("deep/epochs")
    assert order == ["folder"]
    order.clear()
    files.flush(["log"])
    assert order == ["data"]


def test_an_append_waits_for_the_disk(tmp_path: Path) -> None:
    """No other connection may be open, and none is needed: the setting is this one's."""
    journal = DiskJournal(tmp_path / "log")
    settings = {name: journal._base.execute(f"PRAGMA {name}").fetchone()[0] for name in PRAGMAS}
    assert settings == PRAGMAS


def test_a_journal_of_which_the_first_records_were_replaced_goes_on_after_a_start(tmp_path: Path) -> None:
    journal = DiskJournal(tmp_path / "log")
    journal.append([(number, b"record") for number in range(1, 6)])
    journal.replace(5, b"all of them")
    journal.close()
    second = DiskJournal(tmp_path / "log")
    assert (list(second.records()), second.snapshot()) == ([], (5, b"all of them"))
    second.append([(6, b"next")])
    assert list(second.records()) == [(6, b"next")]
    second.close()
    base = sqlite3.connect(tmp_path / "log")
    base.execute("UPDATE records SET data = ? WHERE position = -2", (b"\0" * 8 + b"others",))
    base.commit()
    base.close()
    with pytest.raises(StorageFailed, match="not what was written"):
        DiskJournal(tmp_path / "log").snapshot()
