"""Machines that lose their power, though only processes end here.

What was written and not flushed outlives a process in the system's memory, so that `kill -9` never loses it.
A process that is started by `lab.losing` keeps, beside each file that it writes in place, what stood there
before (`lab.losing.storage`); flushing the file forgets it. `lose_power` puts it back once the process has
ended: the files are then as a disk has them that was never told to flush. Below the seam of storage nothing
else is written without being flushed in the same call.

FOLDER/NAME/NUMBER   runs of bytes before they were written: place and size, eight bytes each in network byte
                     order, then the bytes. NAME is the path of the file with `/` as `%2F`; a file that is
                     flushed begins a new number first, and removes those before it afterwards. They outlive
                     the process, as what was never flushed does.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HEAD = struct.Struct(">QQ")
# What a disk writes at once: of what was not flushed each of these is there or is not.
SECTOR_BYTES = 4_096


class Undo:
    """What stood in one file before it was written, since it was flushed. One thread writes, another
    flushes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._guard = threading.Lock()
        self._number = max(_numbers(folder), default=-1) + 1
        self._file = self._open()

    @contextmanager
    def writing(self, at: int, before: bytes) -> Iterator[None]:
        """Keep what stands at a place while the bytes that come are written: no flush begins between."""
        with self._guard:
            os.write(self._file, HEAD.pack(at, len(before)) + before)
            yield

    def begin(self) -> int:
        """A flush begins: what is written from now on is not its own. Gives the first number that is not."""
        with self._guard:
            os.close(self._file)
            self._number += 1
            self._file = self._open()
            return self._number

    def forget(self, number: int) -> None:
        """What was kept under smaller numbers is on the disk."""
        for each in _numbers(self._folder):
            if each < number:
                (self._folder / str(each)).unlink(missing_ok=True)

    def forget_all(self) -> None:
        """The file is gone."""
        self.forget(self.begin())

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        return os.open(self._folder / str(self._number), flags, 0o644)


def lose_power(undone: Path, randomness: random.Random, *, share: float) -> int:
    """What was not flushed is gone, each sector of a file with this probability; bytes that are.

    To be called when the processes have ended that write below this folder of theirs.
    """
    lost = 0
    for folder in sorted(undone.iterdir()) if undone.is_dir() else ():
        path = Path(folder.name.replace("%2F", "/").replace("%25", "%"))
        if path.is_file():
            lost += _undo(path, folder, randomness, share)
        shutil.rmtree(folder)
    return lost


def _undo(path: Path, folder: Path, randomness: random.Random, share: float) -> int:
    gone: dict[int, bool] = {}
    lost = 0
    with path.open("r+b") as file:
        for at, before in _sectors(folder):
            sector = at // SECTOR_BYTES
            if sector not in gone:
                gone[sector] = randomness.random() < share
            if gone[sector]:
                file.seek(at)
                lost += file.read(len(before)) != before and len(before)
                file.seek(at)
                file.write(before)
    return lost


def _sectors(folder: Path) -> Iterator[tuple[int, bytes]]:
    """Place and bytes of what was kept, the newest first, each within a sector."""
    for number in sorted(_numbers(folder), reverse=True):
        for at, before in reversed(list(_runs((folder / str(number)).read_bytes()))):
            start, end = at, at + len(before)
            while start < end:
                stop = min(end, (start // SECTOR_BYTES + 1) * SECTOR_BYTES)
                yield start, before[start - at : stop - at]
                start = stop


def _runs(data: bytes) -> Iterator[tuple[int, bytes]]:
    """What was kept in one file. A process that ended while it kept a run had not written there yet."""
    place = 0
    while len(data) - place >= HEAD.size:
        at, size = HEAD.unpack_from(data, place)
        place += HEAD.size
        if len(data) - place < size:
            return
        yield at, data[place : place + size]
        place += size


def _numbers(folder: Path) -> list[int]:
    return [int(each.name) for each in folder.iterdir()]


def undo_folder(undone: Path, path: Path) -> Path:
    """Where what is kept of a file lies."""
    return undone / str(path).replace("%", "%25").replace("/", "%2F")
