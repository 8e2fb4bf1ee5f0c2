"""Folders that are fed while they are watched, and what a replay of the same files comes to."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from replispec.replay.capture.files import open_capture
from replispec.replay.engines import results, run
from replispec.replay.report.summary import Summary
from replispec.replay.watch.watcher import Bounds, Watcher, watching
from tests.replay.test_rotation import ORDERS

CAPTURES = Path(__file__).parents[2] / "spark_replay/captures"
# Everything that is cut at some size is cut often.
SMALL = Bounds(look=100_000, segment=60_000, share=50_000)
LOCAL = run.EngineName.LOCAL


@dataclass(slots=True)
class Watched:
    """A folder with what a watch of it needs; `sources`: the files that a replay is given."""

    root: Path
    bounds: Bounds = SMALL
    options: results.Options = field(default_factory=results.Options)
    sources: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)

    @property
    def folder(self) -> Path:
        return self.root / "folder"

    @property
    def out(self) -> Path:
        return self.root / "out"

    @property
    def checkpoint(self) -> Path:
        return self.root / "checkpoint"

    @contextmanager
    def opened(self) -> Iterator[Watcher]:
        """A watch as a new process has it: nothing but the checkpoint is left of the one before."""
        with watching(self.folder, self.out, self.checkpoint, self.options, self.bounds) as watcher:
            yield watcher

    def step(self) -> list[dict[str, Any]]:
        """One look by a watch that is killed behind it; its alerts."""
        with self.opened() as watcher:
            return [alert.line for alert in watcher.step().alerts]

    def look(self) -> None:
        """As `step`, without judging."""
        with self.opened() as watcher:
            watcher.look()

    def end(self) -> Summary:
        with self.opened() as watcher:
            return watcher.end(LOCAL.value)[0]

    def shown(self) -> list[dict[str, Any]]:
        """The lines of alerts.jsonl."""
        path = self.out / "alerts.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def assert_replayed(self, sources: Sequence[Path]) -> None:
        """The results are, row for row, those of a replay of these files."""
        expected = self.root / "replayed"
        run.replay([sources], expected, LOCAL, self.options)
        for name in ORDERS:
            left, right = (pq.read_table(folder / name) for folder in (self.out, expected))
            assert left.to_pylist() == right.to_pylist(), name
        summaries = [
            json.loads((folder / results.SUMMARY_NAME).read_text()) for folder in (self.out, expected)
        ]
        assert summaries[0] == summaries[1]


def cut(path: Path, folder: Path, count: int, rng: random.Random) -> list[Path]:
    """The capture in `count` files, cut at random packets, as `tcpdump -C` names them."""
    folder.mkdir(exist_ok=True)
    data = path.read_bytes()
    with open_capture(path) as capture:
        places = capture.records().record_offset.tolist()
    chosen = sorted(rng.sample(places[1:], count - 1))
    files = []
    for at, (start, end) in enumerate(zip([places[0], *chosen], [*chosen, len(data)], strict=True)):
        files.append(folder / f"{path.name}{at or ''}")
        files[-1].write_bytes(data[:24] + data[start:end])
    return files


def grow(target: Path, data: bytes, rng: random.Random, steps: int) -> Iterator[None]:
    """Write a file bit by bit, cut anywhere; after each bit somebody may look."""
    borders = sorted(rng.randrange(len(data) + 1) for _ in range(steps - 1))
    for start, end in zip([0, *borders], [*borders, len(data)], strict=True):
        with target.open("ab") as file:
            file.write(data[start:end])
        yield
