"""A damage of what was on the disk is named and nothing is lost by it; what a crash leaves is no damage."""

import pytest

from replispec.runtime.sim import Crashed, Disk
from replispec.runtime.storage import StorageFailed
from replispec.wire.rocketmq.constants import FLUSHED_FILE
from tests.runtime.log.sample_logs import WrittenStore, disk, log_bytes, message, store_on

FIRST_FILE, SECOND_FILE = "commitlog/00000000000000000000", "commitlog/00000000000000004096"
MESSAGES = 40


def filled(one: Disk) -> WrittenStore:
    """A store with more than one file of messages, all of them on the disk and noted there."""
    store = store_on(one)
    for number in range(MESSAGES):
        store.put(message(f"message {number}", tag="t"))
        store.flush()
    store.note(at_once=True)
    assert store.log.last_file > 0
    return store


def left(one: Disk) -> dict[str, bytes]:
    """All that the disk holds."""
    return {name: bytes(content.data) for name, content in one.contents.items()}


def test_a_turned_bit_is_named_or_changes_no_more_than_its_message() -> None:
    one = disk()
    end = filled(one).log.end
    named = 0
    for at in range(0, end, 11):
        name = FIRST_FILE if at < 4096 else SECOND_FILE
        one.contents[name].data[at % 4096] ^= 4
        before = left(one)
        try:
            found = store_on(one).log.end
        except StorageFailed as error:
            named += name in str(error)
            found = end
            assert left(one) == before
        assert found == end, at
        one.contents[name].data[at % 4096] ^= 4
    assert named > end / 100


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


@pytest.mark.parametrize("data", [b"", b"12", b"12 12\n", b"-1 1\n", b"\xb2 1\n", b"9" * 5_000])
def test_a_damaged_note_is_named(data: bytes) -> None:
    one = disk()
    filled(one)
    one.contents[FLUSHED_FILE].data[:] = data
    with pytest.raises(StorageFailed, match=FLUSHED_FILE):
        store_on(one)


def test_a_crash_inside_any_write_of_a_cut_and_of_what_follows_is_no_damage() -> None:
    crashes = 0
    for number in range(1, 200):
        for seed in (1, 2, 3):
            one = disk(seed * 1000 + number)
            store = filled(one)
            before, cut = log_bytes(store), store.log.end // 3
            cut = next(each.offset for each in store.log.records(0, store.log.end) if each.offset >= cut)
            one.crash_at(number)
            try:
                store.truncate(cut)
                store.flush()
                for again in range(MESSAGES // 2):
                    store.put(message(f"another {again}"))
                    store.flush()
                store.note(at_once=True)
            except Crashed:
                crashes += 1
                one.crash()
                found = log_bytes(store_on(one))
                assert found[:cut] == before[:cut]
            else:
                assert crashes > 60
                return
    pytest.fail("the cut never came to its end")


def test_a_half_copied_record_that_is_on_the_disk_is_no_damage() -> None:
    master = filled(disk())
    data = log_bytes(master)
    for end in range(1, len(data), 97):
        one = disk()
        replica = store_on(one)
        replica.append_bytes(0, data[:end])
        replica.flush()
        replica.note(at_once=True)
        assert data.startswith(log_bytes(store_on(one)))
