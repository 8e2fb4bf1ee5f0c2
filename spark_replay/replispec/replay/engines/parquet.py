"""How tables are written as Parquet."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def parquet_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer of tables of this schema. Texts repeat and become dictionaries; numbers seldom do, and looking
    for it takes a third of the time."""
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    return pq.ParquetWriter(path, schema, use_dictionary=texts)
