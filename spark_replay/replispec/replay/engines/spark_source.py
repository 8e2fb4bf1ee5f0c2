"""`spark.read.format("replispec.pcap")`: captures as a source of rows for Spark.

Spark's interface for sources in Python tells a reader nothing of the columns that are wanted, so that they
are an option. Filters reach a table that `read_captures` made (see `spark_filters`).
"""

from __future__ import annotations

import glob
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from replispec.replay.capture.files import Capture, is_text, open_capture, walk
from replispec.replay.capture.records import ALL_TIME, Split
from replispec.replay.engines.cluster import is_url
from replispec.replay.engines.source_frames import WHOLE, Share
from replispec.replay.engines.source_tables import capture_batches, packet_batches, schemas, window_of
from replispec.replay.engines.spark_filters import may_narrow, wanted_by
from replispec.replay.engines.spark_stores import bring
from replispec.replay.engines.wanted import ALL, Wanted
from replispec.replay.frames.hints import Hints

FORMAT: Final = "replispec.pcap"
SPLIT_BYTES: Final = 32 << 20
# Every part of a capture's frames looks at all of its packets: more parts than this would do little else.
SHARES_MAXIMUM: Final = 16
PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"
_OPTIONS: Final = ("path", "what", "columns", "splitbytes", "haports", "filterfile")


class SourceOptionError(ValueError):
    """An option that cannot be meant."""


@dataclass(frozen=True)
class _Part(InputPartition):
    """A share of a capture, or a split of one."""

    path: str
    split: Split | None = None
    share: Share = WHOLE


def register(spark: SparkSession) -> None:
    """Let this session read FORMAT.

    Spark looks whether the name is taken in the session that is active in the JVM, which may be another one:
    then this one is made active, as every new table does, and asked again.
    """
    if _registered(spark):
        return
    spark.createDataFrame([], "capture string")
    _registered(spark)


def _registered(spark: SparkSession) -> bool:
    """Whether this session has the source now; it may have it all the same, if not."""
    try:
        spark.dataSource.register(PcapDataSource)
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
        return False
    return True


def read_captures(
    spark: SparkSession, path: str | Path, what: str = "frames", columns: Iterable[str] = (), **options: Any
) -> DataFrame:
    """A table of captures that reads less when it is filtered; call it anew for every filter.

    `path`: a file, a glob, or an address in a store (see `spark_stores`), of which copies are kept as long as
    this process lives; `what`: packets, frames or events.KIND; `columns`: those to read (a text: with
    commas), all unless given; `options`: others of PcapDataSource. A table that is asked with a second filter
    gives the right rows, but reads everything. Raises StoreError, and by way of Spark SourceOptionError.
    """
    register(spark)
    spark.conf.set(PUSHDOWN, "true")
    chosen = _names(columns) if isinstance(columns, str) else list(columns)
    if chosen and "capture" not in chosen:
        chosen.append("capture")
    own = Path(_kept().name) / str(next(_TABLES))
    if is_url(str(path)):
        copies = own.with_name(f"{own.name}.copies")
        copies.mkdir()
        bring(spark, str(path), copies)
        path = Path(glob.escape(str(copies)), "*")
    reader = spark.read.format(FORMAT).option("what", what).option("filterFile", str(own))
    given = {"columns": ",".join(chosen), **{name: str(value) for name, value in options.items()}}
    for name, value in given.items():
        reader = reader.option(name, value)
    # Spark tells the table of filters when there are any: with this one it is asked in every query.
    return reader.load(str(path)).where("capture is not null")


_TABLES: Final = count()


@cache
def _kept() -> tempfile.TemporaryDirectory[str]:
    """Where tables of this process keep their first filters and copies of captures, as long as it lives."""
    return tempfile.TemporaryDirectory(prefix="replispec-tables-")


class PcapDataSource(DataSource):
    """Options: `path` (a file or a glob), `what` (packets, frames, events.KIND; frames unless given),
    `columns` (with commas; all unless given), `splitBytes` (of packets, and of a capture for each part of its
    frames), `haPorts` (with commas), `filterFile` (of `read_captures` alone)."""

    @classmethod
    def name(cls) -> str:
        """What format() is given."""
        return FORMAT

    def schema(self) -> StructType:
        """The columns of what is asked for. Raises SourceOptionError."""
        return from_arrow_schema(_Request(self.options).schema)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 (it is the one above)
        """See DataSource."""
        request = _Request(self.options)
        return _Reader(request) if request.filter_file is None else _NarrowingReader(request)


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
        if len(set(self.columns)) < len(self.columns):
            raise SourceOptionError(f"columns={given['columns']!r} names one of them twice")
        self.schema = pa.schema([whole.field(name) for name in self.columns])
        self.split_bytes = _positive("splitBytes", given.get("splitbytes", str(SPLIT_BYTES)))
        ports = [_positive("haPorts", each) for each in _names(given.get("haports", ""))]
        self.hints = Hints(ha_ports=frozenset(ports))
        self.filter_file = Path(given["filterfile"]) if "filterfile" in given else None

    def paths(self) -> list[str]:
        """The captures, in order of their names. Raises SourceOptionError when there are none."""
        if is_url(self.pattern):
            raise SourceOptionError(f"path={self.pattern!r} is in a store: only read_captures reads there")
        fitting = sorted(glob.glob(self.pattern)) or [self.pattern]
        found = [each for each in fitting if not Path(each).is_dir() and Path(each).exists()]
        if not found:
            raise SourceOptionError(f"path={self.pattern!r} is no file, and no glob that fits one")
        for each in found:
            if not is_text(each):
                raise SourceOptionError(f"{each!a}: this name is no text: rename the file")
        return found


class _Reader(DataSourceReader):
    """Packets split by split, frames by shares of the connections, events capture by capture."""

    def __init__(self, request: _Request) -> None:
        self._request = request
        self._wanted: Wanted = ALL

    def partitions(self) -> Sequence[InputPartition]:
        """See DataSourceReader. A compressed capture is one part: its copy lives where it is read."""
        parts: list[_Part] = []
        for path in self._request.paths():
            if self._wanted.may_be({"capture": Path(path).name}):
                with open_capture(path) as capture:
                    parts += self._parts(path, capture)
        return parts

    def _parts(self, path: str, capture: Capture) -> list[_Part]:
        """The parts of one capture."""
        request = self._request
        if capture.copy is not None or request.what not in ("packets", "frames"):
            return [_Part(path)]
        if request.what == "frames":
            of = min(SHARES_MAXIMUM, -(-len(capture.data) // request.split_bytes))
            return [_Part(path, share=Share(number, of)) for number in range(of)]
        low, high = self._wanted.borders("record_offset")
        cuts = [each for each in capture.cuts(request.split_bytes) if each.start <= high and each.end > low]
        splits = [replace(each, window=window_of(self._wanted)) for each in cuts]
        return [_Part(path, each) for each in splits if _has_records(capture, each)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """See DataSourceReader. Where filters leave no part, Spark asks for one that is none of ours."""
        if not isinstance(partition, _Part):
            return
        request, name, wanted = self._request, Path(partition.path).name, self._wanted
        if request.what != "packets":
            yield from capture_batches(
                partition.path, request.what, request.hints, request.columns, wanted, partition.share
            )
        elif partition.split is not None:
            yield from packet_batches(partition.split, name, request.columns, wanted)
        else:
            with open_capture(partition.path) as capture:
                whole = replace(capture.whole, window=window_of(wanted))
                yield from packet_batches(whole, name, request.columns, wanted)


class _NarrowingReader(_Reader):
    """Reads only what filters leave, as long as they are the first ones of its table."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 (Spark's name)
        """See DataSourceReader. Spark evaluates all filters again: here they only keep work away."""
        wanted = wanted_by(filters, self._request.schema)
        if self._request.filter_file is not None and may_narrow(self._request.filter_file, wanted):
            self._wanted = wanted
        return filters


def _has_records(capture: Capture, split: Split) -> bool:
    """Whether any record lies in a split's window."""
    return split.window == ALL_TIME or bool(len(walk(capture.data, split)[0].record_offset))


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _positive(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not int(text):
        raise SourceOptionError(f"{name}={text!r} is no positive number")
    return int(text)
