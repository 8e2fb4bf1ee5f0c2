"""Macros: steps that several cases take, with values of their own."""

from pathlib import Path

import pytest

from replispec.conformance.cases import load
from replispec.conformance.model import CaseError, Sent
from tests.conformance.case_files import HEAD, METADATA, a_case, read, refused, write

ASK = """
macros:
  ask:
    takes: {code: null, set: $replica1, number: 7}
    steps:
      - send: {code: <code>, header: {a: <set>, b: "<set>-<number>", c: <number>}}
        over: c<number>
        expect: [{code: SUCCESS, body: <set>}]
      - close: c<number>
"""


def test_a_macro_stands_for_its_steps_with_the_values_of_who_uses_it(tmp_path: Path) -> None:
    write(tmp_path, ASK, "macros.yaml")
    case = read(tmp_path, "{use: {ask: {code: 9, set: $now}}, prepares: true}", METADATA)
    asked, closed, last = case.steps
    assert isinstance(asked.action, Sent)
    assert (asked.action.code, asked.on) == (9, "c7")
    assert asked.action.header == {"a": "$now", "b": "$now-7", "c": 7}
    assert asked.expect[0].body == "$now"
    assert asked.prepares
    assert closed.prepares
    assert not last.prepares
    assert asked.place.file == "controller/macros.yaml"


def test_what_is_given_may_use_macros_too(tmp_path: Path) -> None:
    write(tmp_path, ASK, "macros.yaml")
    write(tmp_path, "given:\n  it:\n    says: It.\n    steps: [{use: {ask: {code: 9}}}]\n", "given.yaml")
    assert len(read(tmp_path, METADATA, more="given: [it]").prepared) == 2


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ("{use: {tell: {code: 9}}}", "there is no macro 'tell': ask"),
        ("{use: {ask: {}}}", "ask needs code"),
        ("{use: {ask: {code: 9, cod: 1}}}", "ask takes no cod: code, number, set"),
        ("{use: ask}", "use: {MACRO: {NAME: VALUE}}: a mapping is expected"),
        (
            "{use: {ask: {code: 9}}, send: {code: 7}}",
            "beside `use` stand note, optional, over, prepares, use alone, not 'send'",
        ),
    ],
)
def test_a_macro_that_is_used_wrongly_is_refused_where_it_is_used(
    tmp_path: Path, step: str, why: str
) -> None:
    write(tmp_path, ASK, "macros.yaml")
    assert refused(tmp_path, HEAD + a_case(step, METADATA)) == f"controller/trial.yaml:11: {why}"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("takes: {code: null, ", "takes: {"), "ask takes number, set and names code, number, set"),
        (("takes: {", "takes: {more: 1, "), "ask takes code, more, number, set and names code, number, set"),
        (("- close: c<number>", "- use: {ask: {}}"), "a macro uses no other: write it out"),
        (("    steps:", "    step:"), "ask has `steps`, and `takes` for what they leave open"),
        (("macros:", "macro:"), "the file holds `macros` and nothing else"),
    ],
)
def test_macros_that_do_not_hold_together_are_refused(
    tmp_path: Path, change: tuple[str, str], why: str
) -> None:
    write(tmp_path, HEAD + a_case(METADATA))
    assert refused(tmp_path, ASK.replace(*change), "macros.yaml").endswith(f": {why}")


def test_macros_of_an_added_folder_stand_beside_those_that_are_shipped(tmp_path: Path) -> None:
    write(tmp_path, ASK, "macros.yaml")
    heartbeat = "{use: {heartbeat: {broker: 2}}}"
    write(tmp_path, HEAD + a_case("{use: {ask: {code: 9}}}", heartbeat, METADATA))
    assert load("controller", None, tmp_path)[-1].steps[2].on == "broker2"


def test_a_macro_beside_the_shipped_ones_replaces_none_of_them(tmp_path: Path) -> None:
    """Else every shipped case that uses it would ask something else."""
    shipped, added = tmp_path / "shipped", tmp_path / "added"
    for folder, name in ((shipped, "first"), (added, "second")):
        write(folder, HEAD + a_case(METADATA).replace("/1\n", f"/{len(name)}\n"))
        write(folder, ASK, "macros.yaml")
    with pytest.raises(CaseError, match=r"^controller/macros.yaml:4: ask stands twice"):
        load("controller", shipped, added)


def test_a_case_names_a_defect_that_a_list_beside_it_explains(tmp_path: Path) -> None:
    (tmp_path / "defects.yaml").write_text("defects:\n  Z99: {says: It answers nobody.}\n")
    assert read(tmp_path, METADATA, more="bugs: [Z99]").bugs == ("Z99",)
