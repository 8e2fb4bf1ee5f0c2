"""Log, epochs and queues of a broker: kept together, cut together."""

import pytest

from replispec.runtime.rocketmq.log import EpochFile, GroupCommit, MessageStore, properties_of, tags_code
from replispec.runtime.rocketmq.log.flushed_file import read_mark
from replispec.runtime.sim import SimulatedFiles
from replispec.runtime.storage import ReplaceFile, StorageFailed, Stores
from replispec.runtime.world import Halt, Note, Outbox, Persist, Persisted, PersistFailed, Writes
from replispec.wire.rocketmq.constants import EPOCH_COPY_FILE as OLDER
from replispec.wire.rocketmq.constants import EPOCH_FILE, FLUSH_MS, FLUSHED_FILE
from replispec.wire.rocketmq.ha import HaEpochEntry
from tests.runtime.log.sample_logs import disk, log_bytes, message, store_on, with_epochs
from tests.runtime.storage.writing import carried_out


def positions(store: MessageStore) -> list[tuple[str, int, int]]:
    return [
        (each.record.topic, each.record.queue_id, each.record.queue_offset)
        for each in store.log.records(0, store.log.end)
    ]


def persists(outbox: Outbox) -> list[Persist]:
    """What is to be written; lines of the log aside."""
    return [effect for effect in outbox.take() if isinstance(effect, Persist)]


def epochs(store: MessageStore) -> list[tuple[int, int]]:
    return [(entry.epoch, entry.start_offset) for entry in store.epochs.entries]


def test_positions_count_the_messages_of_each_queue() -> None:
    store = with_epochs(store_on(disk()), 0)
    for topic, queue in (("A", 0), ("A", 1), ("A", 0), ("B", 0), ("A", 0)):
        store.put(message(topic=topic, queue_id=queue))
    assert positions(store) == [("A", 0, 0), ("A", 1, 0), ("A", 0, 1), ("B", 0, 0), ("A", 0, 2)]
    assert (store.next_position("A", 0), store.next_position("B", 7)) == (3, 0)


def test_consumers_are_shown_what_was_confirmed_and_nothing_else() -> None:
    store = with_epochs(store_on(disk()), 6)
    placed = list(store.log.records(0, store.log.end))
    assert store.index_up_to(placed[3].offset)
    queues = store.index.queues
    assert {key: (queue.first, queue.next, queue.end) for key, queue in queues.items()} == {
        ("TopicA", 0): (0, 2, 3),
        ("TopicA", 1): (0, 1, 3),
    }
    assert store.index_up_to(store.log.end)
    entry = queues["TopicA", 1].at(2)
    assert entry is not None
    assert queues["TopicA", 1].at(3) is None
    assert store.log.read(entry.offset, entry.size) == placed[5].record.encode()


def test_a_backlog_that_was_copied_is_shown_in_pieces() -> None:
    full, store = with_epochs(store_on(disk()), 25), store_on(disk())
    store.append_bytes(0, log_bytes(full))
    steps = 1
    while not store.index_up_to(store.log.end, records_max=10):
        steps += 1
    assert steps == 3
    assert [queue.next for queue in store.index.queues.values()] == [13, 12]


def test_no_message_is_shown_before_all_of_it_is_confirmed() -> None:
    store = with_epochs(store_on(disk()), 1)
    for confirmed, shown in ((113, 0), (114, 1)):
        store.index_up_to(confirmed)
        assert store.index.queues["TopicA", 0].next == shown


def test_what_was_stored_before_a_restart_is_known_after_it_and_shown_to_nobody() -> None:
    one = disk()
    with_epochs(store_on(one), 6)
    queues = store_on(one).index.queues
    assert [(queue.next, queue.end) for queue in queues.values()] == [(0, 3), (0, 3)]


def test_a_cut_takes_messages_out_of_the_queues_and_of_the_epochs() -> None:
    store = with_epochs(store_on(disk()), 4, 4)
    store.index_up_to(store.log.end)
    second = store.epochs.entries[1].start_offset
    store.truncate(second)
    assert epochs(store) == [(1, 0)]
    assert {key: queue.next for key, queue in store.index.queues.items()} == {
        ("TopicA", 0): 2,
        ("TopicA", 1): 2,
    }
    assert store.index.read == store.log.end == second


def test_positions_go_on_without_a_hole_after_a_cut() -> None:
    """Also for messages that no consumer was ever shown, and after a restart in between."""
    one = disk()
    store = with_epochs(store_on(one), 6, 6)
    store.index_up_to(store.epochs.entries[1].start_offset - 1)
    store.truncate(store.epochs.entries[1].start_offset)
    store.flush()
    for opened in (store, store_on(one)):
        opened.begin_as_master(3)
        assert opened.next_position("TopicA", 0) == opened.next_position("TopicA", 1) == 3


def test_a_master_cuts_a_half_copied_record_before_its_epoch_begins() -> None:
    full = with_epochs(store_on(disk()), 5)
    store = store_on(disk())
    store.append_bytes(0, log_bytes(full)[:-1])
    store.epochs.keep(full.epochs.entries)
    store.begin_as_master(2)
    last = list(full.log.records(0, full.log.end))[-1]
    assert store.log.end == last.offset
    assert epochs(store) == [(1, 0), (2, last.offset)]


def test_epochs_after_the_recovered_end_are_forgotten() -> None:
    one = disk()
    store = with_epochs(store_on(one), 3, 3)
    cut = store.epochs.entries[1].start_offset
    del one.contents[FLUSHED_FILE]
    one.contents["commitlog/00000000000000000000"].data[cut:] = bytes(4096 - cut)
    assert epochs(store_on(one)) == [(1, 0)]


def test_old_files_go_with_their_epochs_and_their_positions() -> None:
    store = with_epochs(store_on(disk()), 50, 50, 50)
    store.index_up_to(store.log.end)
    store.delete_before(8192)
    store.flush()
    first = next(iter(store.log.records(8192, store.log.end))).record
    queue = store.index.queues["TopicA", first.queue_id]
    assert (store.log.first, queue.first) == (8192, first.queue_offset)
    entry = queue.at(queue.first)
    assert entry is not None
    assert entry.offset == 8192
    assert store.epochs.entries[0].epoch == 2
    assert store.log.read(0, 100) is None


def test_a_queue_of_a_log_that_began_later_begins_at_its_first_message() -> None:
    full = with_epochs(store_on(disk()), 100)
    store = store_on(disk())
    store.append_bytes(4096, full.log.view(4096, 4096))
    store.index_up_to(store.log.end)
    first = next(iter(store.log.records(4096, store.log.end))).record
    assert store.index.queues["TopicA", first.queue_id].first == first.queue_offset > 0


def test_the_epoch_file_is_text_that_apache_rocketmq_reads() -> None:
    one = disk()
    epochs = EpochFile(SimulatedFiles(one))
    epochs.keep([HaEpochEntry(7, 7000), HaEpochEntry(8, 8000)])
    Stores(SimulatedFiles(one)).carry_out(epochs.begin_write())
    assert bytes(one.contents[EPOCH_FILE].data) == b"2\n773307083\n7-7000\n8-8000\n"


def test_a_broken_epoch_file_gives_way_to_the_older_one_or_stops_the_broker() -> None:
    one = disk()
    files = SimulatedFiles(one)
    files.replace(EPOCH_FILE, b"2\n773307083\n7-7000\n8-8001\n")
    with pytest.raises(StorageFailed, match="crc"):
        EpochFile(files)
    files.replace(OLDER, b"1\n0\n7-7000\n")
    assert EpochFile(files).entries == (HaEpochEntry(7, 7000),)


def test_writes_during_a_flush_share_the_next_one() -> None:
    store, outbox, outcomes = with_epochs(store_on(disk()), 1), Outbox(), []
    writes = Writes(outbox)
    commit = GroupCommit(outbox, writes, store, lambda durable, now_ms: outcomes.append((durable, now_ms)))
    store.put(message())
    first = store.log.end
    commit.request()
    for _ in range(3):
        store.put(message())
        commit.request()
    (persist,) = persists(outbox)
    writes.answered(Persisted(persist.token, 5))
    second, note = persists(outbox)
    assert [type(each) for each in note.operations] == [ReplaceFile]
    writes.answered(Persisted(second.token, 6))
    writes.answered(Persisted(note.token, 7))
    assert outcomes == [(first, 5), (store.log.end, 6)]


def test_what_is_on_the_disk_is_noted_within_an_interval_of_flushes_and_once_an_interval() -> None:
    store, outbox = with_epochs(store_on(disk()), 1), Outbox()
    writes = Writes(outbox)
    commit = GroupCommit(outbox, writes, store)
    noted = []
    for now_ms in range(0, 3 * FLUSH_MS, 10):
        commit.ticked(now_ms)
        store.put(message())
        commit.request()
        while asked := persists(outbox):
            for persist in asked:
                written = [each for each in persist.operations if isinstance(each, ReplaceFile)]
                noted += [
                    (now_ms, read_mark(each.data).offset) for each in written if each.name == FLUSHED_FILE
                ]
                writes.answered(carried_out(persist, store.stores, now_ms))
    assert [now_ms for now_ms, _ in noted] == [0, FLUSH_MS, 2 * FLUSH_MS]
    assert noted[-1][1] > store.log.end // 2
    assert commit.deadline_ms() == 3 * FLUSH_MS, "the last ones are noted though nothing follows"


def test_a_flush_that_failed_ends_the_process() -> None:
    store, outbox = with_epochs(store_on(disk()), 1), Outbox()
    durable = store.log.end
    store.put(message())
    writes = Writes(outbox)
    GroupCommit(outbox, writes, store, lambda _durable, _now_ms: None).request()
    (persist,) = persists(outbox)
    writes.answered(PersistFailed(persist.token, "input/output error", False, 5))
    assert [type(effect) for effect in outbox.take()] == [Halt]
    assert store.log.flushed == durable


@pytest.mark.parametrize(
    ("tag", "code"), [("TagA", 2598919), ("", 0), ("消息", 893927), ("polygenelubricants", -(2**31))]
)
def test_a_tag_is_known_by_the_hash_that_java_gives_it(tag: str, code: int) -> None:
    assert tags_code(message(tag=tag).properties) == code


def test_properties_are_pairs_and_what_is_none_is_left_out() -> None:
    assert properties_of(b"KEYS\x01k1 k2\x02TAGS\x01t\x02broken\x02") == {"KEYS": "k1 k2", "TAGS": "t"}


def test_without_room_for_the_epochs_nothing_is_told_and_the_same_is_tried_again() -> None:
    one = disk()
    store, outbox = with_epochs(store_on(one), 1), Outbox()
    writes, outcomes = Writes(outbox), []
    commit = GroupCommit(outbox, writes, store, lambda durable, now_ms: outcomes.append((durable, now_ms)))
    MessageStore.begin_as_master(store, 2)
    one.room_bytes = 0
    commit.request()
    (persist,) = persists(outbox)
    writes.answered(carried_out(persist, store.stores, 5))
    assert [effect.what for effect in outbox.take() if isinstance(effect, Note)] == [
        "no room for the commit log"
    ]
    commit.request()
    assert (outbox.take(), outcomes, epochs(store)) == ([], [], [(1, 0)])
    one.room_bytes = None
    commit.ticked(commit.deadline_ms() or 0)
    (persist,) = persists(outbox)
    writes.answered(carried_out(persist, store.stores, 1_005))
    assert outcomes == [(store.log.end, 1_005)]
    assert epochs(store) == [(1, 0), (2, store.log.end)]


def test_an_epoch_is_written_before_its_bytes_and_bytes_that_are_cut_go_before_their_epoch() -> None:
    store = with_epochs(store_on(disk()), 40, 40)
    MessageStore.truncate(store, store.epochs.entries[1].start_offset)
    (set_back,) = store.begin_write()
    assert isinstance(set_back, ReplaceFile)
    assert set_back.name == FLUSHED_FILE
    assert read_mark(set_back.data).offset <= store.log.end
    assert not store.is_settled
    store.end_write()
    kinds = [type(operation).__name__ for operation in store.begin_write()]
    assert kinds == ["RemoveFile", "FlushFiles", "ReplaceFile", "ReplaceFile"]
    store = with_epochs(store_on(disk()), 1)
    store.epochs.keep([*store.epochs.entries, HaEpochEntry(2, store.log.end)])
    store.put(message())
    kinds = [type(operation).__name__ for operation in store.begin_write()]
    assert kinds == ["ReplaceFile", "ReplaceFile", "FlushFiles"]
