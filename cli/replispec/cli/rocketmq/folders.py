"""Folders of Apache RocketMQ's controllers: found out whose they are, and read, never changed."""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from replispec.cli.foundings import FoundingRefused
from replispec.controller.rocketmq.apache import FolderUnread, KeptRecord
from replispec.controller.rocketmq.apache.dledger import DledgerFiles, read_dledger
from replispec.controller.rocketmq.apache.jraft import JraftFiles, read_jraft
from replispec.wire.rocketmq import constants as c

PROCESSES = Path("/proc")
ROCKSDB_CURRENT = "CURRENT"
ROCKSDB_WALS = "*.log"
NO_READER = "RocksDB is not read without rocksdict: pip install '.[jraft]'"
# What RocksDB says to people and to itself at the next start: no part of what is kept.
ROCKSDB_NOTES = ("LOG*", "OPTIONS-*", "LOCK")


def read_folder(folder: Path, *, unclean: bool, takes_all: bool) -> KeptRecord:
    """What the controller of this folder has on record. `unclean`: its enableElectUncleanMaster; `takes_all`:
    also that of which nobody knows whether it is committed. Raises FoundingRefused."""
    try:
        if holders := sorted(_holders(folder)):
            raise FolderUnread(f"the process {holders[0]} has it open: stop its controller, in order")
        member = _dledger(folder)
        if member is not None:
            return _read_dledger(member, takes_all=takes_all)
        if any((folder / name).is_dir() for name in (c.JRAFT_LOG_FOLDER, c.JRAFT_SNAPSHOT_FOLDER)):
            return _read_jraft(folder, unclean=unclean, takes_all=takes_all)
        raise FolderUnread(
            f"it has neither {c.DLEDGER_FOLDER}ID, as DLedger, nor {c.JRAFT_LOG_FOLDER} or"
            f" {c.JRAFT_SNAPSHOT_FOLDER}, as jRaft: name the controllerStorePath of a controller"
        )
    except FolderUnread as error:
        raise FoundingRefused(f"{folder}: {error}") from error
    except OSError as error:
        raise FoundingRefused(f"{error.filename or folder}: {error.strerror}") from error


def _holders(folder: Path) -> Iterator[int]:
    """The processes that have a file of this folder open, or mapped, as far as the system tells."""
    whole = f"{folder.resolve()}{os.sep}"
    for process in PROCESSES.iterdir() if PROCESSES.is_dir() else ():
        if process.name.isdigit():
            with suppress(OSError):
                files = (os.readlink(each) for each in (process / "fd").iterdir())
                if any(file.startswith(whole) for file in files) or whole in (process / "maps").read_text():
                    yield int(process.name)


def _dledger(folder: Path) -> Path | None:
    """The folder of the member of DLedger that this is, or has."""
    if folder.name.startswith(c.DLEDGER_FOLDER) and (folder / c.DLEDGER_DATA_FOLDER).is_dir():
        return folder
    members = sorted(folder.glob(f"{c.DLEDGER_FOLDER}*"))
    if len(members) > 1:
        names = ", ".join(each.name for each in members)
        raise FolderUnread(f"it has {names}: name the one to begin with")
    return members[0] if members else None


def _read_dledger(folder: Path, *, takes_all: bool) -> KeptRecord:
    data = {}
    for path in sorted((folder / c.DLEDGER_DATA_FOLDER).iterdir()):
        if path.name.isdigit() and path.stat().st_size:
            with path.open("rb") as file:
                data[int(path.name)] = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    if not data:
        raise FolderUnread("DLedger's log is not there")
    checkpoint = folder / c.DLEDGER_CHECKPOINT
    noted = checkpoint.read_bytes() if checkpoint.is_file() else None
    member = folder.name.removeprefix(c.DLEDGER_FOLDER)
    return read_dledger(DledgerFiles(member, data, noted), takes_all=takes_all)


def _read_jraft(folder: Path, *, unclean: bool, takes_all: bool) -> KeptRecord:
    snapshots = {
        int(number): each
        for each in (folder / c.JRAFT_SNAPSHOT_FOLDER).glob(f"{c.JRAFT_SNAPSHOT}*")
        if (number := each.name.removeprefix(c.JRAFT_SNAPSHOT)).isdigit()
    }
    snapshot: dict[str, bytes | None] = {}
    if snapshots:
        newest = snapshots[max(snapshots)]
        for name in (c.JRAFT_SNAPSHOT_META, c.JRAFT_SNAPSHOT_DATA):
            snapshot[name] = (newest / name).read_bytes() if (newest / name).is_file() else None
    entries, unread = _rocksdb(folder / c.JRAFT_LOG_FOLDER)
    return read_jraft(JraftFiles(snapshot, entries, unread), unclean=unclean, takes_all=takes_all)


def _rocksdb(folder: Path) -> tuple[list[tuple[int, bytes]] | None, str]:
    """The entries by index, read in a copy, for whoever opens RocksDB writes beside it; and why not, or why
    there may have been more."""
    if not (folder / ROCKSDB_CURRENT).is_file():
        return None, f"{folder.name} is no RocksDB, and segments of jRaft's are not read"
    # RocksDB has one while it is open and leaves it behind; without it, it begins another one without a word.
    wals = [each.stat().st_size for each in folder.glob(ROCKSDB_WALS)]
    if not wals:
        raise FolderUnread(f"its RocksDB: no write-ahead log, {ROCKSDB_WALS}, is in {folder.name}")
    doubt = "" if any(wals) else "its write-ahead log is empty, as of one that was started and wrote nothing"
    try:
        import rocksdict
    except ImportError:
        return None, NO_READER
    with tempfile.TemporaryDirectory(prefix="replispec-") as place:
        copy = shutil.copytree(folder, Path(place) / "log", ignore=shutil.ignore_patterns(*ROCKSDB_NOTES))
        try:
            families = rocksdict.Rdict.list_cf(str(copy))
            options = rocksdict.Options(raw_mode=True)
            # Otherwise entries behind a damage are passed over without a word.
            options.set_wal_recovery_mode(rocksdict.DBRecoveryMode.absolute_consistency())
            database = rocksdict.Rdict(
                str(copy),
                options,
                column_families={name: rocksdict.Options(raw_mode=True) for name in families},
                access_type=rocksdict.AccessType.read_only(),
            )
            try:
                rows: Any = database.get_column_family(c.JRAFT_FAMILY).items()
                return [(int.from_bytes(key), value) for key, value in rows], doubt
            finally:
                database.close()
        except Exception as error:
            raise FolderUnread(f"its RocksDB: {error}") from error
