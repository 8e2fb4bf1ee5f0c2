"""Texts that lie in a file, of which few are ever read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replispec.replay.capture.long_columns import LongColumns
from replispec.replay.capture.records import Integers


class LongTexts:
    """Texts by their places. One that is null is empty."""

    def __init__(self, store: LongColumns, name: str) -> None:
        self._data = store.column(f"{name}-data", np.uint8)
        self._starts = store.column(f"{name}-starts")
        self._sizes = store.column(f"{name}-sizes", np.int32)

    def write(self, places: Integers, texts: pa.ChunkedArray) -> None:
        """Put texts at places that ascend."""
        data = b"".join(pc.drop_null(texts).cast(pa.binary()).to_pylist())
        sizes = np.asarray(pc.fill_null(pc.binary_length(texts), 0)).astype(np.int64)
        begin = len(self._data)
        self._data.write(begin, np.frombuffer(data, np.uint8))
        self._starts.spread(places, begin + np.cumsum(sizes) - sizes)
        self._sizes.spread(places, sizes)

    def at(self, places: Integers) -> list[str]:
        """Those at some places."""
        starts, sizes = self._starts.at(places).tolist(), self._sizes.at(places).tolist()
        return [
            self._data.read(start, start + size).astype(np.uint8).tobytes().decode()
            for start, size in zip(starts, sizes, strict=True)
        ]
