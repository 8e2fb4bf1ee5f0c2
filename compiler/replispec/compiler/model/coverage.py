"""Coverage: which clauses stand for each paragraph of the documents that a family follows."""

from __future__ import annotations

from dataclasses import dataclass

from replispec.compiler.model.message import Place


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One paragraph: its number from 1 on, its hash, and the clauses of what it demands, or why none."""

    number: int
    hash: str
    clauses: tuple[str, ...]
    no_requirement: str
    place: Place


@dataclass(frozen=True, slots=True)
class Coverage:
    """All paragraphs of one document, in order."""

    document: str
    paragraphs: tuple[Paragraph, ...]
    place: Place
