"""The disk in memory keeps what storage promises, and nothing more."""

from collections.abc import Callable

import pytest

from replispec.runtime.sim import Crashed, Disk, Left, Rng, SimulatedFiles, SimulatedJournal
from replispec.runtime.storage import Files, Journal, StorageFailed
from tests.runtime.storage.writing import made

OLD = b"o" * 20
NEW = b"n" * 20


def crashed_write(seed: int, *, flushed: bool, power: bool) -> bytes:
    disk = Disk(Rng(seed))
    files: Files = SimulatedFiles(disk)
    region = made(files, "log/0", 20)
    region.write(0, OLD)
    files.flush(["log/0"])
    region.write(0, NEW)
    if flushed:
        files.flush(["log/0"])
    disk.crash(power=power)
    return SimulatedFiles(disk).read("log/0") or b""


def test_what_was_flushed_outlives_a_power_loss() -> None:
    assert {crashed_write(seed, flushed=True, power=True) for seed in range(20)} == {NEW}


def test_what_was_not_flushed_is_kept_lost_or_torn() -> None:
    left = {crashed_write(seed, flushed=False, power=True) for seed in range(60)}
    assert {OLD, NEW} < left
    assert any(0 < each.count(b"n") < 20 for each in left)


def test_what_was_not_flushed_outlives_the_process_alone() -> None:
    assert {crashed_write(seed, flushed=False, power=False) for seed in range(20)} == {NEW}


def test_a_power_loss_after_the_loss_of_the_process_still_costs_what_was_not_flushed() -> None:
    left = set()
    for seed in range(20):
        disk = Disk(Rng(seed))
        made(SimulatedFiles(disk), "log", 20).write(0, NEW)
        disk.crash(power=False)
        disk.crash(power=True)
        left.add(SimulatedFiles(disk).read("log"))
    assert len(left) > 2


def test_a_flush_that_failed_is_not_made_good_by_the_next_one() -> None:
    left = set()
    for seed in range(40):
        disk = Disk(Rng(seed))
        files = SimulatedFiles(disk)
        made(files, "log", 20).write(0, NEW)
        disk.plan = lambda what: "input/output error" if what == "flush log" else None
        with pytest.raises(StorageFailed, match="input/output error"):
            files.flush(["log"])
        disk.plan = None
        files.flush(["log"])
        disk.crash()
        left.add(SimulatedFiles(disk).read("log"))
    assert bytes(20) in left


def in_one_step(change: str, files: Files, journal: Journal) -> None:
    match change:
        case "replace":
            files.replace("a", NEW)
        case "rename":
            files.rename("a", "b")
        case "remove":
            files.remove("a")
        case _:
            journal.append([(1, NEW), (2, NEW)], state=NEW)


@pytest.mark.parametrize("left", list(Left))
@pytest.mark.parametrize("change", ["replace", "rename", "remove", "append"])
def test_a_change_in_one_step_happens_whole_or_not_at_all(change: str, left: Left) -> None:
    outcomes = set()
    for seed in range(20):
        disk = Disk(Rng(seed))
        files: Files = SimulatedFiles(disk)
        journal: Journal = SimulatedJournal(disk)
        files.replace("a", OLD)
        journal.append([(1, OLD)], state=OLD)
        disk.crash_at(1, left)
        with pytest.raises(Crashed):
            in_one_step(change, files, journal)
        disk.crash()
        files, journal = SimulatedFiles(disk), SimulatedJournal(disk)
        outcomes.add((files.read("a"), files.read("b"), tuple(journal.records()), journal.state()))
    before = (OLD, None, ((1, OLD),), OLD)
    after = {
        "replace": (NEW, None, ((1, OLD),), OLD),
        "rename": (None, OLD, ((1, OLD),), OLD),
        "remove": (None, None, ((1, OLD),), OLD),
        "append": (OLD, None, ((1, NEW), (2, NEW)), NEW),
    }[change]
    assert outcomes == {Left.NOTHING: {before}, Left.ALL: {after}, Left.PART: {before, after}}[left]


def test_changes_are_counted_and_named_and_a_crash_comes_where_it_was_asked_for() -> None:
    disk = Disk(Rng(1))
    files = SimulatedFiles(disk)
    files.replace("a", b"1")
    disk.crash_at(2, Left.NOTHING)
    region = made(files, "b", 4)
    with pytest.raises(Crashed, match="change 3: write b at 2"):
        region.write(2, b"xy")
    assert disk.changes == ["replace a", "make b", "write b at 2"]


def test_a_dead_process_can_do_nothing_more() -> None:
    disk = Disk(Rng(1))
    files, journal = SimulatedFiles(disk), SimulatedJournal(disk)
    region = made(files, "b", 4)
    disk.crash()
    calls: tuple[Callable[[], None], ...] = (
        lambda: files.replace("a", b""),
        lambda: region.write(0, b"x"),
        lambda: journal.append([(1, b"")]),
        lambda: files.flush(["b"]),
    )
    for call in calls:
        with pytest.raises(Crashed, match="has died"):
            call()


def test_a_full_disk_refuses_and_keeps_what_it_has() -> None:
    disk = Disk(Rng(1), room_bytes=100)
    files = SimulatedFiles(disk)
    files.replace("a", bytes(60))
    with pytest.raises(StorageFailed, match="no space left"):
        made(files, "b", 50)
    with pytest.raises(StorageFailed, match="no space left"):
        files.replace("a", bytes(41))
    with pytest.raises(StorageFailed, match="no space left"):
        SimulatedJournal(disk).append([(1, bytes(41))])
    assert files.names() == ["a"]
    assert files.read("a") == bytes(60)


def test_names_are_those_of_one_folder_in_order() -> None:
    files = SimulatedFiles(Disk(Rng(1)))
    for name in ("log/2", "log/1", "logs", "log/deep/1"):
        files.replace(name, b"")
    assert files.names("log") == ["1", "2"]
    assert files.names() == ["logs"]
    assert files.names("nowhere") == []


def test_a_region_shows_later_writes_through_its_views_and_keeps_its_size() -> None:
    files: Files = SimulatedFiles(Disk(Rng(1)))
    region = made(files, "log", 8)
    view = region.view(2, 4)
    region.write(3, b"ab")
    assert bytes(view) == b"\0ab\0"
    assert view.readonly
    assert files.region("log").size == 8
    with pytest.raises(AssertionError):
        region.write(7, b"ab")


def test_a_damaged_record_is_refused() -> None:
    disk = Disk(Rng(1))
    journal = SimulatedJournal(disk)
    journal.append([(1, b"a"), (2, b"b")])
    disk.journals["journal"].damaged.append(2)
    with pytest.raises(StorageFailed, match="record 2"):
        journal.records()


def test_the_rng_is_the_published_generator() -> None:
    """The first numbers of splitmix64 from 1234567, as published with its reference implementation."""
    rng = Rng(1234567)
    assert [rng.bits() for _ in range(3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]
