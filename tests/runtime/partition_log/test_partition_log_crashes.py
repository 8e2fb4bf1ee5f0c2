"""A crash inside every change that a folder of logs makes, with the process or with the power."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replispec.runtime.kafka.batches import next_offset
from replispec.runtime.kafka.log import LogFolder, PartitionLog
from replispec.runtime.sim import Crashed, Disk, Left, Rng, SimulatedFiles
from replispec.runtime.storage import StorageFailed
from replispec.wire.kafka.records import RecordBatchFixed
from tests.runtime.partition_log.logs import (
    NOW_MS,
    TOPIC,
    batch,
    fill,
    folder_on,
    marks,
    opened,
    stopped,
    written,
)

Story = Callable[[LogFolder, SimulatedFiles, "Told"], None]


class Told:
    """What somebody was told of the log: records that are flushed. `states`: all that it held, if kept."""

    def __init__(self, *, keeps_states: bool = False) -> None:
        self.flushed: list[tuple[int, int]] = []
        self.states: list[list[tuple[int, int]]] = [[]]
        self._keeps_states = keeps_states
        self.is_being_dropped = False
        self.is_gone = False

    def saw(self, folder: LogFolder) -> None:
        """The log has got records, or lost some."""
        if self._keeps_states and (TOPIC, 0) in folder.logs:
            self.states.append(marks(folder.logs[TOPIC, 0]))

    def flush(self, folder: LogFolder, files: SimulatedFiles) -> None:
        """Have everything written; from then on it must be there."""
        log = folder.logs.get((TOPIC, 0))
        now = [] if log is None else marks(log)
        self.saw(folder)
        if log is not None and not log.is_settled:
            self.flushed = [each for each in self.flushed if each in now]
        written(folder, files)
        self.flushed = now
        self.is_being_dropped = False


def _grow(folder: LogFolder, files: SimulatedFiles, told: Told) -> None:
    log = folder.logs[TOPIC, 0]
    for number in range(4):
        fill(log, 4, start=4 * number, epoch=number)
        told.saw(folder)
        log.high_watermark = log.flushed
        folder.checkpoint()
        told.flush(folder, files)
    stopped(folder, files)


def _cut_and_go_on(folder: LogFolder, files: SimulatedFiles, told: Told) -> None:
    log = folder.logs[TOPIC, 0]
    fill(log, 16, epoch=1)
    folder.checkpoint()
    told.flush(folder, files)
    for cut, epoch, count in ((11, 5, 6), (4, 1, 12)):
        log.truncate(cut)
        told.flush(folder, files)
        # What comes from the leader may be of an older epoch than what was cut, at the same offsets.
        fill(log, count, epoch=epoch, start=100 * cut)
        told.saw(folder)
        folder.checkpoint()
        told.flush(folder, files)


def _begin_anew(folder: LogFolder, files: SimulatedFiles, told: Told) -> None:
    log = folder.logs[TOPIC, 0]
    fill(log, 12, epoch=1)
    folder.checkpoint()
    told.flush(folder, files)
    for offset in (30, 30, 2):
        told.is_being_dropped = True
        log.start_anew(offset)
        told.flushed = []
        told.flush(folder, files)
        fill(log, 7, epoch=2, start=10 * offset)
        told.saw(folder)
        told.flush(folder, files)


def _age(folder: LogFolder, files: SimulatedFiles, told: Told) -> None:
    log = folder.logs[TOPIC, 0]
    fill(log, 20, epoch=1)
    told.flush(folder, files)
    log.high_watermark = 20
    folder.checkpoint()
    told.flush(folder, files)
    log.advance_start(13)
    told.flushed = [each for each in told.flushed if each[0] >= 13]
    folder.checkpoint()
    written(folder, files)


def _give_up(folder: LogFolder, files: SimulatedFiles, told: Told) -> None:
    fill(folder.logs[TOPIC, 0], 6)
    told.flush(folder, files)
    folder.delete(TOPIC, 0, "e" * 32)
    told.is_gone = True
    told.flushed = []
    written(folder, files)
    log = folder.make(TOPIC, 0, NOW_MS)
    fill(log, 3, start=50)
    told.flush(folder, files)


STORIES: dict[str, Story] = {
    "grows and stops": _grow,
    "is cut and goes on": _cut_and_go_on,
    "begins anew": _begin_anew,
    "ages": _age,
    "is given up and comes back": _give_up,
}


def _whole(story: Story) -> tuple[int, list[list[tuple[int, int]]]]:
    """How many changes of the disk a story makes, and all that its log holds on the way."""
    folder, _, files, disk = opened(segment_bytes=450)
    before, told = len(disk.changes), Told(keeps_states=True)
    story(folder, files, told)
    return len(disk.changes) - before, told.states


def _was(found: list[tuple[int, int]], states: list[list[tuple[int, int]]]) -> bool:
    """Whether a log ever held this, up to some record and from some record on."""
    first = found[0][0] if found else 0
    return any([each for each in one if each[0] >= first][: len(found)] == found for one in states)


def _after_a_crash(
    story: Story, number: int, left: Left, states: list[list[tuple[int, int]]], *, power: bool
) -> None:
    folder, _, files, disk = opened(segment_bytes=450)
    disk.rng = Rng(number)
    told = Told()
    disk.crash_at(number, left)
    with pytest.raises(Crashed):
        story(folder, files, told)
    disk.crash(power=power)
    again = folder_on(disk, segment_bytes=450)
    log = again.logs.get((TOPIC, 0))
    if log is None:
        assert told.is_gone
        return
    found = marks(log)
    if not told.is_being_dropped:
        missing = [each for each in told.flushed if each not in found and each[0] >= log.start]
        assert not missing, f"{missing} were flushed"
    assert [offset for offset, _ in found] == list(range(log.start, log.end))
    assert _was(found, states), f"{found} is a mixture"
    starts = [each.start_offset for each in log.epochs.entries]
    assert starts == sorted({each for each in starts if each < max(log.end, 1)})
    _epochs_are_those_of_the_batches(log)
    _goes_on(again, SimulatedFiles(disk), disk, found)


def _epochs_are_those_of_the_batches(log: PartitionLog) -> None:
    at = log.start
    while at < log.end:
        head = RecordBatchFixed.decode(log.read(at, 1, log.end))
        known = [each.epoch for each in log.epochs.entries if each.start_offset <= at]
        assert known[-1] == head.partition_leader_epoch, f"at {at}: {log.epochs.entries}"
        at = next_offset(head)


def _goes_on(folder: LogFolder, files: SimulatedFiles, disk: Disk, found: list[tuple[int, int]]) -> None:
    """What was found takes more, and is found again."""
    written(folder, files)
    log = folder.logs[TOPIC, 0]
    log.append_as_leader(batch(mark=777), 90, NOW_MS)
    written(folder, files)
    disk.crash()
    assert marks(folder_on(disk, segment_bytes=450).logs[TOPIC, 0]) == [*found, (log.end - 1, 777)]


@pytest.mark.parametrize("power", [False, True], ids=["process", "power"])
@pytest.mark.parametrize("name", STORIES)
def test_nothing_that_was_flushed_is_lost_by_a_crash_anywhere(name: str, power: bool) -> None:
    story = STORIES[name]
    changes, states = _whole(story)
    assert changes > 15
    for number in range(1, changes + 1):
        for left in Left if power else (Left.PART,):
            _after_a_crash(story, number, left, states, power=power)


def test_a_torn_tail_of_any_length_is_cut_and_told() -> None:
    folder, log, files, disk = opened(segment_bytes=10**6)
    fill(log, 5)
    written(folder, files)
    name = f"{TOPIC}-0/{0:020}.log"
    whole = bytes(disk.contents[name].data)
    one = len(whole) // 5
    for size in range(3 * one, 5 * one + 1, 7):
        disk.contents[name].data = bytearray(whole[:size])
        again = folder_on(disk, segment_bytes=10**6)
        assert again.logs[TOPIC, 0].end == size // one
        assert again.findings[0].torn_bytes == size % one


def test_turned_bytes_end_the_log_where_nothing_is_known_and_are_refused_where_it_was_on_the_disk() -> None:
    folder, log, files, disk = opened()
    fill(log, 20, epoch=1)
    written(folder, files)
    name = f"{TOPIC}-0/{0:020}.log"
    disk.contents[name].data[-1] ^= 1
    again = folder_on(disk)
    found = again.logs[TOPIC, 0]
    assert 0 < found.end < 8
    assert again.findings[0].segments_dropped > 0
    assert marks(found) == [(number, number) for number in range(found.end)]
    disk.contents[name].data[-1] ^= 1
    folder.checkpoint()
    written(folder, files)
    disk.contents[f"{TOPIC}-0/{16:020}.log"].data[-1] ^= 1
    with pytest.raises(StorageFailed, match=r"was on the disk up to offset 20, and ends at 1\d, byte"):
        folder_on(disk)


@pytest.mark.parametrize("damage", [b"", b"x", b"0\n7\n", bytes(8), b"\xff" * 12])
@pytest.mark.parametrize("suffix", ["index", "timeindex"])
def test_a_damaged_index_is_made_again(suffix: str, damage: bytes) -> None:
    folder, log, files, disk = opened()
    fill(log, 30)
    stopped(folder, files)
    name = f"{TOPIC}-0/{0:020}.{suffix}"
    files.replace(name, damage)
    again = folder_on(disk)
    found = again.logs[TOPIC, 0]
    assert marks(found) == [(number, number) for number in range(30)]
    assert found.offset_of_time(NOW_MS + 3, 30) == (3, NOW_MS + 3)
    for number in range(30):
        assert found.read(number, 1, 30)


@pytest.mark.parametrize("damage", [None, b"", b"0\n2\n1 0\n", b"rot"])
def test_epochs_that_cannot_be_read_are_read_off_the_batches(damage: bytes | None) -> None:
    folder, log, files, disk = opened()
    for epoch in range(4):
        fill(log, 7, epoch=epoch, start=7 * epoch)
    expected = list(log.epochs.entries)
    stopped(folder, files)
    name = f"{TOPIC}-0/leader-epoch-checkpoint"
    if damage is None:
        files.remove(name)
    else:
        files.replace(name, damage)
    assert folder_on(disk).logs[TOPIC, 0].epochs.entries == expected


def test_what_a_compaction_left_is_not_guessed_at() -> None:
    folder, log, files, disk = opened()
    fill(log, 3)
    written(folder, files)
    files.replace(f"{TOPIC}-0/{0:020}.log.deleted", b"old")
    written(folder_on(disk), files)
    assert files.read(f"{TOPIC}-0/{0:020}.log.deleted") is None
    files.replace(f"{TOPIC}-0/{0:020}.log.swap", b"new")
    with pytest.raises(StorageFailed, match="start Apache Kafka on this folder once"):
        folder_on(disk)
