"""Tables of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def table_row(cells: Iterable[str]) -> str:
    """One row of a Markdown table."""
    clean = (" ".join(cell.split()).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(clean)} |"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A Markdown table, and an empty line."""
    yield table_row(head)
    yield table_row("---" for _ in head)
    yield from map(table_row, rows)
    yield ""
