"""When old files of a log go, what a full disk means, and that a crash in any of it loses nothing."""

from __future__ import annotations

import pytest

from replispec.runtime.primitives.parameters import ConfigurationError
from replispec.runtime.rocketmq.derived_options import check_members
from replispec.runtime.rocketmq.log import GroupCommit, Retention
from replispec.runtime.sim import Crashed, Disk, SimulatedFiles
from replispec.runtime.sim.disk import Left
from replispec.runtime.world import Note, Outbox, Writes
from replispec.wire.rocketmq.constants import ASKED_DELETIONS, BEGAN_FILE, HOUR_MS
from replispec.wire.rocketmq.options import BrokerOptions, RetentionOptions
from tests.runtime.log.sample_logs import FILE_BYTES, WrittenStore, disk, log_bytes, message, store_on

AT_FOUR_MS = 10_000 * 24 * HOUR_MS + 4 * HOUR_MS
NEVER = 1 << 40


def filled(one: Disk, count: int = 150) -> WrittenStore:
    """A store with two epochs, one quiet queue, and a message a minute until four o'clock."""
    store = store_on(one)
    store.begin_as_master(1)
    for number in range(count):
        if number == count // 3:
            store.begin_as_master(2)
        record = message(f"message {number}", topic="Quiet" if number < 5 else "Busy")
        record.store_timestamp = AT_FOUR_MS - (count - number) * 60_000
        store.put(record)
        store.flush()
    store.index_up_to(store.log.end)
    return store


class Kept:
    """A store and who deletes of it, with what it says."""

    def __init__(self, one: Disk, store: WrittenStore, *, safe: int = NEVER, **options: object) -> None:
        self.store = store
        self._outbox = Outbox()
        commit = GroupCommit(self._outbox, Writes(self._outbox), store)
        self.retention = Retention(
            self._outbox,
            SimulatedFiles(one),
            store,
            commit,
            RetentionOptions(**{"file_reserved_time": 1, **options}),  # type: ignore[arg-type]
            lambda _: min(safe, store.deletable),
        )

    def look(self, now_ms: int = AT_FOUR_MS) -> list[str]:
        """What is said of one look."""
        self.retention.start(now_ms)
        return [effect.what for effect in self._outbox.take() if isinstance(effect, Note)]


def stored_ms(store: WrittenStore, offset: int) -> int:
    """When the message at an offset was stored."""
    return next(store.log.records(offset, store.log.end)).record.store_timestamp


def test_in_its_hour_files_go_of_which_all_messages_are_old_and_no_other() -> None:
    one = disk()
    kept = Kept(one, filled(one))
    assert "old files of the log deleted" in kept.look()
    first = kept.store.log.first
    assert 0 < first < kept.store.log.last_file
    assert stored_ms(kept.store, first) <= AT_FOUR_MS - HOUR_MS
    assert stored_ms(kept.store, first + FILE_BYTES) > AT_FOUR_MS - HOUR_MS


def test_in_another_hour_and_on_a_disk_with_room_nothing_goes() -> None:
    one = disk()
    kept = Kept(one, filled(one))
    assert kept.look(AT_FOUR_MS + 5 * HOUR_MS) == []
    assert kept.store.log.first == 0


def test_when_somebody_asks_for_it_what_is_old_goes_at_once_and_at_any_hour_for_some_time() -> None:
    one = disk()
    kept = Kept(one, filled(one), file_reserved_time=2, delete_file_batch_max=1)
    now_ms = AT_FOUR_MS + HOUR_MS
    kept.look(now_ms)
    assert kept.store.log.first == 0
    kept.retention.delete_now(now_ms)
    assert kept.retention.deadline_ms() == now_ms
    went = []
    for _ in range(ASKED_DELETIONS):
        kept.retention.ticked(kept.retention.deadline_ms() or 0)
        kept.store.flush()
        went.append(kept.store.log.first)
    assert went[:3] == [FILE_BYTES, 2 * FILE_BYTES, 2 * FILE_BYTES]
    assert went[-1] == 2 * FILE_BYTES < kept.store.log.last_file
    kept.retention.ticked(now_ms + 3 * HOUR_MS)
    assert kept.store.log.first == went[-1], "it was asked for long ago"
    kept.retention.delete_now(now_ms + 3 * HOUR_MS)
    kept.retention.ticked(now_ms + 3 * HOUR_MS)
    assert kept.store.log.first == kept.store.log.last_file


def test_what_is_young_stays_whoever_asks() -> None:
    one = disk()
    kept = Kept(one, filled(one), file_reserved_time=1_000)
    kept.retention.delete_now(AT_FOUR_MS + HOUR_MS)
    assert kept.look(AT_FOUR_MS + HOUR_MS) == []
    assert kept.store.log.first == 0


def test_on_a_disk_that_fills_up_old_files_go_at_any_hour() -> None:
    one = disk()
    kept = Kept(one, filled(one), clean_file_forcibly_enable=False)
    one.room_bytes = one.used_bytes() * 100 // 80
    kept.look(AT_FOUR_MS + HOUR_MS)
    assert kept.store.log.first > 0


def test_on_a_disk_that_is_nearly_full_young_files_go_where_that_is_allowed() -> None:
    for is_allowed in (True, False):
        one = disk()
        kept = Kept(one, filled(one), file_reserved_time=1_000, clean_file_forcibly_enable=is_allowed)
        one.room_bytes = one.used_bytes() * 100 // 88
        kept.look()
        assert (kept.store.log.first > 0) is is_allowed
        assert kept.store.log.first <= kept.store.log.last_file


def test_no_more_files_go_at_a_time_than_are_allowed() -> None:
    one = disk()
    kept = Kept(one, filled(one), delete_file_batch_max=1)
    for count in (1, 2):
        kept.look()
        kept.store.flush()
        assert kept.store.log.first == count * FILE_BYTES


def test_what_somebody_else_may_still_need_stays() -> None:
    one = disk()
    kept = Kept(one, filled(one), safe=2 * FILE_BYTES - 1)
    kept.look()
    assert kept.store.log.first == FILE_BYTES


def test_no_message_is_taken_above_the_mark_and_until_there_is_room_again() -> None:
    one = disk()
    kept = Kept(one, filled(one), safe=0)
    room = one.used_bytes()
    said = []
    for percent in (89, 91, 88, 84):
        one.room_bytes = room * 100 // percent
        said.append((kept.look(AT_FOUR_MS + HOUR_MS), kept.retention.is_full))
    assert [is_full for _, is_full in said] == [False, True, True, False]
    assert said[1][0] == [
        "the disk is nearly full: no messages are taken",
        "the disk is nearly full, and nothing of the log may be deleted",
    ]
    assert (said[2][0], said[3][0]) == ([], ["the disk has room again: messages are taken"])


def test_while_an_epoch_is_on_its_way_to_the_disk_nothing_goes() -> None:
    one = disk()
    kept = Kept(one, filled(one))
    super(WrittenStore, kept.store).begin_as_master(3)
    kept.look()
    assert kept.store.log.first == 0
    kept.store.flush()
    assert [each.epoch for each in kept.store.epochs.entries] == [1, 2, 3]


@pytest.mark.parametrize("left", Left)
def test_a_crash_inside_any_change_of_a_deletion_leaves_a_log_that_is_right(left: Left) -> None:
    number = 0
    while True:
        number += 1
        one = disk(number)
        kept = Kept(one, filled(one, 100))
        end, last = kept.store.log.end, kept.store.epochs.entries[-1]
        whole = {start: bytes(kept.store.log.view(start, FILE_BYTES)) for start in range(0, end, FILE_BYTES)}
        kept.look()
        deleted_to = kept.store.log.first
        one.crash_at(number, left)
        try:
            kept.store.flush()
        except Crashed:
            one.crash()
        else:
            break
        again = store_on(one)
        assert again.log.first in range(0, deleted_to + 1, FILE_BYTES)
        assert again.log.end == end
        assert log_bytes(again) == b"".join(
            whole[start] for start in sorted(whole) if start >= again.log.first
        )
        starts = [each.start_offset for each in again.epochs.entries]
        assert again.epochs.entries[-1] == last
        assert starts[0] <= again.log.first, "no byte is without an epoch"
        assert again.next_position("Quiet", 0) == 5
    assert number > 3


def test_who_copies_a_log_from_its_middle_on_gives_no_position_twice() -> None:
    full = filled(disk())
    one = disk()
    store = store_on(one)
    store.append_bytes(2 * FILE_BYTES, full.log.view(2 * FILE_BYTES, FILE_BYTES))
    store.flush()
    for again in (store, store_on(one)):
        assert again.index.bounds("Quiet", 0) == (2 * FILE_BYTES,) * 3
        again.index_up_to(again.log.end)
        assert 0 < again.next_position("Busy", 0) < full.next_position("Busy", 0)
        assert again.put(message(topic="Quiet")).record.queue_offset == 2 * FILE_BYTES
        again.truncate(again.log.first + 100)
        again.flush()
    one.contents[BEGAN_FILE].data[0] ^= 1
    assert store_on(one).index.unknown == 2 * FILE_BYTES
    del one.contents[BEGAN_FILE]
    for name in [name for name in one.contents if name.startswith("index")]:
        del one.contents[name]
    assert store_on(one).index.unknown == 2 * FILE_BYTES


@pytest.mark.parametrize("text", ["24", "-1", "four", "4,5"])
def test_what_is_no_hour_is_refused_by_name(text: str) -> None:
    options = BrokerOptions(broker_name="set", retention=RetentionOptions(delete_when=text))
    with pytest.raises(ConfigurationError, match="deleteWhen"):
        check_members(options)
