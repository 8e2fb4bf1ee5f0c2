"""The tutorial's files are taken by their roles, and its table names every line that a role logs."""

import ast
import re
from collections.abc import Iterator

import pytest

from replispec.runtime.configuration import parse
from replispec.wire.rocketmq.parameters import ROLES
from tests.house.tree import ROOT, hand_written

PAGE = (ROOT / "docs/run-a-cluster.md").read_text()
FILES = re.findall(r"```properties (\w+)\n(.*?)```", PAGE, re.DOTALL)
# Lines end up in the table's first column, several with commas between them.
TOLD = {
    line
    for row in re.findall(r"^\| ([^|]+) \| [^|]+ \| [^|]+ \|$", PAGE, re.MULTILINE)
    for line in (row, *row.split(", "))
}


@pytest.mark.parametrize(("role", "text"), FILES, ids=[role for role, _ in FILES])
def test_a_file_of_the_tutorial_is_taken_without_notes(role: str, text: str) -> None:
    assert parse(text, ROLES[role]).notes == ()


def test_the_tutorial_has_a_file_for_each_process() -> None:
    assert [role for role, _ in FILES] == ["nameserver", "broker", "learner", "controller"]


def _logged() -> Iterator[str]:
    """Every text that stands behind a level in a call: the `what` of a line of the log."""
    for path in hand_written("roles"):
        for node in ast.walk(ast.parse(path.read_text())):
            arguments = node.args if isinstance(node, ast.Call) else []
            if any(
                isinstance(one, ast.Attribute) and ast.unparse(one).startswith("Level.") for one in arguments
            ):
                texts = [one.value for one in arguments if isinstance(one, ast.Constant)]
                yield from [text for text in texts if isinstance(text, str)][:1]


def test_every_line_that_a_role_logs_has_its_meaning() -> None:
    logged = set(_logged())
    assert len(logged) > 25
    assert sorted(logged - TOLD) == []
