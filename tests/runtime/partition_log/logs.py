"""Folders of logs on a disk in memory, and batches to put into them."""

from __future__ import annotations

from typing import Any

from replispec.runtime.kafka.batches import batch_of, batches_in, records_of
from replispec.runtime.kafka.log import LogFolder, PartitionLog, PartitionLogSettings
from replispec.runtime.sim import Disk, Rng, SimulatedFiles
from replispec.runtime.storage import Files, Stores

NOW_MS = 1_700_000_000_000
TOPIC = "t"


def settings(**given: Any) -> PartitionLogSettings:
    """Small segments that are kept."""
    said = {
        "segment_bytes": 1000,
        "roll_ms": 10**9,
        "index_interval_bytes": 100,
        "retention_ms": None,
        "retention_bytes": None,
        "appends_time": False,
        **given,
    }
    return PartitionLogSettings(**said)


def folder_on(disk: Disk, **given: Any) -> LogFolder:
    """The folder of logs of this disk, opened as after a start."""
    return LogFolder(SimulatedFiles(disk), settings(**given), NOW_MS)


def written(folder: LogFolder, files: Files) -> None:
    """Have everything brought to the disk."""
    operations = folder.begin_write()
    Stores(files=files).carry_out(operations)
    folder.end_write()


def stopped(folder: LogFolder, files: Files) -> None:
    """Have the folder left in order."""
    Stores(files=files).carry_out(folder.stop_write())


def opened(**given: Any) -> tuple[LogFolder, PartitionLog, SimulatedFiles, Disk]:
    """A folder with one log, empty and on the disk."""
    disk = Disk(Rng(1))
    files = SimulatedFiles(disk)
    folder = folder_on(disk, **given)
    written(folder, files)
    log = folder.make(TOPIC, 0, NOW_MS)
    written(folder, files)
    return folder, log, files, disk


def batch(count: int = 1, time_ms: int = NOW_MS, size: int = 40, mark: int = 0) -> bytes:
    """A batch of records whose values begin with a mark."""
    return batch_of([(time_ms, None, b"%06d" % mark + bytes(size)) for _ in range(count)])


def fill(log: PartitionLog, count: int, *, epoch: int = 0, start: int = 0, size: int = 40) -> None:
    """Append so many batches of one record; the mark of each is its number."""
    for number in range(start, start + count):
        log.append_as_leader(batch(mark=number, time_ms=NOW_MS + number, size=size), epoch, NOW_MS + number)


def marks(log: PartitionLog, *, bytes_max: int = 300) -> list[tuple[int, int]]:
    """Every record that can be read: its offset and its mark."""
    found, at = [], log.start
    while at < log.end:
        data = log.read(at, bytes_max, log.end)
        for each in batches_in(data, may_be_cut=False):
            for record in records_of(data, each):
                at = each.head.base_offset + record.offset_delta
                if at >= log.start:
                    found.append((at, int((record.value or b"")[:6])))
            at += 1
    return found
