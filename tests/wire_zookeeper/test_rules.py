"""The rules of ZooKeeper's sessions, by their golden examples; and the machine of a session on the wire."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from replispec.runtime.primitives.machines import step
from replispec.runtime.zookeeper import rules
from replispec.wire.zookeeper.connection import ConnectResponse
from replispec.wire.zookeeper.machines import metastore_session as machine
from replispec.wire.zookeeper.machines import metastore_session_wire as wire
from replispec.wire.zookeeper.rules import Rules

VECTORS = Path(__file__).parents[2] / "spec/vectors/zookeeper/sessions.yaml"
SOURCES: dict[str, Any] = yaml.safe_load(VECTORS.read_text("utf-8"))["rules"]
EXAMPLES = [(name, vector) for name, source in SOURCES.items() for vector in source["vectors"]]
# The module offers what the generated protocol asks for: a type checker reads this line.
OFFERED: Rules = rules


@pytest.mark.parametrize(
    ("name", "vector"), EXAMPLES, ids=[f"{name}: {each['name']}" for name, each in EXAMPLES]
)
def test_a_golden_example_of_a_rule_holds(name: str, vector: Any) -> None:
    assert getattr(rules, name)(**vector["given"]) == vector["result"]


def test_every_rule_is_specified_with_its_parameters() -> None:
    offered = {name: list(inspect.signature(getattr(rules, name)).parameters) for name in rules.__all__}
    assert offered == {name: list(source["parameters"]) for name, source in sorted(SOURCES.items())}


@given(timeout=st.integers(1, 100_000), tick=st.integers(1, 10_000), phase=st.floats(0, 1, exclude_max=True))
def test_no_session_expires_before_its_timeout_or_more_than_two_ticks_after_it(
    timeout: int, tick: int, phase: float
) -> None:
    """`phase`: how much of the tick that goes on was over when something was heard last."""
    silent = rules.ticks_of(timeout, tick) * tick - phase * tick
    assert timeout <= silent < timeout + 2 * tick


@dataclass
class Local:
    """What a server knows of one session."""

    session_id: int = 5
    password: bytes = b"p" * 16
    nobodys: bytes = bytes(16)
    read_only: bool | None = None


def test_a_session_is_granted_with_its_own_timeout_and_refused_with_none() -> None:
    asked = machine.SessionAsked(wish=1, connection=1, tick=2000, least=4000, most=40000)
    taken = step(machine.MACHINE, machine.MACHINE.initial, machine.MACHINE.variables, asked, rules)
    granted = ConnectResponse(0, 4000, 5, b"p" * 16)
    assert wire.grant(taken.variables, Local()) == granted
    assert wire.refuse(taken.variables, Local()) == ConnectResponse(0, 0, 0, bytes(16))
