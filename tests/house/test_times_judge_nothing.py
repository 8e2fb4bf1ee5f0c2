"""Connections are captured late against each other: a verdict rests on causes, never on the clock."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.house.tree import ROOT

REPLAY = ROOT / "spark_replay" / "replispec" / "replay"
JUDGING = ("machines", "judges", "events/rocketmq")
TIMES = ("time_ns", "times_ns")


def names_time(node: ast.AST) -> bool:
    return any(
        getattr(each, name, None) in TIMES for each in ast.walk(node) for name in ("attr", "id")
    ) and not (isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot))


def compares_times(source: str) -> bool:
    """True when a comparison or a difference, or what is sought in a sorted list, holds a time."""
    return any(
        names_time(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Compare | ast.BinOp)
        or (isinstance(node, ast.Call) and ast.unparse(node.func).startswith("bisect"))
    )


def judging_modules() -> list[Path]:
    return sorted(path for folder in JUDGING for path in (REPLAY / folder).rglob("*.py"))


def test_no_module_of_judgement_compares_times() -> None:
    modules = judging_modules()
    assert modules
    found = {path.relative_to(REPLAY).as_posix() for path in modules if compares_times(path.read_text())}
    assert not found


def test_a_comparison_of_times_is_seen() -> None:
    assert compares_times("late = row.time_ns > other.time_ns")
    assert compares_times("gap = row.time_ns - first")
    assert compares_times("line.before(time_ns - late)")
    assert not compares_times("if row.time_ns is not None: pass")
    assert not compares_times("proof = Proof(row.time_ns, row.connection)")
