"""One watch, step by step: read what is new, decode it, judge the stretch at its end, tell what is new of
that.

It neither sleeps nor looks at a clock; whoever drives it does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from replispec.replay.capture.records import Split
from replispec.replay.engines.results import OUTPUT_NAMES, CaptureResult, Options
from replispec.replay.engines.run import told
from replispec.replay.report.summary import Summary
from replispec.replay.watch.alerts import ALERTS_NAME, JOURNAL_NAME, Alert, Alerts
from replispec.replay.watch.alone import hints_of
from replispec.replay.watch.checkpoint import CheckpointError, load, owned, save, shown_in, unused
from replispec.replay.watch.ending import judge_stretch, judge_whole, whole_splits
from replispec.replay.watch.folder import CAPTURES_NAME, LOOK_BYTES, SEGMENT_BYTES, FolderReader
from replispec.replay.watch.kept import SEGMENTS_NAME, KeptSegments
from replispec.replay.watch.ledger import Ledger, Standing, ledger_of, stretch_of
from replispec.replay.watch.stretches import SHARE_BYTES, observed

STRETCH_BYTES: Final = 128 << 20
# What the checkpoint consists of beside its document: names in it that are written over and removed.
OWN_NAMES: Final = (CAPTURES_NAME, SEGMENTS_NAME, JOURNAL_NAME)
# What a watch writes: nothing of it may lie in the folder that it reads.
WATCH_NAMES: Final = (*OUTPUT_NAMES, ALERTS_NAME)


class NothingCapturedError(Exception):
    """A watch that ends has nothing to judge; one line says so."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is copied at once, decoded at once, judged at once, and held of frames, in bytes of
    capture."""

    look: int = LOOK_BYTES
    segment: int = SEGMENT_BYTES
    stretch: int = STRETCH_BYTES
    share: int = SHARE_BYTES


@dataclass(frozen=True, slots=True)
class Round:
    """What one step came to. `said`: what is to be told beside alerts; `more`: there may be more to read at
    once."""

    alerts: list[Alert]
    said: list[str]
    read: int
    more: bool


class Watcher:
    """A watch of one folder; `watching` opens it."""

    def __init__(self, folder: Path, out: Path, checkpoint: Path, options: Options, bounds: Bounds) -> None:
        self._out = out
        self._checkpoint = checkpoint
        self._options = options
        self.bounds = bounds
        settings = _settings(folder, options, bounds)
        _apart(folder, checkpoint)
        document = load(checkpoint)
        if document is None:
            unused(checkpoint, OWN_NAMES)
        self.continued = document is not None
        self.ledger = ledger_of(document) if document is not None else Ledger(settings)
        _compare(checkpoint, self.ledger.settings, settings)
        self._reader = FolderReader(folder, checkpoint, self.ledger, bounds.segment)
        (checkpoint / SEGMENTS_NAME).mkdir(exist_ok=True)
        self.kept = KeptSegments(checkpoint / SEGMENTS_NAME, hints_of(settings))
        self.alerts = Alerts(checkpoint / JOURNAL_NAME, out / ALERTS_NAME)
        self._said = len(self.ledger.notes)
        self._judged = -1
        self._limited = False
        self._save()

    def look(self) -> bool:
        """Read what is new; whether anything is, or was not judged yet."""
        changed = self._reader.look(self.bounds.look)
        if changed:
            self._save()
        return changed or self._judged != self.ledger.cuts

    def judge(self) -> Round:
        """Judge the stretch at the end, and tell what is new."""
        said = self._news()
        alerts: list[Alert] = []
        if self._judged != self.ledger.cuts and self.ledger.segments:
            alerts = self.alerts.take(self._stretch(said))
            pa.default_memory_pool().release_unused()
        self._judged = self.ledger.cuts
        read = sum(file.kept for file in self.ledger.files.values())
        return Round(alerts, said, read, self._reader.is_behind)

    def step(self) -> Round:
        """Look, and judge what came of it."""
        self.look()
        return self.judge()

    def end(self, engine: str) -> tuple[Summary, Round]:
        """The verdict on everything, written to the output. `engine`: who decoded. Raises CaptureError,
        OSError."""
        self.look()
        while self._reader.is_behind:
            self.look()
        said = self._news()
        notes = [note for note in self.ledger.notes if note.unread] + self._reader.unfinished()
        if not self.ledger.segments:
            raise NothingCapturedError(_nothing(self.ledger))
        paths = [self._reader.path(name) for name in self.ledger.order]
        sizes = {str(path): path.stat().st_size for path in paths}
        splits = whole_splits(self._splits(), sizes)
        result = judge_whole(paths, splits, self.kept, self._out, self._options, notes, self.bounds.share)
        alerts = self.alerts.settle(result)
        summary = told([paths], [result], self._out, engine, self._options)
        return summary, Round(alerts, said, sum(sizes.values()), more=False)

    def _splits(self) -> list[Split]:
        ledger = self.ledger
        name = ledger.order[0] if ledger.order else ""
        return [each.split(str(self._reader.path(each.file)), name) for each in ledger.segments]

    def _stretch(self, said: list[str]) -> CaptureResult:
        """What the last segments come to, as many as there is room for."""
        splits = self._splits()
        stretch = stretch_of(self.ledger.segments, self.bounds.stretch)
        if len(stretch) < len(splits) and not self._limited:
            self._limited = True
            said.append(
                f"more than {self.bounds.stretch} bytes were captured: alerts are told of the last of them"
                " alone, what needs older frames is told at the end; --stretch-mib raises it"
            )
        own = {each.number: each for each in splits[-len(stretch) :]}
        found = observed(own, self.kept, share_bytes=self.bounds.share)
        return judge_stretch(splits[0].capture, found, (), self._options)

    def _news(self) -> list[str]:
        notes = self.ledger.notes[self._said :]
        self._said = len(self.ledger.notes)
        return [f"{note.file}: {note.reason}" for note in notes]

    def _save(self) -> None:
        save(self._checkpoint, self.ledger.document())


@contextmanager
def watching(
    folder: Path, out: Path, checkpoint: Path, options: Options, bounds: Bounds | None = None
) -> Iterator[Watcher]:
    """A watch that goes on from its checkpoint, or begins. Raises CheckpointError, OSError."""
    with owned(checkpoint), shown_in(out):
        yield Watcher(folder, out, checkpoint, options, bounds or Bounds())


def _settings(folder: Path, options: Options, bounds: Bounds) -> dict[str, Any]:
    """What decoded rows and verdicts depend on: a watch goes on with the same."""
    return {
        "folder": os.fsencode(os.path.realpath(folder)).decode(errors="backslashreplace"),
        "segment": bounds.segment,
        "learners": sorted(options.learners),
        "ha_ports": sorted(options.ha_ports),
        "ha_5_0_0": options.ha_5_0_0,
        "all_ack": options.all_ack,
        "bodies": options.bodies,
    }


def _compare(checkpoint: Path, known: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuse to go on with another folder or other options. Raises CheckpointError."""
    other = [name for name in given if known.get(name) != given[name]]
    if other:
        name = other[0]
        raise CheckpointError(
            f"{checkpoint}: this checkpoint is of a watch with {name} {known.get(name)!r}, not"
            f" {given[name]!r}; go on with the same, or name another --checkpoint"
        )


def _apart(folder: Path, checkpoint: Path) -> None:
    """Refuse to read what a watch itself writes and removes. Raises CheckpointError."""
    for name in OWN_NAMES:
        if Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(checkpoint / name)):
            raise CheckpointError(
                f"{checkpoint}: this checkpoint keeps its own files in {name}, so that {folder} cannot be"
                " watched with it; name another --checkpoint"
            )


def _nothing(ledger: Ledger) -> str:
    left = sum(file.standing in (Standing.PASSED, Standing.REFUSED) for file in ledger.files.values())
    passed = f"; {left} of {len(ledger.files)} files could not be used" if left else ""
    return f"{ledger.settings['folder']}: no packet was captured{passed}"
