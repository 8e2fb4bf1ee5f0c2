"""Master and replica on their real cores, in one process and without a clock."""

from collections.abc import Iterator
from typing import Literal

import pytest

from replispec.runtime.rocketmq.log import MessageStore
from replispec.runtime.rocketmq.replication.feed import Feed
from replispec.runtime.rocketmq.replication.replica import HaReplica
from replispec.runtime.world import Accepted, Closed, Connected, Level, Received
from replispec.wire.rocketmq.ha import HaHandshakeAnswer, HaHandshakeId, HaReport
from replispec.wire.rocketmq.machines import ha_master, ha_replica
from replispec.wire.rocketmq.options import ReplicationOptions
from tests.runtime.log.sample_logs import disk, log_bytes, message, store_on, with_epochs
from tests.runtime.replication.pairs import MasterSide, Pair, ReplicaSide


def master_with(*messages_per_epoch: int, settings: ReplicationOptions | None = None) -> MasterSide:
    return MasterSide(with_epochs(store_on(disk()), *messages_per_epoch), settings)


def copied_by(store: MessageStore, *, end: int | None = None, broker_id: int = 2) -> ReplicaSide:
    """A replica that had copied this log up to some offset, and has restarted."""
    one = disk()
    copy = store_on(one)
    copy.append_bytes(0, log_bytes(store)[:end])
    copy.epochs.keep([entry for entry in store.epochs.entries if entry.start_offset < copy.log.end])
    copy.flush()
    return ReplicaSide(one, broker_id=broker_id)


@pytest.mark.parametrize(
    ("core", "machine"), [(Feed, ha_master.MACHINE), (HaReplica, ha_replica.MACHINE)], ids=["feed", "replica"]
)
def test_a_core_has_a_method_for_every_effect_of_its_machine_and_no_other(
    core: type, machine: object
) -> None:
    edges = [edge for edges in machine.transitions.values() for edge in edges]  # type: ignore[attr-defined]
    named = {f"_do_{name}" for edge in edges for name in edge.do}
    assert {name for name in vars(core) if name.startswith("_do_")} == named


def test_a_copy_from_the_middle_that_ended_before_its_first_byte_begins_again() -> None:
    """Its files were made, and nothing of them was on the disk: there is nothing to compare, and to lose."""
    master = master_with(60, 60)
    master.store.delete_before(master.store.log.last_file)
    master.store.flush()
    first = master.store.log.first
    assert first > 0
    one = disk()
    copy = store_on(one)
    copy.log.reserve_bytes(first, 1)
    copy.flush()
    pair = Pair(master, ReplicaSide(one))
    assert pair.replica.store.log.is_empty
    pair.follow()
    assert pair.same()
    assert pair.replica.store.log.first == first


def test_a_fresh_replica_copies_everything_and_joins() -> None:
    pair = Pair(master_with(3, 2), ReplicaSide())
    pair.follow()
    assert pair.same()
    assert pair.lines == [
        "replica connects",
        "replica: handshake of broker 2",
        "master: answer, epochs 1@0 2@342, end 570",
        "replica notes: copying from the master (master=127.0.0.1:10912, offset=0)",
        "replica: report 0",
        "master notes: replica copies (peer=peer, broker=2, offset=0)",
        "master: 342 bytes from 0, epoch 1@0, confirmed 570",
        "master: 228 bytes from 342, epoch 2@342, confirmed 570",
        "replica: report 570",
    ]
    assert pair.master.keeper.received == [("2 has", 0), ("2 has", 570), ("expand", 2)]
    assert pair.replica.reader.received == [("confirmed", 570)]


def test_new_messages_follow_at_once_and_are_acknowledged_when_they_are_on_the_disk() -> None:
    pair = Pair(master_with(1), ReplicaSide())
    pair.follow()
    pair.replica.holds_writes = True
    placed = pair.master.store.put(message("new"))
    pair.master.ha.log_grew(pair.now_ms)
    pair.settle()
    assert not pair.same(), "the master's own disk may still lose it"
    pair.master.store.flush()
    pair.master.ha.log_grew(pair.now_ms)
    pair.settle()
    assert pair.same()
    end = placed.offset + placed.size
    assert pair.master.ha.acknowledged([2]) == [placed.offset]
    pair.replica.holds_writes = False
    pair.replica.persist(pair.replica.held.pop(), pair.now_ms)
    pair.settle()
    assert pair.master.ha.acknowledged([2]) == [end]


def test_without_durability_a_report_does_not_wait_for_the_disk() -> None:
    asynchronous = ReplicaSide(settings=ReplicationOptions(flush_disk_type="ASYNC_FLUSH"))
    pair = Pair(master_with(5), asynchronous)
    pair.follow()
    pair.replica.holds_writes = True
    pair.master.store.put(message("new"))
    pair.master.store.flush()
    pair.master.ha.log_grew(pair.now_ms)
    pair.settle()
    assert pair.master.ha.acknowledged([2]) == [pair.master.store.log.end]


@pytest.mark.parametrize("flush_disk_type", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_no_report_leaves_before_the_epoch_of_its_bytes_is_on_the_disk(
    flush_disk_type: Literal["ASYNC_FLUSH", "SYNC_FLUSH"],
) -> None:
    replica = ReplicaSide(settings=ReplicationOptions(flush_disk_type=flush_disk_type))
    replica.holds_writes = True
    pair = Pair(master_with(5), replica)
    pair.follow()
    pair.wait(6_000)
    assert "replica: report 570" not in pair.lines
    replica.holds_writes = False
    for effect in replica.held:
        replica.persist(effect, pair.now_ms)
    pair.settle()
    assert "replica: report 570" in pair.lines


def test_nothing_is_asked_for_before_a_cut_is_on_the_disk() -> None:
    master = master_with(5)
    replica = ReplicaSide(store=with_epochs(store_on(disk()), 3, 5))
    master.store.begin_as_master(3)
    replica.holds_writes = True
    pair = Pair(master, replica)
    pair.follow()
    pair.wait(6_000)
    assert ("truncated", 342) in replica.reader.received
    assert not any("report" in line for line in pair.lines)
    replica.holds_writes = False
    for effect in replica.held:
        replica.persist(effect, pair.now_ms)
    pair.settle()
    assert "replica: report 342" in pair.lines
    assert log_bytes(pair.replica.store) == log_bytes(pair.master.store)


def test_a_replica_whose_log_waits_for_the_disk_reports_first_when_it_is_there() -> None:
    """Its first report is where the master goes on: it must be the end of the log, and durable."""
    pair = Pair(master_with(5, 5), ReplicaSide())
    pair.replica.holds_writes = True
    pair.replica.store.append_bytes(0, log_bytes(pair.master.store)[:342])
    pair.replica.store.epochs.keep(pair.master.store.epochs.entries[:1])
    pair.follow()
    pair.wait(6_000)
    assert not any("report" in line for line in pair.lines)
    pair.replica.holds_writes = False
    for effect in pair.replica.held:
        pair.replica.persist(effect, pair.now_ms)
    pair.settle()
    assert pair.same()


def test_a_replica_goes_on_where_it_was() -> None:
    master = master_with(10, 10)
    pair = Pair(master, copied_by(master.store, end=720))
    pair.follow()
    assert pair.same()
    assert "replica: report 684" in pair.lines, "the half-copied record is cut"


def test_what_the_master_never_had_is_cut() -> None:
    old = with_epochs(store_on(disk()), 10, 0)
    replica = copied_by(old)
    master = MasterSide(with_epochs(copied_by(old, end=540).store, 5, first_epoch=2))
    pair = Pair(master, replica)
    pair.follow()
    assert pair.same()
    assert replica.reader.received[0] == ("truncated", 456)
    assert [note.what for note in pair.notes] == [
        "log cut to agree with the master",
        "copying from the master",
        "replica copies",
    ]


def test_without_a_shared_epoch_nothing_is_touched_and_an_operator_is_asked() -> None:
    replica = copied_by(with_epochs(store_on(disk()), 10, first_epoch=7))
    before = log_bytes(replica.store)
    pair = Pair(master_with(20), replica)
    pair.follow()
    pair.wait(12_000)
    assert log_bytes(replica.store) == before
    errors = [note for note in pair.notes if note.level is Level.ERROR]
    assert len(errors) == 3, "one at once and one after each haReconnectInterval"
    assert errors[0].values["our_epochs"] == "7@0"
    assert errors[0].values["master_epochs"] == "1@0"


def test_an_epoch_without_messages_is_announced_at_once() -> None:
    master = master_with(5)
    pair = Pair(master, copied_by(master.store))
    master.store.begin_as_master(4)
    pair.follow()
    assert pair.same()
    master.store.put(message("in epoch 4"))
    master.store.flush()
    master.ha.log_grew(pair.now_ms)
    pair.settle()
    master.store.begin_as_master(6)
    master.ha.epoch_began(pair.now_ms)
    pair.settle()
    assert pair.same()
    assert [entry.epoch for entry in pair.replica.store.epochs.entries] == [1, 4, 6]


def test_a_learner_is_fed_and_never_counts() -> None:
    pair = Pair(master_with(5), ReplicaSide(is_learner=True))
    pair.follow()
    pair.wait(11_000)
    assert pair.same()
    assert pair.master.keeper.received == []


def test_an_empty_log_is_followed_too_and_its_replica_joins_at_once() -> None:
    pair = Pair(master_with(0), ReplicaSide())
    pair.follow()
    assert pair.same()
    assert pair.lines[-3::2] == ["replica: report 0", "master: heartbeat at -1, epoch 1@0, confirmed 0"]
    assert ("expand", 2) in pair.master.keeper.received


@pytest.mark.parametrize("messages", [0, 2])
def test_a_replica_is_never_silent_for_longer_than_its_interval(messages: int) -> None:
    """An epoch that came with a heartbeat is on no disk yet when the first report is to be repeated."""
    often = ReplicationOptions(ha_send_heartbeat_interval_ms=3_000, ha_housekeeping_interval_ms=4_000)
    pair = Pair(master_with(messages, settings=often), ReplicaSide(settings=often))
    pair.follow()
    pair.wait(60_000)
    assert "master closes the connection" not in pair.lines
    reports = sum(line.startswith("replica: report ") for line in pair.lines)
    assert reports >= 1 + 60_000 // 3_000
    assert ("shrink", 2) not in pair.master.keeper.received


def test_a_replica_may_begin_with_the_newest_file() -> None:
    pair = Pair(master_with(100), ReplicaSide(settings=ReplicationOptions(sync_from_last_file=True)))
    pair.follow()
    store = pair.replica.store
    assert (store.log.first, store.log.end) == (8192, pair.master.store.log.end)
    assert log_bytes(store) == log_bytes(pair.master.store)[8192:]


def test_no_run_crosses_a_file_or_an_epoch_or_the_size_of_a_batch() -> None:
    settings = ReplicationOptions(ha_transfer_batch_size=500, ha_window_bytes_max=3_000)
    master = master_with(60, 60, settings=settings)
    pair = Pair(master, ReplicaSide())
    pair.follow()
    assert pair.same()
    ends = {
        *range(0, master.store.log.end, 4096),
        master.store.epochs.entries[1].start_offset,
        master.store.log.end,
    }
    runs = [line.split() for line in pair.lines if "bytes from" in line]
    for words in runs:
        size, start = int(words[1]), int(words[4].rstrip(","))
        assert size == 500 or start + size in ends
        assert size <= 500
        assert not any(start < end < start + size for end in ends)


def test_both_sides_keep_an_idle_connection_alive() -> None:
    pair = Pair(master_with(2), ReplicaSide())
    pair.follow()
    before = len(pair.lines)
    pair.wait(60_000)
    quiet = pair.lines[before:]
    assert quiet.count("replica: report 228") == 12
    assert quiet.count("master: heartbeat at 228, epoch 1@0, confirmed 228") == 12
    assert len(quiet) == 24


def test_a_silent_master_is_left_and_dialled_again() -> None:
    pair = Pair(master_with(2), ReplicaSide())
    pair.follow()
    pair.frozen = pair.master.ha
    pair.wait(20_000)
    assert "replica closes the connection" in pair.lines
    assert not pair.replica.ha.owns(-1)
    pair.wait(5_000)
    assert pair.lines.count("replica connects") == 2
    assert pair.master.keeper.received[-1] == ("expand", 2)


def test_a_silent_replica_is_dropped_and_leaves_the_set() -> None:
    pair = Pair(master_with(2), ReplicaSide())
    pair.follow()
    pair.frozen = pair.replica.ha
    pair.wait(20_000)
    assert pair.master.ha.feeds == {}
    assert pair.master.keeper.received[-1] == ("shrink", 2)


def test_a_stopped_replica_becomes_silent_for_good() -> None:
    pair = Pair(master_with(2), ReplicaSide())
    pair.follow()
    pair.replica.ha.stop(pair.now_ms)
    pair.settle()
    assert "replica closes the connection" in pair.lines
    assert pair.replica.ha.deadline_ms() is None
    pair.replica.ha.follow("127.0.0.1:1", pair.now_ms)
    assert pair.replica.outbox.take() == []
    assert ("shrink", 2) in pair.master.keeper.received


def test_a_stopped_master_closes_all_connections() -> None:
    pair = Pair(master_with(2), ReplicaSide())
    pair.follow()
    pair.master.ha.stop(pair.now_ms)
    pair.settle()
    assert pair.master.ha.feeds == {}
    assert pair.replica.ha.state is ha_replica.State.READY


def test_another_master_is_followed_at_once() -> None:
    pair = Pair(master_with(2), ReplicaSide())
    pair.follow()
    pair.replica.ha.follow("127.0.0.1:10922", pair.now_ms)
    pair.settle()
    assert pair.lines.count("replica connects") == 2
    assert len(pair.master.ha.feeds) == 1


def test_a_disk_without_room_ends_the_connection_and_is_tried_again() -> None:
    replica = ReplicaSide()
    pair = Pair(master_with(100), replica)
    replica.disk.room_bytes = 5_000
    pair.follow()
    assert [note.what for note in pair.notes if note.level is Level.ERROR] == [
        "no room for the commit log",
        "log bytes cannot be kept",
    ]
    assert log_bytes(pair.master.store).startswith(log_bytes(replica.store))
    replica.disk.room_bytes = None
    pair.wait(5_000)
    assert pair.same()


def test_a_flush_that_fails_halts_the_process_and_is_never_acknowledged() -> None:
    replica = ReplicaSide()
    replica.fails_writes = "input/output error"
    pair = Pair(master_with(3), replica)
    pair.follow()
    assert "input/output error" in pair.halted
    assert pair.master.ha.acknowledged([2]) == [0]


def test_members_that_lag_or_are_gone_are_overdue() -> None:
    pair = Pair(master_with(3), ReplicaSide())
    pair.follow()
    assert pair.master.ha.overdue([2, 3], pair.now_ms) == [3]
    pair.replica.holds_writes = True
    for _ in range(4):
        pair.master.store.put(message("more"))
        pair.master.store.flush()
        pair.master.ha.log_grew(pair.now_ms)
        pair.wait(4_000)
    assert pair.master.ha.overdue([2], pair.now_ms) == [2]


def test_what_consumers_may_see_is_told_to_replicas_that_wait() -> None:
    pair = Pair(master_with(3), ReplicaSide())
    pair.master.keeper.confirm_offset = 0
    pair.follow()
    pair.master.keeper.confirm_offset = 342
    pair.master.ha.confirm_offset_advanced(pair.now_ms)
    pair.settle()
    assert pair.replica.ha.confirm_offset == 342
    assert pair.replica.reader.received[-1] == ("confirmed", 342)


def test_bytes_that_were_deleted_are_not_sent_and_somebody_is_told() -> None:
    master = master_with(200)
    replica = copied_by(master.store, end=2_000)
    master.store.delete_before(8_192)
    master.store.flush()
    pair = Pair(master, replica)
    pair.follow()
    pair.wait(11_000)
    assert [note.what for note in pair.notes if note.level is Level.ERROR] == ["replica wants deleted bytes"]
    assert not any("bytes from" in line for line in pair.lines)


def test_more_connections_than_allowed_are_closed() -> None:
    master = master_with(1)
    master.ha._shares.room = 0
    pair = Pair(master, ReplicaSide())
    pair.follow()
    assert pair.lines[:2] == [
        "replica connects",
        "master notes: too many replication connections (peer=peer)",
    ]
    assert master.ha.feeds == {}


def test_a_log_is_copied_however_tcp_cuts_the_bytes() -> None:
    for size in (1, 7, 35, 37, 1_000):

        def cut(data: bytes, size: int = size) -> Iterator[bytes]:
            yield from (data[at : at + size] for at in range(0, len(data), size))

        pair = Pair(master_with(10, 10, 30), ReplicaSide(), cut=cut)
        pair.follow()
        assert pair.same(), size


def test_a_broken_log_ends_the_process() -> None:
    replica = ReplicaSide()
    pair = Pair(master_with(3), replica)
    replica.disk.plan = lambda what: "input/output error" if what.startswith("write") else None
    pair.follow()
    assert "input/output error" in pair.halted
    assert log_bytes(replica.store) == b""


def test_epochs_are_corrected_before_the_first_byte_comes() -> None:
    """A broker that was master of an epoch without messages must forget it: another has that start."""
    replica = ReplicaSide(store=with_epochs(store_on(disk()), 5, 0))
    master = MasterSide(with_epochs(store_on(disk()), 5))
    master.store.begin_as_master(4)
    replica.ha.follow("127.0.0.1:1", 0)
    replica.ha.connected(Connected(-1, "local", 0))
    answer = HaHandshakeAnswer(master.store.log.end, 4, list(master.store.epochs.entries))
    replica.ha.received(Received(-1, answer.encode(), 0))
    assert [entry.epoch for entry in replica.store.epochs.entries] == [1]


def test_a_replica_that_dials_again_leaves_no_connection_behind_and_the_set_only_with_its_last() -> None:
    pair = Pair(master_with(3), ReplicaSide())
    pair.follow()
    second = 99
    host = pair.master.ha.feeds[1].peer.rpartition(":")[0]
    pair.master.ha.accepted(Accepted(second, "ha", f"{host}:7", pair.now_ms))
    pair.master.ha.received(Received(second, HaHandshakeId(broker_id=2).encode(), pair.now_ms))
    assert list(pair.master.ha.feeds) == [second]
    assert ("shrink", 2) not in pair.master.keeper.received
    pair.master.ha.closed(Closed(second, "lost", pair.now_ms))
    assert pair.master.keeper.received[-1] == ("shrink", 2)


def test_reports_count_for_the_replica_that_is_heard_and_not_for_who_takes_its_id_elsewhere() -> None:
    pair = Pair(master_with(3), ReplicaSide())
    pair.follow()
    told = list(pair.master.keeper.received)
    stranger = 99
    pair.master.ha.accepted(Accepted(stranger, "ha", "10.0.0.66:7", pair.now_ms))
    said = HaHandshakeId(broker_id=2).encode() + HaReport(max_offset=0).encode()
    pair.master.ha.received(Received(stranger, said, pair.now_ms))
    assert list(pair.master.ha.feeds) == [1]
    assert pair.master.keeper.received == told
    # Once nothing is heard of the replica any more, it may have moved.
    later_ms = pair.now_ms + ReplicationOptions().ha_housekeeping_interval_ms // 2
    pair.master.ha.accepted(Accepted(100, "ha", "10.0.0.66:8", later_ms))
    pair.master.ha.received(Received(100, said, later_ms))
    assert list(pair.master.ha.feeds) == [100]


def test_a_connection_goes_by_one_id_for_good() -> None:
    pair = Pair(master_with(3), ReplicaSide())
    pair.follow()
    pair.master.ha.received(Received(1, HaHandshakeId(broker_id=3).encode(), pair.now_ms))
    assert not pair.master.ha.feeds
    assert ("shrink", 3) not in pair.master.keeper.received
