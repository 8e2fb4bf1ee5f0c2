"""What a learner shows of itself: whom it reads, and how much it has exported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

from replispec.learner.kafka.core.export import PartitionName, RecordExport
from replispec.learner.kafka.core.reading import LeaderReading, ReadPartition
from replispec.runtime.primitives.metrics import Sample
from replispec.runtime.seeing.process_view import ProcessView
from replispec.runtime.world import Numbers, ReadyCheck
from replispec.wire.kafka import metrics

ROLE: Final = "learner"


class LogReaderParts(Protocol):
    """The node, to be looked at."""

    @property
    def export(self) -> RecordExport:
        """What it writes."""
        ...

    @property
    def partitions(self) -> Mapping[PartitionName, ReadPartition]:
        """What it reads."""
        ...

    @property
    def readings(self) -> Mapping[str, LeaderReading]:
        """Of whom."""
        ...


class LogReaderView(ProcessView):
    """Reads the node, and changes nothing; see `replispec.runtime.world.RoleView`."""

    def __init__(self, node: LogReaderParts) -> None:
        super().__init__(ROLE, metrics)
        self._node = node

    def who(self) -> Mapping[str, object]:
        """See `RoleView`."""
        return {"partitions": len(self._node.partitions)}

    def _read(self) -> int:
        readings = self._node.readings.values()
        return sum(len(each.partitions) for each in readings if each.broker.is_connected)

    def checks(self) -> Sequence[ReadyCheck]:
        """See `RoleView`. It is of use while it reads all that it knows."""
        known, read = len(self._node.partitions), self._read()
        return (ReadyCheck("reads", 0 < known == read, f"reads {read} of {known} partitions"),)

    def own_samples(self, numbers: Numbers) -> Iterable[Sample]:  # noqa: ARG002
        """What a learner alone shows."""
        yield metrics.LEARNER_PARTITIONS.of(len(self._node.partitions))
        yield metrics.LEARNER_PARTITIONS_READ.of(self._read())
        yield metrics.LEARNER_LINES_TOTAL.of(self._node.export.written)
        yield metrics.LEARNER_EXPORT_BYTES.of(self._node.export.size)
