"""`let`, groups of states and `to: same`: said once, and the machine is the one that says it in full."""

from __future__ import annotations

from pathlib import Path

import pytest

from replispec.compiler.model.message import SpecificationError
from tests.compiler.small_family import compiled, read


def test_a_group_stands_for_its_states(tmp_path: Path) -> None:
    grouped = read(tmp_path, "[IDLE, BUSY], event: stop", "OPEN, event: stop")
    edges = grouped.machines["caller"].table
    assert [edges[state, "stop"][0].to for state in ("IDLE", "BUSY")] == ["DONE", "DONE"]


def test_with_to_same_every_state_stays(tmp_path: Path) -> None:
    edges = read(tmp_path, "[IDLE, BUSY], event: stop, to: DONE", "OPEN, event: stop, to: same")
    table = edges.machines["caller"].table
    assert [table[state, "stop"][0].to for state in ("IDLE", "BUSY")] == ["IDLE", "BUSY"]


def test_a_let_is_what_it_stands_for(tmp_path: Path) -> None:
    path = "replispec/wire/small/machines/caller.py"
    said = compiled(tmp_path / "let", "assign: {count: count + 1}", "assign: {count: let.next}")[path]
    full = compiled(tmp_path / "full")[path]
    assert said.splitlines()[1:] == full.splitlines()[1:]


def test_a_let_that_is_said_is_a_function_that_edges_call(tmp_path: Path) -> None:
    text = compiled(tmp_path)["replispec/wire/small/machines/caller.py"]
    assert (
        "def next(variables: Any, _event: Any, _rules: Any) -> Any:\n    return variables.count + 1\n" in text
    )
    assert '"count": next' in text


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (
            "count: count + 1",
            "count: let.nxt",
            r"caller\.yaml:\d+: nothing is named let\.nxt\. known here: next",
        ),
        ("next: count + 1", "Next: count + 1", r"caller\.yaml:\d+: 'Next' is no name\. use lower case"),
        ("OPEN: [IDLE, BUSY]", "IDLE: [IDLE, BUSY]", r"caller\.yaml:\d+: 'IDLE' is no name of a group\."),
        (
            "OPEN: [IDLE, BUSY]",
            "OPEN: [IDLE, BSY]",
            r"caller\.yaml:\d+: no state is named 'BSY'\. states: IDLE",
        ),
        ("OPEN: [IDLE, BUSY]", "OPEN: []", r"caller\.yaml:\d+: the group OPEN is empty\. states: IDLE"),
        (
            "[IDLE, BUSY], event: stop",
            "[OPEN, BUSY], event: stop",
            r"caller\.yaml:\d+: from is empty or names a state twice\. name every state once",
        ),
    ],
)
def test_shorthand_with_a_fault_is_refused_with_place_and_advice(
    tmp_path: Path, old: str, new: str, fault: str
) -> None:
    with pytest.raises(SpecificationError, match=fault):
        read(tmp_path, old, new)


def test_names_that_double_each_other_are_refused_before_they_are_written_out(tmp_path: Path) -> None:
    """A hundred of them would be 2^100 parts."""
    doubled = ", ".join(f"n{at + 1}: let.n{at} + let.n{at}" for at in range(100))
    fault = r"caller\.yaml:\d+: with what its names under let stand for, this has more than 1,000 parts\. use"
    with pytest.raises(SpecificationError, match=fault):
        read(tmp_path, "{next: count + 1,", f"{{n0: count, {doubled}, next: count + 1,")
