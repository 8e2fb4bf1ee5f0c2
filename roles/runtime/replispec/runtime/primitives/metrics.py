"""What generated tables of metrics are made of, and what is counted by them.

A node counts with plain numbers; what they are called, and which labels they carry, is declared in the
specification. A label that a peer could fill without end has a bound, and what comes beyond it counts as
`other`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from replispec.runtime.primitives.immutable import immutable

OTHER: Final = "other"
SERIES_MAX: Final = 2_000
"""Of one metric, whatever the bounds of its labels come to together."""
LABEL_CHARS_MAX: Final = 200
GAUGE: Final = "gauge"
COUNTER: Final = "counter"
HISTOGRAM: Final = "histogram"


@immutable
class Metric:
    """One row of the specification. `shared`: labels that are the same for all metrics of one node;
    `labels`: its own, in the order of `of`; `bounds`: how many values each of these may have."""

    name: str
    kind: str
    about: str
    unit: str = ""
    shared: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    bounds: tuple[int, ...] = ()
    buckets: tuple[float, ...] = ()

    def of(self, value: float | bool | Histogram, *labels: object) -> Sample:
        """One value of it, with its own labels in their order."""
        assert len(labels) == len(self.labels), f"{self.name} has the labels {', '.join(self.labels)}"
        return Sample(self, value, tuple([str(each)[:LABEL_CHARS_MAX] for each in labels]))


class Histogram:
    """How many values were at most as large as each bucket; `buckets` ascend."""

    __slots__ = ("buckets", "counts", "total")

    def __init__(self, buckets: Sequence[float]) -> None:
        self.buckets: Final = tuple(buckets)
        self.counts: Final = [0] * (len(buckets) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.buckets, value)] += 1
        self.total += value

    def plus(self, other: Histogram) -> Histogram:
        """Both together; their buckets are the same."""
        both = Histogram(self.buckets)
        for index, count in enumerate(self.counts):
            both.counts[index] = count + other.counts[index]
        both.total = self.total + other.total
        return both

    def cumulative(self) -> Iterator[tuple[float, int]]:
        """Each bucket, the last one without a limit, with the number of values up to it."""
        count = 0
        for bucket, here in zip((*self.buckets, float("inf")), self.counts, strict=True):
            count += here
            yield bucket, count


@immutable
class Sample:
    """A value of a metric, with the values of its own labels."""

    metric: Metric
    value: float | bool | Histogram
    labels: tuple[str, ...] = ()


class BoundedCounts:
    """BoundedCounts by a name that a peer gives: at most `most` of them, all further ones under `other`."""

    __slots__ = ("_counts", "_most")

    def __init__(self, most: int) -> None:
        self._most = most
        self._counts: dict[object, int] = {}

    def add(self, key: object, count: int = 1) -> None:
        """Count this often."""
        counts = self._counts
        if key in counts:
            counts[key] += count
        elif len(counts) < self._most:
            counts[key] = count
        else:
            counts[OTHER] = counts.get(OTHER, 0) + count

    def items(self) -> Iterable[tuple[object, int]]:
        """Every name with its count."""
        return self._counts.items()


class BoundedHistograms:
    """Histograms by a name that a peer gives, with the same bound as BoundedCounts."""

    __slots__ = ("_found", "_most", "buckets")

    def __init__(self, buckets: Sequence[float], most: int) -> None:
        self.buckets: Final = tuple(buckets)
        self._most = most
        self._found: dict[object, Histogram] = {}

    def of(self, key: object) -> Histogram:
        """The one that counts values of this name."""
        found = self._found
        if key in found:
            return found[key]
        return found.setdefault(key if len(found) < self._most else OTHER, Histogram(self.buckets))

    def items(self) -> Iterable[tuple[object, Histogram]]:
        """Every name with its histogram."""
        return self._found.items()


class Gathered:
    """Samples as they are shown: within the bounds of their labels. What is beyond is added up as `other`,
    and what was shown once keeps its place, so that no counter goes back because another name came."""

    def __init__(self) -> None:
        self._shown: dict[str, tuple[set[str], ...]] = {}
        self._series: dict[str, set[tuple[str, ...]]] = {}

    def gather(
        self, samples: Iterable[Sample], shared: Mapping[str, str]
    ) -> Mapping[Metric, Mapping[tuple[str, ...], float | Histogram]]:
        """Values by metric, and by all of its labels: those that are shared first."""
        found: dict[Metric, dict[tuple[str, ...], float | Histogram]] = {}
        for sample in samples:
            metric = sample.metric
            before = tuple([shared.get(name, "") for name in metric.shared])
            key = before + self._within(metric, sample.labels)
            values = found.setdefault(metric, {})
            known = values.get(key)
            values[key] = sample.value if known is None else _sum(metric, known, sample.value)
        return found

    def _within(self, metric: Metric, labels: tuple[str, ...]) -> tuple[str, ...]:
        if not labels:
            return labels
        shown = self._shown.setdefault(metric.name, tuple(set() for _ in labels))
        found = tuple(map(_bounded, labels, shown, metric.bounds))
        series = self._series.setdefault(metric.name, set())
        if found not in series and len(series) >= SERIES_MAX:
            return (OTHER,) * len(labels)
        series.add(found)
        return found


def _sum(metric: Metric, known: float | Histogram, value: float | Histogram) -> float | Histogram:
    if isinstance(known, Histogram) and isinstance(value, Histogram):
        return known.plus(value)
    assert not isinstance(known, Histogram), f"{metric.name} is two kinds of values"
    assert not isinstance(value, Histogram), f"{metric.name} is two kinds of values"
    return known + float(value)


def _bounded(value: str, shown: set[str], most: int) -> str:
    if value in shown:
        return value
    if len(shown) >= most:
        return OTHER
    shown.add(value)
    return value
