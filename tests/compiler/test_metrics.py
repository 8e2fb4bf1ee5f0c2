"""Metrics of a family: names, labels and bounds, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from replispec.compiler.model.message import SpecificationError
from tests.compiler.small_family import write
from tests.compiler.test_machine_refusals import compile_again

LABELS = "labels:\n  topic: {most: 7, about: A topic.}\n  node: {most: 2, about: A node.}\n"
HEAD = "title: Calls\nroles: [caller]\nshared: [node]\nmetrics:\n"
GOOD = "  small_calls_total: {about: Calls., kind: counter, labels: [topic], origin: calls}\n"


def compiled(folder: Path, text: str, labels: str = LABELS) -> dict[str, str]:
    """What the compiler makes of the small family with these metrics."""
    metrics = write(folder) / "metrics/small"
    metrics.mkdir(parents=True)
    (metrics / "labels.yaml").write_text(labels)
    (metrics / "calls.yaml").write_text(text)
    return {name: data.decode() for name, data in compile_again(folder).items()}


def test_a_metric_is_a_name_a_row_and_one_of_its_roles(tmp_path: Path) -> None:
    seconds = "  small_took_seconds: {about: Time., kind: histogram, unit: seconds, buckets: ['0.1', '1']}\n"
    files = compiled(tmp_path, HEAD + GOOD + seconds)
    module = files["replispec/wire/small/metrics.py"]
    assert "TOPIC_VALUES_MAX: Final = 7\n" in module
    assert "CALLS_TOTAL: Final = Metric(" in module
    assert "bounds=(TOPIC_VALUES_MAX,)" in module
    assert "buckets=(0.1, 1)" in module
    assert '"caller": (CALLS_TOTAL, TOOK_SECONDS)' in module
    rows = files["docs/small/metrics.md"].splitlines()
    assert "| `small_calls_total` | counter |  | `topic` | Calls. Upstream: `calls`. |" in rows
    assert "| `topic` | 7 | A topic. |" in rows


@pytest.mark.parametrize(
    ("line", "fault", "advice"),
    [
        ("smallCalls: {about: x, kind: gauge}", "'smallCalls' is no name of a metric", "joined by _"),
        ("small_x: {about: x, kind: summary}", "'summary' is no kind of a metric", "gauge, counter"),
        ("small_x: {about: x, kind: gauge, unit: hours}", "'hours' is no unit", "bytes, seconds"),
        ("small_x: {about: x, kind: counter}", "small_x is a counter", "end in _total"),
        ("small_x_total: {about: x, kind: gauge}", "small_x_total is a gauge", "end in _total"),
        ("small_x: {about: x, kind: gauge, labels: [queue]}", "no label is named 'queue'", "labels.yaml"),
        ("small_x: {about: x, kind: gauge, labels: [topic, topic]}", "a label stands twice", "once"),
        ("small_x: {about: x, kind: gauge, labels: [node]}", "node is shared already", "drop it"),
        ("small_x: {about: x, kind: gauge, buckets: ['1']}", "small_x is a gauge", "buckets to histograms"),
        ("small_x: {about: x, kind: histogram}", "small_x is a histogram", "buckets to histograms"),
        ("small_x: {about: x, kind: histogram, buckets: ['2', '1']}", "no buckets", "ascending"),
        ("small_calls_total: {about: x, kind: counter}", "stands twice", ""),
    ],
)
def test_what_is_no_metric_is_refused(tmp_path: Path, line: str, fault: str, advice: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        compiled(tmp_path, f"{HEAD}{GOOD}  {line}\n")
    assert fault in str(caught.value)
    assert advice in str(caught.value)


@pytest.mark.parametrize(
    ("labels", "fault"),
    [
        (LABELS + "  queue: {most: 3, about: x}\n", "no metric has the label queue"),
        (LABELS.replace("most: 7", "most: 0"), "the label topic has no bound"),
        (LABELS.replace("most: 7, ", ""), "the label topic has no bound"),
        (LABELS.replace("most: 7", "most: 1000000"), "the label topic has no bound"),
        (LABELS.replace("topic", "le"), "'le' is no name of a label"),
    ],
)
def test_a_label_without_a_bound_is_refused(tmp_path: Path, labels: str, fault: str) -> None:
    with pytest.raises(SpecificationError, match=fault):
        compiled(tmp_path, HEAD + GOOD, labels)


def test_only_a_role_of_the_family_shows_metrics(tmp_path: Path) -> None:
    with pytest.raises(SpecificationError, match="no role is named 'nobody'"):
        compiled(tmp_path, HEAD.replace("[caller]", "[nobody]") + GOOD)
