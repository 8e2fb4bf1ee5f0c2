"""Results that take the place of older ones: all of them, or none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from replispec.replay.engines.results import (
    EVENTS_NAME,
    FINDINGS_NAME,
    FRAMES_NAME,
    LOST_NAME,
    REPORT_NAME,
    SPARK_LOG_NAME,
    SUMMARY_NAME,
)

# Below the folder of results, so that files are only renamed. The next replay removes what a killed one left.
UNFINISHED_NAME = ".unfinished"
REPLACED_NAMES = (FRAMES_NAME, EVENTS_NAME, FINDINGS_NAME, SUMMARY_NAME, REPORT_NAME, LOST_NAME)


@contextmanager
def replaced(out: Path) -> Iterator[Path]:
    """A folder for results, which take the place of those in `out` when the block ends without fault; else
    these stay as they are. Spark's log is in `out` either way."""
    out.mkdir(parents=True, exist_ok=True)
    fresh = out / UNFINISHED_NAME
    remove(fresh)
    fresh.mkdir()
    try:
        yield fresh
        for name in REPLACED_NAMES:
            remove(out / name)
            if (fresh / name).exists():
                (fresh / name).rename(out / name)
    finally:
        if (fresh / SPARK_LOG_NAME).exists():
            (fresh / SPARK_LOG_NAME).replace(out / SPARK_LOG_NAME)
        remove(fresh)


def cleared(out: Path) -> None:
    """Make the folder of results; what is replaced is not there any more."""
    out.mkdir(parents=True, exist_ok=True)
    for name in REPLACED_NAMES:
        remove(out / name)


def remove(path: Path) -> None:
    """A file, or a folder with all that is in it, is not there any more."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
