"""A thousand logs of partitions in one folder: appended, flushed together, read, found again after a crash.

    python -m benchmarks.kafka.logs [--logs 1000] [--megabytes 100] [--folder DIR]

Beside each figure what the disk does in the same minute without a protocol: one file, the same bytes in the
same pieces, written and flushed as often. Batches are of ten records of 100 bytes.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from replispec.runtime.kafka.batches import batch_of
from replispec.runtime.kafka.log import LogFolder, PartitionLogSettings
from replispec.runtime.storage import Stores
from replispec.runtime.storage.disk_shell import DiskFiles

NOW_MS: Final = 1_700_000_000_000
FLUSHES: Final = 5
SETTINGS: Final = PartitionLogSettings(
    segment_bytes=1 << 30,
    roll_ms=10**12,
    index_interval_bytes=4096,
    retention_ms=None,
    retention_bytes=None,
    appends_time=False,
)
BATCH: Final = batch_of([(NOW_MS + number, None, bytes(100)) for number in range(10)])


def timed(work: Callable[[], int], what: str) -> None:
    """Print how many megabytes a second, and how long."""
    began, spent = time.perf_counter(), time.process_time()
    done = work()
    took, cpu = time.perf_counter() - began, time.process_time() - spent
    say(f"{what:44} {done / 1e6 / took:8.1f} MB/s  {took:7.2f} s, {cpu:6.2f} s of CPU")


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Measured:
    """One folder with its logs, and the file beside it."""

    def __init__(self, folder: Path, logs: int, megabytes: int) -> None:
        self._path = folder
        self._count = logs
        self._rounds = max(1, megabytes * 10**6 // (len(BATCH) * logs * FLUSHES))
        self._files = DiskFiles(folder / "logs")
        self._logs = LogFolder(self._files, SETTINGS, NOW_MS)
        self._write()

    def _write(self) -> None:
        Stores(files=self._files).carry_out(self._logs.begin_write())
        self._logs.end_write()

    def make(self) -> int:
        """Make all logs; a byte each."""
        for number in range(self._count):
            self._logs.make("t", number, NOW_MS)
        self._write()
        return self._count

    def append(self) -> int:
        """Append to all of them in turns, flushed a few times."""
        for _ in range(FLUSHES):
            for _ in range(self._rounds):
                for log in self._logs.logs.values():
                    log.append_as_leader(BATCH, 1, NOW_MS)
            self._write()
        return FLUSHES * self._rounds * self._count * len(BATCH)

    def plain(self) -> int:
        """The same pieces into one file."""
        descriptor = os.open(self._path / "plain", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for _ in range(FLUSHES):
            for _ in range(self._rounds * self._count):
                os.write(descriptor, BATCH)
            os.fsync(descriptor)
        os.close(descriptor)
        return FLUSHES * self._rounds * self._count * len(BATCH)

    def read(self) -> int:
        """Read every log to its end, a megabyte at most at a time."""
        done = 0
        for log in self._logs.logs.values():
            at = log.start
            while at < log.end:
                data = log.read(at, 1 << 20, log.end)
                at += len(data) // len(BATCH) * 10
                done += len(data)
        return done

    def recover(self) -> int:
        """Open the folder as a crash leaves it: every batch is checked."""
        self._files.close()
        self._files = DiskFiles(self._path / "logs")
        self._logs = LogFolder(self._files, SETTINGS, NOW_MS)
        return sum(log.size for log in self._logs.logs.values())

    def reopen(self) -> int:
        """Open the folder as its broker left it."""
        self._write()
        Stores(files=self._files).carry_out(self._logs.stop_write())
        return self.recover()


def main() -> None:
    """Print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=1000)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--folder", type=Path, default=None)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        measured = Measured(Path(folder), arguments.logs, arguments.megabytes)
        began = time.perf_counter()
        measured.make()
        say(f"{arguments.logs} logs made and flushed in {time.perf_counter() - began:.2f} s")
        timed(measured.plain, f"one plain file, {FLUSHES} flushes")
        timed(measured.append, f"appended to {arguments.logs} logs, {FLUSHES} flushes")
        timed(measured.plain, "one plain file again")
        timed(measured.read, "read")
        timed(measured.recover, "found after a crash, every batch checked")
        timed(measured.reopen, "left in order and found again")
        say(f"descriptors open: {len(os.listdir('/proc/self/fd'))}")


if __name__ == "__main__":
    main()
