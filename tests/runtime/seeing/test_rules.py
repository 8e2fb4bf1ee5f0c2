"""The shipped dashboard and alert rules: every query is of declared metrics and labels, and is answered."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from replispec.runtime.primitives.metrics import HISTOGRAM, Metric
from replispec.wire.rocketmq.metrics import BY_ROLE
from tests.house.tree import ROOT

FOLDER = ROOT / "docs/observability"
PAGE = (ROOT / "docs/observability.md").read_text()
METRICS = {metric.name: metric for metrics in BY_ROLE.values() for metric in metrics}
# What Prometheus itself says of a target, and of a histogram.
FROM_PROMETHEUS = {"instance", "job", "le"}
NAME = re.compile(r"\b(rocketmq_[a-z0-9_]+)(\{[^}]*\})?")
GROUPED = re.compile(r"\b(?:by|on|without|ignoring)\s*\(([^)]*)\)")
SHOWN = re.compile(r"\{\{\s*(?:\$labels\.)?([A-Za-z_]+)\s*\}\}")
MATCHED = re.compile(r"([A-Za-z_]+)\s*(?:=~|!~|!=|=)")
PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is not installed (Debian: apt-get install prometheus)"
)


def rules() -> list[dict[str, Any]]:
    """The alert rules."""
    found = yaml.safe_load((FOLDER / "alerts.yaml").read_text())
    return [rule for group in found["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    """The panels of the dashboard that ask something."""
    found = json.loads((FOLDER / "dashboard.json").read_text())
    return [panel for panel in found["panels"] if panel["type"] != "row"]


def queries() -> Iterator[tuple[str, str, str]]:
    """Where each query stands, the query, and the text that shows its labels."""
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"], target["legendFormat"]
    dashboard = json.loads((FOLDER / "dashboard.json").read_text())
    for each in dashboard["annotations"]["list"]:
        yield each["name"], each["expr"], each["textFormat"]
    for rule in rules():
        yield rule["alert"], rule["expr"], rule["annotations"]["summary"]


def metric_of(name: str) -> Metric | None:
    """What is meant by a name in a query."""
    for suffix in ("_bucket", "_count", "_sum"):
        found = METRICS.get(name.removesuffix(suffix))
        if found is not None and name.endswith(suffix) and found.kind == HISTOGRAM:
            return found
    found = METRICS.get(name)
    return None if found is None or found.kind == HISTOGRAM else found


def complaints(query: str, shown: str) -> Iterator[str]:
    """Names and labels of a query that nobody shows."""
    labels = set(FROM_PROMETHEUS)
    for name, matchers in NAME.findall(query):
        metric = metric_of(name)
        if metric is None:
            yield f"{name} is not declared"
            continue
        own = {*metric.shared, *metric.labels}
        labels |= own
        yield from (f"{name} has no label {label}" for label in MATCHED.findall(matchers) if label not in own)
    grouped = {each.strip() for inside in GROUPED.findall(query) for each in inside.split(",")}
    for label in (grouped | set(SHOWN.findall(shown))) - labels - {""}:
        yield f"nothing in it has the label {label}"


QUERIES = list(queries())


@pytest.mark.parametrize(("where", "query", "shown"), QUERIES, ids=[f"{one[0]}" for one in QUERIES])
def test_a_query_asks_for_what_is_declared(where: str, query: str, shown: str) -> None:
    assert list(complaints(query, shown)) == [], where


@pytest.mark.parametrize(
    ("query", "shown", "complaint"),
    [
        ("rocketmq_controller_rol == 3", "", "is not declared"),
        ("rocketmq_process_fsync_seconds", "", "is not declared"),
        ("rocketmq_controller_role_bucket", "", "is not declared"),
        ('rocketmq_controller_role{broker="x"}', "", "has no label broker"),
        ("sum by (topic) (rocketmq_controller_role)", "", "the label topic"),
        ("rocketmq_controller_role", "{{topic}}", "the label topic"),
    ],
)
def test_a_query_of_something_else_is_found(query: str, shown: str, complaint: str) -> None:
    assert any(complaint in each for each in complaints(query, shown))


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_has_its_place_on_the_page_and_in_the_tests_of_the_rules(rule: dict[str, Any]) -> None:
    assert f"| `{rule['alert']}` | {rule['labels']['severity']} |" in PAGE
    tested = yaml.safe_load((FOLDER / "alerts_test.yaml").read_text())["tests"]
    of_this = [
        each for one in tested for each in one["alert_rule_test"] if each["alertname"] == rule["alert"]
    ]
    assert {bool(each["exp_alerts"]) for each in of_this} == {True, False}


def test_nothing_on_the_page_is_an_alert_that_there_is_not() -> None:
    told = re.findall(r"^\| `([A-Z]\w+)` \| (?:critical|warning) \|", PAGE, re.MULTILINE)
    assert sorted(told) == sorted(rule["alert"] for rule in rules())


def test_metrics_that_the_page_names_are_declared() -> None:
    assert [name for name, _ in NAME.findall(PAGE) if name not in METRICS and name not in UPSTREAM] == []


# Apache RocketMQ's, of which the page says that they are not shown.
UPSTREAM = {"rocketmq_processor_watermark", "rocketmq_rpc_latency", "rocketmq_controller_"}


@needs_promtool
def test_the_rules_fire_and_clear() -> None:
    assert PROMTOOL is not None
    done = subprocess.run(
        [PROMTOOL, "test", "rules", "alerts_test.yaml"],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_prometheus_takes_rules_example_and_every_query_of_the_dashboard(tmp_path: Path) -> None:
    assert PROMTOOL is not None
    recorded = [
        {"record": f"dashboard:q{number}", "expr": query} for number, (_, query, _) in enumerate(QUERIES)
    ]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": recorded}]}))
    for command in (
        ["check", "rules", str(FOLDER / "alerts.yaml"), str(file)],
        ["check", "config", str(FOLDER / "prometheus.yaml")],
    ):
        done = subprocess.run([PROMTOOL, *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
