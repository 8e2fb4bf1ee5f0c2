"""A table in one file, of which only what changed is written as long as that is little.

The file has the form of Apache RocketMQ's. A large table is not written anew for each change: what changed
goes into a file of its own beside it, with a later version, and some time later all of them become one again.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.storage import FilesReader, Operation, RemoveFile, ReplaceFile, StorageFailed
from replispec.wire.rocketmq.broker import DataVersion
from replispec.wire.rocketmq.constants import (
    CHANGED_DIGITS,
    CHANGED_FILES,
    CHANGED_SUFFIX,
    TABLE_CHECKSUM,
    TABLE_VERSION_MAX,
)

TableT = TypeVar("TableT")

SMALL_MAX: Final = 256
"""Entries of a table that is always written whole."""

_SEALED: Final = re.compile(rb'\{"%s":([0-9]{1,10}),' % TABLE_CHECKSUM.encode())


def later(version: int) -> int:
    """The version after one. After the last comes none: such a table is written whole, and no part of it is
    later."""
    return min(version + 1, TABLE_VERSION_MAX)


class Versioned(Protocol):
    """A table that says how often it changed."""

    data_version: DataVersion | None


VersionedT = TypeVar("VersionedT", bound=Versioned)


def counted(decode: Callable[[bytes], VersionedT]) -> Callable[[bytes], VersionedT]:
    """Reads a table of which the count is told as a sum with that of another one: one that comes near the
    end was counted by nobody. Raises RemoteProtocolError."""

    def read(data: bytes) -> VersionedT:
        table = decode(data)
        counter = (table.data_version or DataVersion()).counter or 0
        if not 0 <= counter <= TABLE_VERSION_MAX // 2:
            raise RemoteProtocolError(f"no table has changed {counter} times")
        return table

    return read


def sealed(data: bytes) -> bytes:
    """The text of an object with its checksum, as its first key."""
    return b'{"%s":%d,' % (TABLE_CHECKSUM.encode(), zlib.crc32(data)) + data.removeprefix(b"{")


def unsealed(data: bytes) -> bytes:
    """The text without its checksum; one of other software, or of a release before, has none. Raises
    RemoteProtocolError when it is not what the checksum is of."""
    found = _SEALED.match(data)
    if found is None:
        return data
    plain = b"{" + data[found.end() :]
    if zlib.crc32(plain) != int(found[1]):
        raise RemoteProtocolError("its checksum is not that of what it holds", offset=0)
    return plain


class TableFile:
    """What is to be written for a change, in order; one write is to be under way at a time."""

    def __init__(self, files: FilesReader, name: str) -> None:
        self.name: Final = name
        self._parts = [f"{name}{CHANGED_SUFFIX}{number:0{CHANGED_DIGITS}}" for number in range(CHANGED_FILES)]
        found = {each: data for each in self._parts if (data := files.read(each)) is not None}
        self._written = list(found)
        self._in_parts = 0
        self._asked: tuple[list[str], int] = ([], 0)
        self._found, self._found_parts = files.read(name), [*found.values()]

    def read(self, decode: Callable[[bytes], TableT], otherwise: str) -> tuple[TableT | None, list[TableT]]:
        """The whole table as it was written last, None for none, and what was written since, or before: only
        what has a later version than the table counts, the earlier ones first.

        `otherwise`: what comes of it when an operator moves a damaged one aside. Raises StorageFailed.
        """
        try:
            whole = None if self._found is None else decode(unsealed(self._found))
            return whole, [decode(unsealed(each)) for each in self._found_parts]
        except RemoteProtocolError as error:
            raise StorageFailed(
                f"{self.name}: {error}; where another broker of the set is master, `replispec admin repair`; "
                f"else move {self.name}* aside, and {otherwise}"
            ) from error

    def wants_part(self, changed: int, entries: int, version: int) -> bool:
        """Whether only so many changed entries are to be written, of a table of so many, as this version."""
        is_small = entries <= SMALL_MAX or 2 * (changed + self._in_parts) > entries
        return not is_small and len(self._written) < CHANGED_FILES and version < TABLE_VERSION_MAX

    def part(self, changed: int, data: bytes) -> tuple[Operation, ...]:
        """What writes entries that changed."""
        name = next(each for each in self._parts if each not in self._written)
        self._asked = [*self._written, name], self._in_parts + changed
        return (ReplaceFile(name, sealed(data)),)

    def whole(self, data: bytes) -> tuple[Operation, ...]:
        """What writes the table; it may be asked for at the end while a write is under way, too."""
        parts = dict.fromkeys((*self._written, *self._asked[0]))
        self._asked = [], 0
        return ReplaceFile(self.name, sealed(data)), *map(RemoveFile, parts)

    @property
    def has_parts(self) -> bool:
        """Whether the table is in more than one file: other software reads one."""
        return bool(self._written or self._asked[0])

    def is_written(self) -> None:
        """What was asked for last is on the disk. After one that failed this is not called: the table may be
        there and its parts too, which then are of earlier versions."""
        self._written, self._in_parts = self._asked
