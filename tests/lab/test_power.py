"""A machine that loses its power keeps what was flushed, and nothing else that was written in place."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from lab.losing.storage import RememberingFiles
from lab.power import SECTOR_BYTES, lose_power

SIZE = 4 * SECTOR_BYTES


@pytest.fixture
def files(tmp_path: Path) -> RememberingFiles:
    """A folder of one process, with a file of zeros."""
    opened = RememberingFiles(tmp_path / "data", tmp_path / "undone")
    opened.make("log", SIZE)
    return opened


def _lose(tmp_path: Path, *, share: float = 1.0, seed: int = 1) -> int:
    return lose_power(tmp_path / "undone", random.Random(seed), share=share)


def _on_disk(tmp_path: Path) -> bytes:
    return (tmp_path / "data" / "log").read_bytes()


def test_what_was_flushed_stays_and_what_was_not_is_gone(files: RememberingFiles, tmp_path: Path) -> None:
    region = files.region("log")
    region.write(0, b"flushed")
    region.write(SECTOR_BYTES, b"flushed as well")
    files.flush(["log"])
    region.write(3, b"SHED")
    region.write(SECTOR_BYTES - 2, b"over two sectors")
    files.close()
    assert _lose(tmp_path) == 4 + 16
    expected = bytearray(SIZE)
    expected[:7], expected[SECTOR_BYTES : SECTOR_BYTES + 15] = b"flushed", b"flushed as well"
    assert _on_disk(tmp_path) == expected
    assert _lose(tmp_path) == 0


def test_a_process_that_begins_again_does_not_make_durable_what_the_one_before_wrote(
    files: RememberingFiles, tmp_path: Path
) -> None:
    files.region("log").write(0, b"by the first")
    files.close()
    second = RememberingFiles(tmp_path / "data", tmp_path / "undone")
    assert bytes(second.region("log").view(0, 12)) == b"by the first"
    second.close()
    assert _lose(tmp_path) == 12
    assert _on_disk(tmp_path) == bytes(SIZE)


def test_what_is_written_while_a_flush_runs_is_not_its_own(files: RememberingFiles, tmp_path: Path) -> None:
    region = files.region("log")
    region.write(0, b"before")
    undo = files.undo("log")
    began = undo.begin()
    region.write(6, b"while")
    undo.forget(began)
    files.close()
    assert _lose(tmp_path) == 5
    assert _on_disk(tmp_path)[:12] == b"before" + bytes(6)


def test_of_what_was_not_flushed_each_sector_is_there_whole_or_not_at_all(
    files: RememberingFiles, tmp_path: Path
) -> None:
    region = files.region("log")
    for at in range(0, SIZE, 64):
        region.write(at, b"a" * 64)
    region.write(0, b"b" * SIZE)
    files.close()
    _lose(tmp_path, share=0.5, seed=3)
    data = _on_disk(tmp_path)
    found = {data[at : at + SECTOR_BYTES] for at in range(0, SIZE, SECTOR_BYTES)}
    assert found == {bytes(SECTOR_BYTES), b"b" * SECTOR_BYTES}


def test_a_run_that_was_kept_in_part_was_not_written_over(files: RememberingFiles, tmp_path: Path) -> None:
    files.region("log").write(0, b"whole")
    files.close()
    (kept,) = (tmp_path / "undone").rglob("0")
    kept.write_bytes(kept.read_bytes() + (7).to_bytes(8, "big") + (100).to_bytes(8, "big") + b"part")
    assert _lose(tmp_path) == 5
    assert _on_disk(tmp_path) == bytes(SIZE)
