"""Packet captures as ranges of bytes: container recognition, record walk, exact cut points.

A capture file (pcap or pcapng, optionally gzip) is mapped, never read whole. A `Split` is a range
of its records together with everything the container said before that range, so each split can be
walked alone, in another process. Cut points are exact: they are found by walking the records,
never by guessing, because a payload may itself hold a capture.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import numpy as np

from replispec.replay.capture import joined_walks
from replispec.replay.capture import pcap as capture_pcap
from replispec.replay.capture import pcapng as capture_pcapng
from replispec.replay.capture.joined_walks import Walked
from replispec.replay.capture.records import (
    ALL_TIME,
    ByteOrder,
    CaptureError,
    CaptureWarning,
    Interface,
    Records,
    Split,
    Window,
    release,
)

MAGIC_BYTES = 4
"""What tells of which kind a file is."""
GZIP_MAGIC = b"\x1f\x8b"
GZIP_BYTES_MAXIMUM = 64 * 1024**3
COPY_BYTES = 1 << 20
# So much of a file is walked at a time where all of it need not be held.
STRETCH_BYTES = 16 << 20
# The packets in this many bytes are looked at to find the first and the last of a file.
LOOK_BYTES = 1 << 20
# zlib's window argument for a gzip header and trailer.
GZIP_WINDOW = 31
# What zlib says of a trailer that does not fit what was decompressed, all of which it has given by then.
WRONG_LENGTH = "incorrect length check"
WRONG_TRAILERS = ("incorrect data check", WRONG_LENGTH)
LENGTH_BYTES = 4
TRAILING = "something that is not compressed follows the compressed stream"


Border = tuple[int, ByteOrder, tuple[Interface, ...]]
"""Where a split begins, and what its container said before."""


@dataclass(slots=True)
class Capture:
    """An open capture: its mapped bytes and the one split that covers all its records."""

    data: mmap.mmap
    whole: Split
    warnings: list[CaptureWarning] = field(default_factory=list)
    copy: IO[bytes] | None = None
    # Splits of LOOK_BYTES and what the walk that found them had to stop at, once it was made.
    _looked: tuple[list[Split], list[CaptureWarning]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.copy is not None:
            self.copy.close()

    def records(self) -> Records:
        """All records. What the walk had to stop at is added to `warnings`."""
        records, warnings = walk(self.data, self.whole)
        self.warnings.extend(warnings)
        return records

    def parts(self) -> Iterator[Records]:
        """All records, as `records` gives them, a part of the file at a time where its container allows that;
        one at least."""
        if self.whole.container != "pcap":
            yield self.records()
            return
        parts = capture_pcap.stretches(self.data, self.whole, STRETCH_BYTES, self.warnings)
        offsets = next(parts, None)
        while True:
            at = np.array([] if offsets is None else offsets, np.int64)
            yield _chosen(capture_pcap.columns(self.data, self.whole, at), self.whole.window)
            offsets = next(parts, None)
            if offsets is None:
                return

    def exceeds(self, window: Window) -> bool:
        """Whether it holds a packet outside of a stretch of time, whatever is read of it."""
        everything = replace(self.whole, window=ALL_TIME)
        for split in cuts(self.data, everything, STRETCH_BYTES)[0]:
            if not window.rows(walk(self.data, split)[0].time_ns).all():
                return True
            release(self.data, split.start, split.end)
        return False

    def stretches(self) -> Iterator[Records]:
        """The records of the file, a stretch at a time: no more of it is held."""
        for split in cuts(self.data, self.whole, STRETCH_BYTES)[0]:
            yield walk(self.data, split)[0]
            release(self.data, split.start, split.end)

    def dropped(self) -> int:
        """How many packets were dropped while the file was captured, as it says itself; 0 where it cannot."""
        if self.whole.container == "pcap":
            return 0
        blocks = capture_pcapng.BlockWalk(self.data, self.whole, [])
        for _ in blocks:
            pass
        return blocks.dropped

    def cuts(self, split_bytes: int, known: Mapping[int, Walked] | None = None) -> list[Split]:
        """Splits of about `split_bytes` bytes that together hold every record exactly once; `known`: what was
        walked already of stretches of that size (`joined_walks`)."""
        if self._looked is not None and split_bytes >= LOOK_BYTES:
            fine, warnings = self._looked
            splits = _joined(self.whole, fine, split_bytes)
        else:
            splits, warnings = cuts(self.data, self.whole, split_bytes, known)
        self.warnings.extend(warnings)
        return splits

    def ends(self) -> tuple[Records, Records, list[CaptureWarning]]:
        """The first and the last records of about LOOK_BYTES, and why the walk stopped early, if it did."""
        self._looked = cuts(self.data, self.whole, LOOK_BYTES)
        splits, stopped = self._looked
        return walk(self.data, splits[0])[0], walk(self.data, splits[-1])[0], stopped


def open_capture(path: str | Path) -> Capture:
    """Map a capture file. Raises CaptureError when it is none, OSError when it cannot be opened.

    A gzip file is decompressed to a temporary file that lives until the capture is closed.
    """
    name = Path(path).name
    with open(path, "rb") as file:
        if file.read(2) == GZIP_MAGIC:
            return _open_gzip(Path(path), name)
        data = _map(file, name)
    return Capture(data, recognise(data, str(path), name))


def map_split(split: Split) -> mmap.mmap:
    """The mapped file that a split belongs to."""
    with open(split.path, "rb") as file:
        return _map(file, split.name)


def is_text(name: str) -> bool:
    """Whether the bytes of a file's name are UTF-8, as columns and results are."""
    return os.fsencode(name).decode(errors="replace") == name


def may_begin(magic: bytes) -> bool:
    """Whether a capture, or one that gzip made smaller, begins with these MAGIC_BYTES."""
    known = magic == capture_pcapng.SECTION_MAGIC or magic in capture_pcap.MAGICS
    return known or magic.startswith(GZIP_MAGIC)


def recognise(data: mmap.mmap, path: str, name: str) -> Split:
    """The split of all records of a mapped capture. Raises CaptureError for what is no capture."""
    magic = data[:MAGIC_BYTES]
    if magic == capture_pcapng.SECTION_MAGIC:
        return capture_pcapng.whole(data, path, name)
    if magic in capture_pcap.MAGICS:
        return capture_pcap.whole(data, path, name)
    raise CaptureError(name, 0, f"no packet capture: the file starts with {magic.hex()}")


def walk(data: mmap.mmap, split: Split) -> tuple[Records, list[CaptureWarning]]:
    """The records of a split, and where and why the walk had to stop early, if it did."""
    warnings: list[CaptureWarning] = []
    if split.container == "pcap":
        offsets = np.array(capture_pcap.offsets(data, split, warnings))
        records = capture_pcap.columns(data, split, offsets)
    else:
        records = capture_pcapng.columns(data, split, warnings)
    return _chosen(records, split.window), warnings


def _chosen(records: Records, window: Window) -> Records:
    return records if window == ALL_TIME else records.take(window.rows(records.time_ns))


def cuts(
    data: mmap.mmap, whole: Split, split_bytes: int, known: Mapping[int, Walked] | None = None
) -> tuple[list[Split], list[CaptureWarning]]:
    """Exact splits of about `split_bytes` (> 0) each, in file order, and the walk's warnings; `known`: what
    was walked already of a pcap file."""
    if split_bytes <= 0:
        raise ValueError(f"split_bytes must be positive, not {split_bytes}")
    warnings: list[CaptureWarning] = []
    borders: list[Border] = []
    if whole.container == "pcap":
        found = (
            joined_walks.borders(data, whole, split_bytes, known, warnings)
            if known
            else capture_pcap.borders(data, whole, split_bytes, warnings)
        )
        borders += ((at, whole.byte_order, whole.interfaces) for at in found)
    else:
        due = released = whole.start
        reader = capture_pcapng.BlockWalk(data, whole, warnings)
        for kind, at in reader:
            if at >= due and kind in capture_pcapng.PACKET_BLOCK_MINIMUM:
                borders.append((at, reader.byte_order, tuple(reader.interfaces)))
                release(data, released, at)
                released, due = at, at + split_bytes
    if not borders:
        return [whole], warnings
    return _between(whole, borders), warnings


def _between(whole: Split, borders: Sequence[Border]) -> list[Split]:
    """The splits that begin at these places, one at least."""
    ends = [at for at, _, _ in borders[1:]] + [whole.end]
    splits = []
    for number, ((at, order, interfaces), end) in enumerate(zip(borders, ends, strict=True)):
        place = replace(whole, number=number, start=at, end=end, is_first=whole.is_first and number == 0)
        splits.append(replace(place, byte_order=order, interfaces=interfaces))
    return splits


def _joined(whole: Split, fine: Sequence[Split], split_bytes: int) -> list[Split]:
    """Larger splits of a file from smaller ones."""
    borders: list[Border] = []
    for split in fine:
        if not borders or split.start >= borders[-1][0] + split_bytes:
            borders.append((split.start, split.byte_order, split.interfaces))
    return _between(whole, borders)


def _open_gzip(path: Path, name: str) -> Capture:
    """Decompress to a temporary file, as far as the compressed stream is sound, and map that."""
    copy = tempfile.NamedTemporaryFile(prefix="replispec-", suffix=".pcap")  # noqa: SIM115 (closed with the capture)
    try:
        with open(path, "rb") as packed:
            reason = _inflate(packed, copy)
        copy.flush()
        if reason and not copy.tell():
            raise CaptureError(name, 0, reason)
        warnings = [CaptureWarning(name, copy.tell(), reason, unread=True)] if reason else []
        data = _map(copy, name)
        return Capture(data, recognise(data, copy.name, name), warnings, copy)
    except BaseException:
        copy.close()
        raise


def _inflate(packed: IO[bytes], copy: IO[bytes]) -> str | None:
    """Write what a gzip stream holds, member after member; the reason why it stopped early, or why what it
    holds may be other than what was packed, if there is one."""
    member = zlib.decompressobj(GZIP_WINDOW)
    block = packed.read(COPY_BYTES)
    odd = None
    while block:
        before = member.copy()
        try:
            copy.write(member.decompress(block, COPY_BYTES))
        except zlib.error as error:
            rest = _salvaged(before, block, copy)
            if not any(each in str(error) for each in WRONG_TRAILERS):
                return f"the compressed stream is damaged: {error}"
            odd = f"the gzip checksum is wrong, so that something of it may be damaged: {error}"
            # Of the trailer the checksum comes first, then a length of as many bytes.
            if WRONG_LENGTH not in str(error):
                rest += packed.read(max(LENGTH_BYTES - len(rest), 0))
                rest = rest[LENGTH_BYTES:]
            block = rest or packed.read(COPY_BYTES)
            if not block:
                return odd
            if block[: len(GZIP_MAGIC)] != GZIP_MAGIC[: len(block)]:
                return f"{odd}; {TRAILING}"
            member = zlib.decompressobj(GZIP_WINDOW)
            continue
        if copy.tell() > GZIP_BYTES_MAXIMUM:
            return "decompression stopped: the content is too large"
        if member.eof:
            block = member.unused_data or packed.read(COPY_BYTES)
            if block[: len(GZIP_MAGIC)] != GZIP_MAGIC[: len(block)]:
                return TRAILING
            if block:
                member = zlib.decompressobj(GZIP_WINDOW)
        else:
            block = member.unconsumed_tail or packed.read(COPY_BYTES)
    return odd if member.eof else "the compressed stream is cut"


def _salvaged(member: zlib._Decompress, block: bytes, copy: IO[bytes]) -> bytes:
    """Write what a block of a stream decompresses to before its fault; what follows the byte at fault."""
    for at in range(len(block)):
        try:
            copy.write(member.decompress(block[at : at + 1]))
        except zlib.error:
            return block[at + 1 :]
    return b""


def _map(file: IO[bytes], name: str) -> mmap.mmap:
    try:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError as error:
        raise CaptureError(name, 0, "the file is empty") from error
    except OSError as error:
        said = f"it cannot be mapped ({error.strerror}); give what comes through a pipe as -, standard input"
        raise CaptureError(name, 0, said) from error
