"""metrics/FAMILY/*.yaml: what roles show of themselves, by name, kind, unit and labels.

labels.yaml declares the labels, each with a bound. Every other file holds a group of metrics; `roles` says
who shows them, `shared` which labels all of them carry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from replispec.compiler.model.message import SpecificationError
from replispec.compiler.model.metric import LabelSpec, MetricGroup, MetricSpec, MetricsSpec
from replispec.compiler.model.parameter import ConfigurationSpec
from replispec.compiler.read.yaml_source import Scalar, Tree

LABELS_FILE: Final = "labels.yaml"
KINDS: Final = ("gauge", "counter", "histogram")
UNITS: Final = ("", "bytes", "seconds", "milliseconds", "microseconds", "messages", "percent", "ratio")
LABEL_VALUES_MAX: Final = 1_000
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)+")
# Prometheus keeps names with two underscores, `le` and `quantile` for itself.
_LABEL: Final = re.compile(r"(?!le$|quantile$)[a-z][A-Za-z0-9]*(_[a-z0-9]+)*")
_NUMBER: Final = re.compile(r"(0|[1-9][0-9]*)(\.[0-9]+)?")


def read_metrics(trees: Mapping[str, Tree], configuration: ConfigurationSpec) -> MetricsSpec:
    """The metrics of a family; nothing without files. Raises SpecificationError."""
    labels: dict[str, LabelSpec] = {}
    for name, tree in trees.items():
        if name.endswith(f"/{LABELS_FILE}"):
            tree.only("labels")
            labels = {each.name: each for each in _labels(tree)}
    groups = tuple(
        _group(tree, labels, configuration)
        for name, tree in trees.items()
        if not name.endswith(f"/{LABELS_FILE}")
    )
    found: dict[str, MetricSpec] = {}
    for each in (metric for group in groups for metric in group.metrics):
        if each.name in found:
            raise SpecificationError(
                each.place, f"the metric {each.name} stands twice", f"see {found[each.name].place}"
            )
        found[each.name] = each
    used = {label.name for each in found.values() for label in (*each.shared, *each.labels)}
    for label in labels.values():
        if label.name not in used:
            raise SpecificationError(
                label.place, f"no metric has the label {label.name}", "drop it, or give it to one"
            )
    return MetricsSpec(tuple(labels.values()), groups, tuple(found.values()))


def _labels(file: Tree) -> Iterator[LabelSpec]:
    for name, tree in file.trees("labels"):
        tree.only("about", "most")
        place = file.tree("labels").place_of(name)
        if not _LABEL.fullmatch(name):
            raise SpecificationError(place, f"{name!r} is no name of a label", "use words joined by _")
        node = tree.items.get("most")
        most = node.value if isinstance(node, Scalar) else None
        if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= LABEL_VALUES_MAX:
            raise SpecificationError(
                tree.place_of("most"),
                f"the label {name} has no bound",
                f"write most: 1 to {LABEL_VALUES_MAX}: further values count as other",
            )
        yield LabelSpec(name, tree.text("about"), most, place)


def _group(tree: Tree, labels: Mapping[str, LabelSpec], configuration: ConfigurationSpec) -> MetricGroup:
    tree.only("title", "roles", "shared", "metrics")
    roles = tree.texts("roles")
    for role in roles:
        if role not in configuration.roles:
            raise SpecificationError(
                tree.place_of("roles"),
                f"no role is named {role!r}",
                f"use one of: {', '.join(configuration.roles)}",
            )
    if not roles:
        raise SpecificationError(tree.place, "no role shows these metrics", "write roles: [broker]")
    shared = _named(tree, "shared", labels)
    metrics = tuple(_metric(name, each, tree, shared, labels) for name, each in tree.trees("metrics"))
    return MetricGroup(tree.text("title"), roles, metrics)


def _named(tree: Tree, key: str, labels: Mapping[str, LabelSpec]) -> tuple[LabelSpec, ...]:
    names = tree.texts(key)
    for name in names:
        if name not in labels:
            raise SpecificationError(
                tree.place_of(key), f"no label is named {name!r}", f"declare it in {LABELS_FILE}"
            )
    if len(set(names)) < len(names):
        raise SpecificationError(tree.place_of(key), "a label stands twice", "name every one once")
    return tuple(labels[name] for name in names)


def _metric(
    name: str, tree: Tree, file: Tree, shared: tuple[LabelSpec, ...], labels: Mapping[str, LabelSpec]
) -> MetricSpec:
    tree.only("about", "kind", "unit", "labels", "buckets", "origin")
    place = file.tree("metrics").place_of(name)
    if not _NAME.fullmatch(name):
        raise SpecificationError(place, f"{name!r} is no name of a metric", "use words joined by _")
    kind, unit = tree.text("kind"), tree.text("unit", "")
    for key, value, allowed in (("kind", kind, KINDS), ("unit", unit, UNITS)):
        if value not in allowed:
            raise SpecificationError(
                tree.place_of(key),
                f"{value!r} is no {key} of a metric",
                f"use one of: {', '.join(filter(None, allowed))}",
            )
    if (kind == "counter") != name.endswith("_total"):
        raise SpecificationError(
            place, f"{name} is a {kind}", "let counters, and nothing else, end in _total"
        )
    own = _named(tree, "labels", labels)
    if both := {each.name for each in own} & {each.name for each in shared}:
        raise SpecificationError(tree.place_of("labels"), f"{min(both)} is shared already", "drop it here")
    buckets = tree.texts("buckets")
    if bool(buckets) != (kind == "histogram"):
        raise SpecificationError(
            place, f"{name} is a {kind}", "give buckets to histograms, and to them alone"
        )
    if any(not _NUMBER.fullmatch(each) for each in buckets) or sorted({*buckets}, key=float) != [*buckets]:
        raise SpecificationError(
            tree.place_of("buckets"), "these are no buckets", "write ascending numbers: ['0.01', '0.1', '1']"
        )
    return MetricSpec(
        name, tree.text("about"), kind, unit, shared, own, buckets, tree.text("origin", ""), place
    )
