"""DLedger's log, read up to what is known to be committed.

Entries stand one behind the other, from index 0 on; the log is never compacted. Every few seconds and at its
end a controller notes which of them are committed: what lies behind that is not known to be. Source:
openmessaging/dledger 0.3.1.2 and 0.3.2, DLedgerMmapFileStore.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from replispec.controller.rocketmq.apache.kept import FolderUnread, KeptRecord
from replispec.controller.rocketmq.apache.sets import KeptSets
from replispec.runtime.primitives.binary import Buffer
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.immutable import immutable
from replispec.runtime.primitives.parameters import ConfigurationError
from replispec.runtime.primitives.properties import read_properties
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.codes import ControllerEventType
from replispec.wire.rocketmq.controller_store import (
    ControllerLogEvent,
    DledgerEntry,
    DledgerEntryHead,
    DledgerEvent,
)


@immutable
class DledgerFiles:
    """The files of a member: those of its log by the position where each begins, and its notes."""

    member: str
    data: Mapping[int, Buffer]
    checkpoint: bytes | None


def read_dledger(files: DledgerFiles, *, takes_all: bool) -> KeptRecord:
    """What a member has on record; with `takes_all` that of which nobody knows whether it is committed, too.
    Raises FolderUnread."""
    committed, sets = _committed(files.checkpoint), KeptSets()
    last = DledgerEntry(index=-1)
    kept, beyond, end = last, list[str](), _End()
    for entry in _entries(files.data, end):
        _check_order(last, entry)
        last = entry
        if entry.index <= committed or takes_all:
            kept = entry
            _apply(sets, entry)
        elif entry.body:
            beyond.append(_shown(entry))
    if last.index < committed:
        why = f": {end.why}" if end.why else ""
        raise FolderUnread(
            f"entries up to {committed} are committed, and the log ends with {last.index}{why}"
        )
    notes = [*sets.notes()]
    if end.why:
        notes.append(f"what lies behind entry {last.index} cannot be read: {end.why}")
    source, ends = f"DLedger's {files.member}", (last.index, last.term)
    return KeptRecord(sets.states(), source, kept.index, kept.term, beyond, notes, ends)


class _End:
    """Why reading ended before the log did."""

    why = ""


def _entries(files: Mapping[int, Buffer], end: _End) -> Iterator[DledgerEntry]:
    """All entries that can be read; `end` says why no more."""
    expected = None
    for begin in sorted(files):
        if expected is not None and begin != expected:
            raise FolderUnread(f"a file of the log is missing: one begins at {expected}, and none is there")
        data = files[begin]
        at, size = 0, len(data)
        try:
            while not _is_over(data, at):
                entry, behind = DledgerEntry.decode_at(data, at, size)
                if entry.position != begin + at:
                    raise RemoteProtocolError(f"it is to stand at {entry.position}", offset=at)
                yield entry
                at = behind
        except RemoteProtocolError as error:
            end.why = f"at {begin + at}: {error}"
            return
        expected = begin + size


def _is_over(data: Buffer, at: int) -> bool:
    """Whether a file has no more entries: it ends, goes on with zeros, or with what fills it."""
    try:
        head, _ = DledgerEntryHead.decode_at(data, at, len(data))
    except RemoteProtocolError:
        return True
    return head.magic == constants.DLEDGER_BLANK or (head.magic, head.size) == (0, 0)


def _check_order(before: DledgerEntry, entry: DledgerEntry) -> None:
    if entry.index != before.index + 1:
        if before.index < 0:
            raise FolderUnread(f"the log begins with entry {entry.index}: what was before it is gone")
        raise FolderUnread(f"entry {entry.index} follows entry {before.index}")
    if entry.term < before.term:
        raise FolderUnread(
            f"entry {entry.index} is of term {entry.term}, and the one before of {before.term}"
        )


def _apply(sets: KeptSets, entry: DledgerEntry) -> None:
    if entry.body:
        try:
            event = DledgerEvent.decode(entry.body)
            sets.apply(event.kind, ControllerLogEvent.decode(event.event))
        except RemoteProtocolError as error:
            raise FolderUnread(f"entry {entry.index}: {error}") from error
        except FolderUnread as error:
            raise FolderUnread(f"entry {entry.index}: {error}") from error


def _shown(entry: DledgerEntry) -> str:
    try:
        event = DledgerEvent.decode(entry.body)
        kind, name = ControllerEventType(event.kind), ControllerLogEvent.decode(event.event).broker_name
    except (RemoteProtocolError, ValueError):
        return f"entry {entry.index} of term {entry.term}, which cannot be read"
    return f"entry {entry.index} of term {entry.term}: {kind.name} of {name}"


def _committed(checkpoint: bytes | None) -> int:
    """The last entry that is known to be committed; -1 for none."""
    try:
        values, _ = read_properties((checkpoint or b"").decode())
        return int(values.get(constants.DLEDGER_COMMITTED, -1))
    except (ConfigurationError, UnicodeDecodeError, ValueError):
        return -1
