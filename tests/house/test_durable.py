"""What survives a process is what its machine calls durable, no more and no less."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from typing import Any

from tests.house.tree import ROOT
from tests.runtime.walks import MACHINES

GIVEN = "Variables"
IN_MEMORY = {"ha_replica": {"confirm_offset"}}
"""What a role hands from one instance of a machine to the next while the process lives, and nowhere else."""


def beginnings() -> Iterator[tuple[str, frozenset[str]]]:
    """Every machine that a role begins with values of its own, from its disk: its name, and their names."""
    for path in sorted((ROOT / "roles").rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _is_beginning(node.func):
                owner = ast.unparse(node.func).rpartition(".")[0]
                name = _machines(tree)[owner]
                given = frozenset(keyword.arg or "" for keyword in node.keywords)
                yield name, given - IN_MEMORY.get(name, set())


def _is_beginning(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and function.attr == GIVEN


def _machines(tree: ast.Module) -> dict[str, str]:
    """The machines that a module imports, by the names that it gives them."""
    return {
        alias.asname or alias.name: alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith(".machines")
        for alias in node.names
    }


def test_roles_begin_a_machine_with_what_is_durable_and_nothing_else() -> None:
    found = dict(beginnings())
    durable = {
        name: machine.durable
        for name, machine in MACHINES.items()
        if machine.durable and not machine.is_logged
    }
    assert found == durable


def test_an_instance_that_its_log_makes_is_durable_as_a_whole() -> None:
    logged = {name: machine for name, machine in MACHINES.items() if machine.is_logged}
    for name, machine in logged.items():
        wire: Any = importlib.import_module(f"{type(machine.variables).__module__}_wire")
        assert hasattr(wire, "event_of_record"), f"{name} is made of records"
        assert machine.durable == frozenset(type(machine.variables).__dataclass_fields__)
    assert logged
