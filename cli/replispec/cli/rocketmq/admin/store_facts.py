"""What the folder of a broker's store says without being started: who it is of, its epochs, where its log
ends, what was noted beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from replispec.administrator.rocketmq.rejoin import EpochLog
from replispec.cli.progress import Tell
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.log.checking import check_log
from replispec.runtime.rocketmq.log.flushed_file import read_mark
from replispec.runtime.storage import FilesReader
from replispec.runtime.storage.looking_shell import LookedAtFiles
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.ha import HaEpochEntry
from replispec.wire.rocketmq.store import BrokerIdentity, BrokerIdentityTemp, EpochFile, StoreCheckpoint

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """`first`, `end`: of the log, by its whole records; `noted`: up to where it was on the disk once, None
    when nothing says so. `faults`: what cannot be read, and what is wrong with the log."""

    identity: BrokerIdentity | None
    applied: BrokerIdentityTemp | None
    epochs: Sequence[HaEpochEntry]
    first: int
    end: int
    noted: int | None
    messages: int
    checkpoint: StoreCheckpoint | None
    faults: Sequence[str]


def facts(folder: Path, tell: Tell = lambda _name, _done, _total: None) -> StoreFacts | None:
    """What is in a folder, None when it is no store; `tell` hears how far it is. Raises StorageFailed."""
    files, faults = LookedAtFiles(folder), list[str]()
    logs = [name for name in files.names(constants.COMMIT_LOG_FOLDER) if name.isdecimal()]
    small = [
        constants.IDENTITY_FILE,
        constants.IDENTITY_TEMPORARY_FILE,
        constants.EPOCH_FILE,
        constants.CHECKPOINT_FILE,
    ]
    if not logs and not set(small).intersection(files.names()):
        return None
    log = check_log(files, constants.COMMIT_LOG_FOLDER, tell)
    epochs = _read(files, constants.EPOCH_FILE, EpochFile.decode, faults)
    mark = _read(files, constants.FLUSHED_FILE, read_mark, faults)
    return StoreFacts(
        _read(files, constants.IDENTITY_FILE, BrokerIdentity.decode, faults),
        _read(files, constants.IDENTITY_TEMPORARY_FILE, BrokerIdentityTemp.decode, faults),
        [
            HaEpochEntry(epoch=each.epoch, start_offset=each.start_offset)
            for each in (epochs.entries if epochs is not None else ())
        ],
        min(map(int, logs), default=0),
        log.end,
        mark.offset if mark is not None else None,
        log.messages,
        _read(files, constants.CHECKPOINT_FILE, StoreCheckpoint.decode, faults),
        [*faults, *([log.damage] if log.damage else [])],
    )


def log(folder: Path) -> EpochLog | None:
    """Its log by epochs and end; None when it is no store. Raises StorageFailed."""
    found = facts(folder)
    return EpochLog(found.epochs, found.end) if found is not None else None


def _read(files: FilesReader, name: str, read: Callable[[bytes], T], faults: list[str]) -> T | None:
    data = files.read(name)
    if data is None:
        return None
    try:
        return read(data)
    except RemoteProtocolError as error:
        faults.append(f"{name} cannot be read: {error}")
        return None
