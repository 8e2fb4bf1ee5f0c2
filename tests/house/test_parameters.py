"""What is declared as a parameter is read by code of its role: nobody sets something in vain."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from replispec.runtime.primitives.parameters import RoleParameters
from replispec.wire.rocketmq.parameters import ROLES
from tests.house.tree import ROOT, files
from tests.runtime.walks import MACHINES

# Options are held under these names, in whatever: options.x, self._options.x, self._limits.x.
HOLDERS = re.compile(r"(?:.*\.)?_?(?:options|limits)")
# What runs the timers of the machine that it is handed first, when it is handed so many arguments.
RUN_BY = (("MachineRunner", 3), ("Timers", 2))
# What every role is built of, and what a role holds of another one.
SHARED = ("roles/runtime",)
BESIDE = {"nameserver": ("roles/controller",)}


def read_names(path: Path) -> set[str]:
    """Fields that a file reads of options, and parameters by which it does."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            holder = ast.unparse(node.value)
            if HOLDERS.fullmatch(holder) or holder == "p":
                found.add(node.attr)
    return found


def timed_by(path: Path) -> set[str]:
    """Fields that the timers of machines read which a file runs with options."""
    tree = ast.parse(path.read_text())
    names = {
        alias.asname or alias.name: alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    run = (
        node.args[0].value.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and (ast.unparse(node.func), len(node.args)) in RUN_BY
        if isinstance(node.args[0], ast.Attribute) and isinstance(node.args[0].value, ast.Name)
    )
    timers = [timer for name in run for timer in MACHINES[names[name]].timers.values()]
    longest = {timer.longest.field for timer in timers if timer.longest is not None}
    return longest | {timer.field for timer in timers}


@pytest.mark.parametrize("role", ROLES.values(), ids=ROLES)
def test_every_parameter_of_a_role_is_read_by_its_code(role: RoleParameters[Any]) -> None:
    rooms = (f"roles/{role.name}", *BESIDE.get(role.name, ()), *SHARED)
    read = {name for path in files(*rooms, suffix=".py") for name in read_names(path) | timed_by(path)}
    unread = [each.name for each in role.parameters if not {each.field, each.field.upper(), each.name} & read]
    assert unread == []


def test_a_default_stands_in_the_specification_alone() -> None:
    """Options of a role are the generated ones: no class of the roles gives a parameter a default again."""
    fields = {each.field for role in ROLES.values() for each in role.parameters}
    again = [
        f"{path.relative_to(ROOT)}: line {node.lineno}: {node.target.id}"
        for path in files("roles", suffix=".py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name)
        if node.target.id in fields
    ]
    assert again == []
