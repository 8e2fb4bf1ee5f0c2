"""A disk's storage that keeps, beside each file, what stood there before it was written and not flushed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lab.power import Undo, undo_folder
from replispec.runtime.storage.disk_shell import DiskFiles, DiskRegion, DiskStorage


class RememberingRegion(DiskRegion):
    """A region of which it is known what stood in it before it was written."""

    def remember(self, undo: Undo) -> None:
        """From now on, keep what is written over."""
        self._undo = undo

    def write(self, at: int, data: bytes | bytearray | memoryview) -> None:
        """Keep what stands there, then put the bytes."""
        with self._undo.writing(at, bytes(self.view(at, len(data)))):
            super().write(at, data)


class RememberingFiles(DiskFiles):
    """A folder whose regions keep what was not flushed."""

    def __init__(self, root: Path, undone: Path) -> None:
        super().__init__(root)
        self._undone = undone
        self._undo: dict[Path, Undo] = {}

    def undo(self, name: str) -> Undo:
        """What is kept of a file."""
        path = self._path(name).absolute()
        if path not in self._undo:
            self._undo[path] = Undo(undo_folder(self._undone, path))
        return self._undo[path]

    def region(self, name: str) -> DiskRegion:
        """Open a file as a region that remembers."""
        opened = super().region(name)
        region = RememberingRegion(self._path(name), opened.duplicate(), opened.size)
        opened.close()
        region.remember(self.undo(name))
        with self._guard:
            self._regions[name] = region
        return region

    def flush(self, names: Iterable[str]) -> None:
        """Flush, and forget what was written before it began."""
        for name in names:
            undo = self.undo(name)
            before = undo.begin()
            super().flush([name])
            undo.forget(before)

    def remove(self, name: str) -> None:
        """Remove the file, and what is kept of it."""
        super().remove(name)
        self.undo(name).forget_all()

    def rename(self, name: str, to: str) -> None:
        """What has another name is another file to whoever loses power: it is flushed first."""
        self.flush([name])
        super().rename(name, to)


class RememberingStorage(DiskStorage):
    """A disk's storage, of which `lose_power` knows what was not flushed."""

    def __init__(self, undone: Path) -> None:
        self._kept = undone

    def files(self, folder: str) -> RememberingFiles:
        """The files of a folder. Raises StorageFailed."""
        return RememberingFiles(Path(folder).expanduser(), self._kept)
