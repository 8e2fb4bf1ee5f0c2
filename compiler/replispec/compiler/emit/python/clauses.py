"""The Python module of a family's clauses: what a report or an explanation says about each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from replispec.compiler.emit.python.codes import certificate
from replispec.compiler.read.clauses import Clause


def clauses_text(
    clauses: Mapping[str, Clause],
    uses: Mapping[str, Sequence[str]],
    family: str,
    sources: Mapping[str, bytes],
) -> str:
    """The module, not yet formatted."""
    lines = [
        *certificate(sources),
        f'"""The clauses of {family} by id, with where the specification checks each."""',
        "",
        "from __future__ import annotations",
        "",
        "from replispec.runtime.primitives.clauses import Clause",
        "",
        "CLAUSES: dict[str, Clause] = {",
        *(line for clause in clauses.values() for line in _clause(clause, uses.get(clause.id, ()))),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _clause(clause: Clause, uses: Sequence[str]) -> Iterator[str]:
    yield f"    {clause.id!r}: Clause("
    yield f"        id={clause.id!r},"
    for name in ("requirement", "severity", "basis", "document", "section", "case", "not_yet"):
        yield f"        {name}={getattr(clause, name)!r},"
    yield f"        divergence={dict(clause.divergence)!r},"
    yield f"        uses={tuple(uses)!r},"
    yield "    ),"
