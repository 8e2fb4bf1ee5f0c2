"""The tree of emitted Python: imports are what its nodes refer to, and a name means one thing."""

from __future__ import annotations

import pytest

from replispec.compiler.emit.python.tree import Constant, Module, Ref
from replispec.compiler.model.message import SpecificationError
from replispec.compiler.model.rule import RuleType
from replispec.compiler.model.value_types import BOOL, INT64


def module(*values: str) -> Module:
    nodes = [Constant(f"X{number}", value) for number, value in enumerate(values)]
    return Module("a.b", ["# head"], "About.", [*nodes])


def test_a_module_imports_what_its_nodes_refer_to() -> None:
    text = module(f"{Ref('c.d', 'E')}({Ref('a.b', 'X0')})", f"{Ref('c.d', 'F')}()").text()
    assert "from c.d import E, F\n" in text
    assert "from a.b" not in text
    assert "X0 = E(X0)\n" in text


def test_a_name_of_two_modules_is_refused() -> None:
    with pytest.raises(SpecificationError, match=r"a\.b: E is a name of f\.g and of c\.d\. give"):
        module(str(Ref("c.d", "E")), str(Ref("f.g", "E"))).text()


def test_arguments_are_named_from_the_first_truth_value_on() -> None:
    kind = RuleType({"at": INT64, "is_new": BOOL, "before": INT64}, INT64)
    assert kind.named == ("is_new", "before")
    assert RuleType({"at": INT64}, BOOL).named == ()
