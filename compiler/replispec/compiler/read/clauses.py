"""From YAML to clauses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from replispec.compiler.model.clause import BASES, SEVERITIES, ClauseSpec
from replispec.compiler.model.faults import attempt
from replispec.compiler.model.message import SpecificationError
from replispec.compiler.model.versions import parse_versions
from replispec.compiler.read.yaml_source import Tree

_ID: Final = re.compile(r"[A-Z][A-Z0-9]*-[A-Z][A-Z0-9]*-[1-9][0-9]*")


def read_clauses(trees: Mapping[str, Tree]) -> dict[str, ClauseSpec]:
    """All clauses of these files by id, in the order of files and lines.

    Raises SpecificationError for a duplicate id or one that does not look like RIP44-TOPIC-1.
    """
    clauses: dict[str, ClauseSpec] = {}
    for tree in trees.values():
        tree.only("clauses")
        for item in tree.listed("clauses"):
            with attempt(item.text("id", "")):
                clause = _clause(item)
                if clause.id in clauses:
                    raise SpecificationError(
                        clause.place,
                        f"the clause {clause.id} stands twice",
                        f"see {clauses[clause.id].place}",
                    )
                clauses[clause.id] = clause
    return clauses


def _clause(tree: Tree) -> ClauseSpec:
    tree.only("id", "requirement", "severity", "basis", "source", "divergence", "case", "not_yet")
    name = tree.text("id")
    if not _ID.fullmatch(name):
        raise SpecificationError(
            tree.place, f"{name!r} is no clause id", "write DOCUMENT-TOPIC-NUMBER, as RIP44-ALTER-1"
        )
    severity, basis = tree.text("severity", "REQUIRED"), tree.text("basis")
    if severity not in SEVERITIES:
        raise SpecificationError(
            tree.place_of("severity"), f"{severity!r} is no severity", f"use {', '.join(SEVERITIES)}"
        )
    if basis not in BASES:
        raise SpecificationError(tree.place_of("basis"), f"{basis!r} is no basis", f"use {', '.join(BASES)}")
    source = tree.tree("source")
    source.only("document", "section")
    divergence = tree.tree("divergence")
    for versions in divergence.items:
        parse_versions(versions, divergence.place_of(versions))
    return ClauseSpec(
        id=name,
        requirement=tree.text("requirement"),
        severity=severity,
        basis=basis,
        document=source.text("document"),
        section=source.text("section", ""),
        divergence={versions: divergence.text(versions) for versions in divergence.items},
        place=tree.place,
        case=tree.text("case", ""),
        not_yet=tree.text("not_yet", ""),
    )
