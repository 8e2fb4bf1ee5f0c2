"""A group of controllers keeps what its records have made instead of them, and sends it to who lacks them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import pytest

from replispec.controller.consensus import LogDamaged
from replispec.controller.consensus.raft import ControllerGroup, GroupNode, number_of
from replispec.controller.rocketmq import log
from replispec.event.v1.event_pb2 import BrokerSetState, ControllerSnapshot, MemberState
from replispec.runtime.raft.members import GroupMembers
from replispec.runtime.raft.snapshots import MemberSnapshot
from replispec.runtime.sim import Disk, Left, Rng, World
from replispec.runtime.sim.disk import RecordedChanges
from replispec.wire.raft.codes import EntryKind
from replispec.wire.raft.codes import RequestCode as MemberCode
from replispec.wire.raft.member import (
    RaftEntries,
    RaftEntriesRequest,
    RaftEntry,
    RaftSnapshotPart,
    RaftSnapshotPartRequest,
)
from replispec.wire.rocketmq.codes import ResponseCode
from tests.sim.controller_script import NAME, heartbeat
from tests.sim.controllers import SHORT_RECORDS, Controllers, make, properties
from tests.sim.test_controllers import NOBODY, application, lived_alone, served

AWAY_MS = 8_000
"""Longer than messages to a member wait for it."""
BACK_MS = 3_000


def short(seed: int) -> Controllers:
    """A group whose members keep their logs for a few records."""
    return Controllers(seed, is_short=True)


def journal(group: Controllers, name: str) -> RecordedChanges:
    """What the disk of one of them holds of its log."""
    (found,) = group.world.processes[name].disk.journals.values()
    return found


def grows(group: Controllers, leader: str, first: int, count: int = 3 * SHORT_RECORDS) -> None:
    """So many more records."""
    asked = [application(number) for number in range(first, first + count)]
    assert set(group.codes(leader, *asked)) == {ResponseCode.SUCCESS}


def begins_with_a_snapshot(group: Controllers, name: str) -> bool:
    """Whether a few records alone are left on its disk, and they follow a snapshot."""
    kept = journal(group, name)
    if kept.snapshot is None or len(kept.records) > 2 * SHORT_RECORDS:
        return False
    return next(iter(kept.records), kept.snapshot[0] + 1) == kept.snapshot[0] + 1


def test_the_log_of_every_member_begins_with_a_snapshot_and_so_does_its_start() -> None:
    group = short(1).start()
    served(group)
    group.world.run_for(BACK_MS)
    assert all(begins_with_a_snapshot(group, name) for name in group.hosts)
    known = group.record(group.leader())
    for name in group.hosts:
        group.world.kill(name, power=True)
    group.notes.clear()
    group.start().leader()
    group.world.run_for(BACK_MS)
    assert group.records() == 1
    assert group.record(group.leader()) == known
    read = [values["records"] for _, values in group.noted("log read") if values["replaced"]]
    assert read
    assert all(count <= 2 * SHORT_RECORDS for count in read)
    # What is on record from before the start is no news.
    assert group.noted("brokers removed") + group.noted("master elected") == []
    grows(group, group.leader(), 4)


def came_back(away: Callable[[Controllers, str], None], back: Callable[[Controllers, str], None]) -> None:
    group = short(2).start()
    group.leader()
    group.world.run_for(1_000)
    victim = group.follower()
    away(group, victim)
    # What was on its way to it has left, and does not arrive late.
    group.world.run_for(AWAY_MS)
    served(group)
    grows(group, group.leader(but=[victim]), 4)
    group.world.run_for(AWAY_MS)
    back(group, victim)
    group.world.run_for(BACK_MS)
    took = [values for name, values in group.noted("snapshot taken over") if name == victim]
    assert [values["sets"] for values in took][-1:] == [1]
    assert begins_with_a_snapshot(group, victim)
    assert group.records() == 1
    # What it was sent is all that it needs to lead.
    other = next(name for name in group.hosts if name not in (victim, group.leader()))
    known = group.record(victim)
    group.world.kill(other)
    group.world.kill(victim, power=True)
    group.world.start(victim)
    group.world.run_for(BACK_MS)
    assert group.record(victim) == known
    grows(group, group.leader(), 4 + 3 * SHORT_RECORDS)


def _cut(group: Controllers, victim: str) -> None:
    for other in group.hosts:
        if other != victim:
            group.world.network.block(victim, other)
            group.world.network.block(other, victim)


def test_who_was_dead_for_longer_than_the_log_is_kept_is_sent_a_snapshot() -> None:
    came_back(
        lambda group, victim: group.world.kill(victim, power=True),
        lambda group, victim: group.world.start(victim),
    )


def test_who_comes_back_to_members_that_have_themselves_begun_again_is_sent_their_snapshot() -> None:
    def back(group: Controllers, _: str) -> None:
        for name in group.living():
            group.world.kill(name, power=True)
        for name in group.hosts:
            group.world.start(name)

    came_back(lambda group, victim: group.world.kill(victim), back)


def test_who_was_cut_off_for_longer_than_the_log_is_kept_is_sent_a_snapshot() -> None:
    came_back(_cut, lambda group, _: group.world.network.heal())


def test_who_led_and_is_sent_a_snapshot_answers_as_one_that_is_deposed_and_knows_who_lives() -> None:
    group = short(3).start()
    served(group)
    old = group.leader()
    _cut(group, old)
    assert group.codes(old, application(9)) == [ResponseCode.CONTROLLER_NOT_LEADER]
    grows(group, group.leader(but=[old]), 4)
    group.world.run_for(AWAY_MS)
    assert group.codes(old, heartbeat(1)) == [ResponseCode.SUCCESS]
    group.world.network.heal()
    group.world.run_for(BACK_MS)
    assert old in [name for name, _ in group.noted("snapshot taken over")]
    assert group.records() == 1
    assert group.node(old)._sets.heartbeats.is_alive(NAME, 1)
    assert group.node(old)._waiting == {}


# Crashes


def away(number: int = 0, left: Left = Left.NOTHING) -> tuple[Controllers, str, list[str]]:
    """A member comes back, ends inside a change of its disk, the first being 1, and comes back again; what it
    changed since. 0: it does not end."""
    group = short(4).start()
    victim = group.follower()
    group.world.kill(victim)
    served(group)
    group.world.run_for(AWAY_MS)
    process = group.world.processes[victim]
    before = len(process.disk.changes)
    if number:
        process.disk.crash_at(number, left)
    group.world.start(victim)
    for _ in range(BACK_MS // 100):
        group.world.run_for(100)
        if not process.is_alive:
            group.world.start(victim)
    assert process.starts == (3 if number else 2)
    return group, victim, process.disk.changes[before:]


def of_who_comes_back() -> Iterator[int]:
    group, victim, changes = away()
    assert victim in [name for name, _ in group.noted("snapshot taken over")]
    assert [each for each in changes if each.startswith("replace")]
    yield from range(1, len(changes) + 1)


@pytest.mark.parametrize("number", list(of_who_comes_back()))
def test_a_crash_inside_a_change_of_who_comes_back_leaves_a_store_that_starts(number: int) -> None:
    for left in (Left.NOTHING, Left.ALL):
        group, victim, _ = away(number, left)
        assert group.records() == 1
        assert group.record(victim)
        assert begins_with_a_snapshot(group, victim)


def lived(number: int, left: Left, victim: str) -> Controllers:
    """One of the group ends inside a change of its disk while it serves, and is started again soon."""
    group = short(5).start()
    process = group.world.processes[victim]
    process.disk.crash_at(number, left)

    def look() -> None:
        if not process.is_alive:
            group.world.start(victim)
        group.world.after(300_000, look)

    group.world.after(300_000, look)
    said = served(group)
    assert said is not None
    assert (said.master_broker_id, said.master_epoch, said.sync_state_set_epoch) == (3, 2, 5)
    group.world.run_for(BACK_MS)
    return group


def own_snapshots() -> Iterator[tuple[str, int]]:
    group = short(5).start()
    served(group)
    for name in (group.leader(), group.follower()):
        changes = group.world.processes[name].disk.changes
        found = [number for number, what in enumerate(changes, 1) if what.startswith("replace")]
        assert found
        yield from ((name, number) for number in found)


@pytest.mark.parametrize(("victim", "number"), list(own_snapshots()))
def test_a_crash_while_a_member_keeps_its_own_snapshot_costs_nothing(victim: str, number: int) -> None:
    for left in (Left.NOTHING, Left.ALL):
        group = lived(number, left, victim)
        assert group.world.processes[victim].starts == 2
        assert group.records() == 1


def test_a_disk_without_room_for_a_snapshot_of_another_one_costs_nothing() -> None:
    group = short(6).start()
    victim = group.follower()
    group.world.kill(victim)
    served(group)
    group.world.run_for(AWAY_MS)
    disk = group.world.processes[victim].disk
    disk.room_bytes = disk.used_bytes()
    group.world.start(victim)
    group.world.run_for(AWAY_MS)
    assert group.noted("no room for the log: changes are refused")
    assert (journal(group, victim).snapshot, group.record(victim)) == (None, {})
    disk.room_bytes = None
    group.world.run_for(BACK_MS)
    assert victim in [name for name, _ in group.noted("snapshot taken over")]
    assert group.records() == 1
    assert begins_with_a_snapshot(group, victim)


# What cannot be read


def test_a_snapshot_that_cannot_be_read_ends_the_process_and_is_not_taken() -> None:
    group = short(7).start()
    leader, victim = group.leader(), group.follower()
    group.world.run_for(1_000)
    group.world.kill(victim)
    group.node(leader)._sets.states = lambda: [  # type: ignore[method-assign]
        BrokerSetState(broker_name=NAME, state="NOWHERE")
    ]
    served(group)
    group.world.run_for(AWAY_MS)
    group.world.start(victim)
    group.world.run_for(BACK_MS)
    failure = group.world.processes[victim].failure or ""
    assert "the log of the controller cannot be read: the snapshot of the log: " in failure
    assert "'NOWHERE'" in failure
    assert journal(group, victim).snapshot is None


def test_a_snapshot_that_is_too_large_is_told_of_and_the_log_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "SNAPSHOT_BYTES_MAX", 10)
    group = short(8).start()
    served(group)
    grows(group, group.leader(), 4)
    assert {name for name, _ in group.noted("no snapshot kept: the log grows")} == set(group.hosts)
    kept = journal(group, group.leader())
    assert (kept.snapshot, len(kept.records) > 20) == (None, True)


def kept_by_a_member() -> tuple[Disk, RecordedChanges, MemberSnapshot]:
    """The disk of a member whose log begins with a snapshot, and that snapshot."""
    group = short(1).start()
    served(group)
    group.world.kill("controller-1")
    found = journal(group, "controller-1")
    assert found.snapshot is not None
    return group.world.processes["controller-1"].disk, found, MemberSnapshot.decode(found.snapshot[1])


def fails(disk: Disk, of: Mapping[str, object]) -> str:
    """Why a controller does not start on this disk; empty when it does."""
    world = World(1)
    process = world.add("controller-1", "127.0.0.1", partial(make, of, Rng(1)))
    process.disk = disk
    world.start("controller-1")
    world.run_for(1_000)
    return process.failure or ""


def _again(kept: MemberSnapshot, **changed: object) -> bytes:
    fields = {"index": kept.index, "term": kept.term, "members": kept.members, "data": kept.data} | changed
    return MemberSnapshot(**fields).encode()  # type: ignore[arg-type]


def _says(kept: MemberSnapshot, name: str, number: int) -> bytes:
    found = ControllerSnapshot.FromString(kept.data)
    setattr(found, name, number)
    return _again(kept, data=found.SerializeToString())


STRANGERS = GroupMembers(frozenset({number_of("n1"), number_of("n2"), number_of("n9")}))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (lambda kept: kept.encode()[:-1], "the snapshot of the log: "),
        (lambda kept: kept.encode()[:-1] + b"!", "a snapshot is not what its checksum says"),
        (lambda kept: b"\0\0\0\x09" + kept.encode()[4:], "a snapshot of version 9"),
        (lambda kept: _again(kept, members=STRANGERS), "is that of another group: its members with"),
        (lambda kept: _again(kept, index=kept.index + 1), "is of record"),
        (lambda kept: _says(kept, "term", 99), "the snapshot of the log is of term 99"),
        (lambda kept: _again(kept, data=b"\xff"), "the snapshot of the log: "),
        (lambda kept: _says(kept, "format", 7), "the snapshot is of format 7"),
    ],
    ids=["cut", "damaged", "version", "group", "index", "term", "no snapshot", "format"],
)
def test_a_store_with_a_snapshot_that_is_not_this_ones_is_refused_by_name(
    changed: Callable[[MemberSnapshot], bytes], says: str
) -> None:
    disk, found, kept = kept_by_a_member()
    found.snapshot = (kept.index, changed(kept))
    assert says in fails(disk, properties("controller-1"))


def test_a_store_with_a_snapshot_and_no_state_or_of_the_other_kind_is_refused_by_name() -> None:
    disk, found, _ = kept_by_a_member()
    assert fails(disk, properties("controller-1")) == ""
    disk, found, _ = kept_by_a_member()
    assert "a controller that is alone cannot go on with it" in fails(
        disk, properties("controller-1") | NOBODY
    )
    found.state = None
    assert "no state of a member" in fails(disk, properties("controller-1"))
    disk = lived_alone(snapshot=True)
    assert "the log is that of a controller that was alone" in fails(disk, properties("controller-1"))


# What another member says


def hears(kept: MemberSnapshot, whole: bytes) -> Controllers:
    """A member that has nothing is sent a snapshot by the leader of term 5, and the entry after it."""
    group = short(10)
    group.world.start("controller-1")
    group.world.run_for(100)
    said: dict[str, Any] = {
        "version": 1,
        "group": "simulation/n1,n2,n3",
        "member": number_of("n2"),
        "term": 5,
    }
    part = RaftSnapshotPartRequest(
        **said,
        index=kept.index,
        last_term=kept.term,
        size=len(whole),
        offset=0,
    )
    entries = RaftEntriesRequest(
        **said,
        prev_index=kept.index,
        prev_term=kept.term,
        commit=0,
        round=0,
    )
    step = group.node("controller-1")._log.step
    step(MemberCode.SNAPSHOT_PART, part.to_ext_fields(), RaftSnapshotPart(whole).encode())
    step(MemberCode.ENTRIES, entries.to_ext_fields(), RaftEntries([RaftEntry(term=5)]).encode())
    group.world.run_for(BACK_MS)
    return group


def test_a_snapshot_is_written_together_with_all_that_was_heard_with_it() -> None:
    _, _, kept = kept_by_a_member()
    group = hears(kept, kept.encode())
    found = journal(group, "controller-1")
    assert found.snapshot == (kept.index, kept.encode())
    assert list(found.records) == [kept.index + 1]
    state = MemberState.FromString(found.state or b"")
    assert (state.term, state.member) == (5, "n1")
    assert len(group.world.processes["controller-1"].disk.changes) == 1
    assert [each.name for each in group.node("controller-1")._sets] == [NAME]


def test_a_snapshot_of_another_group_is_not_taken() -> None:
    _, _, kept = kept_by_a_member()
    group = hears(kept, _again(kept, members=STRANGERS))
    assert "is that of another group" in (group.world.processes["controller-1"].failure or "")
    assert group.world.processes["controller-1"].disk.changes == []


def test_a_member_of_which_a_snapshot_alone_is_left_knows_its_term() -> None:
    _, found, kept = kept_by_a_member()
    state = MemberState.FromString(found.state or b"")
    state.term = 3
    whole = (kept.index, _again(kept, term=3))
    members = ControllerGroup("simulation", "n1", {f"n{each}": f"127.0.0.{each}:9878" for each in (1, 2, 3)})
    node = GroupNode(members, whole, [], state.SerializeToString(), lambda _: 0)
    known = node._core.variables
    assert (known.last_index, known.last_term, known.commit, node.term) == (kept.index, 3, kept.index, 3)
    state.term = 2
    with pytest.raises(LogDamaged, match="the log is of term 3, the member knows only 2"):
        GroupNode(members, whole, [], state.SerializeToString(), lambda _: 0)


# Entries that name members


def test_entries_that_name_members_are_no_records_of_a_controller() -> None:
    group = short(9).start()
    served(group)
    leader, other = group.leader(), group.follower()
    known = group.record(leader)
    core = group.node(leader)._log._consensus._core  # type: ignore[union-attr]
    for change in (core.remove, core.add):
        assert change(number_of(f"n{other[-1]}")) is not None
        group.world.run_for(BACK_MS)
    assert core.variables.voters == {number_of(f"n{each[-1]}") for each in group.hosts}
    assert group.record(leader) == known
    for name in group.hosts:
        group.world.kill(name)
        group.world.start(name)
    grows(group, group.leader(), 4)
    group.world.run_for(BACK_MS)
    assert group.records() == 1


@pytest.mark.parametrize(
    "entry",
    [
        RaftEntry(term=1, kind=EntryKind.MEMBERS, data=b"?").encode(),
        RaftEntry(term=1, data=b"?").encode()[:-1] + b"\x07",
    ],
    ids=["members", "kind"],
)
def test_an_entry_that_cannot_be_read_is_refused_by_name(entry: bytes) -> None:
    disk, found, kept = kept_by_a_member()
    found.records = {kept.index + 1: entry}
    assert f"record {kept.index + 1} of the log: " in fails(disk, properties("controller-1"))
