"""Single frames of a replay's frames.parquet (rows of FRAMES), by where they are.

Only what a reader asks for is read: columns and rows are chosen while the file is scanned, so that memory
grows with the answer and not with the capture.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

Place = tuple[str, str, int, int]
"""Capture, connection, direction, sequence: no two frames share it."""
PLACE = ("capture", "connection", "direction", "sequence")
Row = dict[str, Any]


def frames_at(path: Path, places: Collection[Place], columns: Sequence[str]) -> dict[Place, Row]:
    """The frames at these places with some columns of theirs; a place without a frame is left out.

    `path`: the file of the local engine, or the folder of Spark.
    """
    wanted = frozenset(places)
    found = {}
    for row in _scan(path, wanted, "sequence", {place[3] for place in wanted}, columns):
        place = place_of(row)
        if place in wanted:
            found[place] = row
    return found


def frames_with_opaque(
    path: Path, places: Collection[Place], opaques: Collection[int], columns: Sequence[str]
) -> Iterator[Row]:
    """The commands with any of these request numbers on the connections of the places."""
    yield from _scan(path, places, "opaque", opaques, columns)


def place_of(row: Row) -> Place:
    """Where a row is."""
    return row["capture"], row["connection"], row["direction"], row["sequence"]


def _scan(
    path: Path, places: Collection[Place], key: str, values: Collection[int], columns: Sequence[str]
) -> Iterator[Row]:
    if not places or not path.exists():
        return
    chosen = (
        pc.field("capture").isin(sorted({place[0] for place in places}))
        & pc.field("connection").isin(sorted({place[1] for place in places}))
        & pc.field(key).isin(sorted(values))
    )
    names = list(dict.fromkeys((*PLACE, *columns)))
    # Imported here: it loads pandas where that is installed, and few captures have anything to look up.
    import pyarrow.dataset as ds

    for batch in ds.dataset(path, format="parquet").to_batches(columns=names, filter=chosen):
        yield from batch.to_pylist()
