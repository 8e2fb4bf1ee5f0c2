"""A watch whose segments are decoded by Spark's structured streaming.

The ledger is the log that the stream reads: an offset is how often segments were cut. A micro-batch decodes
what was cut since the one before, a task a segment, into the checkpoint, which workers see; then the
stretch is judged, and only then Spark commits it. What Spark does again after a crash finds its files there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.query import StreamingQuery

from replispec.replay.engines.cluster import LATE, Cluster
from replispec.replay.engines.results import SPARK_LOG_NAME
from replispec.replay.engines.spark_session import spark_session
from replispec.replay.engines.spark_workers import plain_failures
from replispec.replay.watch.alone import cuts_between, cuts_so_far, decode_alone

FORMAT: Final = "replispec.segments"
SPARK_NAME: Final = "spark"
# How often Spark asks whether segments were cut: each time is a look at the ledger.
TRIGGER: Final = "300 milliseconds"
# How often a stream is begun, at most, for one look.
STARTS: Final = 4


@dataclass(frozen=True)
class _Part(InputPartition):
    """One segment."""

    number: int


class SegmentsSource(DataSource):
    """Options: `checkpoint`, the folder of a watch; `stretch`, how many bytes of capture are judged."""

    @classmethod
    def name(cls) -> str:
        """What format() is given."""
        return FORMAT

    def schema(self) -> str:
        """A row a segment that was decoded."""
        return "segment int"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802, ARG002 (Spark's)
        """See DataSource."""
        return _SegmentsReader(Path(self.options["checkpoint"]), int(self.options["stretch"]))


class _SegmentsReader(DataSourceStreamReader):
    def __init__(self, checkpoint: Path, stretch_bytes: int) -> None:
        self._checkpoint = checkpoint
        self._stretch_bytes = stretch_bytes

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 (Spark's)
        """Before the first cut."""
        return {"cuts": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802, ARG002
        """All that was cut."""
        return {"cuts": max(start["cuts"], cuts_so_far(self._checkpoint))}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """The segments that were cut between the two."""
        return [_Part(number) for number in cuts_between(self._checkpoint, start["cuts"], end["cuts"])]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        """Decode one, and name it."""
        if not isinstance(partition, _Part):
            raise TypeError(f"{partition!r} is no segment")
        decode_alone(self._checkpoint, partition.number, self._stretch_bytes)
        yield (partition.number,)


@contextmanager
def streaming(
    checkpoint: Path, out: Path, cluster: Cluster, stretch_bytes: int, judge: Callable[[], None]
) -> Iterator[Callable[[], None]]:
    """A stream over the segments of a watch. What it gives waits until all that was cut is
    decoded and judged. Raises ClusterError."""

    def batch(segments: DataFrame, _number: int) -> None:
        segments.collect()
        judge()

    with plain_failures():
        # Ctrl-C ends a watch with its verdict: it is no interrupt.
        session = spark_session(cluster, log=out / SPARK_LOG_NAME, own_signals=True)
        session.dataSource.register(SegmentsSource)
        query = _segments(session, checkpoint, stretch_bytes).writeStream.foreachBatch(batch)
        query = query.option("checkpointLocation", str((checkpoint / SPARK_NAME).absolute()))
        stream = Stream(query.trigger(processingTime=TRIGGER).start)
        try:
            yield stream.run
        except BaseException:
            # Why it ended is told, not that what has ended cannot be stopped.
            with suppress(Exception):
                stream.stop()
            raise
        stream.stop()


class Stream:
    """A query that is begun again where Python did not start within Spark's 10 s, as on a busy one."""

    def __init__(self, begin: Callable[[], StreamingQuery]) -> None:
        self._begin = begin
        self._running = begin()

    def run(self) -> None:
        """Wait until all that was cut is decoded and judged. What was begun before is done again."""
        for _ in range(1, STARTS):
            try:
                return self._running.processAllAvailable()
            except StreamingQueryException as error:
                if LATE not in str(error):
                    raise
            self._running = self._begin()
        return self._running.processAllAvailable()

    def stop(self) -> None:
        """End it."""
        self._running.stop()


def _segments(session: SparkSession, checkpoint: Path, stretch_bytes: int) -> DataFrame:
    reader = session.readStream.format(FORMAT).option("stretch", stretch_bytes)
    return reader.option("checkpoint", str(checkpoint.absolute())).load()
