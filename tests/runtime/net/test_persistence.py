"""Where writes of a node are carried out: in place while the disk is quick, else on a thread; in order."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import trio

from replispec.runtime.net.clock import Clock
from replispec.runtime.net.persistence import IN_PLACE_BYTES_MAX, IN_PLACE_SECONDS_MAX, Persistence
from replispec.runtime.storage import AppendRecords, Operation, StorageFull, Stores
from replispec.runtime.world import Event, Persist, Persisted, PersistFailed

SLOW = IN_PLACE_SECONDS_MAX * 2
LONG = b"x" * (IN_PLACE_BYTES_MAX + 1)


@dataclass
class Disk:
    """A journal on which every write takes as long as the test says, on a clock of its own."""

    takes: list[float] = field(default_factory=list)
    full: bool = False
    now: float = 0.0
    wrote: list[tuple[int, bool]] = field(default_factory=list)

    def records(self) -> Sequence[tuple[int, bytes]]:
        """Nothing is read here."""
        return ()

    def state(self) -> bytes | None:
        """Nothing is read here."""
        return None

    def snapshot(self) -> tuple[int, bytes] | None:
        """Nothing is read here."""
        return None

    def replace(
        self,
        index: int,
        snapshot: bytes,
        *,
        records: Sequence[tuple[int, bytes]] = (),
        state: bytes | None = None,
        is_all: bool = False,
    ) -> None:
        """Nothing is replaced here."""

    def append(self, records: Sequence[tuple[int, bytes]], *, state: bytes | None = None) -> None:
        """Note the first index and whether the loop's own thread writes."""
        assert state is None
        self.wrote.append((records[0][0], threading.current_thread() is threading.main_thread()))
        self.now += self.takes.pop(0) if self.takes else 0.0
        if self.full:
            raise StorageFull("no room")


def _played(disk: Disk, play: Callable[[Persistence], Awaitable[None]]) -> list[Event]:
    """Run the writes of one node while `play` asks for some, and return their answers."""
    answers: list[Event] = []

    async def run() -> None:
        stores = Stores(journal=disk)
        persistence = Persistence(stores, Clock(), answers.append, seconds=lambda: disk.now)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(persistence.run)
            with trio.fail_after(30):
                await play(persistence)
                await persistence.finished()
            nursery.cancel_scope.cancel()

    trio.run(run)
    return answers


def _append(number: int, data: bytes = b"x") -> Persist:
    operations: tuple[Operation, ...] = (AppendRecords(((number, data),)),)
    return Persist(number, operations)


async def _one_by_one(persistence: Persistence, *writes: Persist) -> None:
    for write in writes:
        persistence.ask(write)
        await persistence.finished()


def test_small_appends_to_a_quick_disk_are_written_in_place() -> None:
    disk = Disk()
    answers = _played(disk, lambda it: _one_by_one(it, _append(1), _append(2)))
    assert disk.wrote == [(1, True), (2, True)]
    assert [each.token for each in answers if isinstance(each, Persisted)] == [1, 2]


def test_an_append_that_was_slow_sends_the_next_ones_to_the_thread_until_one_is_quick() -> None:
    disk = Disk(takes=[SLOW, SLOW, 0.0])
    _played(disk, lambda it: _one_by_one(it, *map(_append, (1, 2, 3, 4))))
    assert disk.wrote == [(1, True), (2, False), (3, False), (4, True)]


def test_a_long_append_holds_nobody_up() -> None:
    disk = Disk()
    _played(disk, lambda it: _one_by_one(it, _append(1, LONG), _append(2)))
    assert disk.wrote == [(1, False), (2, True)]


def test_writes_keep_their_order_wherever_they_are_carried_out() -> None:
    disk = Disk()

    async def all_at_once(persistence: Persistence) -> None:
        for number in range(40):
            persistence.ask(_append(number, LONG if number % 3 == 1 else b"x"))

    answers = _played(disk, all_at_once)
    assert [number for number, _ in disk.wrote] == list(range(40))
    assert [each.token for each in answers if isinstance(each, Persisted)] == list(range(40))
    # What follows a write that is on the thread waits for it there.
    assert disk.wrote[:3] == [(0, True), (1, False), (2, False)]


def test_who_asks_while_a_write_is_under_way_is_heard_before_the_next_one() -> None:
    disk = Disk()
    written: list[int] = []

    async def with_a_neighbour(persistence: Persistence) -> None:
        async def neighbour() -> None:
            for _ in range(3):
                written.append(len(disk.wrote))
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            for number in range(10):
                persistence.ask(_append(number))
            nursery.start_soon(neighbour)

    _played(disk, with_a_neighbour)
    assert len(disk.wrote) == 10
    assert written[-1] < 10


def test_a_full_disk_is_told_in_place_as_well_as_from_the_thread() -> None:
    disk = Disk(full=True)
    answers = _played(disk, lambda it: _one_by_one(it, _append(1), _append(2, LONG)))
    refused = [each for each in answers if isinstance(each, PersistFailed)]
    assert [(each.token, each.is_full, each.reason) for each in refused] == [
        (1, True, "no room"),
        (2, True, "no room"),
    ]
    assert [in_place for _, in_place in disk.wrote] == [True, False]
