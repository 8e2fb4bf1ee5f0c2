"""Which part of its capture each connection is in, and how parts pass through Spark.

A part is any whole connections, or a share of one that has many frames. Rows between tasks are few, and
opaque to the JVM: Arrow streams, or what Python keeps. What all tasks of a capture have to know lies in a
folder that all workers see.
"""

from __future__ import annotations

import pickle
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from replispec.replay.events.family import shared_observers
from replispec.replay.report.summary import CaptureRow

# So many frames are in one part on average: they are held at once, without their bodies.
FRAMES_TOGETHER = 1 << 16
# Parts of fewer are made only to give every core some.
FRAMES_MINIMUM = 1 << 12
PARTS_A_CORE = 2
# A connection with more is observed in shares, where it can be: for fewer the two jobs more cost too much.
FRAMES_OF_ONE = 1 << 17
# A row for one task: `slot` says which partition takes it, `owner` the number of its capture.
PASSED: pa.Schema = pa.schema(
    [
        pa.field("slot", pa.int32()),
        pa.field("owner", pa.int32()),
        pa.field("name", pa.string()),
        pa.field("payload", pa.binary()),
    ]
)
Batches = Iterator[pa.RecordBatch]
Passed = tuple[int, int, str, bytes]


@dataclass(frozen=True, slots=True)
class CaptureParts:
    """The parts of one capture: `count` slots from `first` on, and its figures.

    The first `whole` of them have whole connections, about `together` frames each; `shared`: the slots of
    each connection that is observed in shares.
    """

    number: int
    row: CaptureRow
    first: int
    count: int
    whole: int
    together: int
    shared: Mapping[str, range]

    @classmethod
    def of(
        cls, number: int, row: CaptureRow, first: int, cores: int, sizes: Mapping[str, int]
    ) -> CaptureParts:
        """As many as the frames need; `sizes`: how many those connections have that can be shared."""
        frames = row.frames_remoting + row.frames_ha
        least = min(PARTS_A_CORE * cores, frames // FRAMES_MINIMUM)
        count = max(1, least, -(-frames // FRAMES_TOGETHER))
        together = max(1, -(-frames // count))
        many = {name: size for name, size in sizes.items() if size > max(together, FRAMES_OF_ONE)}
        whole = max(1, -(-(frames - sum(many.values())) // together))
        shared: dict[str, range] = {}
        upto = first + whole
        for name, size in sorted(many.items()):
            # One more than its frames need: what is rare is apart.
            shared[name] = range(upto, upto + 1 - (-size // together))
            upto = shared[name].stop
        return cls(number, row, first, upto - first, whole, together, shared)

    def slot_of(self, connection: str) -> int:
        """The slot of a connection, or the first of its slots."""
        own = self.shared.get(connection)
        return self.first + zlib.crc32(connection.encode()) % self.whole if own is None else own.start

    def shares_at(self, slot: int) -> range | None:
        """The slots of the connection that is shared there."""
        return next((own for own in self.shared.values() if slot in own), None)


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of all captures, by name."""

    captures: Mapping[str, CaptureParts]

    @classmethod
    def of(cls, captures: Mapping[str, CaptureRow], cores: int, streams: pa.Table) -> Parts:
        """As many as the frames of the captures need; `streams`: STREAMS of all of them."""
        sizes = _can_be_shared(streams)
        found: dict[str, CaptureParts] = {}
        first = 0
        for number, (name, row) in enumerate(captures.items()):
            found[name] = CaptureParts.of(number, row, first, cores, sizes.get(name, {}))
            first += found[name].count
        return cls(found)

    @property
    def slots(self) -> int:
        """How many there are."""
        return max((each.first + each.count for each in self.captures.values()), default=0)

    def slots_of(self, capture: str, connections: Sequence[str]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The slot of each connection."""
        own = self.captures[capture]
        return np.array([own.slot_of(each) for each in connections], np.int64)

    def shared(self) -> list[tuple[CaptureParts, range]]:
        """The connections that are observed in shares: their captures and slots."""
        return [(each, own) for each in self.captures.values() for own in each.shared.values()]

    def owner(self, slot: int) -> CaptureParts:
        """The capture of a slot."""
        return next(each for each in self.captures.values() if each.first <= slot < each.first + each.count)


def _can_be_shared(streams: pa.Table) -> dict[str, dict[str, int]]:
    """By capture the connections that can be observed in shares, with the numbers of their frames."""
    framed = streams.filter(pc.field("frames") > 0)
    found: dict[str, dict[str, int]] = defaultdict(dict)
    if not framed.num_rows:
        return found
    for observer in shared_observers():
        kinds = pc.is_in(framed.column("protocol"), pa.array(sorted(observer.kinds)))
        told = framed.select(["capture", "connection", "frames"]).append_column("own", kinds)
        sums = told.group_by(["capture", "connection"]).aggregate([("frames", "sum"), ("own", "all")])
        many = sums.filter((pc.field("frames_sum") > FRAMES_OF_ONE) & pc.field("own_all"))
        for row in many.to_pylist():
            found[row["capture"]][row["connection"]] = row["frames_sum"]
    return found


def passed(spark: SparkSession, tasks: int) -> DataFrame:
    """The numbers of so many tasks, each in a partition of its own."""
    return spark.range(0, tasks, 1, numPartitions=max(1, tasks))


def numbers_in(batches: Batches) -> Iterator[int]:
    """Those that one task has."""
    for batch in batches:
        yield from batch.column(0).to_pylist()


def rows_in(batches: Batches) -> Iterator[Passed]:
    """The rows of PASSED that one task has, one at a time."""
    for batch in batches:
        for at in range(batch.num_rows):
            slot, owner, name, payload = batch.columns
            yield slot[at].as_py(), owner[at].as_py(), name[at].as_py(), payload[at].as_py()


def as_batch(rows: Sequence[Passed]) -> pa.RecordBatch:
    """Rows for the next task."""
    columns = zip(*rows, strict=True) if rows else ([] for _ in PASSED)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, PASSED, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=PASSED)


def to_bytes(tables: Iterable[pa.Table | pa.RecordBatch], schema: pa.Schema) -> bytes:
    """Tables as one Arrow stream, compressed."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        for table in tables:
            writer.write(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def from_bytes(payload: bytes) -> pa.Table:
    """The inverse."""
    return pa.ipc.open_stream(payload).read_all()


def squeezed(what: Any) -> bytes:
    """Anything that Python keeps, compressed."""
    return zlib.compress(pickle.dumps(what, 5), 1)


def unsqueezed(payload: bytes) -> Any:
    """The inverse."""
    return pickle.loads(zlib.decompress(payload))


def spark_schema(schema: pa.Schema) -> Any:
    """The schema as Spark has it."""
    return from_arrow_schema(schema)
