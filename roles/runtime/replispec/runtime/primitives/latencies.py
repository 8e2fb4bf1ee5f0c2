"""How long requests took, without a clock of its own: who runs a node says when an event begins and ends."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from replispec.runtime.primitives.metrics import BoundedHistograms, Metric

PER_SECOND: Final = {"microseconds": 1e6, "milliseconds": 1e3, "seconds": 1.0}
KINDS_MAX: Final = 2_048
"""Kinds of answers that are counted apart."""


class Latencies:
    """From the event that brought a request to the end of the event that answered it, in the unit of a
    metric, by kind of answer. Where nobody says when events begin nothing is kept: `began_s` stays 0."""

    __slots__ = ("_answered", "_per_second", "began_s", "took")

    def __init__(self, metric: Metric) -> None:
        self.began_s = 0.0
        """When the event began that is being handled."""
        self.took: Final = BoundedHistograms(metric.buckets, KINDS_MAX)
        """How long, by kind."""
        self._per_second: Final = PER_SECOND[metric.unit]
        self._answered: list[tuple[object, float]] = []

    @property
    def is_waiting(self) -> bool:
        """Whether something was answered since the last `end`, which is to be called then."""
        return bool(self._answered)

    def answered(self, kind: object, began_s: float) -> None:
        """A request was answered that an event brought which began then; 0 when nobody said so."""
        if began_s:
            self._answered.append((kind, began_s))

    def end(self, now_s: float) -> None:
        """The event is over, and what it made of it was sent."""
        answered, self._answered = self._answered, []
        last_s, value, index = -1.0, 0.0, 0
        known, found = None, None
        for kind, began_s in answered:
            # Requests that came together took the same time, and are mostly of one kind.
            if began_s != last_s:
                last_s, value = began_s, (now_s - began_s) * self._per_second
                index = bisect_left(self.took.buckets, value)
            if found is None or kind != known:
                known, found = kind, self.took.of(kind)
            found.counts[index] += 1
            found.total += value
