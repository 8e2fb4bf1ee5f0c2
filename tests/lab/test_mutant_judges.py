"""Who is asked about an edit: those of the judges, with those of their tests, that can see its source."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab import families
from lab.edits import Edit
from lab.mutant_judges import ORDER, SUITE_OF_OURS, TESTS_OF, judges_of, systems_with

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "spec"


def edit_of(machine: str) -> Edit:
    path = SPEC / "statemachines" / "rocketmq" / f"{machine}.yaml"
    return Edit("edge", f"{machine}: an edge", path, str)


def test_the_explorer_is_asked_with_the_systems_that_compose_the_machine() -> None:
    asked = judges_of(edit_of("ha_replica"), SPEC)["explorer"]
    assert asked == ("tests/explorer/test_promises.py", "-k", "fail_over or replication")
    assert "explorer" not in judges_of(edit_of("replicas_manager"), SPEC)
    assert systems_with("broker_registration", SPEC) == ["registration"]


def test_who_cannot_see_a_machine_is_not_asked() -> None:
    assert "replay" not in judges_of(edit_of("broker_role"), SPEC)
    assert "replay" in judges_of(edit_of("broker_set"), SPEC)


def test_the_suite_is_asked_with_the_kinds_that_play_the_machine() -> None:
    assert judges_of(edit_of("name_server"), SPEC)["suite"] == (SUITE_OF_OURS, "-k", "name_server")


def test_whatever_is_not_a_machine_is_looked_at_by_all() -> None:
    option = Edit("option", "an option", SPEC / "proto" / "ha.proto", str)
    assert "tests/wire" in judges_of(option, SPEC)["unit tests"]


@pytest.mark.parametrize("machine", TESTS_OF)
def test_the_tests_that_are_asked_exist(machine: str) -> None:
    judges = judges_of(edit_of(machine), SPEC)
    assert list(judges) == [who for who in ORDER if who in judges]
    places = [
        each.removeprefix("--ignore=").partition("::")[0] for asked in judges.values() for each in asked
    ]
    named = [each for each in places if each.startswith("tests/")]
    assert named
    assert [each for each in named if not (ROOT / each).exists()] == []


def test_every_machine_that_is_edited_has_judges_of_its_own() -> None:
    for family in families.with_part("edited"):
        edited = families.in_the_lab(family).edited
        assert edited is not None
        assert {*edited.machines, *edited.bound} <= TESTS_OF.keys()
