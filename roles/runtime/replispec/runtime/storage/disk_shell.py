"""Storage on a real disk: a folder with files, a journal in sqlite."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import shutil
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from replispec.runtime.storage.folders_shell import make_folder, sync_folder
from replispec.runtime.storage.growing_shell import DiskGrowing, OpenFiles
from replispec.runtime.storage.interface import DiskUse, StorageFailed, StorageFull
from replispec.runtime.storage.journal_shell import DiskJournal
from replispec.runtime.storage.lines_shell import DiskLines
from replispec.runtime.storage.no_room import NO_ROOM

FLUSHED_ALONE_MAX: Final = 16
"""So many files are flushed one after the other; more than these together, where the system can."""
LOCK_NAME: Final = ".in-use"
UNFINISHED: Final = ".unfinished"
"""Suffix of files that are still being made; the next start removes what a crash left of them."""


class DiskStorage:
    """Opens folders and journals below the working folder, or anywhere for an absolute path; `~` is the
    user's own folder."""

    def files(self, folder: str) -> DiskFiles:
        """The files of a folder. Raises StorageFailed."""
        return DiskFiles(_below_home(folder))

    def journal(self, name: str) -> DiskJournal:
        """The journal of this file name; its folder is made when it is not there. Raises StorageFailed."""
        path = _below_home(name)
        with _failing(name):
            make_folder(path.parent)
            journal = DiskJournal(path)
            sync_folder(path.parent)
        return journal

    def content(self, name: str) -> bytes:
        """What a file holds that somebody else writes. Raises StorageFailed."""
        path = _below_home(name)
        with _failing(name):
            return path.read_bytes()

    def lines(self, name: str) -> DiskLines:
        """The text file of this name; its folder is made when it is not there. Raises StorageFailed."""
        path = _below_home(name)
        with _failing(name):
            make_folder(path.parent)
            return DiskLines(path)


class DiskRegion:
    """A file of fixed size: written by calls, read through a map of it.

    The room is taken when the file is made, so that a full disk refuses to make it and no access to the
    map is ever ended by a signal.
    """

    def __init__(self, path: Path, descriptor: int, size: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._size = size
        self._view = (
            memoryview(mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)) if size else memoryview(b"")
        )

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return self._size

    def write(self, at: int, data: bytes | bytearray | memoryview) -> None:
        """Put bytes at a place inside. Raises StorageFailed."""
        size = len(data)
        assert 0 <= at <= at + size <= self._size, f"{size} bytes at {at} of {self._size}"
        try:
            done = os.pwrite(self._descriptor, data, at)
            while done < size:
                done += os.pwrite(self._descriptor, memoryview(data)[done:], at + done)
        except OSError as error:
            raise StorageFailed(f"{self._path}: {error.strerror}") from error

    def view(self, at: int, size: int) -> memoryview:
        """Read-only bytes without a copy."""
        assert 0 <= at <= at + size <= self._size, f"{size} bytes at {at} of {self._size}"
        return self._view[at : at + size]

    def written(self) -> Iterable[tuple[int, int]]:
        """The runs that the file system holds data for; where it keeps no account, everything."""
        at = 0
        while at < self._size:
            try:
                start = os.lseek(self._descriptor, at, os.SEEK_DATA)
                at = os.lseek(self._descriptor, start, os.SEEK_HOLE)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    yield at, self._size
                return
            yield start, at

    def close(self) -> None:
        """Give the file back; the map lives as long as a view of it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @property
    def closed(self) -> bool:
        """Whether it was given back."""
        return self._descriptor < 0

    def duplicate(self) -> int:
        """Another descriptor of the file, of the caller's."""
        return os.dup(self._descriptor)


class DiskFiles:
    """A folder that one process owns while it is open: a second one is refused.

    Regions belong to the thread that opened them; the calls that change something may come from another one.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._regions: dict[str, DiskRegion] = {}
        self._growing = OpenFiles(root)
        # Between the node's thread, which opens and closes regions, and the thread that writes.
        self._guard = threading.Lock()
        with _failing(root):
            make_folder(root)
            self._lock = os.open(root / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                os.close(self._lock)
                raise StorageFailed(f"{root}: another process has it open") from error
            for path in root.rglob(f"*{UNFINISHED}"):
                path.unlink()

    def names(self, folder: str = "") -> Sequence[str]:
        """The names of all files in a folder, ascending."""
        with _failing(self._root / folder):
            try:
                entries = list(os.scandir(self._root / folder))
            except (FileNotFoundError, NotADirectoryError):
                return []
            return sorted(entry.name for entry in entries if entry.is_file() and not _is_ours(entry.name))

    def folders(self, folder: str = "") -> Sequence[str]:
        """The names of all folders in a folder, ascending."""
        with _failing(self._root / folder):
            try:
                return sorted(entry.name for entry in os.scandir(self._root / folder) if entry.is_dir())
            except (FileNotFoundError, NotADirectoryError):
                return []

    def growing(self, name: str) -> DiskGrowing:
        """A file that grows."""
        return DiskGrowing(self._growing, self._path(name))

    def read(self, name: str) -> bytes | None:
        """A whole small file; None when it is not there."""
        path = self._path(name)
        with _failing(path):
            try:
                return path.read_bytes()
            except FileNotFoundError:
                return None

    def replace(self, name: str, data: bytes) -> None:
        """Make the file hold this: a sibling is written, brought to the disk, and given the name."""
        path = self._path(name)
        with _failing(path):
            make_folder(path.parent)
            with _sibling(path) as (descriptor, unfinished):
                _write_all(descriptor, data)
                os.fsync(descriptor)
                unfinished.replace(path)
            sync_folder(path.parent)

    def rename(self, name: str, to: str) -> None:
        """Give a file another name, durably."""
        path, target = self._path(name), self._path(to)
        with _failing(path):
            if not path.exists() and target.exists():
                return
            make_folder(target.parent)
            path.replace(target)
            with self._guard:
                if name in self._regions:
                    self._regions[to] = self._regions.pop(name)
            sync_folder(target.parent)
            if target.parent != path.parent:
                sync_folder(path.parent)

    def remove(self, name: str) -> None:
        """Remove a file durably."""
        path = self._path(name)
        with _failing(path):
            with self._guard:
                self._regions.pop(name, None)
            self._growing.forget(path)
            try:
                path.unlink()
            except FileNotFoundError:
                return
            sync_folder(path.parent)

    def make(self, name: str, size: int) -> None:
        """Make a file of so many zeros when it is not there."""
        path = self._path(name)
        with _failing(path):
            if not path.exists():
                self._make(path, size)

    def region(self, name: str) -> DiskRegion:
        """Open a file as a region."""
        path = self._path(name)
        with _failing(path):
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                region = DiskRegion(path, descriptor, os.fstat(descriptor).st_size)
            except BaseException:
                os.close(descriptor)
                raise
        with self._guard:
            self._regions[name] = region
        return region

    def disk_use(self) -> DiskUse | None:
        """How full the disk is."""
        return disk_use(self._root)

    def cut(self, name: str, size: int) -> None:
        """Make a growing file no longer than this, durably."""
        path = self._path(name)
        with _failing(path):
            if path.exists() and path.stat().st_size > size:
                descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
                try:
                    os.ftruncate(descriptor, size)
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)

    def rename_folder(self, name: str, to: str) -> None:
        """Give a folder another name, durably."""
        path, target = self._path(name), self._path(to)
        with _failing(path):
            self._growing.forget(path)
            if path.is_dir():
                path.rename(target)
                sync_folder(target.parent)

    def remove_folder(self, name: str) -> None:
        """Remove a folder and the files in it durably."""
        path = self._path(name)
        with _failing(path):
            self._growing.forget(path)
            if path.is_dir():
                shutil.rmtree(path)
                sync_folder(path.parent)

    def flush(self, names: Iterable[str]) -> None:
        """Bring what was written to these files to the disk; from any thread.

        A region that was closed meanwhile is brought there too; a file that was removed has nothing to. Where
        they are many, and none is a region, the whole file system is told to at once: it has one journal, and
        one of its commits is enough for all of them.
        """
        paths = {self._path(name): name for name in names}
        new_folders = self._growing.new_folders(paths)
        if len(paths) > FLUSHED_ALONE_MAX and self._growing.flush_all(self._lock, paths):
            return
        self._flush_each(paths)
        for folder in new_folders:
            if folder.is_dir():
                sync_folder(folder)

    def _flush_each(self, paths: dict[Path, str]) -> None:
        for path, name in paths.items():
            with _failing(path):
                try:
                    descriptor = self._descriptor(name, path)
                except FileNotFoundError:
                    continue
            try:
                os.fdatasync(descriptor)
            except OSError as error:
                # Without room too: what was written before is lost to whoever does not write it again.
                raise StorageFailed(f"{path}: {error.strerror}") from error
            finally:
                os.close(descriptor)

    def close(self) -> None:
        """Give the folder back."""
        self._growing.close()
        for region in self._regions.values():
            region.close()
        self._regions.clear()
        os.close(self._lock)

    def _descriptor(self, name: str, path: Path) -> int:
        with self._guard:
            region = self._regions.get(name)
            if region is not None and not region.closed:
                return region.duplicate()
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def _make(self, path: Path, size: int) -> None:
        make_folder(path.parent)
        with _sibling(path) as (descriptor, unfinished):
            if size:
                os.posix_fallocate(descriptor, 0, size)
            os.fsync(descriptor)
            unfinished.replace(path)
        sync_folder(path.parent)

    def _path(self, name: str) -> Path:
        parts = name.split("/")
        assert all(part not in {"", ".", ".."} and not _is_ours(part) for part in parts), (
            f"{name!r} is no name"
        )
        return self._root.joinpath(*parts)


def disk_use(path: Path) -> DiskUse | None:
    """How full the disk is that a folder lies on; None when the system does not say."""
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    used, available = found.f_blocks - found.f_bfree, found.f_bavail
    return DiskUse(used * found.f_frsize, available * found.f_frsize)


def _below_home(name: str) -> Path:
    try:
        return Path(name).expanduser()
    except RuntimeError as error:
        raise StorageFailed(f"{name}: {error}") from error


@contextmanager
def _failing(place: object) -> Iterator[None]:
    """Turn what the system refuses into StorageFailed, with the place. To be used around what takes effect
    whole or not at all: then a lack of room is a StorageFull."""
    try:
        yield
    except OSError as error:
        kind = StorageFull if error.errno in NO_ROOM else StorageFailed
        raise kind(f"{place}: {error.strerror or error}") from error


@contextmanager
def _sibling(path: Path) -> Iterator[tuple[int, Path]]:
    """A new file beside `path`, which is gone afterwards unless it got another name."""
    unfinished = path.with_name(path.name + UNFINISHED)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        yield descriptor, unfinished
    finally:
        os.close(descriptor)
        unfinished.unlink(missing_ok=True)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _is_ours(name: str) -> bool:
    return name == LOCK_NAME or name.endswith(UNFINISHED)
