"""Disks that lose their power, though only processes end here.

What was written and not flushed outlives a process in the system's memory, so that `kill -9` never loses it.
A `Disk` is a file system of its own in a file: what stands in that file is what the disk was given. `cut`
takes it as it is at that moment: bytes, names, sizes and journals that nobody flushed are gone, whoever wrote
them and by whatever call. It needs root, and loop devices.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from lab import poll
from lab.errors import LabError

# What a disk writes at once: of what was not flushed each of these is there or is not.
SECTOR_BYTES: Final = 4_096
# Only what is written takes room.
DISK_BYTES: Final = 16 << 30
# Nothing is written unasked for as long as that may be put off: the journal in seconds; a file that takes
# another's name is not flushed for it.
PUT_OFF: Final = "loop,commit=300,noauto_da_alloc"
RELEASED_S_MAXIMUM: Final = 20.0
PROGRAMS: Final = ("unshare", "mkfs.ext4", "mount", "umount", "cp")


def why_not() -> str | None:
    """What is missing for disks to be made; None when nothing is."""
    if os.geteuid() != 0:
        return "only root makes file systems"
    if not Path("/dev/loop-control").exists():
        return "there are no loop devices"
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    return f"{missing[0]} is not installed" if missing else None


def go_on_alone(*arguments: str) -> None:
    """Run this program's module again with these arguments, where nobody else sees what it mounts and nothing
    of it is left when its processes have ended. Does not come back."""
    command = ["unshare", "--mount", "--propagation", "private", sys.executable, *arguments]
    os.execvp(command[0], command)


class Disk:
    """The disk below one folder, in an image beside it. `make` it before somebody writes there.

    To be used where mounts are this process's alone: see `go_on_alone`.
    """

    def __init__(self, image: Path, place: Path) -> None:
        self._image = image
        self._place = place

    def make(self) -> None:
        """An empty disk. Raises LabError."""
        self._image.parent.mkdir(parents=True, exist_ok=True)
        with self._image.open("wb") as file:
            file.truncate(DISK_BYTES)
        _run("mkfs.ext4", "-q", "-F", "-m", "0", str(self._image))
        self._mount(self._image, self._place)

    def cut(self, randomness: random.Random, share: float) -> int:
        """What was not flushed is gone, each sector of a file that is still there with this probability;
        returns the sectors that are. Nobody writes there any more. Raises LabError."""
        cut, newest = self._image.with_suffix(".cut"), self._image.with_suffix(".newest")
        _run("cp", "--sparse=always", str(self._image), str(cut))
        self.close()
        self._image.replace(newest)
        cut.replace(self._image)
        self._mount(self._image, self._place)
        was = newest.with_suffix(".was")
        self._mount(newest, was)
        try:
            return _mixed(was, self._place, randomness, share)
        finally:
            _run("umount", str(was))
            newest.unlink()

    def close(self) -> None:
        """Nothing is below the folder any more. Raises LabError."""
        # A process that was killed may hold a file for a moment longer.
        poll.until(
            lambda: _fails("umount", str(self._place)) is None or None,
            waiting_for=f"nobody to use {self._place}",
            patience_s=RELEASED_S_MAXIMUM,
        )

    @staticmethod
    def _mount(image: Path, place: Path) -> None:
        place.mkdir(parents=True, exist_ok=True)
        _run("mount", "-o", PUT_OFF, str(image), str(place))


def _mixed(newest: Path, place: Path, randomness: random.Random, share: float) -> int:
    """Give back what the disk wrote by chance; returns the sectors that are gone."""
    gone = 0
    for path in sorted(each for each in newest.rglob("*") if each.is_file()):
        kept = place / path.relative_to(newest)
        if not kept.is_file():
            gone += -(-path.stat().st_size // SECTOR_BYTES)
            continue
        with path.open("rb") as new, kept.open("r+b") as old:
            for sector, data in _differing(new.fileno(), old.fileno()):
                if randomness.random() < share:
                    gone += 1
                else:
                    os.pwrite(old.fileno(), data, sector * SECTOR_BYTES)
            os.fsync(old.fileno())
    return gone


def _differing(new: int, old: int) -> Iterator[tuple[int, bytes]]:
    """Sectors of a file that differ, with their newer bytes, as far as both files go."""
    size = min(os.fstat(new).st_size, os.fstat(old).st_size)
    step = 256 * SECTOR_BYTES
    for at in range(0, size, step):
        newer, older = (os.pread(each, min(step, size - at), at) for each in (new, old))
        for begin in range(0, len(newer) if newer != older else 0, SECTOR_BYTES):
            data = newer[begin : begin + SECTOR_BYTES]
            if data != older[begin : begin + SECTOR_BYTES]:
                yield (at + begin) // SECTOR_BYTES, data


def _run(*command: str) -> None:
    why = _fails(*command)
    if why is not None:
        raise LabError(f"{' '.join(command)}: {why}")


def _fails(*command: str) -> str | None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr.strip() or str(done.returncode) if done.returncode else None
