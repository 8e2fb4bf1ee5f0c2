"""Files that grow, on a real disk: however many there are, a bounded number of them is open."""

from __future__ import annotations

import ctypes
import os
import threading
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from replispec.runtime.storage.interface import StorageFailed, StorageFull
from replispec.runtime.storage.no_room import NO_ROOM

OPEN_MAX: Final = 512
"""Descriptors of growing files that are kept open; the one that was used longest ago goes first."""


class OpenFiles:
    """The growing files of one folder that are open just now, and those that are new since the last flush.

    Files are used by one thread; flushed, renamed and removed by another one.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._descriptors: OrderedDict[Path, int] = OrderedDict()
        self._new: set[Path] = set()
        self._new_folders: set[Path] = set()
        self._guard = threading.Lock()

    def use(self, path: Path, *, may_make: bool) -> int:
        """The descriptor of a file, opened if it is not; good until the next call. Raises OSError."""
        with self._guard:
            found = self._descriptors.get(path)
            if found is not None:
                self._descriptors.move_to_end(path)
                return found
            found = self._open(path, may_make=may_make)
            while len(self._descriptors) >= OPEN_MAX:
                os.close(self._descriptors.popitem(last=False)[1])
            self._descriptors[path] = found
            return found

    def _open(self, path: Path, *, may_make: bool) -> int:
        try:
            return os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            if not may_make:
                raise
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True)
            self._new_folders.add(path.parent)
        self._new.add(path)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def forget(self, path: Path) -> None:
        """A file, or a folder with its files, goes, or gets another name."""
        with self._guard:
            for each in [one for one in self._descriptors if one == path or path in one.parents]:
                os.close(self._descriptors.pop(each))
            self._new = {each for each in self._new if each != path and path not in each.parents}

    def new_folders(self, paths: Iterable[Path]) -> list[Path]:
        """The folders in which some of these files are new, or their folders; they are not any more."""
        with self._guard:
            found = {each.parent for each in self._new.intersection(paths)}
            self._new.difference_update(paths)
            found |= {each.parent for each in found & self._new_folders}
            self._new_folders -= found
        return sorted(found)

    def flush_all(self, descriptor: int, paths: Iterable[Path]) -> bool:
        """Bring the whole file system of a descriptor to the disk; False where the system cannot, or where
        some of the files lie on another one. Raises StorageFailed for whatever could not be written since the
        descriptor was opened."""
        system_call = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
        try:
            device = os.fstat(descriptor).st_dev
            is_one = all(os.stat(path.parent).st_dev == device for path in paths if path.parent.exists())
        except OSError as error:
            raise StorageFailed(f"{self._root}: {error.strerror}") from error
        if system_call is None or not is_one:
            return False
        if system_call(descriptor) != 0:
            raise StorageFailed(f"{self._root}: {os.strerror(ctypes.get_errno())}")
        return True

    def close(self) -> None:
        """Give all of them back."""
        with self._guard:
            while self._descriptors:
                os.close(self._descriptors.popitem()[1])


class DiskGrowing:
    """One file that grows; see `replispec.runtime.storage.GrowingFile`."""

    __slots__ = ("_files", "_path")

    def __init__(self, files: OpenFiles, path: Path) -> None:
        self._files = files
        self._path = path

    @property
    def size(self) -> int:
        """Its size in bytes; 0 when it is not there."""
        try:
            return self._path.stat().st_size
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise StorageFailed(f"{self._path}: {error.strerror}") from error

    def append(self, at: int, data: bytes | bytearray | memoryview) -> None:
        """Put bytes after its last one."""
        try:
            descriptor = self._files.use(self._path, may_make=True)
            rest = memoryview(data)
            while rest:
                rest = rest[os.pwrite(descriptor, rest, at + len(data) - len(rest)) :]
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise StorageFailed(f"{self._path}: {error.strerror}") from error
            self._take_back(at)
            raise StorageFull(f"{self._path}: {error.strerror}") from error

    def _take_back(self, at: int) -> None:
        """Cut what a full disk took of an append: the file ends where it did."""
        try:
            if self.size > at:
                os.ftruncate(self._files.use(self._path, may_make=False), at)
        except OSError as error:
            raise StorageFailed(f"{self._path}: {error.strerror}") from error

    def read(self, at: int, size: int) -> bytes:
        """The bytes from a place on, fewer where the file ends."""
        try:
            return os.pread(self._files.use(self._path, may_make=False), size, at)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise StorageFailed(f"{self._path}: {error.strerror}") from error
