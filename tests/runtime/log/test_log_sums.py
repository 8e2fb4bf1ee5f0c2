"""Checksums of files and pieces of a log are those of its bytes, however it grew, was cut and deleted."""

from __future__ import annotations

import random
import zlib

import pytest

from replispec.runtime.rocketmq.log.log_sums import LogSums
from replispec.wire.rocketmq.constants import DIGEST_PIECE_BYTES as PIECE


class Bytes:
    """A log of random bytes, of which it is counted how many were read."""

    def __init__(self, file_bytes: int, size: int, seed: int = 3) -> None:
        self.data = random.Random(seed).randbytes(size)
        self.file_bytes = file_bytes
        self.read = 0

    def view(self, offset: int, size: int) -> memoryview:
        """See LogSums."""
        end = min(offset + size, offset - offset % self.file_bytes + self.file_bytes, len(self.data))
        self.read += end - offset
        return memoryview(self.data)[offset:end]

    def crc(self, start: int, end: int) -> int:
        """Of these bytes."""
        return zlib.crc32(self.data[start:end])


def compared(log: Bytes, sums: LogSums, start: int, end: int, at_most: int = 5) -> int:
    """Ask for all checksums of a part, compare them with the bytes; how many pieces there are."""
    count, at = 0, start
    while at < end:
        found = sums.sums(at, end, at_most)
        assert 0 < len(found.sums) <= at_most
        for number, crc in enumerate(found.sums):
            first, last = sums.piece(number, at, end)
            assert crc == log.crc(first, last)
            count += 1
        assert found.end == last
        at = found.end
    return count


@pytest.mark.parametrize("file_bytes", [2 * PIECE, PIECE + 77_777, 300_000])
def test_pieces_and_files_have_the_checksums_of_their_bytes(file_bytes: int) -> None:
    log = Bytes(file_bytes, 3 * file_bytes + file_bytes // 2)
    sums, rng = LogSums(file_bytes, 0, log.view), random.Random(file_bytes)
    end = len(log.data)
    for offset in [*sorted(rng.randrange(end) for _ in range(5)), end]:
        sums.move(offset)
        last = sums.last()
        assert last.crc == log.crc(last.start, last.end)
    compared(log, sums, 0, end)
    for cut in (end - 1_000, 2 * file_bytes + 10, file_bytes + file_bytes // 2, 3 * file_bytes):
        sums.forget_after(cut)
        compared(log, sums, 0, cut)
        sums.move(end)
        compared(log, sums, rng.randrange(end), end)
    sums.delete_before(file_bytes)
    compared(log, sums, file_bytes, end)


def test_nothing_is_read_again_but_the_piece_that_is_cut() -> None:
    log = Bytes(4 * PIECE, 6 * PIECE + 500)
    sums = LogSums(log.file_bytes, 0, log.view)
    sums.move(len(log.data))
    assert log.read == len(log.data)
    assert compared(log, sums, 0, len(log.data), at_most=256) == 7
    assert log.read == len(log.data) + 500
    assert sums.sums(0, 6 * PIECE, 256).read_bytes == 0


def test_what_is_not_there_has_no_checksums() -> None:
    log = Bytes(PIECE, PIECE)
    sums = LogSums(PIECE, 0, log.view)
    sums.move(PIECE)
    assert sums.sums(PIECE, PIECE, 9) == ([], PIECE, False)
    assert sums.sums(PIECE, 0, 9) == ([], PIECE, False)
