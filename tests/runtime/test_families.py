"""Which families there are, and where what belongs to them is found: inside the rooms, or elsewhere."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from replispec.conformance import families as suite
from replispec.runtime import families
from replispec.runtime.families import FamilyError

KIND = """
from replispec.conformance.encoding import Encoder
from replispec.conformance.family import Family, SubjectKind
from replispec.conformance.received import StreamReader
from replispec.conformance.vocabulary import Vocabulary

FAMILY = Family(
    name="toy",
    vocabulary=Vocabulary("toy", {(1,): 1}),
    kinds=(SubjectKind("KIND", "toy", "leases", ("core",), lambda release: None),),
    companion="toy",
    reader=lambda protocol, release: None,
    encoder=lambda release, first: Encoder(Vocabulary("toy", {(1,): 1})),
    fresh=lambda randomness, now_ms: {"name": "x"},
)
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path that holds a compiled family, and nothing for any room yet."""
    package = tmp_path / "replispec" / "wire" / "toy"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "clauses.py").write_text("CLAUSES = {}\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def put(folder: Path, kind: str) -> None:
    """Write the suite's part of the family, with this kind of subject."""
    place = folder / "replispec" / "families" / "toy"
    place.mkdir(parents=True)
    (place / "conformance.py").write_text(KIND.replace("KIND", kind))
    importlib.invalidate_caches()


def test_every_compiled_folder_of_the_specification_is_a_family() -> None:
    assert families.names() == ("kafka", "raft", "rocketmq", "zookeeper")
    assert families.with_part("conformance") == ("kafka", "rocketmq", "zookeeper")


def test_a_room_finds_its_part_by_the_family_alone() -> None:
    assert families.part("broker", "rocketmq", "process").__name__ == "replispec.broker.rocketmq.process"


def test_a_family_that_nobody_compiled_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(FamilyError, match=r"^replispec\.wire\.nope: no such family: there are"):
        families.part("conformance", "nope")


def test_a_part_that_is_missing_is_refused_with_the_places_where_it_may_stand() -> None:
    with pytest.raises(FamilyError) as fault:
        families.part("conformance", "raft")
    assert str(fault.value) == (
        "replispec.families.raft.conformance: the family lacks this part: write replispec.conformance.raft"
        ".family, or replispec.families.raft.conformance in a distribution of its own"
    )


def test_a_family_of_another_distribution_is_found(toy: Path) -> None:
    put(toy, "lessor")
    assert families.names() == ("kafka", "raft", "rocketmq", "toy", "zookeeper")
    assert suite.family_of("lessor").name == "toy"
    assert suite.family_of("controller").name == "rocketmq"


def test_a_module_without_the_object_is_refused(toy: Path) -> None:
    put(toy, "lessor")
    (toy / "replispec" / "families" / "toy" / "conformance.py").write_text("FAMILIES = 1\n")
    with pytest.raises(
        FamilyError, match=r"^replispec\.families\.toy\.conformance: FAMILY is missing: make it"
    ):
        suite.kinds()


def test_two_families_with_one_kind_are_refused(toy: Path) -> None:
    put(toy, "controller")
    with pytest.raises(FamilyError) as fault:
        suite.kinds()
    assert str(fault.value) == (
        "replispec.families.toy.conformance: the kind 'controller' is one of rocketmq already: "
        "give it another name"
    )


def test_two_families_with_one_clause_are_refused(toy: Path) -> None:
    clause = "Clause('RIP44-ALTER-1', '', '', '', '', '', '', '', {}, ())"
    (toy / "replispec" / "wire" / "toy" / "clauses.py").write_text(
        f"from replispec.runtime.primitives.clauses import Clause\nCLAUSES = {{'RIP44-ALTER-1': {clause}}}\n"
    )
    with pytest.raises(FamilyError, match=r"^spec/clauses/toy: RIP44-ALTER-1 is a clause of rocketmq too"):
        suite.clauses()


def test_a_kind_that_no_family_has_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(FamilyError, match=r"^lessor: no family has this kind of subject: there are "):
        suite.family_of("lessor")
