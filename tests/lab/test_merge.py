"""Captures that were written side by side become one, in the order of time."""

import struct
from pathlib import Path

import pytest

from lab.merge import MAGIC, MergeError, merge


def capture(path: Path, *records: tuple[int, int, bytes], magic: int = MAGIC) -> Path:
    head = struct.pack("<IHHiIII", magic, 2, 4, 0, 0, 65_535, 101)
    body = b"".join(struct.pack("<IIII", s, us, len(data), len(data)) + data for s, us, data in records)
    path.write_bytes(head + body)
    return path


def test_records_are_ordered_by_time_and_cut_ones_left_out(tmp_path: Path) -> None:
    first = capture(tmp_path / "a", (1, 5, b"one"), (3, 0, b"three"))
    second = capture(tmp_path / "b", (1, 6, b"two"), (4, 0, b"never whole"))
    second.write_bytes(second.read_bytes()[:-1])
    expected = capture(tmp_path / "e", (1, 5, b"one"), (1, 6, b"two"), (3, 0, b"three"))
    assert merge([first, second], tmp_path / "out") == 3
    assert (tmp_path / "out").read_bytes() == expected.read_bytes()


def test_files_of_another_kind_are_refused(tmp_path: Path) -> None:
    one = capture(tmp_path / "a", (1, 5, b"one"))
    other = capture(tmp_path / "b", (1, 5, b"one"), magic=0xA1B23C4D)
    with pytest.raises(MergeError, match="2 different kinds"):
        merge([one, other], tmp_path / "out")
    with pytest.raises(MergeError, match="no capture of ours"):
        merge([other], tmp_path / "out")
