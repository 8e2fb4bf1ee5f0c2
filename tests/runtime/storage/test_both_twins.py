"""What storage promises is kept by both twins: the disk and the simulated one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from replispec.runtime.sim import Disk, Rng, SimulatedStorage
from replispec.runtime.storage import Storage, StorageFailed
from replispec.runtime.storage.disk_shell import DiskStorage
from tests.runtime.storage.writing import made

Make = Callable[[Path], tuple[Storage, str]]


def _on_disk(folder: Path) -> tuple[Storage, str]:
    return DiskStorage(), f"{folder}/made/by/it"


def _simulated(_: Path) -> tuple[Storage, str]:
    return SimulatedStorage(Disk(Rng(1))), "store"


@pytest.fixture(params=[_on_disk, _simulated], ids=["disk", "simulated"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Storage, str]:
    """A storage and a folder in it that nobody made yet."""
    make: Make = request.param
    return make(tmp_path)


def test_a_region_reads_back_what_was_written_and_views_show_later_writes(place: tuple[Storage, str]) -> None:
    files = place[0].files(place[1])
    region = made(files, "log/0000", 10_000)
    view = region.view(10, 5)
    assert bytes(view) == bytes(5)
    region.write(8, memoryview(b"xxabcdexx"))
    files.flush(["log/0000"])
    assert (region.size, bytes(view), bytes(region.view(0, 0))) == (10_000, b"abcde", b"")
    assert view.readonly
    assert files.region("log/0000").size == 10_000


def test_names_are_ascending_and_only_those_of_the_folder(place: tuple[Storage, str]) -> None:
    files = place[0].files(place[1])
    assert files.names() == files.names("nowhere") == []
    for name in ("b", "a", "deep/er/c", "deep/d"):
        files.replace(name, b"")
    assert list(files.names()) == ["a", "b"]
    assert list(files.names("deep")) == ["d"]
    assert list(files.names("deep/er")) == ["c"]


def test_a_file_is_replaced_renamed_and_removed(place: tuple[Storage, str]) -> None:
    files = place[0].files(place[1])
    assert files.read("epochs") is None
    files.replace("epochs", b"one")
    files.replace("epochs", b"two")
    assert files.read("epochs") == b"two"
    files.replace("other", b"old")
    files.rename("epochs", "other")
    assert (files.read("epochs"), files.read("other")) == (None, b"two")
    files.remove("other")
    files.remove("other")
    assert files.names() == []


def test_what_is_not_there_cannot_be_opened_or_renamed(place: tuple[Storage, str]) -> None:
    files = place[0].files(place[1])
    with pytest.raises(StorageFailed, match="none"):
        files.region("none")
    with pytest.raises(StorageFailed, match="none"):
        files.rename("none", "some")


def test_a_journal_keeps_records_and_the_value_and_replaces_the_end(place: tuple[Storage, str]) -> None:
    journal = place[0].journal(f"{place[1]}/log")
    assert (list(journal.records()), journal.state()) == ([], None)
    journal.append([(1, b"one"), (2, b"two"), (3, b"")], state=b"vote")
    journal.append([(2, b"other")])
    journal.append([], state=b"")
    assert list(journal.records()) == [(1, b"one"), (2, b"other")]
    assert journal.state() == b""


def test_a_value_takes_the_place_of_the_first_records(place: tuple[Storage, str]) -> None:
    journal = place[0].journal(f"{place[1]}/log")
    assert journal.snapshot() is None
    journal.append([(1, b"one"), (2, b"two"), (3, b"three")], state=b"vote")
    journal.replace(2, b"one and two")
    assert (list(journal.records()), journal.snapshot()) == ([(3, b"three")], (2, b"one and two"))
    journal.replace(3, b"all")
    assert (list(journal.records()), journal.snapshot(), journal.state()) == ([], (3, b"all"), b"vote")
    journal.append([(4, b"four"), (5, b"five")])
    journal.append([(5, b"other")])
    assert list(journal.records()) == [(4, b"four"), (5, b"other")]


def test_a_value_and_what_follows_it_take_the_place_of_all_records(place: tuple[Storage, str]) -> None:
    journal = place[0].journal(f"{place[1]}/log")
    journal.append([(1, b"one"), (2, b"two")], state=b"vote")
    journal.replace(9, b"nine", records=[(10, b"ten"), (11, b"eleven")], state=b"other", is_all=True)
    assert (list(journal.records()), journal.snapshot()) == ([(10, b"ten"), (11, b"eleven")], (9, b"nine"))
    assert journal.state() == b"other"
    journal.replace(11, b"eleven", records=[(11, b"another"), (12, b"twelve")])
    assert (list(journal.records()), journal.snapshot()) == ([(12, b"twelve")], (11, b"eleven"))
    journal.replace(20, b"twenty", is_all=True)
    journal.append([(21, b"last")])
    assert (list(journal.records()), journal.snapshot()) == ([(21, b"last")], (20, b"twenty"))
    assert journal.state() == b"other"


def test_whatever_was_written_is_named_and_the_rest_is_zeros(place: tuple[Storage, str]) -> None:
    region = made(place[0].files(place[1]), "log/0000", 1 << 20)
    for at, data in ((0, b"first"), (300_000, b"middle"), ((1 << 20) - 4, b"last")):
        region.write(at, data)
    named = bytearray(1 << 20)
    last = 0
    for start, end in region.written():
        assert last <= start < end <= region.size
        named[start:end] = region.view(start, end - start)
        last = end
    assert named == region.view(0, region.size)
