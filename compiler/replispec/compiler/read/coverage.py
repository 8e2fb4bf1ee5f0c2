"""From YAML to coverage: which clauses stand for each paragraph of the documents that a family follows.

A document is known by its paragraphs alone, each by its number and a hash, so that coverage.yaml can be
checked for completeness without the text. `python -m lab.paragraphs` compares it with a text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Final

from replispec.compiler.model.clause import ClauseSpec
from replispec.compiler.model.coverage import Coverage, Paragraph
from replispec.compiler.model.message import SpecificationError
from replispec.compiler.read.yaml_source import Tree

_BLANK: Final = re.compile(r"\n[ \t]*\n")
_HASH: Final = re.compile(r"[0-9a-f]{8}")
_NUMBER: Final = re.compile(r"[1-9][0-9]*")


def paragraphs(text: str) -> tuple[str, ...]:
    """The paragraphs of a text: what blank lines part, without white space at its ends."""
    return tuple(filter(None, (block.strip() for block in _BLANK.split(text))))


def paragraph_hash(paragraph: str) -> str:
    """The first 8 hexadecimal digits of the SHA-256 of a paragraph in UTF-8."""
    return hashlib.sha256(paragraph.encode("utf-8")).hexdigest()[:8]


def digest(hashes: Iterable[str]) -> str:
    """The SHA-256, in hexadecimal digits, of the hashes of all paragraphs in order, one a line."""
    return hashlib.sha256("\n".join(hashes).encode("ascii")).hexdigest()


def read_coverage(trees: Mapping[str, Tree], clauses: Mapping[str, ClauseSpec]) -> tuple[Coverage, ...]:
    """The documents of these files.

    Raises SpecificationError for a paragraph that stands twice or is left out, for paragraphs that are not
    those of the digest, for a clause that nobody defined, and for a clause of one of these documents that
    no paragraph names.
    """
    found = tuple(_document(item, clauses) for tree in trees.values() for item in documents(tree))
    for number, coverage in enumerate(found):
        for other in found[:number]:
            if other.document == coverage.document:
                raise SpecificationError(
                    coverage.place, f"{coverage.document} stands twice", f"see {other.place}"
                )
    named = {name for each in found for paragraph in each.paragraphs for name in paragraph.clauses}
    covered = {each.document for each in found}
    for clause in clauses.values():
        if clause.document in covered and clause.id not in named:
            raise SpecificationError(
                clause.place,
                f"no paragraph of {clause.document} names the clause {clause.id}",
                "name it in coverage.yaml, or give the source that demands it",
            )
    return found


def documents(tree: Tree) -> tuple[Tree, ...]:
    """The documents of one coverage.yaml, unread."""
    tree.only("documents")
    return tree.listed("documents")


def _document(tree: Tree, clauses: Mapping[str, ClauseSpec]) -> Coverage:
    tree.only("document", "paragraphs", "digest", "coverage")
    count = _number(tree, "paragraphs")
    found: list[Paragraph] = []
    for item in tree.listed("coverage"):
        paragraph = _paragraph(item, clauses)
        if paragraph.number <= len(found):
            raise SpecificationError(
                paragraph.place,
                f"paragraph {paragraph.number} stands twice",
                f"see {found[paragraph.number - 1].place}",
            )
        if paragraph.number != len(found) + 1:
            raise SpecificationError(
                paragraph.place,
                f"paragraph {len(found) + 1} is left out before {paragraph.number}",
                "cover every paragraph, in order",
            )
        found.append(paragraph)
    name = tree.text("document")
    if len(found) != count:
        raise SpecificationError(
            tree.place_of("paragraphs"),
            f"{name} has {count} paragraphs, but {len(found)} are covered",
            "cover every paragraph, in order",
        )
    if digest(each.hash for each in found) != tree.text("digest"):
        raise SpecificationError(
            tree.place_of("digest"),
            f"the paragraphs of {name} are not those of its digest",
            "compare with the text: python -m lab.paragraphs --help",
        )
    return Coverage(name, tuple(found), tree.place)


def _paragraph(tree: Tree, clauses: Mapping[str, ClauseSpec]) -> Paragraph:
    tree.only("paragraph", "hash", "clauses", "no_requirement")
    number, named = _number(tree, "paragraph"), tree.texts("clauses")
    if not _HASH.fullmatch(tree.text("hash")):
        raise SpecificationError(
            tree.place_of("hash"), f"{tree.text('hash')!r} is no hash", "write 8 hexadecimal digits, quoted"
        )
    if bool(named) == ("no_requirement" in tree.items):
        raise SpecificationError(
            tree.place,
            f"paragraph {number} needs either clauses or no_requirement",
            "write clauses: [ID, ID], or no_requirement: REASON",
        )
    for name in named:
        if name not in clauses:
            raise SpecificationError(
                tree.place_of("clauses"),
                f"the clause {name!r} is not defined",
                "define it under spec/clauses",
            )
    if len(set(named)) != len(named):
        raise SpecificationError(
            tree.place_of("clauses"), f"paragraph {number} names a clause twice", "name each once"
        )
    reason = "" if named else tree.text("no_requirement")
    return Paragraph(number, tree.text("hash"), named, reason, tree.place)


def _number(tree: Tree, key: str) -> int:
    text = tree.text(key)
    if not _NUMBER.fullmatch(text):
        raise SpecificationError(tree.place_of(key), f"{text!r} is no number", f"write {key}: 1 or more")
    return int(text)
