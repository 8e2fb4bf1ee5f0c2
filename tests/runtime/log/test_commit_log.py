"""The commit log: files, records, growing, cutting, and what crashes leave of it."""

from itertools import pairwise

import pytest

from replispec.runtime.rocketmq.log import CommitLog, Placed
from replispec.runtime.sim import Crashed, Disk, SimulatedFiles
from replispec.runtime.storage import MakeFile, RemoveFile, StorageFailed, Stores
from replispec.wire.rocketmq.codes import LogMagic
from replispec.wire.rocketmq.store import LogBlank, LogBlankFixed, LogRecord
from tests.runtime.log.sample_logs import (
    FILE_BYTES,
    disk,
    log_bytes,
    make_files,
    message,
    store_on,
    with_epochs,
)


class WrittenLog(CommitLog):
    """A log whose files are made as it wants them; `flush` does all that it asks for."""

    def __init__(self, one: Disk, file_bytes: int = FILE_BYTES) -> None:
        files = SimulatedFiles(one)
        self.stores = Stores(files)
        super().__init__(files, file_bytes=file_bytes)

    def append(self, record: LogRecord) -> Placed:
        self.reserve([len(record.encode())])
        make_files(self, self.stores)
        return super().append(record)

    def append_bytes(self, offset: int, data: bytes | memoryview) -> None:
        if self.end + len(data) > self._limit or offset != self.end:
            self.reserve_bytes(offset, len(data))
            if self.is_being_cut:
                self.flush()
            make_files(self, self.stores)
        super().append_bytes(offset, data)

    def flush(self) -> int:
        self.stores.carry_out(self.begin_flush())
        return self.end_flush()


def log_on(one: Disk) -> WrittenLog:
    log = WrittenLog(one)
    log.flush()
    return log


def filled(one: Disk, count: int) -> WrittenLog:
    log = log_on(one)
    for number in range(count):
        log.append(message(f"message {number}"))
    return log


def texts(log: CommitLog) -> list[str]:
    return [placed.record.body.decode() for placed in log.records(log.first, log.end)]


def test_an_empty_log_has_no_files() -> None:
    one = disk()
    log = log_on(one)
    assert (log.first, log.end, log.is_empty, one.contents) == (0, 0, True, {})


def test_messages_lie_one_after_the_other_and_know_their_place() -> None:
    log = filled(disk(), 20)
    placed = list(log.records(0, log.end))
    assert [each.record.physical_offset for each in placed] == [each.offset for each in placed]
    assert all(before.offset + before.size == after.offset for before, after in pairwise(placed))
    assert placed[-1].offset + placed[-1].size == log.end == log.whole_end()


def test_files_are_named_by_their_first_offset_and_closed_with_a_blank() -> None:
    one = disk()
    log = filled(one, 50)
    assert sorted(one.contents) == ["commitlog/00000000000000000000", "commitlog/00000000000000004096"]
    last = list(log.records(0, FILE_BYTES))[-1]
    blank = LogBlankFixed.decode(log.view(last.offset + last.size, FILE_BYTES))
    assert blank == LogBlankFixed(FILE_BYTES - last.offset - last.size, LogMagic.BLANK)
    assert len(texts(log)) == 50


def test_no_view_reaches_into_the_next_file() -> None:
    log = filled(disk(), 50)
    assert len(log.view(FILE_BYTES - 10, 100)) == 10
    assert len(log.view(FILE_BYTES, 100)) == 100
    assert len(log.view(log.end - 3, 100)) == 3
    assert len(log.view(log.end, 100)) == 0


def test_a_message_longer_than_a_file_is_refused() -> None:
    log = log_on(disk())
    with pytest.raises(ValueError, match="do not fit"):
        log.append(message("x" * FILE_BYTES))
    assert log.end == 0


def test_the_longest_message_leaves_room_for_a_blank() -> None:
    log = log_on(disk())
    overhead = len(message("").encode()) + len(LogBlank().encode())
    log.append(message("x" * (FILE_BYTES - overhead)))
    log.append(message("next"))
    assert [each.offset for each in log.records(0, log.end)] == [0, FILE_BYTES]


def test_a_copied_log_is_the_same_byte_for_byte_however_it_was_cut() -> None:
    one, other = disk(), disk()
    log, copy = filled(one, 60), log_on(other)
    for size in (1, 7, 500, FILE_BYTES):
        while copy.end < log.end * 3 // 4:
            copy.append_bytes(copy.end, log.view(copy.end, size))
    while copy.end < log.end:
        copy.append_bytes(copy.end, log.view(copy.end, 333))
    assert {name: bytes(content.data) for name, content in one.contents.items()} == {
        name: bytes(content.data) for name, content in other.contents.items()
    }


def test_an_empty_log_takes_the_start_of_any_file_and_nothing_else() -> None:
    log, copy = filled(disk(), 60), log_on(disk())
    assert not copy.accepts(FILE_BYTES + 1)
    copy.append_bytes(FILE_BYTES, log.view(FILE_BYTES, FILE_BYTES))
    assert (copy.first, copy.end) == (FILE_BYTES, log.end)
    assert not copy.accepts(0)


def test_the_half_copied_record_at_the_end_is_told_from_whole_ones() -> None:
    log, copy = filled(disk(), 5), log_on(disk())
    copy.append_bytes(0, log.view(0, log.end - 1))
    last = list(log.records(0, log.end))[-1]
    assert copy.whole_end() == last.offset
    copy.append_bytes(copy.end, log.view(copy.end, 1))
    assert copy.whole_end() == log.end


@pytest.mark.parametrize("files", [1, 3])
def test_a_cut_leaves_zeros_and_removes_later_files(files: int) -> None:
    one = disk()
    log = filled(one, 40 * files)
    at = list(log.records(0, log.end))[10].offset
    log.truncate(at)
    log.flush()
    assert (log.end, log.whole_end(), len(texts(log))) == (at, at, 10)
    assert list(one.contents) == ["commitlog/00000000000000000000"]
    assert not any(one.contents["commitlog/00000000000000000000"].data[at:])
    one.crash()
    assert log_on(one).end == at


def test_after_a_cut_the_log_goes_on_there() -> None:
    log = filled(disk(), 100)
    log.truncate(list(log.records(0, log.end))[10].offset)
    log.append(message("again"))
    assert texts(log)[9:] == ["message 9", "again"]


def test_what_was_not_flushed_may_be_lost_but_never_in_the_middle() -> None:
    for seed in range(30):
        one = disk(seed)
        log = filled(one, 10)
        durable = log.flush()
        for number in range(10, 60):
            log.append(message(f"message {number}"))
        one.crash()
        found = log_on(one)
        assert durable <= found.end <= log.end
        assert texts(found) == [f"message {number}" for number in range(len(texts(found)))]


def test_bytes_after_a_recovered_end_never_come_back() -> None:
    """A record of the same size, written over the first lost one, must not lead to old ones after it."""
    for seed in range(30):
        one = disk(seed)
        filled(one, 30)
        one.crash()
        log = log_on(one)
        kept = texts(log)
        log.append(message("message X"))
        log.flush()
        one.crash()
        assert texts(log_on(one)) == [*kept, "message X"]


def test_a_turned_bit_ends_the_log_before_its_record() -> None:
    one = disk()
    log = filled(one, 10)
    placed = list(log.records(0, log.end))[4]
    one.contents["commitlog/00000000000000000000"].data[placed.offset + 88] ^= 1
    assert log_on(one).end == placed.offset


def test_a_log_with_a_missing_file_is_not_opened_and_not_touched() -> None:
    one = disk()
    filled(one, 140)
    del one.contents["commitlog/00000000000000004096"]
    left = sorted(one.contents)
    with pytest.raises(StorageFailed, match="do not follow each other"):
        log_on(one)
    assert sorted(one.contents) == left


@pytest.mark.parametrize(("count", "size"), [(140, 2048), (140, 8192), (10, 8192)])
def test_a_log_of_files_of_another_size_is_not_opened_and_not_touched(count: int, size: int) -> None:
    one = disk()
    filled(one, count)
    before = {name: bytes(content.data) for name, content in one.contents.items()}
    with pytest.raises(StorageFailed):
        WrittenLog(one, file_bytes=size)
    assert {name: bytes(content.data) for name, content in one.contents.items()} == before


def test_old_files_are_deleted_whole_and_the_newest_stays() -> None:
    one = disk()
    log = filled(one, 140)
    log.delete_before(2 * FILE_BYTES - 1)
    assert log.first == FILE_BYTES
    log.delete_before(1 << 40)
    assert log.first == log.last_file > FILE_BYTES
    log.flush()
    assert log_on(one).first == log.first


def test_durable_is_what_a_flush_began_with_and_a_cut_took_nothing_of() -> None:
    log = filled(disk(), 3)
    end = log.end
    log.begin_flush()
    log.append(message("later"))
    assert (log.flushed, log.end_flush()) == (0, end)
    log.begin_flush()
    log.truncate(end)
    log.append(message("another"))
    assert log.end_flush() == end


def test_nothing_is_there_of_a_message_for_which_there_is_no_room() -> None:
    one = disk()
    log = filled(one, 1)
    one.room_bytes = FILE_BYTES
    while log.end + 1_000 < FILE_BYTES:
        log.append(message("message"))
    kept = texts(log)
    with pytest.raises(StorageFailed):
        log.append(message("x" * 1_000))
    one.room_bytes = None
    log.append(message("room again"))
    assert texts(log) == [*kept, "room again"]


def test_a_crash_inside_any_write_leaves_a_prefix_and_epochs_that_fit() -> None:
    whole = log_bytes(with_epochs(store_on(disk()), 20, 15, 25))
    crashes = 0
    for seed in (1, 2, 3):
        for number in range(1, 400):
            one = disk(seed * 1000 + number)
            one.crash_at(number)
            store = None
            try:
                store = with_epochs(store_on(one), 20, 15, 25)
            except Crashed:
                crashes += 1
            one.crash()
            again = store_on(one)
            assert whole.startswith(log_bytes(again))
            assert all(entry.start_offset < max(again.log.end, 1) for entry in again.epochs.entries)
            if store is not None:
                break
    assert crashes > 100


def test_a_crash_inside_a_cut_leaves_the_log_before_it_or_after_it() -> None:
    for number in range(1, 12):
        one = disk(number)
        store = with_epochs(store_on(one), 30, 60)
        store.flush()
        before, cut = log_bytes(store), store.epochs.entries[1].start_offset
        one.crash_at(number)
        try:
            store.truncate(cut)
            store.flush()
        except Crashed:
            one.crash()
            store = store_on(one)
            assert store.log.end >= cut
            assert before.startswith(log_bytes(store))
            continue
        assert store.log.end == cut
        return
    pytest.fail("the cut never came to its end")


def test_a_record_of_which_only_the_beginning_was_written_is_not_taken() -> None:
    whole = message("body", tag="tag").encode()
    for size in range(len(whole)):
        one = disk()
        log = filled(one, 1)
        end = log.end
        placed = log.append(message("body", tag="tag"))
        at = placed.offset + size
        one.contents["commitlog/00000000000000000000"].data[at:] = bytes(FILE_BYTES - at)
        assert log_on(one).end == end, size


def test_a_log_of_which_a_file_refuses_bytes_takes_nothing_until_it_is_opened_anew() -> None:
    one = disk()
    log = filled(one, 100)
    log.flush()
    cut = list(log.records(0, log.end))[10].offset
    one.plan = lambda what: "input/output error" if what.startswith("write commitlog") else None
    with pytest.raises(StorageFailed):
        log.truncate(cut)
    one.plan = None
    assert log.broken == "input/output error"
    for change in (lambda: log.append(message("x")), lambda: log.truncate(0)):
        with pytest.raises(StorageFailed, match="broken"):
            change()
    goes_on_after(one, cut)


@pytest.mark.parametrize("refused", ["flush commitlog", "remove commitlog"])
def test_a_cut_that_did_not_reach_the_disk_is_made_again_or_never_was(refused: str) -> None:
    one = disk()
    log = filled(one, 100)
    log.flush()
    cut = list(log.records(0, log.end))[10].offset
    one.plan = lambda what: "input/output error" if what.startswith(refused) else None
    log.truncate(cut)
    with pytest.raises(StorageFailed):
        log.flush()
    one.plan = None
    goes_on_after(one, cut)


def goes_on_after(one: Disk, cut: int) -> None:
    """A log of messages by number was being cut when its process ended."""
    one.crash(power=False)
    again = log_on(one)
    assert texts(again) == [f"message {number}" for number in range(len(texts(again)))]
    assert again.end >= cut
    again.append(message("goes on"))


def test_the_next_file_is_made_before_the_last_one_is_full_and_once() -> None:
    one = disk()
    log = log_on(one)
    first = log.wanted_file()
    assert first == MakeFile("commitlog/00000000000000000000", FILE_BYTES)
    assert log.wanted_file() is None, "it is asked for once"
    assert not log.has_room(100)
    log.made(first, succeeded=False)
    assert log.wanted_file() == first, "it may be asked for again"
    log.stores.carry_out([first])
    log.made(first, succeeded=True)
    assert log.has_room(FILE_BYTES - 8)
    assert not log.has_room(FILE_BYTES - 7)
    while log.end < FILE_BYTES * 3 // 4:
        assert log.wanted_file() is None
        CommitLog.append(log, message("x" * 100))
    assert log.wanted_file() == MakeFile("commitlog/00000000000000004096", FILE_BYTES)


def test_a_file_that_was_being_made_when_the_log_was_cut_goes_before_those_that_were_there() -> None:
    one = disk()
    log = filled(one, 70)
    assert log._limit == 3 * FILE_BYTES
    log.reserve([FILE_BYTES // 2] * 6)
    making = log.wanted_file()
    assert making is not None
    log.truncate(100)
    removed = [each.name for each in log.begin_flush() if isinstance(each, RemoveFile)]
    assert removed == [
        making.name,
        "commitlog/00000000000000008192",
        "commitlog/00000000000000004096",
    ]
    log.made(making, succeeded=True)
    assert log._limit == FILE_BYTES, "what came too late does not count"


def test_the_files_of_an_empty_log_give_way_to_where_it_begins() -> None:
    log, copy = filled(disk(), 60), log_on(disk())
    make_files(copy, copy.stores)
    assert not copy.reserve_bytes(FILE_BYTES, 100)
    assert copy.end == 0, "nothing has begun yet"
    assert copy.wanted_file() is None, "nothing is made before what was there is gone"
    copy.flush()
    make_files(copy, copy.stores)
    assert copy.stores.files is not None
    assert copy.stores.files.names("commitlog") == ["00000000000000004096"]
    copy.append_bytes(FILE_BYTES, log.view(FILE_BYTES, 100))
    assert (copy.first, copy.end) == (FILE_BYTES, FILE_BYTES + 100)


def test_what_a_refused_write_left_never_becomes_part_of_the_log() -> None:
    for seed in range(20):
        one = disk(seed)
        log = filled(one, 5)
        log.flush()
        rest = filled(disk(), 30).view(log.end, FILE_BYTES)
        one.plan = lambda what: "no space left" if what.startswith("write") else None
        with pytest.raises(StorageFailed):
            log.append_bytes(log.end, rest)
        one.plan = None
        one.crash()
        again = log_on(one)
        again.append(message("message X"))
        again.flush()
        kept_texts = texts(again)
        one.crash()
        assert texts(log_on(one)) == kept_texts


@pytest.mark.parametrize("left", [0, 1, 7, 8])
def test_after_a_record_there_is_room_for_a_blank_or_it_lies_in_the_next_file(left: int) -> None:
    log = log_on(disk())
    log.append(message("first"))
    overhead = len(message("").encode())
    placed = log.append(message("x" * (FILE_BYTES - log.end - overhead - left)))
    assert placed.offset == (
        FILE_BYTES if left < len(LogBlank().encode()) else len(message("first").encode())
    )
    log.append(message("last"))
    assert len(texts(log)) == 3
