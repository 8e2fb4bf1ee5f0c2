"""What a disk is not told to keep is gone when it loses its power, whoever wrote it and by whatever call."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lab import disks

HERE = Path(__file__)
# What the process below writes; it ends by a signal, so that nothing is flushed on its way out.
WRITES = """
import os, signal, sqlite3, sys
from pathlib import Path
from replispec.runtime.storage.disk_shell import DiskStorage
from replispec.runtime.storage.journal_shell import DiskJournal
place = Path(sys.argv[1])
unsafe = sys.argv[2] == "unsafe"
files = DiskStorage().files(str(place))
files.replace("small", b"old")
files.make("log", 8192)
region = files.region("log")
region.write(0, b"flushed")
files.flush(["log"])
journal = DiskStorage().journal(str(place / "journal.db"))
journal.append([(0, b"first")])
if unsafe:
    os.fsync = os.fdatasync = lambda descriptor: None
    journal._base.execute("PRAGMA synchronous = OFF")
files.replace("small", b"new")
files.replace("other", b"other")
region.write(4096, b"second")
files.flush(["log"])
journal.append([(1, b"second")])
region.write(100, b"never flushed")
os.kill(os.getpid(), signal.SIGKILL)
"""
PLAYS = """
import random, subprocess, sys
from pathlib import Path
from lab.disks import Disk
from replispec.runtime.storage.journal_shell import DiskJournal
folder, writes, how, share = Path(sys.argv[1]), sys.argv[2], sys.argv[3], float(sys.argv[4])
disk = Disk(folder / "images" / "disk", folder / "data")
disk.make()
subprocess.run([sys.executable, "-c", writes, str(folder / "data"), how])
gone = disk.cut(random.Random(1), share)
log = (folder / "data/log").read_bytes()
print((folder / "data/small").read_text(), (folder / "data/other").exists(), gone > 0)
print(log[:7].decode(), log[4096:4102] == b"second", log[100:105] == b"never")
journal = DiskJournal(folder / "data/journal.db")
print([data.decode() for _, data in journal.records()])
journal.close()
disk.close()
"""
needs_disks = pytest.mark.skipif(disks.why_not() is not None, reason=f"no disks: {disks.why_not()}")


def _played(folder: Path, how: str, share: float) -> list[str]:
    alone = ["unshare", "--mount", "--propagation", "private", sys.executable, "-c", PLAYS]
    done = subprocess.run(
        [*alone, str(folder), WRITES, how, str(share)],
        capture_output=True,
        text=True,
        check=False,
        cwd=HERE.parents[2],
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@needs_disks
def test_what_was_flushed_stays_and_nothing_else_does(tmp_path: Path) -> None:
    assert _played(tmp_path, "safe", 1.0) == ["new True True", "flushed True False", "['first', 'second']"]


@needs_disks
def test_what_somebody_forgot_to_flush_is_gone_by_whatever_call_it_was_written(tmp_path: Path) -> None:
    assert _played(tmp_path, "unsafe", 1.0) == ["old False True", "flushed False False", "['first']"]


@needs_disks
def test_a_disk_may_have_written_unasked(tmp_path: Path) -> None:
    assert _played(tmp_path, "safe", 0.0) == ["new True False", "flushed True True", "['first', 'second']"]
