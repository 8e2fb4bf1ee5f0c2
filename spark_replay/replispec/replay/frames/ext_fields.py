"""Header fields by columns: what a generated header class declares, from the map column of frames."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from replispec.runtime.primitives.headers import Header
from replispec.runtime.primitives.keyed import declared

EXT_FIELDS = "ext_fields"
Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class HeaderColumns:
    """The ext fields of some rows of FRAMES as those of one header class.

    `plain`: where `from_ext_fields` of the class takes every value as it is; what is not plain may be broken
    or not, and has to be read by it.
    """

    def __init__(self, header: type[Header], frames: pa.Table, rows: Rows) -> None:
        self._frames = frames
        self._rows = rows
        self._keys = {each.name: each.key for each in declared(header)}
        self.plain: Mask = np.ones(len(rows), np.bool_)
        for each in declared(header):
            if each.kind.bounds is not None:
                # So many digits are within the bounds whatever they are.
                digits = len(str(each.kind.bounds[1])) - 1
                number = pc.match_substring_regex(self.text(each.name), f"^[0-9]{{1,{digits}}}$")
                self.plain &= np.asarray(pc.fill_null(number, True))

    def text(self, name: str) -> pa.ChunkedArray:
        """What the rows have for an attribute of the class; null where it is absent or null."""
        return text_of(self._keys[name], self._frames, self._rows)


def text_of(key: str, frames: pa.Table, rows: Rows) -> pa.ChunkedArray:
    """What some rows of FRAMES have for a key; null where it is absent or null."""
    parts = [_field(part, key) for part in frames.column(EXT_FIELDS).chunks]
    return pa.chunked_array(parts, pa.string()).take(pa.array(rows))


def _field(maps: pa.MapArray, key: str) -> pa.Array:
    """The field in every row; of several entries with one key the last, as a header has it."""
    offsets = np.asarray(maps.offsets)
    start = int(offsets[0])
    found = np.flatnonzero(np.asarray(pc.equal(maps.keys[start : int(offsets[-1])], key))) + start
    entry = np.full(len(maps), -1, np.int64)
    entry[np.searchsorted(offsets, found, "right") - 1] = found
    return maps.items.take(pa.array(entry, mask=entry < 0))
