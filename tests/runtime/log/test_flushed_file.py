"""A damage of what was on the disk is named and nothing is lost by it; what a crash leaves is no damage."""

import zlib

import pytest

from replispec.runtime.rocketmq.log.checking import check_log
from replispec.runtime.rocketmq.log.flushed_file import read_mark
from replispec.runtime.sim import Crashed, Disk, SimulatedFiles
from replispec.runtime.sim.disk import Content
from replispec.runtime.storage import StorageFailed
from replispec.wire.rocketmq.constants import FLUSHED_FILE
from replispec.wire.rocketmq.ha import HaEpochEntry
from tests.runtime.log.sample_logs import FILE_BYTES, WrittenStore, disk, log_bytes, message, store_on

FIRST_FILE, SECOND_FILE = "commitlog/00000000000000000000", "commitlog/00000000000000004096"
MESSAGES = 40


def filled(one: Disk) -> WrittenStore:
    """A store with more than one file of messages, all of them on the disk and noted there."""
    store = store_on(one)
    for number in range(MESSAGES):
        store.put(message(f"message {number}", tag="t"))
        store.flush()
    store.note()
    assert store.log.last_file > 0
    return store


def left(one: Disk) -> dict[str, bytes]:
    """All that the disk holds."""
    return {name: bytes(content.data) for name, content in one.contents.items()}


def test_a_turned_bit_is_named_whatever_it_is_a_part_of() -> None:
    one = disk()
    end = filled(one).log.end
    for at in range(0, end, 11):
        name = FIRST_FILE if at < 4096 else SECOND_FILE
        one.contents[name].data[at % 4096] ^= 4
        before = left(one)
        with pytest.raises(StorageFailed, match=name):
            store_on(one)
        assert left(one) == before, at
        one.contents[name].data[at % 4096] ^= 4


def test_what_is_missing_at_the_end_is_named() -> None:
    one = disk()
    filled(one)
    del one.contents[SECOND_FILE]
    before = left(one)
    with pytest.raises(StorageFailed, match=f"{SECOND_FILE} is missing"):
        store_on(one)
    assert left(one) == before
    del one.contents[FLUSHED_FILE]
    assert store_on(one).log.end == 4096


ODD_NOTES = [b"", b"12", b"12 12\n", b"-1 1\n", b"\xb2 1\n", b"9" * 5_000, b"0\n0\n1-2-3\n", b"1\n5\n0-9-1\n"]


@pytest.mark.parametrize("data", ODD_NOTES)
def test_without_a_readable_note_a_log_that_ends_in_zeros_is_whole_and_that_is_said(
    data: bytes,
) -> None:
    one = disk()
    end = filled(one).log.end
    one.contents[FLUSHED_FILE].data[:] = data
    store = store_on(one)
    assert store.log.end == end
    said = [saying.what for saying in store.take_said()]
    assert said[0] == "the note of what was on the disk cannot be read"
    assert read_mark(bytes(one.contents[FLUSHED_FILE].data)).offset == end, "and it is noted again"


@pytest.mark.parametrize("note", [b"", None])
def test_without_a_note_a_torn_tail_is_cut_and_records_behind_a_damage_are_kept(note: bytes | None) -> None:
    one = disk()
    store = filled(one)
    last = list(store.log.records(0, store.log.end))[-1]
    if note is None:
        del one.contents[FLUSHED_FILE]
    else:
        one.contents[FLUSHED_FILE].data[:] = note
    one.contents[SECOND_FILE].data[last.offset + last.size - 4096 - 3 :] = bytes(4096)
    one.contents[SECOND_FILE].data = one.contents[SECOND_FILE].data[:4096]
    for at in (1, 6, 90):
        one.contents[FIRST_FILE].data[at] ^= 4
        before = left(one)
        with pytest.raises(StorageFailed, match=f"{FIRST_FILE}, byte .* whole records follow"):
            store_on(one)
        assert left(one) == before
        one.contents[FIRST_FILE].data[at] ^= 4
    assert store_on(one).log.end == last.offset


@pytest.mark.parametrize("is_apaches", [False, True])
def test_without_a_note_no_clock_decides_what_lies_behind_a_damage_but_in_stores_of_apaches(
    is_apaches: bool,
) -> None:
    """The clock of the next master may be behind that of the one before, by an hour or a millisecond."""
    one = disk()
    store = store_on(one)
    for number in range(6):
        record = message(f"message {number}" + "." * 100)
        record.store_timestamp = 5_000_000 - 1_000 * (number >= 3)
        store.put(record)
    store.flush()
    placed = list(store.log.records(0, store.log.end))
    del one.contents[FLUSHED_FILE]
    # The last one before the clock went back.
    one.contents[FIRST_FILE].data[placed[2].offset + 90] ^= 4
    if is_apaches:
        one.contents["checkpoint"] = Content(bytearray(4096))
        assert store_on(one).log.end == placed[2].offset
        return
    assert check_log(SimulatedFiles(one), "commitlog").damage
    with pytest.raises(StorageFailed, match="whole records follow"):
        store_on(one)


def test_a_note_of_a_release_before_is_believed() -> None:
    one = disk()
    end = filled(one).log.end
    one.contents[FLUSHED_FILE].data[:] = b"%d %d\n" % (end, zlib.crc32(b"%d" % end))
    assert store_on(one).log.end == end
    one.contents[FLUSHED_FILE].data[:] = b"%d %d\n" % (end, zlib.crc32(b"%d" % end))
    one.contents[SECOND_FILE].data[:] = bytes(4096)
    with pytest.raises(StorageFailed, match=f"{SECOND_FILE}, byte 0 is damaged"):
        store_on(one)


def test_a_size_that_is_not_the_sum_of_its_parts_is_no_record() -> None:
    """A walk by such a size would jump over the records behind it, into the middle of one."""
    for more in (1, 100, 342):
        one = disk()
        store = filled(one)
        placed = list(store.log.records(0, store.log.end))[3]
        size = placed.size + more
        one.contents[FIRST_FILE].data[placed.offset : placed.offset + 4] = size.to_bytes(4, "big")
        assert len(list(store.log.records(0, store.log.end))) == 3
        with pytest.raises(StorageFailed, match=f"{FIRST_FILE}, byte {placed.offset} is damaged"):
            store_on(one)


def test_properties_that_end_as_those_of_a_torn_record_are_read_when_a_peer_stored_them() -> None:
    """Also after a crash right after they were vouched for: nobody is told before they are noted."""
    master = store_on(disk())
    for number in range(12):
        record = message(f"message {number}")
        record.properties = b"k\x01v\x00" if number in {3, 11} else b"k\x01v\x02"
        master.put(record)
    data = log_bytes(master)
    for power in (False, True):
        one = disk()
        replica = store_on(one)
        replica.append_bytes(0, data)
        while operations := replica.begin_write():
            replica.stores.carry_out(operations)
            replica.end_write()
        assert replica.log.flushed == len(data)
        one.crash(power=power)
        again = store_on(one)
        assert log_bytes(again) == data
        assert len(list(again.log.records(0, again.log.end))) == 12


def test_a_file_without_bytes_that_never_had_any_is_dropped_and_another_one_is_named() -> None:
    one = disk()
    store = store_on(one)
    while store.log.end < 3_200:
        store.put(message("message"))
        store.flush()
    store.note()
    end = store.log.end
    assert SECOND_FILE in one.contents, "made ahead"
    one.contents[SECOND_FILE].data[:] = b""
    again = store_on(one)
    assert again.log.end == end
    assert any(SECOND_FILE in str(saying.values) for saying in again.take_said())
    one.contents[FIRST_FILE].data[:] = b""
    with pytest.raises(StorageFailed, match=f"{FIRST_FILE} is missing"):
        store_on(one)


def test_nothing_that_was_noted_is_taken_for_a_cut_because_it_reads_as_zeros() -> None:
    one = disk()
    store = filled(one)
    record = list(store.log.records(0, store.log.end))[3]
    for name, start in ((FIRST_FILE, 0), (FIRST_FILE, record.offset), (SECOND_FILE, 0)):
        kept = bytes(one.contents[name].data)
        one.contents[name].data[start:] = bytes(4096 - start)
        with pytest.raises(StorageFailed, match=f"{name}, byte {start} is damaged"):
            store_on(one)
        one.contents[name].data[:] = kept


def test_a_crash_inside_any_write_of_a_cut_and_of_what_follows_is_no_damage() -> None:
    crashes = 0
    for number in range(1, 200):
        for seed in (1, 2, 3):
            one = disk(seed * 1000 + number)
            store = filled(one)
            # A log has an epoch before anybody is told of its bytes.
            store.epochs.keep([HaEpochEntry(epoch=1, start_offset=0)])
            store.flush()
            before, cut = log_bytes(store), store.log.end // 3
            cut = next(each.offset for each in store.log.records(0, store.log.end) if each.offset >= cut)
            one.crash_at(number)
            try:
                store.truncate(cut)
                store.flush()
                for again in range(MESSAGES // 2):
                    store.put(message(f"another {again}"))
                    store.flush()
                store.note()
            except Crashed:
                crashes += 1
                one.crash()
                found = log_bytes(store_on(one))
                assert found[:cut] == before[:cut]
            else:
                assert crashes > 60
                return
    pytest.fail("the cut never came to its end")


def test_bytes_that_came_before_their_epoch_was_noted_are_cut_and_said() -> None:
    one = disk()
    data = log_bytes(filled(disk()))
    replica = store_on(one)
    replica.note()
    replica.append_bytes(0, data[: FILE_BYTES // 2])
    assert left(one).get(FLUSHED_FILE) is not None
    again = store_on(one)
    assert (again.log.end, again.log.first) == (0, 0)
    assert "bytes of no epoch were cut" in [each.what for each in again.take_said()]
    known = disk()
    replica = store_on(known)
    replica.epochs.keep([HaEpochEntry(epoch=1, start_offset=0)])
    replica.append_bytes(0, data[: FILE_BYTES // 2])
    replica.flush()
    assert store_on(known).log.end > 0


def test_a_half_copied_record_that_is_on_the_disk_is_no_damage() -> None:
    master = filled(disk())
    data = log_bytes(master)
    for end in range(1, len(data), 97):
        one = disk()
        replica = store_on(one)
        replica.append_bytes(0, data[:end])
        replica.flush()
        replica.note()
        assert data.startswith(log_bytes(store_on(one)))
