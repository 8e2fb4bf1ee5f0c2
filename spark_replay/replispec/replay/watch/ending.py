"""The verdict on all that was watched: the files, rows and verdicts of a replay of the same captures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from replispec.replay.capture.records import CaptureWarning, Split
from replispec.replay.engines.decoding import remarked
from replispec.replay.engines.family import judged
from replispec.replay.engines.local import stream_figures
from replispec.replay.engines.parquet import parquet_writer
from replispec.replay.engines.replacing import cleared
from replispec.replay.engines.results import EVENTS_NAME, FRAMES_NAME, CaptureResult, Options, events_file
from replispec.replay.events.tables import SCHEMAS
from replispec.replay.frames.tables import FRAMES
from replispec.replay.tcp.rotation import Source, name_of, open_rotation
from replispec.replay.watch.kept import KeptSegments
from replispec.replay.watch.stretches import SHARE_BYTES, Judgeable, observed


def judge_stretch(
    source: Source, found: Judgeable, warnings: Sequence[CaptureWarning], options: Options
) -> CaptureResult:
    """What a stretch comes to."""
    row = stream_figures(source, found.frames, found.holes, found.streams, found.wire, warnings)
    return judged(row, found.events, options)


def judge_whole(
    paths: Sequence[Path],
    splits: Mapping[int, Split],
    kept: KeptSegments,
    out: Path,
    options: Options,
    notes: Sequence[CaptureWarning] = (),
    share_bytes: int = SHARE_BYTES,
) -> CaptureResult:
    """Judge all segments of a capture, and write its frames and events below `out`. `notes`: what more was
    read around.

    Raises CaptureError, OSError: see open_rotation.
    """
    with open_rotation(paths) as capture:
        # Every cut is beyond the end: only what the walk has to say is wanted.
        capture.cuts(max(len(file.data) for file in capture.files) + 1)
        warnings = [*capture.warnings, *notes]
    cleared(out)
    (out / EVENTS_NAME).mkdir()
    with ExitStack() as stack:
        frames = stack.enter_context(parquet_writer(out / FRAMES_NAME, FRAMES))
        found = observed(splits, kept, frames.write_table, share_bytes)
        for kind, schema in SCHEMAS.items():
            with parquet_writer(events_file(out, kind), schema) as file:
                if found.events[kind].num_rows:
                    file.write_table(found.events[kind])
    warnings += remarked(name_of(paths), found.wire.remarks)
    return judge_stretch(paths, found, warnings, options)


def whole_splits(splits: Sequence[Split], sizes: Mapping[str, int]) -> dict[int, Split]:
    """The splits of a capture of which no more comes: the last one reaches to the end of its file."""
    last = splits[-1]
    return {each.number: each for each in (*splits[:-1], replace(last, end=sizes[last.path]))}
