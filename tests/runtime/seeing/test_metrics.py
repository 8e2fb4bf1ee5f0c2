"""Numbers by name: within the bounds of their labels, and as text that Prometheus' own readers take."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from replispec.runtime.primitives.latencies import Latencies
from replispec.runtime.primitives.metrics import (
    COUNTER,
    GAUGE,
    HISTOGRAM,
    OTHER,
    SERIES_MAX,
    BoundedCounts,
    BoundedHistograms,
    Gathered,
    Histogram,
    Metric,
)
from replispec.runtime.seeing.exposition import expose

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
SENT = Metric("x_sent_total", COUNTER, "Sent.", shared=("role",), labels=("topic",), bounds=(3,))
LAG = Metric("x_lag_bytes", GAUGE, "Lag.", unit="bytes", labels=("a", "b"), bounds=(100, 100))
TOOK = Metric("x_took_seconds", HISTOGRAM, "Took.", unit="seconds", buckets=(0.1, 1.0))


@given(st.lists(st.tuples(st.text(max_size=3), st.integers(1, 9)), max_size=60))
def test_names_without_end_become_other_and_nothing_is_lost(sent: list[tuple[str, int]]) -> None:
    counts, gathered = BoundedCounts(3), Gathered()
    for topic, count in sent:
        counts.add(topic, count)
    found = gathered.gather([SENT.of(count, topic) for topic, count in counts.items()], {"role": "broker"})
    series = found.get(SENT, {})
    assert len(series) <= 4
    assert sum(series.values()) == sum(count for _, count in sent)  # type: ignore[arg-type]


def test_a_name_that_was_shown_keeps_its_place() -> None:
    gathered = Gathered()
    first = gathered.gather([SENT.of(1, name) for name in "abcd"], {})[SENT]
    later = gathered.gather([SENT.of(1, name) for name in "dcba"], {})[SENT]
    assert set(first) == set(later) == {("", "a"), ("", "b"), ("", "c"), ("", OTHER)}


def test_labels_together_have_a_bound_too() -> None:
    found = Gathered().gather([LAG.of(1, one, two) for one in range(100) for two in range(100)], {})[LAG]
    assert len(found) == SERIES_MAX + 1
    assert found[OTHER, OTHER] == 10_000 - SERIES_MAX


def test_a_label_is_not_longer_than_anybody_reads() -> None:
    (labels,) = Gathered().gather([SENT.of(1, "x" * 1_000_000)], {})[SENT]
    assert len(labels[1]) < 1_000


def _text(accept: str) -> str:
    took = Histogram(TOOK.buckets)
    for seconds in (0.05, 0.1, 0.5, 7.0):
        took.observe(seconds)
    samples = [SENT.of(2, 'a"\\\n b'), LAG.of(3, "x", "y"), TOOK.of(took)]
    return expose([Gathered().gather(samples, {"role": "broker"})], accept).text.decode()


@pytest.mark.parametrize(("accept", "read"), [("", read_text), (OPENMETRICS, read_openmetrics)])
def test_both_texts_are_read_by_the_readers_of_prometheus(accept: str, read: object) -> None:
    families = {each.name: each for each in read(_text(accept))}  # type: ignore[operator]
    (sent,) = [each for each in families["x_sent"].samples if each.name == "x_sent_total"]
    assert (sent.labels, sent.value) == ({"role": "broker", "topic": 'a"\\\n b'}, 2)
    took = {(each.name, each.labels.get("le")): each.value for each in families["x_took_seconds"].samples}
    assert took["x_took_seconds_bucket", "0.1"] == 2
    assert took["x_took_seconds_bucket", "1.0"] == 3
    assert took["x_took_seconds_bucket", "+Inf"] == took["x_took_seconds_count", None] == 4


def test_two_nodes_of_one_process_make_one_family() -> None:
    found = [Gathered().gather([SENT.of(1, "t")], {"role": role}) for role in ("a", "b")]
    (family,) = read_text(expose(found, "").text.decode())
    assert {each.labels["role"] for each in family.samples} == {"a", "b"}


@given(st.lists(st.tuples(st.text(max_size=2), st.sampled_from([0.05, 0.5, 5.0])), max_size=60))
def test_histograms_of_names_without_end_become_other_and_no_value_is_lost(
    seen: list[tuple[str, float]],
) -> None:
    metric = Metric("x_size", HISTOGRAM, "Size.", labels=("topic",), bounds=(2,), buckets=TOOK.buckets)
    by_topic, gathered = BoundedHistograms(TOOK.buckets, 4), Gathered()
    for topic, value in seen:
        by_topic.of(topic).observe(value)
    found = gathered.gather([metric.of(each, topic) for topic, each in by_topic.items()], {})
    shown = [each for each in found.get(metric, {}).values() if isinstance(each, Histogram)]
    assert len(shown) <= 3
    for index, value in enumerate([0.05, 0.5, 5.0]):
        assert sum(each.counts[index] for each in shown) == [one for _, one in seen].count(value)
    assert sum(each.total for each in shown) == pytest.approx(sum(value for _, value in seen))


def test_requests_that_came_together_took_the_same_and_each_counts_under_its_kind() -> None:
    took = Latencies(TOOK)
    took.answered("without a clock", took.began_s)
    took.began_s = 10.0
    for kind in ("a", "a", "b", "a"):
        took.answered(kind, took.began_s)
    took.answered("a", 5.0)
    took.end(10.5)
    assert {kind: each.counts for kind, each in took.took.items()} == {"a": [0, 3, 1], "b": [0, 1, 0]}
    assert not took.is_waiting
    assert sum(each.total for _, each in took.took.items()) == pytest.approx(4 * 0.5 + 5.5)


def test_a_gathered_histogram_is_a_copy_where_several_are_one() -> None:
    one, other = Histogram((1.0,)), Histogram((1.0,))
    one.observe(0.5)
    other.observe(2.0)
    both = one.plus(other)
    assert (both.counts, both.total, one.counts, other.counts) == ([1, 1], 2.5, [1, 0], [0, 1])
