"""Metrics as text, in either of the formats that Prometheus reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from replispec.runtime.primitives.metrics import COUNTER, HISTOGRAM, Histogram, Metric

Values = Mapping[Metric, Mapping[tuple[str, ...], float | Histogram]]


class Exposed(NamedTuple):
    """The text, and what it is called."""

    content_type: str
    text: bytes


def expose(found: Sequence[Values], accept: str) -> Exposed:
    """What several nodes of one process show, in the format that is asked for."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Now(found))
    encode, content_type = _format(accept)
    return Exposed(content_type, encode(registry))


def _format(accept: str) -> tuple[Callable[[Collector], bytes], str]:
    """What is asked for, or what everybody reads: the library fails at some versions, and shows others in the
    answer as they came."""
    if accept.isascii() and accept.isprintable():
        try:
            return choose_encoder(accept)
        except Exception:  # noqa: BLE001  whatever it is, a reader's header has made it
            return choose_encoder("")
    return choose_encoder("")


class _Now(Collector):
    def __init__(self, found: Sequence[Values]) -> None:
        self._found: Final = found

    def describe(self) -> Iterable[Family]:
        """Nothing beforehand: every look is a new registry."""
        return ()

    def collect(self) -> Iterator[Family]:
        """One family for each metric, whichever nodes show it."""
        families: dict[str, Family] = {}
        for values in self._found:
            for metric, series in values.items():
                family = families.setdefault(metric.name, _family(metric))
                for labels, value in series.items():
                    _add(family, labels, value)
        yield from families.values()


def _family(metric: Metric) -> Family:
    names = (*metric.shared, *metric.labels)
    # OpenMetrics wants a unit to be the end of the name; where it is not, the text says it.
    base = metric.name.removesuffix("_total")
    unit = metric.unit if base.endswith(f"_{metric.unit}") else ""
    about = metric.about if unit or not metric.unit else f"{metric.about} In {metric.unit}."
    if metric.kind == COUNTER:
        return CounterMetricFamily(metric.name, about, labels=names, unit=unit)
    if metric.kind == HISTOGRAM:
        return HistogramMetricFamily(metric.name, about, labels=names, unit=unit)
    return GaugeMetricFamily(metric.name, about, labels=names, unit=unit)


def _add(family: Family, labels: tuple[str, ...], value: float | Histogram) -> None:
    if isinstance(value, Histogram):
        assert isinstance(family, HistogramMetricFamily), f"{family.name} is no histogram"
        buckets = [(_edge(edge), float(count)) for edge, count in value.cumulative()]
        family.add_metric(labels, buckets, value.total)
    else:
        assert isinstance(family, CounterMetricFamily | GaugeMetricFamily), f"{family.name} is a histogram"
        family.add_metric(labels, value)


def _edge(edge: float) -> str:
    return "+Inf" if edge == float("inf") else repr(float(edge))
