"""What a role of any family shows: its process, and where it listens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from replispec.runtime.primitives.latencies import Latencies
from replispec.runtime.primitives.metrics import Metric, Sample
from replispec.runtime.version import VERSION
from replispec.runtime.world import Numbers, ReadyCheck


class ProcessMetrics(Protocol):
    """The metrics of processes, as the generated module of a family has them."""

    @property
    def BUILD_INFO(self) -> Metric: ...  # noqa: N802
    @property
    def PROCESS_START_TIME_SECONDS(self) -> Metric: ...  # noqa: N802
    @property
    def PROCESS_READY(self) -> Metric: ...  # noqa: N802
    @property
    def PROCESS_EVENTS_TOTAL(self) -> Metric: ...  # noqa: N802
    @property
    def PROCESS_CONNECTIONS(self) -> Metric: ...  # noqa: N802
    @property
    def PROCESS_UNSENT_BYTES(self) -> Metric: ...  # noqa: N802
    @property
    def PROCESS_WRITES_WAITING(self) -> Metric: ...  # noqa: N802
    @property
    def PROCESS_WRITE_FAILURES_TOTAL(self) -> Metric: ...  # noqa: N802
    @property
    def PROCESS_FSYNC_SECONDS(self) -> Metric: ...  # noqa: N802
    @property
    def PROCESS_LOG_LINES_TOTAL(self) -> Metric: ...  # noqa: N802
    @property
    def PROCESS_LOG_LINES_LEFT_OUT_TOTAL(self) -> Metric: ...  # noqa: N802


class ProcessView:
    """The part that is the same for all; see `replispec.runtime.world.RoleView`."""

    def __init__(self, role: str, metrics: ProcessMetrics, latencies: Latencies | None = None) -> None:
        self.role = role
        self._metrics = metrics
        self.latencies = latencies
        """See `RoleView`."""
        self.address = ""
        """Where the node listens, once it does."""

    @property
    def write_buckets(self) -> Sequence[float]:
        """See `RoleView`."""
        return self._metrics.PROCESS_FSYNC_SECONDS.buckets

    def who(self) -> Mapping[str, object]:
        """See `RoleView`."""
        return {"port": self.port}

    @property
    def port(self) -> int:
        """The port for requests; 0 before it is known."""
        return int(self.address.rpartition(":")[2] or 0)

    def began(self) -> Mapping[str, object]:
        """See `RoleView`."""
        return {"version": VERSION, "listens": self.address}

    def shared(self) -> Mapping[str, str]:
        """See `RoleView`."""
        return {"role": self.role}

    def checks(self) -> Sequence[ReadyCheck]:
        """See `RoleView`."""
        reason = f"listens on {self.address}" if self.address else "does not listen yet"
        return (ReadyCheck("listens", bool(self.address), reason),)

    @property
    def has_picture(self) -> bool:
        """See `RoleView`."""
        return False

    def picture(self) -> Mapping[str, object]:
        """See `RoleView`."""
        return {}

    def samples(self, numbers: Numbers) -> Iterable[Sample]:
        """See `RoleView`."""
        metrics = self._metrics
        yield metrics.BUILD_INFO.of(1, VERSION)
        yield metrics.PROCESS_START_TIME_SECONDS.of(numbers.start_ms / 1_000)
        yield metrics.PROCESS_READY.of(all(check.holds for check in self.checks()))
        yield metrics.PROCESS_EVENTS_TOTAL.of(numbers.events)
        yield metrics.PROCESS_CONNECTIONS.of(numbers.accepted, "accepted")
        yield metrics.PROCESS_CONNECTIONS.of(numbers.dialled, "dialled")
        yield metrics.PROCESS_UNSENT_BYTES.of(numbers.unsent_bytes)
        yield metrics.PROCESS_WRITES_WAITING.of(numbers.writes_waiting)
        yield metrics.PROCESS_WRITE_FAILURES_TOTAL.of(numbers.write_failures)
        yield metrics.PROCESS_FSYNC_SECONDS.of(numbers.write_seconds)
        for level, count in numbers.lines.items():
            yield metrics.PROCESS_LOG_LINES_TOTAL.of(count, level)
        yield metrics.PROCESS_LOG_LINES_LEFT_OUT_TOTAL.of(numbers.lines_left_out)
        yield from self.own_samples(numbers)

    def own_samples(self, numbers: Numbers) -> Iterable[Sample]:  # noqa: ARG002
        """What this role alone shows."""
        return ()
