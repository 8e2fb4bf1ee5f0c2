"""`spark.read.format("replispec.pcap")`: captures as a source of rows for Spark.

Spark's interface for sources in Python tells a reader nothing of the columns that are wanted, so that they
are an option. Filters are left to Spark: with 4.3.0 a table that took a filter once kept the narrowed splits
when it was read without one.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from replispec.replay.capture.files import open_capture
from replispec.replay.capture.records import Split
from replispec.replay.engines.source_tables import capture_batches, packet_batches, schemas
from replispec.replay.frames.hints import Hints

FORMAT: Final = "replispec.pcap"
SPLIT_BYTES: Final = 32 << 20
_OPTIONS: Final = ("path", "what", "columns", "splitbytes", "haports")
_NEVER: Final = 2**63 - 1


class SourceOptionError(ValueError):
    """An option that cannot be meant."""


@dataclass(frozen=True)
class _Part(InputPartition):
    """A whole capture, or a split of one."""

    path: str
    split: Split | None = None


def register(spark: SparkSession) -> None:
    """Let this session read FORMAT."""
    spark.dataSource.register(PcapDataSource)


class PcapDataSource(DataSource):
    """Options: `path` (a file or a glob), `what` (packets, frames, events.KIND; frames unless given),
    `columns` (with commas; all unless given), `splitBytes` (of packets), `haPorts` (with commas)."""

    @classmethod
    def name(cls) -> str:
        """What format() is given."""
        return FORMAT

    def schema(self) -> StructType:
        """The columns of what is asked for. Raises SourceOptionError."""
        return from_arrow_schema(_Request(self.options).schema)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 (it is the one above)
        """See DataSource."""
        return _Reader(_Request(self.options))


class _Request:
    """The options, checked."""

    def __init__(self, options: Mapping[str, str]) -> None:
        given = {name.lower(): value for name, value in options.items()}
        unknown = sorted(set(given) - set(_OPTIONS))
        if unknown:
            raise SourceOptionError(f"{FORMAT} has no option {unknown[0]!r}; it has {', '.join(_OPTIONS)}")
        self.pattern = given.get("path", "")
        self.what = given.get("what", "frames")
        if self.what not in schemas():
            raise SourceOptionError(f"what={self.what!r} is none of {', '.join(schemas())}")
        whole = schemas()[self.what]
        self.columns = _names(given.get("columns", "")) or list(whole.names)
        missing = [name for name in self.columns if name not in whole.names]
        if missing:
            raise SourceOptionError(
                f"{self.what} has no column {missing[0]!r}; it has {', '.join(whole.names)}"
            )
        self.schema = pa.schema([whole.field(name) for name in self.columns])
        self.split_bytes = _positive("splitBytes", given.get("splitbytes", str(SPLIT_BYTES)))
        ports = [_positive("haPorts", each) for each in _names(given.get("haports", ""))]
        self.hints = Hints(ha_ports=frozenset(ports))

    def paths(self) -> list[str]:
        """The captures, in order of their names. Raises SourceOptionError when there are none."""
        found = sorted(glob.glob(self.pattern)) or ([self.pattern] if Path(self.pattern).is_file() else [])
        if not found:
            raise SourceOptionError(f"path={self.pattern!r} is no file, and no glob that fits one")
        return found


class _Reader(DataSourceReader):
    """Packets split by split, anything else capture by capture."""

    def __init__(self, request: _Request) -> None:
        self._request = request

    def partitions(self) -> Sequence[InputPartition]:
        """See DataSourceReader. A compressed capture is one part: its copy lives where it is read."""
        parts: list[_Part] = []
        for path in self._request.paths():
            with open_capture(path) as capture:
                if self._request.what != "packets" or capture.copy is not None:
                    parts.append(_Part(path))
                else:
                    parts += [_Part(path, each) for each in capture.cuts(self._request.split_bytes)]
        return parts

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """See DataSourceReader."""
        if not isinstance(partition, _Part):
            raise TypeError(f"{partition!r} is no part of this source")
        request, name = self._request, Path(partition.path).name
        if request.what != "packets":
            yield from capture_batches(partition.path, request.what, request.hints, request.columns)
        elif partition.split is not None:
            yield from packet_batches(partition.split, name, request.columns)
        else:
            with open_capture(partition.path) as capture:
                yield from packet_batches(capture.whole, name, request.columns)


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _positive(name: str, text: str) -> int:
    if not text.isdigit() or not int(text):
        raise SourceOptionError(f"{name}={text!r} is no positive number")
    return int(text)
