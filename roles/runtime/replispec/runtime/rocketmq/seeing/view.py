"""What all roles show: their process, and the port that answers requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from replispec.runtime.primitives.latencies import Latencies
from replispec.runtime.primitives.metrics import OTHER, Histogram, Metric, Sample
from replispec.runtime.rocketmq.remoting import RequestServer
from replispec.runtime.version import VERSION
from replispec.runtime.world import Numbers, ReadyCheck
from replispec.wire.rocketmq import metrics


class NodeView:
    """The part that is the same for all; see `replispec.runtime.world.RoleView`."""

    def __init__(self, role: str, server: RequestServer, latency: Metric | None = None) -> None:
        self.role = role
        self.server = server
        self.latencies = server.latencies = None if latency is None else Latencies(latency)
        """See `RoleView`."""
        self.address = ""
        """Where the node listens, once it does."""

    @property
    def write_buckets(self) -> Sequence[float]:
        """See `RoleView`."""
        return metrics.PROCESS_FSYNC_SECONDS.buckets

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
        yield metrics.REMOTING_CONNECTIONS.of(self.server.connections)
        yield metrics.REMOTING_WAITING_BYTES.of(self.server.held_bytes)
        for reason, count in self.server.refusals.items():
            yield metrics.REMOTING_REFUSED_PEERS_TOTAL.of(count, reason)
        yield metrics.REMOTING_REFUSED_PEERS_TOTAL.of(numbers.refused, "tls")
        yield from self._answers()
        yield from self.own_samples(numbers)

    def own_samples(self, numbers: Numbers) -> Iterable[Sample]:  # noqa: ARG002
        """What this role alone shows."""
        return ()

    def _answers(self) -> Iterator[Sample]:
        for (request, code), count in self.answered():
            yield metrics.REMOTING_ANSWERS_TOTAL.of(count, request, code)

    def answered(self) -> Iterator[tuple[tuple[str, str], int]]:
        """How often each request was answered with each code; a pair may come several times."""
        for key, count in self.server.answers.items():
            yield (key if isinstance(key, tuple) else (OTHER, OTHER)), count
        for (request, code, _, _), histogram in self.took():
            yield (request, code), sum(histogram.counts)

    def took(self) -> Iterator[tuple[tuple[str, str, bool, str], Histogram]]:
        """How long requests took: by their name, the code of their answer, whether they waited for what they
        asked for, and what became of the answer."""
        if self.latencies is not None:
            for key, histogram in self.latencies.took.items():
                yield (key if isinstance(key, tuple) else (OTHER, OTHER, False, OTHER)), histogram
