"""The files of a simulated process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from replispec.runtime.sim.disk import WRITE, Content, Disk, Left, Write
from replispec.runtime.storage import DiskUse, StorageFailed


class SimulatedRegion:
    """A file of fixed size; see `replispec.runtime.storage.Region`."""

    def __init__(self, disk: Disk, name: str, content: Content) -> None:
        self._disk = disk
        self._life = disk.life
        self._name = name
        self._content = content
        self._is_open = True

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return len(self._content.data)

    def write(self, at: int, data: bytes | bytearray | memoryview) -> None:
        """Put bytes at a place inside."""
        assert self._is_open, f"{self._name} was closed"
        after = bytes(data)
        assert 0 <= at <= self.size - len(after), f"{len(after)} bytes at {at} of {self.size}"
        if not after:
            return

        def take_effect(left: Left) -> None:
            some = {Left.ALL: len(after), Left.NOTHING: 0}.get(left)
            count = self._disk.rng.below(len(after) + 1) if some is None else some
            data = self._content.data
            self._content.unflushed.append(Write(at, bytes(data[at : at + count]), after[:count]))
            data[at : at + count] = after[:count]

        self._disk.change(self._life, f"{WRITE}{self._name} at {at}", take_effect)

    def view(self, at: int, size: int) -> memoryview:
        """Read-only bytes without a copy."""
        self._disk.check(self._life)
        assert self._is_open, f"{self._name} was closed"
        assert 0 <= at <= self.size - size, f"{size} bytes at {at} of {self.size}"
        return memoryview(self._content.data).toreadonly()[at : at + size]

    def written(self) -> Iterable[tuple[int, int]]:
        """Everything: nothing is counted."""
        self._disk.check(self._life)
        return [(0, self.size)]

    def close(self) -> None:
        """Give the file back."""
        self._is_open = False


class SimulatedGrowing:
    """A file that grows; see `replispec.runtime.storage.GrowingFile`."""

    def __init__(self, disk: Disk, name: str) -> None:
        self._disk = disk
        self._life = disk.life
        self._name = name

    @property
    def size(self) -> int:
        """Its size in bytes; 0 when it is not there."""
        self._disk.check(self._life)
        content = self._disk.contents.get(self._name)
        return 0 if content is None else len(content.data)

    def append(self, at: int, data: bytes | bytearray | memoryview) -> None:
        """Put bytes after its last one."""
        after = bytes(data)
        assert at == self.size, f"{self._name}: bytes at {at} of {self.size}"

        def take_effect(left: Left) -> None:
            some = {Left.ALL: len(after), Left.NOTHING: 0}.get(left)
            count = self._disk.rng.below(len(after) + 1) if some is None else some
            content = self._disk.contents.setdefault(self._name, Content(bytearray(), kept_size=None))
            content.kept_size = len(content.data) if content.kept_size == -1 else content.kept_size
            content.unflushed.append(Write(at, bytes(count), after[:count]))
            content.data += after[:count]

        self._disk.change(self._life, f"{WRITE}{self._name} at {at}", take_effect, len(after))

    def read(self, at: int, size: int) -> bytes:
        """The bytes from a place on, fewer where the file ends."""
        self._disk.reading(self._life, f"read {self._name}")
        content = self._disk.contents.get(self._name)
        return b"" if content is None else bytes(content.data[at : at + size])


class SimulatedFiles:
    """A folder; see `replispec.runtime.storage.Files`. Changes carry the name of the folder too."""

    def __init__(self, disk: Disk, folder: str = "") -> None:
        self._disk = disk
        self._life = disk.life
        self._prefix = "".join(f"{part}/" for part in folder.split("/") if part)

    def names(self, folder: str = "") -> Sequence[str]:
        """The names of all files in a folder."""
        self._disk.check(self._life)
        prefix = f"{self._prefix}{folder}/" if folder else self._prefix
        inside = [name.removeprefix(prefix) for name in self._disk.contents if name.startswith(prefix)]
        return sorted(name for name in inside if "/" not in name)

    def folders(self, folder: str = "") -> Sequence[str]:
        """The names of all folders in a folder."""
        self._disk.check(self._life)
        prefix = f"{self._prefix}{folder}/" if folder else self._prefix
        inside = [name.removeprefix(prefix) for name in self._disk.contents if name.startswith(prefix)]
        return sorted({name.partition("/")[0] for name in inside if "/" in name})

    def growing(self, name: str) -> SimulatedGrowing:
        """A file that grows."""
        return SimulatedGrowing(self._disk, self._path(name))

    def read(self, name: str) -> bytes | None:
        """A whole small file."""
        path = self._path(name)
        self._disk.reading(self._life, f"read {path}")
        content = self._disk.contents.get(path)
        return None if content is None else bytes(content.data)

    def replace(self, name: str, data: bytes) -> None:
        """Make the file hold this, durably, in one step."""
        path = self._path(name)

        def take_effect(left: Left) -> None:
            if self._disk.whole(left):
                self._disk.contents[path] = Content(bytearray(data))

        self._disk.change(self._life, f"replace {path}", take_effect, len(data))

    def rename(self, name: str, to: str) -> None:
        """Give a file another name. Raises StorageFailed when neither is there."""
        path, new_path = self._path(name), self._path(to)
        if path not in self._disk.contents:
            if new_path in self._disk.contents:
                return
            raise StorageFailed(f"{path}: no such file")

        def take_effect(left: Left) -> None:
            if self._disk.whole(left):
                self._disk.contents[new_path] = self._disk.contents.pop(path)

        self._disk.change(self._life, f"rename {path} {new_path}", take_effect)

    def remove(self, name: str) -> None:
        """Remove a file durably."""
        path = self._path(name)

        def take_effect(left: Left) -> None:
            if self._disk.whole(left):
                self._disk.contents.pop(path, None)

        if path in self._disk.contents:
            self._disk.change(self._life, f"remove {path}", take_effect)

    def make(self, name: str, size: int) -> None:
        """Make a file of so many zeros when it is not there."""
        path = self._path(name)

        def take_effect(left: Left) -> None:
            if self._disk.whole(left):
                self._disk.contents[path] = Content(bytearray(size))

        if path not in self._disk.contents:
            self._disk.change(self._life, f"make {path}", take_effect, size)

    def region(self, name: str) -> SimulatedRegion:
        """Open a file as a region."""
        path = self._path(name)
        self._disk.reading(self._life, f"open {path}")
        if path not in self._disk.contents:
            raise StorageFailed(f"{path}: no such file")
        return SimulatedRegion(self._disk, path, self._disk.contents[path])

    def disk_use(self) -> DiskUse | None:
        """How full the disk is; None of one without an end."""
        self._disk.check(self._life)
        if self._disk.room_bytes is None:
            return None
        used = self._disk.used_bytes()
        return DiskUse(used, max(0, self._disk.room_bytes - used))

    def cut(self, name: str, size: int) -> None:
        """Make a growing file no longer than this, durably."""
        path = self._path(name)
        content = self._disk.contents.get(path)

        def take_effect(left: Left) -> None:
            if content is not None and self._disk.whole(left):
                del content.data[size:]
                content.unflushed.clear()
                content.abandoned.clear()
                content.kept_size = size

        if content is not None and len(content.data) > size:
            self._disk.change(self._life, f"cut {path} to {size}", take_effect)

    def rename_folder(self, name: str, to: str) -> None:
        """Give a folder another name, durably, in one step."""
        path, new_path = f"{self._path(name)}/", f"{self._path(to)}/"
        inside = [each for each in self._disk.contents if each.startswith(path)]

        def take_effect(left: Left) -> None:
            if self._disk.whole(left):
                for each in inside:
                    found = self._disk.contents.pop(each)
                    self._disk.contents[new_path + each.removeprefix(path)] = found

        if inside:
            self._disk.change(self._life, f"rename {path} {new_path}", take_effect)

    def remove_folder(self, name: str) -> None:
        """Remove a folder and the files in it durably; a crash leaves some of them."""
        path = f"{self._path(name)}/"
        inside = [each for each in self._disk.contents if each.startswith(path)]

        def take_effect(left: Left) -> None:
            for each in inside:
                if left is Left.ALL or self._disk.whole(left):
                    del self._disk.contents[each]

        if inside:
            self._disk.change(self._life, f"remove {path}", take_effect)

    def flush(self, names: Iterable[str]) -> None:
        """Bring all that was written to these regions to the disk."""
        wanted = sorted({self._path(name) for name in names})

        def take_effect(left: Left) -> None:
            for path in wanted:
                content = self._disk.contents.get(path)
                if content is not None and self._disk.keeps_flushes:
                    content.flush(succeeds=self._disk.whole(left))

        self._disk.change(self._life, f"flush {' '.join(wanted)}", take_effect)

    def _path(self, name: str) -> str:
        assert not any(part in ("", ".", "..") for part in name.split("/")), f"{name!r} is no name of a file"
        return self._prefix + name
