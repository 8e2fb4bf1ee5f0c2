"""What is known of each family: all that the compiler and the suite read, in one object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from replispec.compiler.check.citations import check_citations
from replispec.compiler.family import FamilySpec, read_family
from replispec.compiler.model.clause import ClauseSpec
from replispec.compiler.model.coverage import Coverage
from replispec.compiler.model.message import Model
from replispec.compiler.read.clauses import read_clauses
from replispec.compiler.read.coverage import read_coverage
from replispec.compiler.read.declared import declare, read_declared
from replispec.compiler.read.descriptors import proto_files, read_descriptors
from replispec.compiler.read.own_messages import own_packages
from replispec.compiler.read.protos import read_model
from replispec.compiler.read.yaml_source import read_yaml
from replispec.conformance.cases import load
from replispec.conformance.expectations import Expected, load_expected
from replispec.conformance.families import ROOM, family_named
from replispec.conformance.model import Case
from replispec.runtime import families

EXPECTED = "expected_failures.yaml"


@dataclass(frozen=True, slots=True)
class Knowledge:
    """One family. `expected` holds the known failures of each implementation."""

    spec: FamilySpec
    clauses: Mapping[str, ClauseSpec]
    uses: Mapping[str, Sequence[str]]
    coverages: Sequence[Coverage]
    cases: Sequence[Case] = ()
    expected: Mapping[str, Sequence[Expected]] | None = None

    @property
    def name(self) -> str:
        """The family's name."""
        return self.spec.model.family

    @property
    def model(self) -> Model:
        """Its messages and enums."""
        return self.spec.model


def read_knowledge(spec: Path, cases: Path) -> tuple[Knowledge, ...]:
    """Every family of a specification, in the order of their names; `cases` holds a folder for each that
    can be judged.

    Raises SpecificationError for what does not compile, CaseError for a case that does not fit.
    """
    proto = spec / "proto"
    own = own_packages(proto)
    files = read_descriptors(proto, proto_files(proto))
    folders = sorted(path.name for path in (proto / "replispec").iterdir() if path.is_dir())
    names = [name for name in folders if name not in {"options", *own}]
    return tuple(_family(spec, cases, read_model(files, name)) for name in names)


def _family(spec: Path, cases: Path, model: Model) -> Knowledge:
    name = model.family
    declare(model, read_declared(spec, name))
    family = read_family(model, spec)
    trees = {
        path.relative_to(spec).as_posix(): read_yaml(path, spec)
        for path in sorted((spec / "clauses" / name).glob("*.yaml"))
    }
    covering = {path: trees.pop(path) for path in tuple(trees) if path.endswith("/coverage.yaml")}
    clauses = read_clauses(trees)
    uses = check_citations(clauses, model, family.machines, family.rules, family.invariants, family.examples)
    coverages = read_coverage(covering, clauses)
    if not (cases / name).is_dir() or name not in families.with_part(ROOM):
        return Knowledge(family, clauses, uses, coverages)
    return Knowledge(family, clauses, uses, coverages, *_judged(cases / name, name))


def _judged(folder: Path, name: str) -> tuple[Sequence[Case], Mapping[str, Sequence[Expected]]]:
    """The cases of a family, and the failures that are known."""
    found: list[Case] = []
    expected: dict[str, list[Expected]] = {}
    family = family_named(name)
    for kind in family.kinds:
        of_kind = load(kind.name, folder)
        found += of_kind
        if (folder / EXPECTED).is_file():
            ids = {each.id for each in of_kind}
            for who, entries in load_expected(folder / EXPECTED, family, kind.name, ids).items():
                expected.setdefault(who, []).extend(entries)
    return found, expected
