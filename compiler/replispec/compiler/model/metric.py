"""Metrics as the compiler sees them: what roles show of themselves."""

from __future__ import annotations

from dataclasses import dataclass, field

from replispec.compiler.model.message import Place


@dataclass(frozen=True, slots=True)
class LabelSpec:
    """A label, and how many values it may have."""

    name: str
    about: str
    most: int
    place: Place


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One metric; `shared` and `labels` name labels, `origin` is what an implementation calls it."""

    name: str
    about: str
    kind: str
    unit: str
    shared: tuple[LabelSpec, ...]
    labels: tuple[LabelSpec, ...]
    buckets: tuple[str, ...]
    origin: str
    place: Place


@dataclass(frozen=True, slots=True)
class MetricGroup:
    """The metrics of one file, and the roles that show them."""

    title: str
    roles: tuple[str, ...]
    metrics: tuple[MetricSpec, ...]


@dataclass(frozen=True, slots=True)
class MetricsSpec:
    """All of a family."""

    labels: tuple[LabelSpec, ...] = ()
    groups: tuple[MetricGroup, ...] = ()
    metrics: tuple[MetricSpec, ...] = field(default=())
