"""What a node may have written: operations as values, and the stores of a node that carry them out.

A node never writes. It reads what it finds at its start, and from then on sends operations out with the
effect `Persist`; whoever runs the node carries them out here, off the node's way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never

from replispec.runtime.primitives.immutable import immutable
from replispec.runtime.storage.interface import Files, Journal, Lines


@immutable
class AppendRecords:
    """Write records (index, bytes) into the journal, and the value beside them if given: all or nothing."""

    records: Sequence[tuple[int, bytes]]
    state: bytes | None = None


@immutable
class ReplaceRecords:
    """Put a value in the place of all records of the journal up to an index, and write `records` and `state`
    as AppendRecords does: all or nothing. `is_all`: no record stays but these, which follow the index; it may
    be beyond the last one of before."""

    index: int
    snapshot: bytes
    records: Sequence[tuple[int, bytes]] = ()
    state: bytes | None = None
    is_all: bool = False


@immutable
class AppendLines:
    """Put lines, given without their ends, after the last of the text file: all or nothing, but for a
    crash."""

    lines: Sequence[bytes]


@immutable
class ReplaceFile:
    """Make a file hold exactly this: afterwards it is the old one or the new one."""

    name: str
    data: bytes


@immutable
class RenameFile:
    """Give a file another name. Done already when only the new name is there."""

    name: str
    to: str


@immutable
class RemoveFile:
    """Remove a file. Done already when it is not there."""

    name: str


@immutable
class MakeFile:
    """Make a file of `size` zero bytes that takes its room on the disk. Done already when it is there."""

    name: str
    size: int


@immutable
class CutFile:
    """Make a growing file no longer than `size` bytes. Done already when it is shorter, or not there."""

    name: str
    size: int


@immutable
class RenameFolder:
    """Give a folder with all that is in it another name. Done already when it is not there."""

    name: str
    to: str


@immutable
class RemoveFolder:
    """Remove a folder with the files in it. Done already when it is not there."""

    name: str


@immutable
class FlushFiles:
    """Bring to the disk what was put into the regions and growing files of these names before."""

    names: Sequence[str]


FileOperation = (
    ReplaceFile | RenameFile | RemoveFile | MakeFile | CutFile | RenameFolder | RemoveFolder | FlushFiles
)
Operation = AppendRecords | ReplaceRecords | AppendLines | FileOperation


@immutable
class Stores:
    """All that one node may have written; what it has no use for is None."""

    files: Files | None = None
    journal: Journal | None = None
    lines: Lines | None = None

    def carry_out(self, operations: Sequence[Operation]) -> None:
        """Carry operations out one after the other; those before the first that fails stay done.

        Raises StorageFailed, and StorageFull when there was no room and nothing of the failed one is there.
        """
        for operation in operations:
            self._carry_out(operation)

    def _carry_out(self, operation: Operation) -> None:
        match operation:
            case AppendRecords(records, state):
                assert self.journal is not None, "a node without a journal writes records"
                self.journal.append(records, state=state)
            case ReplaceRecords(index, snapshot, records, state, is_all):
                assert self.journal is not None, "a node without a journal replaces records"
                self.journal.replace(index, snapshot, records=records, state=state, is_all=is_all)
            case AppendLines(lines):
                assert self.lines is not None, "a node without a text file writes lines"
                self.lines.append(lines)
            case _:
                assert self.files is not None, "a node without files writes one"
                _change_file(self.files, operation)


NOTHING: Final = Stores()
"""Of a node that keeps nothing."""


def _change_file(files: Files, operation: FileOperation) -> None:
    match operation:
        case ReplaceFile(name, data):
            files.replace(name, data)
        case RenameFile(name, to):
            files.rename(name, to)
        case RemoveFile(name):
            files.remove(name)
        case MakeFile(name, size):
            files.make(name, size)
        case CutFile(name, size):
            files.cut(name, size)
        case RenameFolder(name, to):
            files.rename_folder(name, to)
        case RemoveFolder(name):
            files.remove_folder(name)
        case FlushFiles(names):
            files.flush(names)
        case _:
            assert_never(operation)
