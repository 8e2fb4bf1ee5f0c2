"""What a case does and what a clause demands, in words."""

from pathlib import Path

import pytest

from replispec.conformance.cases import cases_folder, load
from replispec.conformance.defects import load_defects
from replispec.conformance.explain import explain, nearest
from replispec.conformance.families import kinds
from replispec.conformance.model import CaseError
from replispec.wire.rocketmq.clauses import CLAUSES
from tests.conformance.case_files import METADATA, read, write

STEPS = {
    "{send: {code: 7, header: {a: $set}, body: [1]}, over: b}": "send 7 {a: $set} body [1] over b",
    "{bytes: {of: [{code: 7}, {code: 8}], keep: 9, split: [4, 8]}}": (
        "send bytes of 7 + 8, the first 9 bytes, cut at 4, 8"
    ),
    "{bytes: {hex: '00ff', split: each}}": "send bytes of 00ff, byte by byte",
    "{open: {to: broker}, over: c}": "open a connection to the broker over c",
    "{reset: c}": "reset c",
    "{wait: 2.5, note: for an election}": "wait 2.5 s  # for an election",
    "{listen: there}": "listen as there",
    "{replicate: {from: 0, to: $now, report: last}}": "replicate from 0 to $now, report last",
    "{expect: [{silence: true}, {closed: true}]}": "wait for",
    METADATA: "send CONTROLLER_GET_METADATA_INFO {}",
}


def test_a_case_is_told_step_by_step_with_what_it_allows(tmp_path: Path) -> None:
    write(tmp_path, f"given:\n  ready:\n    says: Ready.\n    steps: [{METADATA}]\n", "given.yaml")
    more = "given: [ready]\n    bugs: [B1]\n    needs: [broker]"
    case = read(tmp_path, *STEPS, more=more)
    lines = explain(case.id, [case])
    assert lines is not None
    assert lines[:2] == [case.id, "  Something holds."]
    assert "  Finds the known defects: B1" in lines
    assert "  Needs the address of: broker" in lines
    assert lines.index("  Given: ready") < lines.index("  Steps:")
    told = [line.partition(". ")[2] for line in lines[lines.index("  Steps:") :] if "->" not in line][1:]
    assert told == list(STEPS.values())
    outcomes = [line.strip() for line in lines if "->" in line]
    assert outcomes == ["-> SUCCESS", "-> nothing comes", "-> the subject ends the connection", "-> SUCCESS"]


def test_what_is_saved_waited_repeated_and_put_back_is_told(tmp_path: Path) -> None:
    case = read(
        tmp_path,
        "{send: {code: 7}, within: 8, again: {every: 0.5, up_to: 30}, prepares: true,"
        " expect: [{code: SUCCESS, opaque: 5, flag: 1, save: {first: code, it: body.a}, once: granted}]}",
        "{bytes: {of: [{code: 7}], keep: body - 1, patch: {total_length: 5}, overwrite: {0: ff}},"
        " passing: true, own_time: true, expect: [{silence: true, unobserved: true}]}",
        more="afterwards: [{send: {code: 9}}]",
    )
    lines = [line.strip() for line in explain(case.id, [case]) or ()]
    once = "(of all outcomes named granted one, once)"
    assert lines[lines.index("Steps:") + 1 :] == [
        "1. send 7 {}",
        "again every 0.5 s, for 30 s, until an outcome fits",
        "within 8 s",
        "prepares: where it goes otherwise the case is not judged",
        f"-> SUCCESS to request 5 flag 1 {once} (saves code as $first, body.a as $it)",
        "2. send bytes of 7, up to body - 1, with total_length 5, ff at 0",
        "passing over what fits no outcome",
        "by the subject's clock: patience does not stretch it",
        "-> nothing comes",
        "Afterwards, however it went:",
        "1. send 9 {}",
    ]


def test_a_clause_is_told_with_its_source_what_checks_it_and_its_cases(tmp_path: Path) -> None:
    case = read(tmp_path, METADATA)
    lines = explain("RIP44-ALTER-1", [case])
    assert lines is not None
    assert lines[1].strip() == CLAUSES["RIP44-ALTER-1"].requirement
    assert any(line.startswith("  Source: RIP-44") for line in lines)
    assert lines[-2:] == ["  Cases: 1", f"    {case.id}  Something holds."]


def test_what_nobody_knows_is_not_explained_but_what_is_near_it_is_named(tmp_path: Path) -> None:
    case = read(tmp_path, METADATA)
    assert explain("RIP44-NOPE-1", [case]) is None
    assert nearest("trial/rip44", [case]) == [case.id]
    assert len(nearest("rip44", [case])) == 8


@pytest.mark.parametrize("kind", kinds())
def test_every_shipped_case_can_be_explained(kind: str) -> None:
    cases = load(kind)
    assert [case.id for case in cases if not explain(case.id, [case])] == []


def test_every_clause_can_be_explained() -> None:
    assert [name for name in CLAUSES if not explain(name, [])] == []


def test_a_defect_is_told_with_its_report_and_with_the_cases_that_find_it_or_ask_for_it() -> None:
    cases = load("controller")
    defects = load_defects(cases_folder("rocketmq"))
    found = explain("B9", cases, defects)
    assert found is not None
    assert "apache/rocketmq#10578" in found[1]
    assert any("controller/elect-choice/RIP44-ELECT-14/1" in line for line in found)
    demanded = explain("B17", cases, defects)
    assert demanded is not None
    assert demanded.index("  Found by:") + 1 == demanded.index("  Demanded by, since releases have it:")
    assert explain("B99", cases, defects) is None


def test_every_mark_of_a_defect_is_explained_once_and_used() -> None:
    marks = {mark for kind in kinds() for case in load(kind) for mark in (*case.bugs, *case.demands)}
    families = {family.name for family in kinds().values()}
    assert marks == {mark for name in families for mark in load_defects(cases_folder(name))}


def test_a_list_of_defects_says_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "defects.yaml").write_text("defects:\n  B1: {upstream: [a#1]}\n")
    with pytest.raises(CaseError, match="B1 needs `says`"):
        load_defects(tmp_path)
    assert load_defects(tmp_path / "elsewhere") == {}
