"""What all roles show: their process, and the port that answers requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from replispec.runtime.primitives.latencies import Latencies
from replispec.runtime.primitives.metrics import OTHER, Histogram, Metric, Sample
from replispec.runtime.rocketmq.remoting import RequestServer
from replispec.runtime.seeing.process_view import ProcessView
from replispec.runtime.world import Numbers
from replispec.wire.rocketmq import metrics


class NodeView(ProcessView):
    """A role with a port for requests; see `replispec.runtime.world.RoleView`."""

    def __init__(self, role: str, server: RequestServer, latency: Metric | None = None) -> None:
        super().__init__(role, metrics, None if latency is None else Latencies(latency))
        self.server = server
        server.latencies = self.latencies

    def samples(self, numbers: Numbers) -> Iterable[Sample]:
        """See `RoleView`."""
        yield from super().samples(numbers)
        yield metrics.REMOTING_CONNECTIONS.of(self.server.connections)
        yield metrics.REMOTING_WAITING_BYTES.of(self.server.held_bytes)
        for reason, count in self.server.refusals.items():
            yield metrics.REMOTING_REFUSED_PEERS_TOTAL.of(count, reason)
        yield metrics.REMOTING_REFUSED_PEERS_TOTAL.of(numbers.refused, "tls")
        yield from self._answers()

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
