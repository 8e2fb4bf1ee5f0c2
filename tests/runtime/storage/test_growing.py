"""Files that grow keep what storage promises, on a disk and on the simulated one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from replispec.runtime.sim import Disk, Rng, SimulatedFiles, SimulatedStorage
from replispec.runtime.storage import (
    CutFile,
    Files,
    RemoveFolder,
    RenameFolder,
    Storage,
    StorageFailed,
    StorageFull,
    Stores,
    disk_shell,
    growing_shell,
)
from replispec.runtime.storage.disk_shell import DiskFiles, DiskStorage


@pytest.fixture(params=[DiskStorage, lambda: SimulatedStorage(Disk(Rng(1)))], ids=["disk", "simulated"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    """A folder that is empty."""
    storage: Storage = request.param()
    return storage.files(f"{tmp_path}/folder")


def test_a_file_is_there_from_its_first_append_on_and_grows(files: Files) -> None:
    file = files.growing("t-0/00.log")
    assert (file.size, file.read(0, 10), files.names("t-0"), files.folders()) == (0, b"", [], [])
    file.append(0, b"")
    assert (file.size, list(files.names("t-0")), list(files.folders())) == (0, ["00.log"], ["t-0"])
    file.append(0, b"abc")
    file.append(3, memoryview(b"defg"))
    assert (file.size, file.read(2, 3), file.read(5, 100)) == (7, b"cde", b"fg")
    files.flush(["t-0/00.log"])
    assert files.growing("t-0/00.log").read(0, 7) == files.read("t-0/00.log") == b"abcdefg"


def test_a_file_is_cut_and_goes_on_there(files: Files) -> None:
    file = files.growing("log")
    Stores(files=files).carry_out([CutFile("log", 0)])
    file.append(0, b"abcdef")
    Stores(files=files).carry_out([CutFile("log", 4), CutFile("log", 5)])
    assert (file.size, file.read(0, 9)) == (4, b"abcd")
    file.append(4, b"XY")
    assert file.read(0, 9) == b"abcdXY"


def test_a_folder_gets_another_name_and_goes_with_all_that_is_in_it(files: Files) -> None:
    carry_out = Stores(files=files).carry_out
    carry_out([RenameFolder("t-0", "gone"), RemoveFolder("gone")])
    for name in ("t-0/a", "t-0/b", "t-00/a"):
        files.growing(name).append(0, b"x")
    carry_out([RenameFolder("t-0", "gone")])
    assert (list(files.folders()), list(files.names("gone"))) == (["gone", "t-00"], ["a", "b"])
    files.growing("t-0/a").append(0, b"new")
    carry_out([RemoveFolder("gone")])
    assert list(files.folders()) == ["t-0", "t-00"]
    assert files.growing("t-0/a").read(0, 9) == b"new"


def test_a_removed_file_begins_anew(files: Files) -> None:
    files.growing("log").append(0, b"old")
    files.remove("log")
    files.growing("log").append(0, b"n")
    assert files.growing("log").read(0, 9) == b"n"


def test_however_many_files_there_are_few_are_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing_shell, "OPEN_MAX", 5)
    files = DiskFiles(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    for round_ in range(2):
        for number in range(60):
            files.growing(f"t-{number}/log").append(round_, bytes([65 + round_]))
    assert len(os.listdir("/proc/self/fd")) - before <= 5
    assert {files.growing(f"t-{number}/log").read(0, 9) for number in range(60)} == {b"AB"}
    files.flush([f"t-{number}/log" for number in range(60)])
    files.close()
    assert len(os.listdir("/proc/self/fd")) < before


@pytest.mark.parametrize("alone_max", [0, 100])
def test_a_flush_brings_files_and_the_names_of_new_ones_to_the_disk(
    alone_max: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_shell, "FLUSHED_ALONE_MAX", alone_max)
    synced: list[str] = []
    monkeypatch.setattr(disk_shell, "sync_folder", lambda path: synced.append(path.name))
    files = DiskFiles(tmp_path / "logs")
    synced.clear()
    for name in ("t-0/a", "t-0/b", "t-1/a", "t-1/not flushed"):
        files.growing(name).append(0, b"x")
    flushed_all: list[bool] = []
    real = growing_shell.OpenFiles.flush_all

    def seen(of: growing_shell.OpenFiles, descriptor: int, paths: Iterable[Path]) -> bool:
        flushed_all.append(real(of, descriptor, paths))
        return flushed_all[-1]

    monkeypatch.setattr(growing_shell.OpenFiles, "flush_all", seen)
    files.flush(["t-0/a", "t-0/b", "t-1/a"])
    if alone_max:
        assert (flushed_all, sorted(synced)) == ([], ["logs", "t-0", "t-1"])
        files.flush(["t-0/a"])
        assert len(synced) == 3
    else:
        assert (flushed_all, synced) == ([True], [])
    files.close()


def test_a_flush_of_all_that_fails_is_told(tmp_path: Path) -> None:
    files = DiskFiles(tmp_path)
    files.growing("a").append(0, b"x")
    with pytest.raises(StorageFailed, match="Bad file descriptor"):
        growing_shell.OpenFiles(tmp_path).flush_all(-1, [tmp_path / "a"])


def test_a_file_that_the_system_refuses_is_told(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    files = DiskFiles(tmp_path)
    with pytest.raises(StorageFailed, match="folder"):
        files.growing("folder").append(0, b"x")
    with pytest.raises(StorageFailed, match="folder"):
        files.growing("folder").read(0, 1)


def test_a_full_disk_takes_nothing_of_an_append() -> None:
    disk = Disk(Rng(1), room_bytes=10)
    file = SimulatedFiles(disk).growing("log")
    file.append(0, bytes(8))
    with pytest.raises(StorageFull):
        file.append(8, bytes(3))
    assert file.size == 8


def test_a_real_full_disk_takes_nothing_of_an_append(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = DiskFiles(tmp_path).growing("log")
    file.append(0, b"abcd")
    real = os.pwrite
    taken: list[bool] = []

    def half(descriptor: int, data: memoryview, at: int) -> int:
        if taken:
            raise OSError(28, "No space left on device")
        taken.append(True)
        return real(descriptor, data[:3], at)

    monkeypatch.setattr(os, "pwrite", half)
    with pytest.raises(StorageFull):
        file.append(4, b"efghij")
    assert (file.size, file.read(0, 99)) == (4, b"abcd")


def left_of(seed: int, *, flushed: bool, power: bool = True) -> bytes | None:
    """What a crash leaves of a file with eight flushed bytes, if any, and eight more."""
    disk = Disk(Rng(seed))
    files = SimulatedFiles(disk)
    if flushed:
        files.growing("log").append(0, b"o" * 8)
        files.flush(["log"])
    files.growing("log").append(8 * flushed, b"n" * 8)
    disk.crash(power=power)
    return SimulatedFiles(disk).read("log")


def test_a_crash_leaves_any_part_of_what_was_not_flushed_and_all_that_was() -> None:
    left = [left_of(seed, flushed=True) or b"" for seed in range(200)]
    assert all(each[:8] == b"o" * 8 for each in left)
    assert {len(each) for each in left} == set(range(8, 17))
    assert b"o" * 8 + bytes(8) in left, "room without what was put there"
    assert {left_of(seed, flushed=True, power=False) for seed in range(20)} == {b"o" * 8 + b"n" * 8}


def test_a_new_file_that_was_not_flushed_may_be_gone() -> None:
    left = {left_of(seed, flushed=False) for seed in range(200)}
    assert {None, b"", b"n" * 8} < left


def test_what_was_cut_stays_cut() -> None:
    for seed in range(50):
        disk = Disk(Rng(seed))
        files = SimulatedFiles(disk)
        files.growing("log").append(0, b"o" * 8)
        files.cut("log", 3)
        files.growing("log").append(3, b"n")
        disk.crash()
        assert (SimulatedFiles(disk).read("log") or b"") in (b"ooo", b"ooon", b"ooo\0")


def test_a_folder_whose_removal_was_interrupted_is_removed_by_the_next_one() -> None:
    disk = Disk(Rng(3))
    files = SimulatedFiles(disk)
    for number in range(8):
        files.growing(f"gone/{number}").append(0, b"x")
    disk.plan = lambda what: "broken" if what.startswith("remove") else None
    with pytest.raises(StorageFailed):
        files.remove_folder("gone")
    assert 0 < len(files.names("gone")) < 8
    disk.mend()
    files.remove_folder("gone")
    assert files.names("gone") == []
