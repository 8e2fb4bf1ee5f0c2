"""All faults of a specification at once: a dozen of different kinds, each with place and advice."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from replispec.compiler.generate import generate
from replispec.compiler.model.faults import SHOWN_MAX, Faults, SpecificationErrors
from replispec.compiler.model.message import Place, SpecificationError
from tests.compiler.specification import SPEC, changed

PROTO = "proto/replispec/rocketmq/v1"
MACHINES = "statemachines/rocketmq"
# File, what stands there, what is made of it, and the fault that is to be told: sorted by file.
DOZEN = [
    (
        "clauses/rocketmq/broker_id.yaml",
        "- id: BID-NEXT-1\n",
        "- id: bid-next-1\n",
        r"clauses/rocketmq/broker_id\.yaml:\d+: 'bid-next-1' is no clause id\. write DOCUMENT-TOPIC-NUMBER",
    ),
    (
        "clauses/rocketmq/wire.yaml",
        "- id: WIRE-FRAME-2\n",
        "- id: WIRE-FRAME-1\n",
        r"clauses/rocketmq/wire\.yaml:\d+: the clause WIRE-FRAME-1 stands twice\. see clauses/",
    ),
    (
        "invariants/rocketmq/controller.yaml",
        "shape: set",
        "shape: sett",
        r"invariants/rocketmq/controller\.yaml:\d+: 'sett' is no shape",
    ),
    (
        f"{PROTO}/controller.proto",
        "code: 1012  kind: REQUEST",
        "code: 1999  kind: REQUEST",
        r"controller\.proto:\d+: GetNextBrokerIdRequest: code 1999 is not in enum RequestCode\. add it",
    ),
    (
        f"{PROTO}/ha.proto",
        "int32 epoch        = 1 [(wire) = {size: 4}];",
        "int32 epoch        = 1 [(wire) = {size: 8}];",
        r"ha\.proto:\d+: HaEpochEntry\.epoch: 8 bytes do not fit int32\. take a wider type",
    ),
    (
        f"{MACHINES}/broker_role.yaml",
        "machine: broker_role",
        "machine: Broker role",
        r"broker_role\.yaml:\d+: 'Broker role' is no name\. use lower case words",
    ),
    (
        f"{MACHINES}/broker_set.yaml",
        "  master_epoch:\n    type: int32",
        "  master_epoch:\n    type: int23",
        r"broker_set\.yaml:\d+: .*'int23'",
    ),
    (
        f"{MACHINES}/ha_master.yaml",
        "initial: true",
        "inital: true",
        r"ha_master\.yaml:\d+: .*inital",
    ),
    (
        f"{MACHINES}/learner.yaml",
        "transitions:",
        "transitions: [",
        r"learner\.yaml:\d+: ",
    ),
    (
        "vectors/rocketmq/elections.yaml",
        "unclean: bool",
        "unclean: boolean",
        r"elections\.yaml:\d+: .*'boolean'",
    ),
    (
        "clauses/kafka/apache.yaml",
        "basis: ",
        "basis: hear",
        r"clauses/kafka/apache\.yaml:\d+: 'hear\w+' is no basis\. use proposal",
    ),
    (
        "parameters/rocketmq/broker.yaml",
        "type: ",
        "type: strange ",
        r"parameters/rocketmq/broker\.yaml:\d+: ",
    ),
]


def _spoil(folder: Path, file: str, old: str, new: str) -> None:
    """The specification below `folder` with the first `old` of this file as `new`."""
    copy = folder / "spec"
    text = ((copy if copy.exists() else SPEC) / file).read_text("utf-8")
    at = text.index(old)
    end = next(end for end in range(at + len(old), len(text)) if text.count(text[at:end]) == 1)
    changed(folder, file, text[at:end], new + text[at + len(old) : end])


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory: pytest.TempPathFactory) -> SpecificationErrors:
    """What is said of the specification with all of these faults."""
    folder = tmp_path_factory.mktemp("spoilt")
    for file, old, new, _ in DOZEN:
        _spoil(folder, file, old, new)
    with pytest.raises(SpecificationErrors) as refusal:
        generate(folder / "spec")
    return refusal.value


def test_one_run_tells_every_fault_with_place_and_advice(spoilt: SpecificationErrors) -> None:
    text = str(spoilt)
    assert [expected for *_, expected in DOZEN if not re.search(expected, text)] == [], text
    assert all(re.fullmatch(r"[\w./]+:\d+(:\d+)?: .+\. .+", line) for line in text.splitlines()), text


def test_what_follows_from_a_fault_is_not_told_as_another(spoilt: SpecificationErrors) -> None:
    assert len(spoilt.faults) == len(DOZEN), str(spoilt)


def test_faults_are_told_in_the_order_of_files_and_lines(spoilt: SpecificationErrors) -> None:
    assert [each.order for each in spoilt.faults] == sorted(each.order for each in spoilt.faults)
    assert len({each.order[0] for each in spoilt.faults}) == len(DOZEN)


def test_many_faults_are_bounded_and_counted() -> None:
    faults = Faults()
    for number in range(SHOWN_MAX + 7):
        faults.add(SpecificationError(Place("a.yaml", 1000 - number), f"fault number {number}", "mend it"))
    with pytest.raises(SpecificationErrors) as refusal:
        faults.raise_all()
    lines = str(refusal.value).splitlines()
    assert (len(lines), lines[-1]) == (SHOWN_MAX + 1, "and 7 more")
    assert lines[0].startswith(f"a.yaml:{1000 - SHOWN_MAX - 6}: ")


def test_protoc_tells_all_its_complaints(tmp_path: Path) -> None:
    _spoil(tmp_path, f"{PROTO}/ha.proto", "size: 4  equals: 1", "size: 4  equal: 1")
    _spoil(tmp_path, f"{PROTO}/store.proto", "separator:", "seperator:")
    _spoil(tmp_path, "clauses/rocketmq/wire.yaml", "basis:", "bases:")
    with pytest.raises(SpecificationErrors) as refusal:
        generate(tmp_path / "spec")
    files = [each.order[0].rsplit("/", 1)[-1] for each in refusal.value.faults]
    assert files == ["wire.yaml", "ha.proto", "store.proto"], str(refusal.value)
