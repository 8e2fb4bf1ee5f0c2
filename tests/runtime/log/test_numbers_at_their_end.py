"""Whatever numbers a master's records and frames hold: what a copy of them writes, its next start reads, and
as a master it goes on or refuses."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from replispec.broker.rocketmq.core.topics import Topics
from replispec.runtime.primitives.texts import INT32, INT64
from replispec.runtime.rocketmq.log import GroupCommit
from replispec.runtime.rocketmq.replication import HaReplica
from replispec.runtime.sim import SimulatedFiles
from replispec.runtime.storage import Stores
from replispec.runtime.world import Connected, Level, Outbox, Persist, Received, Writes
from replispec.wire.rocketmq.ha import HaHandshakeAnswer, HaTransferHeader
from replispec.wire.rocketmq.options import ReplicationOptions
from tests.runtime.log.sample_logs import FILE_BYTES, WrittenStore, disk, message, store_on
from tests.runtime.replication.pairs import Reader
from tests.runtime.storage.writing import carried_out

BRIEF = settings(max_examples=60, deadline=None, phases=(Phase.explicit, Phase.generate))
INT64_EXTREMES = st.sampled_from(
    [INT64[0], INT64[0] + 1, INT32[0], -1, 0, 1, 2, INT32[1], INT32[1] + 1, INT64[1] - 1, INT64[1]]
)
INT32_EXTREMES = st.sampled_from([INT32[0], -1, 0, 1, 1023, 1024, INT32[1] - 1, INT32[1]])
RECORDS = st.lists(
    st.builds(
        lambda *values: values,
        INT32_EXTREMES,
        INT64_EXTREMES,
        INT64_EXTREMES,
        INT64_EXTREMES,
        INT32_EXTREMES,
    ),
    min_size=1,
    max_size=8,
)


def record(values: tuple[int, int, int, int, int], at: int) -> bytes:
    """The bytes of a record that a master has at an offset."""
    one = message()
    one.queue_id, one.queue_offset, one.born_timestamp, one.store_timestamp, one.flag = values
    one.physical_offset = at
    return one.encode()


def shown(store: WrittenStore) -> dict[tuple[str, int], tuple[int, int]]:
    """Which messages each queue has."""
    assert store.index_up_to(store.log.end)
    return {key: (queue.first, queue.end) for key, queue in store.index.queues.items()}


@given(RECORDS)
@BRIEF
def test_queues_of_a_copied_log_are_the_same_at_the_next_start(
    records: list[tuple[int, int, int, int, int]],
) -> None:
    one = disk()
    store = store_on(one)
    for values in records:
        store.append_bytes(store.log.end, record(values, store.log.end))
    before = shown(store)
    store.flush()
    store.note(stops=True)
    again = store_on(one)
    assert shown(again) == before
    assert again.log.end == store.log.end
    again.begin_as_master(1)
    for topic, queue in before:
        with suppress(ValueError):
            again.put(message(topic=topic, queue_id=queue))
    again.flush()
    again.note(stops=True)
    assert shown(store_on(one)) == shown(again)


@given(RECORDS)
@BRIEF
def test_topics_that_cover_a_copied_log_are_read_at_the_next_start(
    records: list[tuple[int, int, int, int, int]],
) -> None:
    one = disk()
    store = store_on(one)
    for values in records:
        store.append_bytes(store.log.end, record(values, store.log.end))
    shown(store)
    files, outbox = SimulatedFiles(one), Outbox()
    writes = Writes(outbox)
    topics = Topics(files, writes, template_queues=4, auto_create=True)
    topics.cover(store.index.queues, 1)
    for effect in outbox.take():
        assert isinstance(effect, Persist)
        writes.answered(carried_out(effect, Stores(files)))
    again = Topics(files, Writes(Outbox()), template_queues=4, auto_create=True)
    assert again.table(0).topic_config_table == topics.table(0).topic_config_table


FRAMES = st.lists(
    st.builds(
        # The body as its size: nothing longer than a line is to be told of a case.
        lambda *values: values,
        INT64_EXTREMES
        | st.sampled_from([INT64[1] + 1 - FILE_BYTES, INT64[1] + 1 - 2 * FILE_BYTES, FILE_BYTES]),
        INT32_EXTREMES,
        INT64_EXTREMES,
        INT64_EXTREMES,
        st.sampled_from([0, 1, 50, FILE_BYTES - 1, FILE_BYTES]),
    ),
    min_size=1,
    max_size=5,
)


@given(INT64_EXTREMES, FRAMES)
@BRIEF
def test_frames_of_any_numbers_leave_a_store_that_opens(
    ends: int, frames: list[tuple[int, int, int, int, int]]
) -> None:
    one = disk()
    store, outbox = store_on(one), Outbox()
    writes = Writes(outbox)
    commit = GroupCommit(outbox, writes, store)
    replica = HaReplica(outbox, store, commit, Reader(), ReplicationOptions(), broker_id=2)

    def settle() -> None:
        while wanted := [each for each in outbox.take() if isinstance(each, Persist)]:
            for each in wanted:
                writes.answered(carried_out(each, store.stores, 0))

    replica.follow("127.0.0.1:1", 0)
    settle()
    replica.connected(Connected(-1, "local", 0))
    replica.received(Received(-1, HaHandshakeAnswer(max_offset=ends).encode(), 0))
    settle()
    for offset, epoch, start, confirm, size in frames:
        frame = HaTransferHeader(
            offset=offset, epoch=epoch, epoch_start_offset=start, confirm_offset=confirm, body=bytes(size)
        )
        if replica.owns(-1):
            replica.received(Received(-1, frame.encode(), 0))
            settle()
    commit.request()
    settle()
    commit.stop()
    settle()
    again = store_on(one)
    assert again.log.end <= store.log.end
    assert not [each for each in again.take_said() if each.level > Level.INFO]


def test_a_queue_whose_numbers_are_used_up_takes_no_message() -> None:
    """Nobody can be told of a message after the last position."""
    store = store_on(disk())
    store.append_bytes(0, record((0, INT64[1] - 2, 0, 0, 0), 0))
    store.begin_as_master(1)
    assert store.put(message()).record.queue_offset == INT64[1] - 1
    end = store.log.end
    with pytest.raises(ValueError, match="no number is left"):
        store.put(message())
    assert store.log.end == end
    assert store.put(message(queue_id=1)).record.queue_offset == 0
