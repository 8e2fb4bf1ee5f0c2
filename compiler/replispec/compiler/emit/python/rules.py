"""The Python module with the signatures that the runtime's algorithms must have."""

from __future__ import annotations

from collections.abc import Mapping

from replispec.compiler.emit.python.annotations import annotation
from replispec.compiler.emit.python.codes import certificate
from replispec.compiler.emit.python.tree import TYPING, Class, FunctionDef, Module, homes
from replispec.compiler.model.message import Model
from replispec.compiler.model.rule import RuleSource


def rules_text(rules: Mapping[str, RuleSource], model: Model, sources: Mapping[str, bytes]) -> str:
    """The module, not yet formatted."""
    package = f"replispec.wire.{model.family}"
    methods = []
    for name, rule in rules.items():
        named = rule.type.named
        parameters = [f"{each}: {annotation(kind)}" for each, kind in rule.type.parameters.items()]
        if named:
            parameters.insert(len(parameters) - len(named), "*")
        returns = annotation(rule.type.result)
        # What it is about is body enough.
        body = [] if rule.about else ["..."]
        methods.append(FunctionDef(name, ", ".join(["self", *parameters]), returns, body, rule.about))
    about = "What the rules of the runtime offer to guards and checks."
    protocol = Class("Rules", about, [str(TYPING.Protocol)], body=methods)
    about = f"The pure algorithms that the machines and invariants of {model.family} call."
    return Module(f"{package}.rules", certificate(sources), about, [protocol], homes(model)).text()
