"""A replay in one process whose memory does not grow with the capture: segments on the disk, shares of
connections."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from replispec.replay.engines.decoding import remarked
from replispec.replay.engines.family import judged
from replispec.replay.engines.local import hints, stream_figures
from replispec.replay.engines.parquet import parquet_writer
from replispec.replay.engines.replacing import replaced
from replispec.replay.engines.results import (
    EVENTS_NAME,
    FRAMES_NAME,
    UNUSABLE,
    CaptureResult,
    Options,
    Progress,
    events_file,
    unusable,
)
from replispec.replay.engines.run import EngineName, told
from replispec.replay.events.tables import SCHEMAS
from replispec.replay.frames.tables import FRAMES
from replispec.replay.hosts.told import Merged
from replispec.replay.report.summary import Summary
from replispec.replay.tcp.rotation import Source, name_of, open_rotation
from replispec.replay.watch.folder import SEGMENT_BYTES
from replispec.replay.watch.kept import KeptSegments
from replispec.replay.watch.stretches import SHARE_BYTES, observed


def replay_bounded(
    captures: Sequence[Source],
    out: Path,
    options: Options,
    progress: Progress,
    evidence: Path | None = None,
    merged: Merged | None = None,
) -> Summary:
    """As `run.replay` with the local engine: the same rows and verdicts."""
    with replaced(out) as fresh:
        results = list(bounded_results(captures, fresh, options, progress))
        return told(captures, results, fresh, EngineName.LOCAL.value, options, evidence, merged)


def bounded_results(
    captures: Sequence[Source],
    out: Path,
    options: Options,
    progress: Progress,
    segment_bytes: int = SEGMENT_BYTES,
    share_bytes: int = SHARE_BYTES,
) -> Iterator[CaptureResult]:
    """As LocalEngine.results."""
    (out / EVENTS_NAME).mkdir(parents=True)
    with ExitStack() as stack:
        frames = stack.enter_context(parquet_writer(out / FRAMES_NAME, FRAMES))
        files = {
            kind: stack.enter_context(parquet_writer(events_file(out, kind), schema))
            for kind, schema in SCHEMAS.items()
        }
        for number, source in enumerate(captures):
            progress(f"replaying {name_of(source)}", number, len(captures))
            try:
                with (
                    open_rotation(source, options.window) as capture,
                    tempfile.TemporaryDirectory(prefix="replispec-segments-") as folder,
                ):
                    splits = {split.number: split for split in capture.cuts(segment_bytes)}
                    for file in capture.files:
                        # What was looked at to cut it counts as memory until it is let go of.
                        file.data.madvise(mmap.MADV_DONTNEED)
                    kept = KeptSegments(Path(folder), hints(options))
                    found = observed(splits, kept, frames.write_table, share_bytes)
                    warnings = [*capture.warnings, *remarked(capture.name, found.wire.remarks)]
            except UNUSABLE as fault:
                yield unusable(source, fault)
                continue
            for kind, table in found.events.items():
                if table.num_rows:
                    files[kind].write_table(table)
            row = stream_figures(source, found.frames, found.holes, found.streams, found.wire, warnings)
            yield judged(row, found.events, options)
