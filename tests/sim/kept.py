"""Whole clusters that delete old messages, from seeds: an hour of theirs is a second.

    python -m tests.sim.kept SEED [SEED ...] [--trace]

What must be true names no bug: a file goes when all in it is as old as was promised, or where the disk is
nearly full and that may be; everything else that was acknowledged is read at its place; and the logs are the
same from where on two of them have bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Final
from unittest.mock import patch

from replispec.broker.rocketmq.node import BrokerNode
from replispec.runtime.rocketmq.log import retention
from replispec.runtime.sim import Disk, Rng, SimulatedFiles
from replispec.runtime.world import Node
from tests.sim import cluster as clusters
from tests.sim.client import QUEUES, TOPIC, number_of, records
from tests.sim.cluster import Cluster, log_files
from tests.sim.run import Result, run
from tests.sim.settings import Settings, drawn

HOUR_MS: Final = 1_000
LOG_FILE_BYTES: Final = 4_096
CLOCKS_MS: Final = 100
"""How far the clocks of two processes may be apart at the end of a run."""


@dataclass(frozen=True)
class Keeping(Settings):
    """Settings of a set that deletes what is older than so many hours, which are seconds. With `room_bytes`
    the disks of its brokers have an end."""

    reserved: int = 2
    when: str = "0;1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;17;18;19;20;21;22;23"
    room_bytes: int = 0
    is_forced: bool = False
    quiet_from: int = 1 << 30
    """From which message on, and for how many, one queue gets none."""
    quiet_for: int = 0

    def keeping(self) -> Mapping[str, object]:
        """The same in RocketMQ's parameters."""
        return {
            "cleanResourceInterval": 300,
            "fileReservedTime": self.reserved,
            "deleteWhen": self.when,
            "cleanFileForciblyEnable": str(self.is_forced).lower(),
            "diskSpaceCleanForciblyRatio": 60,
            "diskSpaceWarningLevelRatio": 80,
            "diskMaxUsedSpaceRatio": 40,
        }

    def __str__(self) -> str:
        """Everything that was drawn."""
        room = f", disks of {self.room_bytes} bytes{', forcibly' if self.is_forced else ''}"
        return f"{super().__str__()}; kept for {self.reserved} s{room if self.room_bytes else ''}"


def keeping(seed: int) -> Keeping:
    """The settings of a seed."""
    rng = Rng(seed * 2 + 1_000_001)
    base = drawn(seed)
    shared = {each.name: getattr(base, each.name) for each in fields(Settings)}
    found = Keeping(**shared, reserved=rng.between(1, 4))
    if rng.happens(500):
        found = replace(found, quiet_from=rng.between(5, 40), quiet_for=rng.between(60, 120))
    if rng.happens(400):
        found = replace(
            found, room_bytes=rng.between(60_000, 140_000), is_forced=rng.happens(500), when="4;12"
        )
    return found


class Archive:
    """Hears of every file that leaves the beginning of a log, and says what may not have gone."""

    def __init__(self, settings: Keeping) -> None:
        self._settings = settings
        self.cluster: Cluster | None = None
        self.wrong: list[str] = []
        self.files = 0

    def prepare(self, cluster: Cluster) -> None:
        """Watch this cluster."""
        self.cluster = cluster
        # Whoever lives an hour ahead deletes an hour too early: no clock of these jumps.
        cluster.world.pace = replace(cluster.world.pace, wall_jump_ms=0, drift_per_mille=1)
        cluster.history.may_skip = self._may_skip
        quiet = range(self._settings.quiet_from, self._settings.quiet_from + self._settings.quiet_for)
        cluster.client.queue_of = lambda number: 0 if number in quiet else number % QUEUES
        for name in cluster.brokers if self._settings.room_bytes else ():
            cluster.world.processes[name].disk.room_bytes = self._settings.room_bytes

    def removed(self, disk: Disk, path: str) -> None:
        """A file is about to go."""
        files = log_files(disk)
        if self.cluster is None or path not in files[:1]:
            return
        process = next(each for each in self.cluster.world.processes.values() if each.disk is disk)
        now_ms = process.lives[0].now_ms(self.cluster.world.now_us)
        kept_ms = self._settings.reserved * HOUR_MS - CLOCKS_MS
        may_be_young = bool(self._settings.is_forced and disk.room_bytes)
        self.files += 1
        self.wrong += self._lacking(
            process.lives[0].node, int(path.rpartition("/")[2]) + len(disk.contents[path].data)
        )
        for record in records(bytes(disk.contents[path].data)):
            if record.store_timestamp + kept_ms > now_ms and not may_be_young:
                age_ms = now_ms - record.store_timestamp
                self.wrong.append(f"{process.name} deletes {path}, with a message of {age_ms} ms")
            elif record.topic == TOPIC:
                self.cluster.deleted[record.queue_id, record.queue_offset] = number_of(record)

    def _may_skip(self, queue: int, position: int, told: int) -> bool:
        assert self.cluster is not None
        deleted = self.cluster.deleted
        return not any(
            place[0] == queue and position <= place[1] < told and place not in deleted
            for place in self.cluster.history.acknowledged.values()
        )

    def _lacking(self, node: Node, end: int) -> list[str]:
        """The members of a master's set that would lack bytes before an offset for good."""
        assert self.cluster is not None
        if not isinstance(node, BrokerNode) or not node.serves:
            return []
        names = {self.cluster.broker_id(name): name for name in self.cluster.brokers}
        return [
            f"{names[each]} is in the SyncStateSet and has not all before {end}, which its master deletes"
            for each in sorted(node.sync_set)
            if not self.cluster.log_from(names[each], end - LOG_FILE_BYTES)[:LOG_FILE_BYTES].strip(b"\0")
        ]


@contextmanager
def short_hours(archive: Archive) -> Iterator[None]:
    """Hours are seconds, and nothing is removed that nobody sees."""
    remove = SimulatedFiles.remove

    def watched(files: SimulatedFiles, name: str) -> None:
        archive.removed(files._disk, files._path(name))
        remove(files, name)

    with (
        patch.object(retention, "HOUR_MS", HOUR_MS),
        patch.object(clusters, "LOG_FILE_BYTES", LOG_FILE_BYTES),
        patch.object(SimulatedFiles, "remove", watched),
    ):
        yield


def run_keeping(seed: int, *, keeps_lines: bool = False) -> tuple[Result, Archive]:
    """One run, and what was deleted in it."""
    settings = keeping(seed)
    archive = Archive(settings)
    with short_hours(archive):
        result = run(seed, settings, keeps_lines=keeps_lines, prepare=archive.prepare)
    result.wrong += archive.wrong
    return result, archive


def main() -> None:
    """The command line."""
    failed = False
    for seed in (int(argument) for argument in sys.argv[1:] if not argument.startswith("--")):
        result, archive = run_keeping(seed, keeps_lines="--trace" in sys.argv)
        sys.stdout.writelines(result.lines)
        sys.stdout.write(f"{result}\n  {archive.files} files of {LOG_FILE_BYTES} bytes deleted\n")
        failed = failed or bool(result.wrong)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
