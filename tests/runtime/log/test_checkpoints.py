"""What a start need not read again changes nothing but how much it reads."""

import random

import pytest

from replispec.runtime.rocketmq.log import MessageStore
from replispec.runtime.sim import Crashed, Disk, SimulatedFiles
from replispec.runtime.storage import StorageFailed
from replispec.wire.rocketmq.constants import INDEX_FOLDER
from tests.runtime.log.sample_logs import FILE_BYTES, WrittenStore, disk, log_bytes, message, store_on


def filled(one: Disk, messages: int = 120) -> WrittenStore:
    """A store with several files of messages, noted as they come."""
    store = store_on(one)
    for number in range(messages):
        topic, tag = f"Topic{number % 3}", f"t{number}"
        store.put(message(f"message {number}", topic=topic, queue_id=number % 2, tag=tag))
        store.flush()
    return store


def indexed(store: MessageStore) -> dict[tuple[str, int], list[tuple[int, ...]]]:
    """Every message of every queue, with the queue's first position before it."""
    store.index.show(store.log.end)
    return {
        key: [(queue.first,)] + [queue.at(at) or () for at in range(queue.first, queue.end)]
        for key, queue in store.index.queues.items()
    }


def walked_from(store: MessageStore) -> int:
    """From where on the records of the log were read when it was opened."""
    return next(int(str(said.values["walked_from"])) for said in store.log.said if said.what == "log read")


def checkpoints(one: Disk) -> list[str]:
    """The names of all checkpoints."""
    return sorted(name for name in one.contents if name.startswith(INDEX_FOLDER))


def without_checkpoints(one: Disk) -> WrittenStore:
    """The store opened without any."""
    for name in checkpoints(one):
        del one.contents[name]
    return store_on(one)


def test_a_start_reads_the_records_of_the_newest_part_alone() -> None:
    one = disk()
    end = filled(one).log.end
    assert end > 3 * FILE_BYTES
    again = store_on(one)
    assert end - FILE_BYTES // 4 <= walked_from(again) <= end
    found = indexed(again)
    plain = without_checkpoints(one)
    assert walked_from(plain) == 0
    assert found == indexed(plain)
    assert (again.index.read, again.index.count) == (plain.index.read, plain.index.count)


def test_after_an_orderly_end_no_record_is_read_and_many_of_them_leave_few_files() -> None:
    one = disk()
    store = filled(one)
    count = len(checkpoints(one))
    for _ in range(20):
        store.put(message("one more"))
        store.flush()
        store.note(stops=True)
        store = store_on(one)
        assert walked_from(store) == store.log.end
    assert len(checkpoints(one)) <= count + 20 * 200 // (FILE_BYTES // 16)


@pytest.mark.parametrize("place", range(0, 400, 37))
def test_a_checkpoint_that_is_damaged_costs_time_and_nothing_else(place: int) -> None:
    one = disk()
    expected = indexed(filled(one))
    name = checkpoints(one)[3]
    data = one.contents[name].data
    data[place % len(data)] ^= 1 << place % 8
    store = store_on(one)
    assert walked_from(store) == int(name.rpartition("/")[2])
    assert indexed(store) == expected


def test_below_a_checkpoint_a_damage_of_the_log_is_named() -> None:
    one = disk()
    filled(one)
    name = sorted(name for name in one.contents if name.startswith("commitlog/"))[1]
    one.contents[name].data[1000] ^= 1
    with pytest.raises(StorageFailed, match=name):
        store_on(one)


def test_queues_without_messages_keep_their_positions_when_old_files_go() -> None:
    one = disk()
    store = store_on(one)
    for _ in range(5):
        store.put(message("an old one", topic="Quiet"))
    store.flush()
    for number in range(120):
        store.put(message(f"message {number}"))
        store.flush()
    store.delete_before(2 * FILE_BYTES + 5)
    store.flush()
    assert store.log.first == 2 * FILE_BYTES
    assert store.next_position("Quiet", 0) == 5
    again = store_on(one)
    assert again.log.first == 2 * FILE_BYTES
    assert indexed(again) == indexed(store)
    assert again.next_position("Quiet", 0) == 5
    assert min(int(name.rpartition("/")[2]) for name in checkpoints(one)) <= 2 * FILE_BYTES


@pytest.mark.parametrize("seed", range(12))
def test_however_a_log_grew_and_was_cut_its_queues_are_those_of_its_records(seed: int) -> None:
    dice = random.Random(seed)
    one = disk(seed)
    store = store_on(one)
    for step in range(150):
        roll = dice.random()
        try:
            if roll < 0.75:
                store.put(message("x" * dice.randrange(300), topic=f"T{dice.randrange(4)}"))
                store.flush()
            elif roll < 0.8 and store.log.end > store.log.first:
                places = [each.offset for each in store.log.records(store.log.first, store.log.end)]
                store.truncate(dice.choice(places[-20:] or [store.log.first]))
                store.flush()
            elif roll < 0.85:
                one.crash_at(dice.randrange(1, 6))
            elif roll < 0.9:
                store.delete_before(dice.randrange(store.log.end + 1))
                store.flush()
            else:
                store.note(stops=True)
                one.crash(power=dice.random() < 0.5)
                store = store_on(one)
        except Crashed:
            one.crash()
            store = store_on(one)
        first = store.log.first
        records = list(store.log.records(first, store.log.end))
        found = {(key, entry[0]) for key, entries in indexed(store).items() for entry in entries[1:]}
        assert found == {((each.record.topic, each.record.queue_id), each.offset) for each in records}, step
    assert log_bytes(store) == log_bytes(MessageStore(SimulatedFiles(one), file_bytes=FILE_BYTES))
