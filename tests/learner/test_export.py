"""Confirmed messages are exported once each, whatever happens to the learner."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from replispec.learner.rocketmq.core.export import LINES_AT_ONCE, Export
from replispec.runtime.primitives.jsons import loads
from replispec.runtime.rocketmq.log import MessageStore
from replispec.runtime.sim import Crashed, Disk, Rng, SimulatedStorage
from replispec.runtime.storage import Lines, StorageFailed, Stores
from replispec.runtime.storage.disk_shell import DiskStorage
from replispec.runtime.world import Outbox, Persist, Writes
from replispec.wire.rocketmq.codes import LogMagic
from replispec.wire.rocketmq.store import LogRecord
from tests.runtime.log.sample_logs import WrittenStore
from tests.runtime.storage.writing import carried_out


def record(body: bytes, properties: bytes = b"") -> LogRecord:
    return LogRecord(
        magic=LogMagic.MESSAGE_V1,
        queue_id=1,
        born_ip=bytes(4),
        store_ip=bytes(4),
        body=body,
        topic="T",
        properties=properties,
    )


def store_with(disk: Disk, count: int, size: int = 10) -> WrittenStore:
    store = WrittenStore(SimulatedStorage(disk).files("store"), file_bytes=1024 * 1024)
    store.begin_as_master(1)
    for number in range(count):
        store.put(record(b"%d " % number + bytes(size).replace(b"\0", b"x")))
    return store


class Exporting:
    """An export into the file `out` of a disk; what it wants written is written at once."""

    def __init__(self, disk: Disk, store: MessageStore) -> None:
        lines = lines_of(disk)
        self.failures: list[str] = []
        self.writes = 0
        self._stores = Stores(lines=lines)
        self._outbox = Outbox()
        self._writes = Writes(self._outbox)
        self.export = Export(self._writes, lines, store, lambda reason, _now_ms: self.failures.append(reason))

    def up_to(self, offset: int) -> None:
        self.export.up_to(offset)
        self.write()

    def truncated(self, offset: int) -> None:
        self.export.truncated(offset)
        self.write()

    def write(self) -> None:
        while effects := self._outbox.take():
            for effect in effects:
                assert isinstance(effect, Persist)
                self.writes += 1
                self._writes.answered(carried_out(effect, self._stores))


def exported(disk: Disk) -> list[Any]:
    return [loads(line) for line in bytes(disk.contents["out"].data).splitlines()]


def lines_of(disk: Disk) -> Lines:
    return SimulatedStorage(disk).lines("out")


def numbers(disk: Disk) -> list[int]:
    return [int(line["text"].split()[0]) for line in exported(disk)]


def test_only_what_is_confirmed_is_exported() -> None:
    disk = Disk(Rng(1))
    store = store_with(disk, 10)
    half = next(
        placed.offset for placed in store.log.records(0, store.log.end) if placed.record.queue_offset == 5
    )
    export = Exporting(disk, store)
    export.up_to(half)
    assert numbers(disk) == [0, 1, 2, 3, 4]
    export.up_to(store.log.end)
    assert numbers(disk) == list(range(10))


def test_a_line_says_what_and_where_the_message_is() -> None:
    disk = Disk(Rng(1))
    store = store_with(disk, 0)
    store.put(record(b"text", b"KEYS\x01k\x02"))
    store.put(record(b"\xff"))
    Exporting(disk, store).up_to(store.log.end)
    text, other = exported(disk)
    assert (text["topic"], text["queue"], text["position"], text["offset"]) == ("T", 1, 0, 0)
    assert (text["text"], text["properties"]) == ("text", {"KEYS": "k"})
    assert (other["base64"], other["offset"], other["end"]) == ("/w==", text["end"], store.log.end)


def test_a_large_backlog_is_exported_in_parts() -> None:
    disk = Disk(Rng(1))
    store = store_with(disk, LINES_AT_ONCE + 1)
    export = Exporting(disk, store)
    export.up_to(store.log.end)
    assert export.writes == 2
    assert len(exported(disk)) == LINES_AT_ONCE + 1


@pytest.mark.parametrize("seed", range(20))
def test_a_crash_while_writing_neither_loses_nor_repeats_a_message(seed: int) -> None:
    disk = Disk(Rng(seed))
    store = store_with(disk, 30)
    ends = [placed.offset + placed.size for placed in store.log.records(0, store.log.end)]
    export = Exporting(disk, store)
    export.up_to(ends[9])
    disk.crash_at(1)
    with pytest.raises(Crashed):
        export.up_to(ends[19])
    again = WrittenStore(SimulatedStorage(disk).files("store"), file_bytes=1024 * 1024)
    export = Exporting(disk, again)
    export.up_to(again.log.end)
    kept = len(list(again.log.records(0, again.log.end)))
    assert numbers(disk) == list(range(max(kept, len(numbers(disk)))))


def test_a_disk_that_refuses_costs_no_message() -> None:
    disk = Disk(Rng(3))
    store = store_with(disk, 10)
    export = Exporting(disk, store)
    disk.plan = lambda what: "no space left" if what.startswith("append lines") else None
    export.up_to(store.log.end)
    assert (export.failures, numbers(disk)) == (["no space left"], [])
    disk.plan = None
    export.export.retry()
    export.write()
    assert numbers(disk) == list(range(10))


def test_lost_messages_that_were_exported_are_told_and_their_successors_follow() -> None:
    disk = Disk(Rng(1))
    store = store_with(disk, 3)
    export = Exporting(disk, store)
    export.up_to(store.log.end)
    cut = exported(disk)[1]["end"]
    store.truncate(cut)
    export.truncated(cut)
    store.begin_as_master(2)
    store.put(record(b"9 other"))
    export = Exporting(disk, store)
    export.up_to(store.log.end)
    assert exported(disk)[3] == {"cut": cut}
    assert exported(disk)[4]["offset"] == cut


def test_a_cut_while_lines_are_written_follows_them() -> None:
    disk = Disk(Rng(1))
    store = store_with(disk, 3)
    export = Exporting(disk, store)
    export.export.up_to(store.log.end)
    cut = next(placed.offset for placed in store.log.records(0, store.log.end) if placed.record.queue_offset)
    store.truncate(cut)
    export.truncated(cut)
    assert [line.get("cut") for line in exported(disk)] == [None, None, None, cut]
    assert export.export.position == cut


@pytest.mark.parametrize("line", [b"garbage", b"[]", b'{"end":"x"}', b'{"end":-1}'])
def test_a_file_that_is_not_ours_is_not_continued(line: bytes) -> None:
    disk = Disk(Rng(1))
    lines = lines_of(disk)
    lines.append([line])
    with pytest.raises(StorageFailed, match="last line"):
        Exporting(disk, store_with(disk, 1))


def test_lines_on_a_real_disk_end_whole(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "out.jsonl"
    lines = DiskStorage().lines(str(path))
    assert lines.last() is None
    long = b"x" * 200_000
    lines.append([b"first", long])
    with path.open("ab") as file:
        file.write(b"half" * 30_000)
    again = DiskStorage().lines(str(path))
    assert again.last() == long
    again.append([b"third"])
    assert path.read_bytes() == b"first\n" + long + b"\nthird\n"
