"""The rules of the agreement against the golden examples of the specification."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import pytest

from replispec.runtime.raft import rules
from replispec.wire.raft.member import RaftEntry
from replispec.wire.raft.rules import Rules
from replispec.wire.raft.vectors import RULES

EXAMPLES = [(name, source, vector) for name, source in RULES.items() for vector in source["vectors"]]
# The module offers what the generated protocol asks for: a type checker reads this line.
OFFERED: Rules = rules


def handed(kind: str, value: Any) -> Any:
    """An argument as a caller would hand it in."""
    if kind.startswith("set "):
        return frozenset(value)
    if kind.startswith("map "):
        return {int(key): each for key, each in value.items()}
    return [RaftEntry(**each) for each in value] if kind.startswith("list ") else value


@pytest.mark.parametrize(
    ("name", "source", "vector"), EXAMPLES, ids=[f"{name}: {vector['name']}" for name, _, vector in EXAMPLES]
)
def test_a_golden_example_of_a_rule_holds(name: str, source: Any, vector: Any) -> None:
    kinds = source["parameters"]
    answer = getattr(rules, name)(
        **{each: handed(kinds[each], value) for each, value in vector["given"].items()}
    )
    answer = list(answer) if isinstance(answer, Sequence) else answer
    assert answer == handed(source["result"], vector["result"])


def test_every_rule_is_specified_with_its_parameters() -> None:
    offered = {name: list(inspect.signature(getattr(rules, name)).parameters) for name in rules.__all__}
    assert offered == {name: list(source["parameters"]) for name, source in sorted(RULES.items())}
