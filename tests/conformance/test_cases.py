"""Case files: what a case has to say about itself, and what is refused before anything connects."""

import re
import shutil
from pathlib import Path

import pytest

from replispec.conformance.cases import cases_folder, load
from replispec.conformance.model import CaseError
from replispec.conformance.values import TAGS
from tests.conformance.case_files import HEAD, METADATA, a_case, read, refused, replispec, write
from tests.house.tree import ROOT

CASE_LINE = 5
STEP_LINE = 11
GIVEN = """\
given:
  a_start:
    says: Something was asked.
    steps:
      - {send: {command: CONTROLLER_GET_METADATA_INFO}, over: first,
         expect: [{code: SUCCESS, save: {leader: header.controllerLeaderId}}]}
  more:
    says: Something more was asked.
    given: [a_start]
    optional: true
    steps: [{send: {code: 7, header: {a: $leader}}}]
"""


def _without(key: str) -> str:
    return "".join(line for line in a_case(METADATA).splitlines(True) if f" {key}:" not in line)


@pytest.mark.parametrize("key", ["requirement", "severity"])
def test_a_case_says_what_it_demands_and_how_strongly(tmp_path: Path, key: str) -> None:
    refusal = refused(tmp_path, HEAD + _without(key))
    assert refusal == f"controller/trial.yaml:{CASE_LINE}: a case needs `{key}`"


@pytest.mark.parametrize("key", ["kind", "topic", "profile", "cases"])
def test_a_file_says_what_its_cases_have_in_common(tmp_path: Path, key: str) -> None:
    lines = [line for line in HEAD.splitlines(keepends=True) if not line.startswith(key)]
    text = "".join(lines) + a_case(METADATA) if key != "cases" else "".join(lines)
    assert refused(tmp_path, text) == f"controller/trial.yaml:1: a case file needs `{key}`"


@pytest.mark.parametrize(
    ("change", "line", "why"),
    [
        (("trial/RIP44", "trail/RIP44"), CASE_LINE, "the id of this case is controller/trial/CLAUSE/NUMBER"),
        (("controller/trial", "ha-master/trial"), CASE_LINE, "the id of this case is controller/trial/"),
        (("ALTER-1/1", "ALTER-1/01"), CASE_LINE, "the id of this case is controller/trial/"),
        (("ALTER-1/1", "ALTER-999/1"), CASE_LINE, "knows no clause 'RIP44-ALTER-999'"),
        (("bugs: []", "clause: RIP44-ALTER-2"), CASE_LINE + 4, "names the clause RIP44-ALTER-1"),
        (("kind: controller", "kind: ha-master"), 1, "a file in the folder controller is of kind controller"),
        (("severity: must", "severity: may"), CASE_LINE + 2, "'may' is none of: must, should"),
        (
            ("basis: apache", "basis: rumour"),
            CASE_LINE + 3,
            "RIP44-ALTER-1 rests on proposal already: only apache or ours is narrower",
        ),
        (("profile: core", "profile: extra"), 3, "'extra' is none of: core, admin"),
        (("bugs: []", "releases: 5.1.1"), CASE_LINE + 4, "releases are FIRST..LAST"),
        (("bugs: []", "releases: five..six"), CASE_LINE + 4, "releases are FIRST..LAST"),
        (("bugs: []", "releases: 9.9.."), CASE_LINE + 4, "9.9 is no known release: there are 5.0.0, "),
        (("bugs: []", "releases: ..5.1.9"), CASE_LINE + 4, "5.1.9 is no known release: there are 5.0.0, "),
        (("bugs: []", "releases: 5.4.0..5.1.1"), CASE_LINE + 4, "no release lies in 5.4.0..5.1.1: there are"),
        (
            ("bugs: []", "needs: [coordinator]"),
            CASE_LINE + 4,
            "'coordinator' is none of: controller, broker,",
        ),
        (("bugs: []", "alone: yes"), CASE_LINE + 4, "true or false is expected, not 'yes'"),
        (("bugs: []", "given: [a_miracle]"), CASE_LINE, "there is no given 'a_miracle'"),
        (("bugs: []", "bug: [B1]"), CASE_LINE + 4, "unknown key 'bug'"),
        (("bugs: []", "bugs: [Z99]"), CASE_LINE + 4, "no defects.yaml explains the defect 'Z99'"),
        (("bugs: []", "demands: [B1, Z99]"), CASE_LINE + 4, "no defects.yaml explains the defect 'Z99'"),
        (("bugs: []", "bugs: B1"), CASE_LINE + 4, "a list: a list is expected"),
        (("topic: trial", "topics: trial"), 2, "unknown key 'topics'"),
        ((", expect: [{code: SUCCESS}]", ""), CASE_LINE, "expects nothing, so it cannot fail"),
    ],
)
def test_what_a_case_says_of_itself_has_to_be_known(
    tmp_path: Path, change: tuple[str, str], line: int, why: str
) -> None:
    text = (HEAD + a_case(METADATA)).replace(*change)
    refusal = refused(tmp_path, text)
    assert refusal.startswith(f"controller/trial.yaml:{line}: ")
    assert why in refusal


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ("{send: {code: 1, header: {a: $nobody}}}", "$nobody is not saved by a step before"),
        ("{send: {code: 1, header: {a: $nobody + 1}}}", "$nobody is not saved"),
        ('{send: {code: 1, header: {a: "x${nobody}"}}}', "$nobody is not saved"),
        ('{send: {code: 1, body: {"${nobody}": 1}}}', "$nobody is not saved"),
        ("{send: {code: 1, opaque: $nobody}}", "$nobody is not saved"),
        ("{send: {code: 1, header: {a: $now + $now}}}", "'$now + $now' is no variable: write $name,"),
        ("{send: {code: 1, header: {a: set-$set}}}", "'set-$set' is no variable"),
        ('{send: {code: 1, header: {a: "${set"}}}', "'${set' is no variable"),
        ("{bytes: {of: [{code: 1, body: [$nobody]}]}}", "$nobody is not saved"),
        ("{bytes: {of: [{code: 1}], patch: {total_length: $nobody}}}", "$nobody is not saved"),
        ("{replicate: {to: $nobody}}", "$nobody is not saved"),
        ("{send: {code: 1}, expect: [{code: SUCCESS, header: {a: !above $nobody}}]}", "$nobody is not saved"),
        ("{close: nowhere}", "no step before uses the connection 'nowhere'"),
        ("{expect: [{silence: true}], over: nowhere}", "no step before uses the connection 'nowhere'"),
    ],
)
def test_variables_and_connections_exist_before_they_are_used(tmp_path: Path, step: str, why: str) -> None:
    refusal = refused(tmp_path, HEAD + a_case(METADATA, step))
    assert refusal.startswith(f"controller/trial.yaml:{STEP_LINE + 1}: ")
    assert why in refusal


def test_a_value_may_be_used_after_the_step_that_saves_it_and_not_in_it(tmp_path: Path) -> None:
    saves = METADATA.replace("SUCCESS", "SUCCESS, save: {x: header.controllerLeaderId}")
    read(tmp_path, saves, "{send: {code: 1, header: {a: $x}}}")
    early = saves.replace("SUCCESS,", "SUCCESS, header: {controllerLeaderId: $x},")
    assert "$x is not saved" in refused(tmp_path, HEAD + a_case(early))


def test_the_address_of_a_listener_is_a_value(tmp_path: Path) -> None:
    read(tmp_path, METADATA, "listen: there", "{send: {code: 1, header: {a: $there}}}")


def test_an_id_stands_once_in_all_files_of_a_kind(tmp_path: Path) -> None:
    write(tmp_path, HEAD + a_case(METADATA), "first.yaml")
    refusal = refused(tmp_path, HEAD + a_case(METADATA))
    assert refusal == (
        "controller/trial.yaml:5: controller/trial/RIP44-ALTER-1/1 stands twice, see controller/first.yaml:5"
    )


def test_a_folder_without_cases_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="no cases of kind ha-master here"):
        load("ha-master", write(tmp_path, HEAD + a_case(METADATA)))


def test_what_is_given_is_prepared_once_and_in_its_order(tmp_path: Path) -> None:
    write(tmp_path, GIVEN, "given.yaml")
    case = read(tmp_path, METADATA, more="given: [more, a_start]")
    assert [(step.on, step.optional) for step in case.prepared] == [("first", False), ("main", True)]


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("{}\n", 1, "the file needs `given`"),
        ("gifts: {}\n", 1, "unknown key 'gifts'"),
        (GIVEN.replace("    says: Something was asked.\n", ""), 3, "a_start needs `says`"),
        (GIVEN.replace("a_start]", "a_stert]"), 8, "more needs 'a_stert', which does not stand above it"),
        (GIVEN.replace("optional", "maybe"), 10, "unknown key 'maybe'"),
        (GIVEN.replace("GET_METADATA_INFO", "GET_META"), 5, "knows no command 'CONTROLLER_GET_META'"),
        (GIVEN.replace("a_start:", "more:"), 7, "the key 'more' stands twice"),
    ],
)
def test_givens_are_checked_like_cases(tmp_path: Path, text: str, line: int, why: str) -> None:
    write(tmp_path, HEAD + a_case(METADATA))
    refusal = refused(tmp_path, text, "given.yaml")
    assert refusal.startswith(f"controller/given.yaml:{line}: ")
    assert why in refusal


def test_a_given_that_uses_what_nobody_saved_is_refused_at_its_own_line(tmp_path: Path) -> None:
    write(tmp_path, GIVEN.replace("$leader", "$loader"), "given.yaml")
    text = HEAD + a_case(METADATA, more="given: [more]")
    assert refused(tmp_path, text).startswith("controller/given.yaml:11: $loader is not saved")


def test_a_case_is_for_the_releases_of_its_file_or_its_own_or_from_5_1_1_on(tmp_path: Path) -> None:
    assert str(read(tmp_path, METADATA).releases).endswith("5.1.1..")
    assert str(read(tmp_path, METADATA, more="releases: 5.2.0..5.3.0").releases).endswith("5.2.0..5.3.0")
    text = HEAD.replace("cases:", "releases: ..5.1.0\ncases:") + a_case(METADATA)
    assert str(load("controller", write(tmp_path, text))[0].releases).endswith("..5.1.0")


def test_a_fault_in_a_case_ends_the_command_before_anything_connects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(tmp_path, HEAD + a_case(METADATA.replace("SUCCESS", "SUCCES")))
    monkeypatch.setattr("trio.open_tcp_stream", None)
    options = ("--kind", "controller", "--target", "127.0.0.1:1", "--cases", folder)
    assert replispec(monkeypatch, "conformance", "run", *options) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == (
        "Error: controller/trial.yaml:11: the specification knows no code of answers 'SUCCES'\n"
    )


def test_the_page_for_authors_names_every_tag() -> None:
    page = (ROOT / "docs" / "writing-a-case.md").read_text(encoding="utf-8")
    assert TAGS - set(re.findall(r"`!([a-z_]+)", page)) == set()


def test_shipped_cases_are_read_once_by_whichever_way_they_are_asked_for(tmp_path: Path) -> None:
    shipped = load("controller")
    assert load("controller") is load("controller", cases_folder("rocketmq")) is shipped
    shutil.copytree(cases_folder("rocketmq"), tmp_path / "cases")
    copied = load("controller", tmp_path / "cases")
    assert copied is not shipped
    assert copied == shipped
