"""What was measured as a table: medians, where they lie between, ratios of the same round."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.family import Bench


def table(bench: Bench, columns: Sequence[str], base: str) -> Sequence[str]:
    """Medians of all columns, and of those beside the base the median of the ratios of each round."""
    columns = [name for name in columns if any(name in of for of in bench.seen.values())]
    base = base if base in columns else ""
    heads = list(_heads(columns, base))
    lines = [f"| figure | unit | {' | '.join(heads)} |", f"| --- | --- |{' --- |' * len(heads)}"]
    for figure, (unit, _) in bench.figures.items():
        seen = bench.seen.get(figure, {})
        if any(seen.values()):
            cells = [cell for name in columns for cell in _cells(seen, name, base)]
            lines.append(f"| {figure} | {unit} | {' | '.join(cells)} |")
    return lines


def _heads(columns: Sequence[str], base: str) -> Iterator[str]:
    for name in columns:
        yield name
        if base and name != base:
            yield f"/ {base}"


def _cells(seen: Mapping[str, Sequence[float]], name: str, base: str) -> Iterator[str]:
    values, others = seen.get(name, ()), seen.get(base, ())
    yield _spread(values)
    if base and name != base:
        ratios = [one / other for one, other in zip(values, others, strict=False) if other]
        yield f"{statistics.median(ratios):.2f}" if ratios else ""


def _spread(values: Sequence[float]) -> str:
    if not values:
        return ""
    middle = f"{statistics.median(values):,.3g}"
    return middle if len(values) == 1 else f"{middle} ({min(values):,.3g} to {max(values):,.3g})"
