"""Numbers by name: within the bounds of their labels, and as text that Prometheus' own readers take."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from replispec.runtime.primitives.metrics import (
    COUNTER,
    GAUGE,
    HISTOGRAM,
    OTHER,
    SERIES_MAX,
    BoundedCounts,
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
