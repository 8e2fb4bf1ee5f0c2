"""What is acknowledged is on the disk, whatever happens to the process or the disk."""

from __future__ import annotations

from collections import deque
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.metastore.zookeeper.core.records import MetastoreLogDamaged, decode_contents
from replispec.metastore.zookeeper.core.tree import NodeTree
from replispec.metastore.zookeeper.core.values import (
    Create,
    Delete,
    OpenSession,
    Request,
    SetData,
    TreeOutcome,
    TreeRefusal,
    WriteNodes,
)
from replispec.metastore.zookeeper.log import MetastoreLog
from replispec.runtime.primitives.rng import Rng
from replispec.runtime.sim.disk import Crashed, Disk, Left
from replispec.runtime.sim.files import SimulatedFiles
from replispec.runtime.sim.journal import SimulatedJournal
from replispec.runtime.storage import AppendRecords, ReplaceFile, StorageFailed, StorageFull, Stores
from replispec.runtime.world import Outbox, Persist, Persisted, PersistFailed, Writes
from tests.metastore.requests import HISTORIES
from tests.metastore.test_tree import everything

SESSION = 7
OPEN = OpenSession(SESSION, b"p" * 16, 6_000)


class Life:
    """One process with a log, whose writes are carried out when it is told so."""

    def __init__(self, disk: Disk, *, snapshot_bytes: int = 1 << 30) -> None:
        self.outbox, self.tree = Outbox(), NodeTree()
        self.writes = Writes(self.outbox)
        journal, files = SimulatedJournal(disk), SimulatedFiles(disk)
        self.stores = Stores(files=files, journal=journal)
        self.failures: list[str] = []
        self.answers: list[tuple[int, TreeOutcome]] = []
        self.log = MetastoreLog(
            self.outbox,
            self.writes,
            journal,
            files,
            self.tree,
            snapshot_bytes=snapshot_bytes,
            failed=self.failures.append,
        )
        self.log.start()
        self.asked: deque[Persist] = deque()

    def propose(self, number: int, request: Request) -> None:
        self.log.propose(request, 1_000, lambda outcome, _: self.answers.append((number, outcome)))

    def write(self) -> list[Persist]:
        """Carry out all that is wanted on the disk, and what follows from it; which writes there were."""
        found: list[Persist] = []
        while more := self.step():
            found += more
        return found

    def step(self) -> list[Persist]:
        """Carry out the next of the writes that are wanted, if there is one."""
        self.log.commit()
        self.asked += [each for each in self.outbox.take() if isinstance(each, Persist)]
        found = [self.asked.popleft()] if self.asked else []
        for persist in found:
            try:
                self.stores.carry_out(persist.operations)
            except StorageFailed as error:
                failed = PersistFailed(persist.token, str(error), isinstance(error, StorageFull), 1_000)
                self.writes.answered(failed)
            else:
                self.writes.answered(Persisted(persist.token, 1_000))
        return found


def changes(count: int) -> list[Request]:
    """Requests that each change something."""
    first = WriteNodes(SESSION, (Create("/n", b""),))
    return [
        OPEN,
        first,
        *(WriteNodes(SESSION, (SetData("/n", bytes([each]) * 40, each),)) for each in range(count)),
    ]


def test_what_arrives_together_is_flushed_together() -> None:
    life = Life(Disk(Rng(1)))
    for number, request in enumerate(changes(30)):
        life.propose(number, request)
    (persist,) = life.write()
    (append,) = persist.operations
    assert isinstance(append, AppendRecords)
    assert len(append.records) == 32
    assert [number for number, _ in life.answers] == list(range(32))


def test_nothing_is_applied_before_it_is_on_the_disk() -> None:
    life = Life(Disk(Rng(1)))
    life.propose(0, OPEN)
    life.log.commit()
    assert life.answers == []
    assert life.tree.sessions == {}
    assert life.log.waiting_bytes > 0
    life.write()
    assert SESSION in life.tree.sessions
    assert life.log.waiting_bytes == 0


@pytest.mark.parametrize("left", Left)
@pytest.mark.parametrize("snapshot_bytes", [1 << 30, 300])
def test_a_crash_inside_any_write_loses_nothing_that_was_acknowledged(
    left: Left, snapshot_bytes: int
) -> None:
    requests, at = changes(20), 0
    while True:
        at += 1
        disk = Disk(Rng(at))
        disk.crash_at(at, left)
        life = Life(disk, snapshot_bytes=snapshot_bytes)
        try:
            for number, request in enumerate(requests):
                life.propose(number, request)
                if number % 3:
                    life.write()
        except Crashed:
            disk.crash()
        else:
            assert at > len(requests) // 3, "no write was crashed in"
            return
        again, model = Life(disk, snapshot_bytes=snapshot_bytes), NodeTree()
        assert again.tree.zxid >= len(life.answers), f"crash in change {at}"
        for zxid, request in enumerate(requests[: again.tree.zxid], 1):
            model.apply(zxid, 1_000, request)
        assert everything(again.tree) == everything(model)
        again.propose(0, WriteNodes(SESSION, (Create("/after", b""),)))
        again.write()
        assert len(again.answers) == 1


def test_a_start_reads_no_more_than_the_tree_and_a_bounded_log() -> None:
    disk, most = Disk(Rng(3)), 2_000
    life = Life(disk, snapshot_bytes=most)
    for number, request in enumerate(changes(2_00)):
        life.propose(number, request)
        life.write()
        held = disk.journals["journal"]
        assert sum(map(len, held.records.values())) <= most + 200
    assert life.log.snapshots > 3
    disk.crash()
    assert everything(Life(disk).tree) == everything(life.tree)


def grown(disk: Disk, nodes: int) -> Life:
    """A log with a tree of so many nodes, of which a snapshot is about to be written."""
    life = Life(disk, snapshot_bytes=200_000)
    life.propose(0, OPEN)
    for each in range(nodes):
        life.propose(each, WriteNodes(SESSION, (Create(f"/n{each}", bytes(60_000)),)))
    return life


def test_a_snapshot_is_written_in_parts_and_changes_go_on_between_them() -> None:
    disk = Disk(Rng(5))
    life = grown(disk, 25)
    life.log.commit()
    number, kinds = 10_000, []
    while life.log.snapshots == 0:
        life.propose(number, WriteNodes(SESSION, (SetData(f"/n{number % 25}", b"new", -1),)))
        kinds += [type(persist.operations[0]) for persist in life.step()]
        number += 1
    life.write()
    parts = [place for place, kind in enumerate(kinds) if kind is ReplaceFile]
    assert len(parts) >= 4
    assert all(AppendRecords in kinds[one:other] for one, other in pairwise(parts))
    assert len(life.answers) == number - 10_000 + 26
    disk.crash()
    again = Life(disk)
    assert everything(again.tree) == everything(life.tree)


@pytest.mark.parametrize("left", Left)
def test_a_crash_inside_any_part_of_a_snapshot_loses_nothing_and_leaves_no_strays(left: Left) -> None:
    at, seen = 0, 0
    while True:
        at += 1
        disk = Disk(Rng(at))
        disk.crash_at(at, left)
        life = grown(disk, 14)
        try:
            life.write()
            for each in range(0, 14, 3):
                life.propose(each, WriteNodes(SESSION, (Delete(f"/n{each}", -1), Create("/n0", b"again"))))
                life.propose(each, WriteNodes(SESSION, (SetData("/n1", bytes(70_000), -1),)))
                life.write()
        except Crashed:
            disk.crash()
        else:
            break
        again = Life(disk)
        again.write()
        assert again.tree.zxid >= len(life.answers), f"crash in change {at}"
        assert again.tree.zxid == 0 or again.tree.size == 15, f"crash in change {at}"
        kept = SimulatedJournal(disk).snapshot()
        parts = 0 if kept is None else len(decode_contents(*kept))
        assert len(disk.contents) == parts, f"crash in change {at}"
        seen += bool(parts)
    assert seen > 3


def test_a_part_that_is_not_what_was_written_is_named() -> None:
    disk = Disk(Rng(5))
    life = grown(disk, 14)
    life.write()
    assert life.log.snapshots == 1
    disk.crash()
    name = sorted(disk.contents)[1]
    disk.contents[name].data[50] ^= 1
    with pytest.raises(MetastoreLogDamaged, match=name):
        Life(disk)
    del disk.contents[name]
    with pytest.raises(MetastoreLogDamaged, match=f"{name}.*missing"):
        Life(disk)


@given(history=HISTORIES, cuts=st.sets(st.integers(1, 40)), seed=st.integers(0, 1 << 32))
def test_a_start_finds_what_was_there(history: list[Request], cuts: set[int], seed: int) -> None:
    disk = Disk(Rng(seed))
    life = Life(disk, snapshot_bytes=400)
    for number, request in enumerate(history, 1):
        life.propose(number, request)
        if number in cuts:
            life.write()
            before = everything(life.tree)
            disk.crash()
            life = Life(disk, snapshot_bytes=400)
            assert everything(life.tree) == before


def test_a_full_disk_refuses_what_it_cannot_keep_and_nothing_else() -> None:
    disk = Disk(Rng(1))
    life = Life(disk)
    for number, request in enumerate(changes(3)):
        life.propose(number, request)
    life.write()
    before, disk.room_bytes = everything(life.tree), disk.used_bytes()
    life.propose(100, WriteNodes(SESSION, (Delete("/n", -1),)))
    life.write()
    assert life.answers[-1] == (100, TreeOutcome(refusal=TreeRefusal.SYSTEM_ERROR))
    assert everything(life.tree) == before
    disk.room_bytes = None
    life.propose(101, WriteNodes(SESSION, (Delete("/n", -1),)))
    life.write()
    assert life.answers[-1][1].refusal is None
    disk.crash()
    assert everything(Life(disk).tree) == everything(life.tree)
    assert life.failures == []


def test_a_disk_of_which_nothing_is_known_ends_all_decisions() -> None:
    disk = Disk(Rng(1))
    life = Life(disk)
    disk.plan = lambda what: "broken" if what.startswith("append") else None
    life.propose(0, OPEN)
    life.write()
    assert len(life.failures) == 1
    assert life.answers == []
    life.propose(1, OPEN)
    assert life.write() == []
