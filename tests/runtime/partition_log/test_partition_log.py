"""The log of a partition: what is put is read, found by offset and time, cut, and goes when it is old."""

from __future__ import annotations

import pytest

from replispec.runtime.kafka.batches import batches_in
from replispec.runtime.kafka.log import Appended
from replispec.runtime.kafka.log.folder import EPOCH_FILES_MAX
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.sim import Disk, Rng, SimulatedFiles
from replispec.runtime.storage import FlushFiles, StorageFull
from replispec.wire.kafka.folder import EpochStart
from replispec.wire.kafka.records import RecordBatch, RecordBatchFixed
from replispec.wire.kafka.segments import OffsetIndexEntry, TimeIndexEntry
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

DAY_MS = 86_400_000


def test_a_leader_numbers_batches_and_names_its_epoch_in_them() -> None:
    _, log, _, _ = opened()
    assert log.append_as_leader(batch(3), 4, NOW_MS) == Appended(0, 2, -1)
    assert log.append_as_leader(batch(2), 5, NOW_MS) == Appended(3, 4, -1)
    heads = [each.head for each in batches_in(log.read(0, 10_000, 5), may_be_cut=False)]
    assert [(each.base_offset, each.partition_leader_epoch) for each in heads] == [(0, 4), (3, 5)]
    assert log.epochs.entries == [EpochStart(4, 0), EpochStart(5, 3)]
    assert log.end == 5


def test_records_get_the_time_of_their_append_where_the_topic_wants_it() -> None:
    _, log, _, _ = opened(appends_time=True)
    assert log.append_as_leader(batch(2, time_ms=5), 0, NOW_MS).append_time_ms == NOW_MS
    data = log.read(0, 10_000, 2)
    assert RecordBatch.decode(data).max_timestamp == NOW_MS, "its checksum holds, too"
    assert RecordBatch.decode(data).attributes == 8
    assert log.offset_of_time(NOW_MS, 2) == (0, NOW_MS)


def test_a_read_gives_whole_batches_within_its_limits_and_at_most_one_that_is_longer() -> None:
    _, log, _, _ = opened(segment_bytes=100_000)
    fill(log, 10)
    one = len(log.read(0, 1, 10))
    assert one == len(log.read(3, 1, 10)) > 100
    assert log.read(3, 1, 10, at_least_one=False) == b""
    assert len(log.read(0, 2 * one + 5, 10)) == 2 * one
    assert len(log.read(2, 10**6, 7)) == 5 * one
    assert log.read(7, 10**6, 7) == log.read(10, 10**6, 10) == b""


def test_a_read_begins_with_the_batch_that_holds_the_offset() -> None:
    _, log, _, _ = opened()
    log.append_as_leader(batch(5), 0, NOW_MS)
    log.append_as_leader(batch(5), 0, NOW_MS)
    assert RecordBatchFixed.decode(log.read(7, 1, 10)).base_offset == 5
    assert log.read(3, 10**6, 3) == b""


@pytest.mark.parametrize("segment_bytes", [150, 1000, 100_000])
@pytest.mark.parametrize("bytes_max", [1, 300, 10**6])
def test_every_record_is_read_whatever_the_segments(segment_bytes: int, bytes_max: int) -> None:
    _, log, _, _ = opened(segment_bytes=segment_bytes)
    fill(log, 60)
    assert marks(log, bytes_max=bytes_max) == [(number, number) for number in range(60)]


def test_a_complete_segment_has_its_indexes_as_files() -> None:
    folder, log, files, _ = opened()
    fill(log, 30)
    written(folder, files)
    names = [name for name in files.names(f"{TOPIC}-0") if name.endswith("index")]
    segments = [name for name in files.names(f"{TOPIC}-0") if name.endswith(".log")]
    assert len(segments) > 2
    assert len(names) == 2 * (len(segments) - 1)
    data = files.read(f"{TOPIC}-0/{0:020}.index") or b""
    entries = [OffsetIndexEntry.decode(data[at : at + 8]) for at in range(0, len(data), 8)]
    first = files.read(f"{TOPIC}-0/{0:020}.log") or b""
    assert entries
    for each in entries:
        head = RecordBatchFixed.decode(first, each.position)
        assert head.base_offset + head.last_offset_delta == each.relative_offset
    times = files.read(f"{TOPIC}-0/{0:020}.timeindex") or b""
    last = TimeIndexEntry.decode(times[-12:])
    assert last.timestamp == NOW_MS + last.relative_offset
    assert last.relative_offset == int(segments[1].partition(".")[0]) - 1
    assert marks(log) == [(number, number) for number in range(30)]


def test_a_log_rolls_by_time() -> None:
    _, log, _, _ = opened(roll_ms=1000)
    log.append_as_leader(batch(time_ms=NOW_MS), 0, NOW_MS)
    log.append_as_leader(batch(time_ms=NOW_MS + 1000), 0, NOW_MS)
    assert len(log._segments) == 1
    log.append_as_leader(batch(time_ms=NOW_MS + 1001), 0, NOW_MS)
    assert len(log._segments) == 2


@pytest.mark.parametrize("is_written", [False, True])
def test_the_first_record_of_a_time_is_found(is_written: bool) -> None:
    folder, log, files, _ = opened()
    fill(log, 40)
    if is_written:
        written(folder, files)
    for number in range(40):
        assert log.offset_of_time(NOW_MS + number, 40) == (number, NOW_MS + number)
    assert log.offset_of_time(0, 40) == (0, NOW_MS)
    assert log.offset_of_time(NOW_MS + 40, 40) is None
    assert log.offset_of_time(NOW_MS + 30, 30) is None


def test_a_follower_keeps_the_bytes_of_its_leader() -> None:
    _, leader, _, _ = opened()
    fill(leader, 25, epoch=2)
    fill(leader, 5, epoch=3, start=25)
    _, follower, _, _ = opened(segment_bytes=300)
    while follower.end < leader.end:
        assert follower.append_as_follower(leader.read(follower.end, 500, leader.end), NOW_MS)
    assert marks(follower) == marks(leader)
    assert follower.epochs.entries == leader.epochs.entries == [EpochStart(2, 0), EpochStart(3, 25)]


def test_a_follower_takes_nothing_that_is_damaged_or_does_not_follow() -> None:
    _, leader, _, _ = opened(segment_bytes=10**6)
    fill(leader, 3, epoch=2)
    data = leader.read(0, 10**6, 3)
    one = len(data) // 3
    _, follower, _, _ = opened()
    turned = bytearray(data)
    turned[2 * one - 1] ^= 1
    for wrong in (bytes(turned), data[one:] + data[:one]):
        with pytest.raises(RemoteProtocolError):
            follower.append_as_follower(wrong, NOW_MS)
    assert follower.end == 0
    assert follower.append_as_follower(data[: 2 * one + 50], NOW_MS) == 2
    assert follower.append_as_follower(data, NOW_MS) == 1
    older = bytearray(data)
    older[15] = 1
    _, other, _, _ = opened()
    other.begin_epoch(2)
    with pytest.raises(RemoteProtocolError, match="epoch 1 after 2"):
        other.append_as_follower(bytes(older), NOW_MS)


@pytest.mark.parametrize("offset", range(31))
def test_a_cut_log_ends_there_and_goes_on_there(offset: int) -> None:
    folder, log, files, disk = opened()
    fill(log, 30)
    written(folder, files)
    log.truncate(offset)
    assert (log.end, log.is_settled) == (offset, offset == 30)
    assert marks(log) == [(number, number) for number in range(offset)]
    written(folder, files)
    fill(log, 20, epoch=1, start=100)
    expected = [(number, number) for number in range(offset)] + [
        (offset + number, 100 + number) for number in range(20)
    ]
    assert marks(log) == expected
    written(folder, files)
    disk.crash()
    again = folder_on(disk).logs[TOPIC, 0]
    assert marks(again) == expected
    assert again.epochs.entries == ([EpochStart(0, 0)] if offset else []) + [EpochStart(1, offset)]


def test_an_epoch_in_which_nothing_was_written_goes_with_a_cut_at_the_end() -> None:
    """Found by simulation: a leader that wrote nothing copies what an older epoch wrote elsewhere."""
    _, log, _, _ = opened()
    log.append_as_leader(batch(1), 0, NOW_MS)
    log.begin_epoch(1)
    log.truncate(log.end)
    assert log.epochs.entries == [EpochStart(0, 0)]
    _, other, _, _ = opened()
    for _ in range(2):
        other.append_as_leader(batch(1), 0, NOW_MS)
    assert log.append_as_follower(other.read(1, 1 << 20, other.end), NOW_MS) == 1


def test_a_cut_inside_a_batch_takes_all_of_it() -> None:
    _, log, _, _ = opened()
    log.append_as_leader(batch(5), 0, NOW_MS)
    log.append_as_leader(batch(5), 0, NOW_MS)
    log.truncate(7)
    assert log.end == 5


@pytest.mark.parametrize("offset", [0, 7, 12, 30, 500])
def test_a_log_begins_anew_anywhere(offset: int) -> None:
    folder, log, files, disk = opened()
    fill(log, 30)
    written(folder, files)
    log.start_anew(offset)
    assert (log.start, log.end, log.high_watermark, log.epochs.entries) == (offset, offset, offset, [])
    written(folder, files)
    disk.crash()
    folder, files = folder_on(disk), SimulatedFiles(disk)
    log = folder.logs[TOPIC, 0]
    assert (log.start, log.end) == (offset, offset)
    written(folder, files)
    fill(log, 3, epoch=1)
    assert marks(log) == [(offset + number, number) for number in range(3)]


def test_old_segments_go_when_all_of_them_is_committed() -> None:
    folder, log, files, _ = opened(retention_ms=1000)
    fill(log, 30)
    log.age(NOW_MS + DAY_MS)
    assert log.start == 0, "nothing is committed"
    log.high_watermark = 12
    log.age(NOW_MS + DAY_MS)
    assert 0 < log.start <= 12
    kept = log.start
    written(folder, files)
    assert {name[:20] for name in files.names(f"{TOPIC}-0")} >= {f"{kept:020}"}
    assert files.names(f"{TOPIC}-0")[0][:20] == f"{kept:020}"
    assert marks(log) == [(number, number) for number in range(kept, 30)]
    log.high_watermark = 30
    log.age(NOW_MS + DAY_MS)
    assert (log.start, log.end) == (30, 30)
    written(folder, files)
    assert files.names(f"{TOPIC}-0") == [f"{30:020}.log"]


def test_too_many_bytes_go_from_the_beginning() -> None:
    _, log, _, _ = opened(retention_bytes=2000)
    fill(log, 60)
    log.high_watermark = 60
    log.age(NOW_MS)
    assert 2000 <= log.size <= 3000
    assert log.start > 0


def test_a_log_may_begin_within_a_segment_and_does_so_after_a_start() -> None:
    folder, log, files, disk = opened()
    fill(log, 30, epoch=1)
    log.high_watermark = 30
    log.advance_start(3)
    folder.checkpoint()
    written(folder, files)
    disk.crash()
    again = folder_on(disk).logs[TOPIC, 0]
    assert (again.start, again.first_base, again.epochs.entries) == (3, 0, [EpochStart(1, 3)])
    assert marks(again)[0] == (3, 3)
    assert again.offset_of_time(0, 30) == (3, NOW_MS + 3)


def test_a_full_disk_takes_nothing_of_a_batch_and_the_next_one_is_taken() -> None:
    disk = Disk(Rng(1), room_bytes=1500)
    folder, files = folder_on(disk), SimulatedFiles(disk)
    written(folder, files)
    log = folder.make(TOPIC, 0, NOW_MS)
    with pytest.raises(StorageFull):
        fill(log, 30)
    kept = log.end
    assert 5 < kept < 30
    assert marks(log) == [(number, number) for number in range(kept)]
    disk.room_bytes = None
    fill(log, 1, start=kept)
    assert marks(log)[-1] == (kept, kept)


def test_a_write_that_was_refused_is_asked_for_again() -> None:
    folder, log, files, disk = opened()
    fill(log, 30)
    written(folder, files)
    log.truncate(5)
    refused = folder.begin_write()
    assert folder.begin_write()[: len(refused)] == refused
    settled = [log.is_settled]
    written(folder, files)
    assert [*settled, log.is_settled] == [False, True]
    fill(log, 2, epoch=1, start=70)
    disk.crash(power=False)
    assert folder_on(disk).logs[TOPIC, 0].end == 7


def test_one_flush_is_enough_for_what_many_partitions_wait_for() -> None:
    folder, _, files, _ = opened()
    logs = [folder.make("many", number, NOW_MS) for number in range(200)]
    written(folder, files)
    for log in logs:
        fill(log, 1)
    flushes = [each for each in folder.begin_write() if isinstance(each, FlushFiles)]
    assert [len(each.names) for each in flushes] == [200]
    assert folder.begin_write() == (*flushes,)
    assert {log.flushed for log in logs} == {0}
    folder.end_write()
    assert {log.flushed for log in logs} == {1}


def test_a_recovery_point_stays_where_the_file_of_epochs_is_not_written_yet() -> None:
    folder, _, files, _ = opened()
    logs = [folder.make("many", number, NOW_MS) for number in range(EPOCH_FILES_MAX + 6)]
    for log in logs:
        fill(log, 1, epoch=2)
    folder.checkpoint()
    written(folder, files)
    assert sum(log.recovery_point == 1 for log in logs) == EPOCH_FILES_MAX
    assert (
        sum(files.read(f"many-{number}/leader-epoch-checkpoint") is None for number in range(len(logs))) == 6
    )
    written(folder, files)
    assert {log.recovery_point for log in logs} == {1}


def test_a_folder_that_was_left_in_order_is_taken_without_reading_checksums() -> None:
    folder, log, files, disk = opened()
    folder.identify(3, "abc")
    fill(log, 30, epoch=2)
    log.high_watermark = 20
    stopped(folder, files)
    disk.crash()
    again = folder_on(disk)
    found = again.logs[TOPIC, 0]
    assert again.was_left_in_order
    assert again.identity is not None
    assert again.identity.broker_id == 3
    assert (found.high_watermark, found.flushed, found.end) == (20, 30, 30)
    assert marks(found) == [(number, number) for number in range(30)]
    assert (again.is_taken, again.may_make("new", 0)) == (False, False)
    written(again, SimulatedFiles(disk))
    assert (again.is_taken, again.may_make("new", 0)) == (True, True)
    assert not folder_on(disk).was_left_in_order


def test_a_partition_that_was_given_up_is_gone_and_may_come_back_empty() -> None:
    folder, log, files, disk = opened()
    fill(log, 30)
    written(folder, files)
    folder.delete(TOPIC, 0, "f" * 32)
    assert not folder.may_make(TOPIC, 0)
    written(folder, files)
    assert (folder.may_make(TOPIC, 0), list(files.folders())) == (True, [])
    assert folder.make(TOPIC, 0, NOW_MS).end == 0
    written(folder, files)
    disk.crash()
    assert folder_on(disk).logs[TOPIC, 0].end == 0
