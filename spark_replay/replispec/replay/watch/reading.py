"""The bytes of a capture by position, read when they are asked for: what is mapped would count as memory."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from replispec.replay.capture.records import CaptureBytes, Split
from replispec.replay.engines.by_splits import SplitReader
from replispec.replay.tcp.ground import Ground


class ReadBytes:
    """See CaptureBytes; `files`: where each begins in the capture, its base (see Split), and its
    descriptor."""

    def __init__(self, files: list[tuple[int, int, int]]) -> None:
        self._files = sorted(files)
        self._starts = [start for start, _, _ in self._files]

    def __getitem__(self, where: slice, /) -> bytes:
        """See CaptureBytes."""
        _, base, file = self._files[bisect_right(self._starts, where.start) - 1]
        return os.pread(file, where.stop - where.start, where.start - base)


class KeptReader(SplitReader):
    """Reads splits of one capture whose packets are kept in a folder, and holds nothing of its files."""

    def __init__(self, splits: Mapping[int, Split], ground: Ground, kept: Path) -> None:
        super().__init__(splits, {0: ground}, kept)
        self._open = ExitStack()
        first = {split.path: split for split in sorted(splits.values(), key=lambda split: -split.start)}
        files = [(split.base + split.start, split.base, self._opened(path)) for path, split in first.items()]
        self._bytes = ReadBytes(files)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def data(self, number: int) -> CaptureBytes:  # noqa: ARG002 (all splits are of one capture)
        """See SplitReader."""
        return self._bytes

    def _opened(self, path: str) -> int:
        descriptor = os.open(path, os.O_RDONLY)
        self._open.callback(os.close, descriptor)
        return descriptor
