"""The Markdown page of clauses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replispec.compiler.emit.docs.machines import banner
from replispec.compiler.model.clause import BASES, ClauseSpec


def clauses_document(
    clauses: Mapping[str, ClauseSpec], uses: Mapping[str, Sequence[str]], sources: Mapping[str, bytes]
) -> str:
    """The Markdown page of all clauses, with where each is used."""
    lines = [*banner(sources), "# Clauses", ""]
    lines += ["What an implementation must do, in our words, and where this specification checks it.", ""]
    for clause in clauses.values():
        source = f"{clause.document}, {clause.section}" if clause.section else clause.document
        lines += [f"## {clause.id}", clause.requirement]
        lines.append(f"- {clause.severity}; basis: {BASES[clause.basis]}; source: {source}")
        lines += [f"- Diverges in {versions}: {text}" for versions, text in clause.divergence.items()]
        found = uses.get(clause.id, ())
        lines.append(f"- Used by: {'; '.join(found)}" if found else "- Not used yet.")
        lines += [f"- A case has to show: {clause.case}"] * bool(clause.case)
        lines += [f"- Checked nowhere: {clause.not_yet}"] * bool(clause.not_yet)
        lines.append("")
    return "\n".join(lines)
