"""Which scenarios are played."""

import pytest

from lab.interop.__main__ import arguments_of


def test_all_scenarios_are_played_unless_some_are_named() -> None:
    assert arguments_of([]).scenarios == ["a", "b", "c", "d", "e", "f"]
    assert arguments_of(["c", "a"]).scenarios == ["c", "a"]


def test_an_unknown_scenario_is_named_with_those_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments_of(["z"])
    assert "no scenario 'z': there are a, b, c, d, e, f" in capsys.readouterr().err
