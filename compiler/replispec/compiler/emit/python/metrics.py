"""The Python module of a family's metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from replispec.compiler.emit.python.codes import certificate
from replispec.compiler.emit.python.tree import PRIMITIVES, TYPING, Comment, Constant, Module, Names, Node
from replispec.compiler.model.metric import MetricSpec, MetricsSpec

_METRICS: Final = Names(f"{PRIMITIVES}.metrics")


def metrics_text(metrics: MetricsSpec, family: str, sources: Mapping[str, bytes]) -> str:
    """The module with one name for each metric, and all of them by role."""
    about = f"What roles of {family} show of themselves."
    final = str(TYPING.Final)
    nodes: list[Node] = []
    for label in metrics.labels:
        name = f"{label.name.upper()}_VALUES_MAX"
        nodes.append(Constant(name, repr(label.most), final, f"Values of the label {label.name}."))
    for group in metrics.groups:
        nodes.append(Comment(group.title))
        nodes += [_constant(each) for each in group.metrics]
    roles: dict[str, list[str]] = {}
    for group in metrics.groups:
        for role in group.roles:
            roles.setdefault(role, []).extend(map(metric_constant, group.metrics))
    rows = ", ".join(f"{role!r}: ({', '.join(names)},)" for role, names in sorted(roles.items()))
    nodes.append(Constant("BY_ROLE", f"{{{rows}}}", final, "What each role shows, in order."))
    return Module(f"replispec.wire.{family}.metrics", certificate(sources), about, nodes).text()


def metric_constant(metric: MetricSpec) -> str:
    """The name of a metric's constant: without the family's own word in front."""
    return metric.name.partition("_")[2].upper()


def _constant(metric: MetricSpec) -> Constant:
    parts = [repr(metric.name), repr(metric.kind), repr(metric.about)]
    if metric.unit:
        parts.append(f"unit={metric.unit!r}")
    if metric.shared:
        parts.append(f"shared={tuple(each.name for each in metric.shared)!r}")
    if metric.labels:
        parts.append(f"labels={tuple(each.name for each in metric.labels)!r}")
        bounds = ", ".join(f"{each.name.upper()}_VALUES_MAX" for each in metric.labels)
        parts.append(f"bounds=({bounds},)")
    if metric.buckets:
        parts.append(f"buckets=({', '.join(metric.buckets)},)")
    made = f"{_METRICS.Metric}({', '.join(parts)})"
    return Constant(metric_constant(metric), made, str(TYPING.Final))
