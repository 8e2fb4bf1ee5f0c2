"""The Markdown page of a family's metrics."""

from __future__ import annotations

from collections.abc import Mapping

from replispec.compiler.emit.docs.machines import banner
from replispec.compiler.emit.docs.tables import table
from replispec.compiler.model.metric import MetricSpec, MetricsSpec


def metrics_document(metrics: MetricsSpec, sources: Mapping[str, bytes]) -> str:
    """One table for each group, then the labels with their bounds."""
    lines = [*banner(sources), "# Metrics", ""]
    for group in metrics.groups:
        shared = group.metrics[0].shared
        carried = ", ".join(f"`{each.name}`" for each in shared)
        lines += [
            f"## {group.title}",
            f"Of {', '.join(group.roles)}. Labels of all: {carried or 'none'}.",
            "",
        ]
        lines += table(("metric", "kind", "unit", "labels", "what it is"), map(_row, group.metrics))
    lines += ["## Labels", "Values beyond the bound count together as `other`.", ""]
    rows = [(f"`{each.name}`", str(each.most), each.about) for each in metrics.labels]
    return "\n".join([*lines, *table(("label", "values at most", "what it is"), rows)])


def _row(metric: MetricSpec) -> tuple[str, ...]:
    labels = ", ".join(f"`{each.name}`" for each in metric.labels)
    about = f"{metric.about} Upstream: `{metric.origin}`." if metric.origin else metric.about
    return f"`{metric.name}`", metric.kind, metric.unit, labels, about
