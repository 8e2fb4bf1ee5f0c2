"""Edges that no exploration took are named over all of them."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from replispec.cli.main import command_line


def written(place: Path, **coverage: tuple[list[str], list[str]]) -> str:
    """What an exploration found, by machine: the edges that it took, and those that it did not."""
    found = [
        {"party": "p", "part": "m", "machine": name, "taken": taken, "never": never}
        for name, (taken, never) in coverage.items()
    ]
    place.write_text(json.dumps({"coverage": found}), "utf-8")
    return str(place)


def test_an_edge_counts_that_any_exploration_took(tmp_path: Path) -> None:
    one = written(tmp_path / "one", till=(["A, x: B"], ["B, x: B", "B, y: A"]))
    two = written(tmp_path / "two", till=(["B, y: A"], ["A, x: B", "B, x: B"]), lamp=(["A, x: A"], []))
    done = CliRunner().invoke(command_line, ["spec", "never-taken", one, two])
    assert done.exit_code == 0
    assert done.output.splitlines() == [
        "lamp: 1 of 1 edges taken by 1 exploration",
        "till: 2 of 3 edges taken by 2 explorations",
        "  never B, x: B",
    ]


NO_LISTS = (
    '{"coverage": [{"machine": 1, "taken": [], "never": []}]}',
    '{"coverage": [{"machine": "x", "taken": "ab", "never": "c"}]}',
)


def test_what_is_no_exploration_is_refused_in_one_line(tmp_path: Path) -> None:
    for content in ("", "[]", "{}", "[" * 100_000, "\xff", *NO_LISTS):
        (tmp_path / "bad").write_bytes(content.encode("latin-1"))
        done = CliRunner().invoke(command_line, ["spec", "never-taken", str(tmp_path / "bad")])
        assert done.exit_code != 0
        assert len(done.output.splitlines()) == 1
        assert "spec explore --json" in done.output
