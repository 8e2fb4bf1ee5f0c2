"""Snapshots of the tree: written in parts between requests, put in the place of records when all are there.

Each part is a file. In the log stands which parts there are, and from then on the records before are gone and
the parts of the snapshot before are removed. Whatever ends that in the middle leaves the log as it was; parts
of which it does not speak are removed when it is read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from replispec.metastore.zookeeper.core.copying import Part
from replispec.metastore.zookeeper.core.records import (
    KeptPart,
    MetastoreLogDamaged,
    decode_contents,
    encode_contents,
    encode_part,
    restore_part,
)
from replispec.metastore.zookeeper.core.tree import NodeTree
from replispec.runtime.primitives.binary import crc32
from replispec.runtime.primitives.errors import LocalProtocolError
from replispec.runtime.storage import FilesReader, RemoveFile, ReplaceFile, ReplaceRecords
from replispec.runtime.world import Level, Outbox, Persisted, Writes, Written
from replispec.wire.zookeeper.constants import CHECKSUM_BITS, SNAPSHOT_PART_BYTES

_PREFIX: Final = "part"


class SnapshotWriter:
    """Keeps what the records have made. `ended` is told how a snapshot ended: by the write that ended it."""

    def __init__(
        self,
        outbox: Outbox,
        writes: Writes,
        files: FilesReader,
        tree: NodeTree,
        ended: Callable[[Written], None],
    ) -> None:
        self._outbox = outbox
        self._writes = writes
        self._files = files
        self._tree = tree
        self._ended = ended
        self._parts: Iterator[Part] | None = None
        self._index = 0
        self._written: list[KeptPart] = []
        self._kept_index, self._kept_parts = 0, 0
        # Files of no use, which are removed one after the other.
        self._strays: deque[str] = deque()
        self.bytes = 0
        """How many bytes the one that is kept has."""

    @property
    def is_under_way(self) -> bool:
        """Whether one is being written."""
        return self._parts is not None

    def read(self, index: int, contents: bytes) -> None:
        """Have the tree become what is kept. Raises LogDamaged, and StorageFailed."""
        parts = decode_contents(index, contents)
        self._tree.empty(index)
        for number, part in enumerate(parts):
            restore_part(self._tree, index, self._part(_name(index, number), part))
        self._kept(index, parts)

    def clear(self) -> None:
        """Remove parts of snapshots that never came to be, or are no more."""
        kept = {_name(self._kept_index, number) for number in range(self._kept_parts)}
        strays = [each for each in self._files.names() if each.startswith(_PREFIX) and each not in kept]
        self._remove(strays)

    def begin(self) -> None:
        """Keep what the tree is now, part by part."""
        assert self._parts is None, "one snapshot at a time"
        copy = self._tree.copy()
        self._index, self._parts, self._written = copy.index, copy.parts(SNAPSHOT_PART_BYTES), []
        self._next()

    def _next(self) -> None:
        assert self._parts is not None, "a part of no snapshot"
        try:
            part = next(self._parts, None)
            data = b"" if part is None else encode_part(self._index, part)
            contents = encode_contents(self._index, self._written)
        except LocalProtocolError as error:
            self._outbox.note(Level.WARNING, "no snapshot kept: the log grows", reason=str(error))
            self._over()
            return
        if part is None:
            self._writes.persist(ReplaceRecords(self._index, contents), then=self._replaced)
            return
        name = _name(self._index, len(self._written))
        self._written.append(KeptPart(len(data), crc32(data, CHECKSUM_BITS)))
        self._writes.persist(ReplaceFile(name, data), then=self._part_written)

    def _part_written(self, event: Written) -> None:
        if isinstance(event, Persisted):
            self._next()
            return
        self._over()
        self._ended(event)

    def _replaced(self, event: Written) -> None:
        self._over()
        if isinstance(event, Persisted):
            before = [_name(self._kept_index, number) for number in range(self._kept_parts)]
            self._kept(self._index, self._written)
            self._remove(before)
        self._ended(event)

    def _over(self) -> None:
        self._parts = None
        self._tree.copied()

    def _kept(self, index: int, parts: Sequence[KeptPart]) -> None:
        self._kept_index, self._kept_parts = index, len(parts)
        self.bytes = sum(each.size for each in parts)

    def _remove(self, names: Iterable[str]) -> None:
        """Remove files, each after the one before, so that others write in between."""
        is_idle = not self._strays
        self._strays.extend(names)
        if is_idle:
            self._remove_next()

    def _remove_next(self) -> None:
        if self._strays:
            self._writes.persist(RemoveFile(self._strays[0]), then=self._removed)

    def _removed(self, _event: Written) -> None:
        """Whether it is gone or not: what stays harms nobody, and is removed at the next start."""
        self._strays.popleft()
        self._remove_next()

    def _part(self, name: str, part: KeptPart) -> bytes:
        data = self._files.read(name)
        if data is None:
            raise MetastoreLogDamaged(f"{name}, a part of the snapshot of the log, is missing")
        if len(data) != part.size or crc32(data, CHECKSUM_BITS) != part.checksum:
            raise MetastoreLogDamaged(
                f"{name}, a part of the snapshot of the log, is not what was written: {len(data)} bytes, "
                f"{part.size} were"
            )
        return data


def _name(index: int, number: int) -> str:
    """The file of a part, by the record up to which the snapshot speaks and its place."""
    return f"{_PREFIX}-{index}-{number}"
