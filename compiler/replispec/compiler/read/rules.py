"""The pure algorithms that guards may call: their signatures and golden vectors.

An algorithm is written by hand in the runtime; the specification holds its signature, what it
means, and examples with their answers, which decide what any implementation of it must return.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from replispec.compiler.emit.docs.machines import banner, table_row
from replispec.compiler.emit.python.codes import certificate
from replispec.compiler.emit.python.machines import docstring
from replispec.compiler.language.check import RuleType
from replispec.compiler.model.message import Model, Place, SpecificationError
from replispec.compiler.model.value_types import Type, parse_type
from replispec.compiler.read.yaml_source import Node, Scalar, Sequence, Tree

_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Vector:
    """One example: arguments by parameter, and the answer, as plain values."""

    name: str
    about: str
    arguments: Mapping[str, object]
    result: object
    place: Place


@dataclass(frozen=True, slots=True)
class RuleSource:
    """One algorithm with its examples."""

    name: str
    about: str
    clauses: tuple[str, ...]
    type: RuleType
    vectors: tuple[Vector, ...]
    place: Place


def read_rules(tree: Tree, model: Model) -> Iterator[RuleSource]:
    """The algorithms of one file of vectors. Raises SpecificationError for a value of a wrong type."""
    tree.only("rules")
    for name, rule in tree.trees("rules"):
        place = tree.tree("rules").place_of(name)
        rule.only("about", "clause", "parameters", "result", "vectors")
        if not _NAME.fullmatch(name):
            raise SpecificationError(place, f"{name!r} is no name", "use lower case words joined by _")
        parameters = rule.tree("parameters")
        kinds = {
            each: parse_type(parameters.text(each), model, parameters.place_of(each))
            for each in parameters.items
        }
        kind = RuleType(kinds, parse_type(rule.text("result"), model, rule.place_of("result")))
        vectors = tuple(_vector(each, kind, model) for each in rule.listed("vectors"))
        if not vectors:
            raise SpecificationError(
                place, f"rule {name} has no vectors", "give at least one example under vectors:"
            )
        yield RuleSource(name, rule.text("about"), rule.texts("clause"), kind, vectors, place)


def _vector(tree: Tree, kind: RuleType, model: Model) -> Vector:
    tree.only("name", "about", "given", "result")
    given = tree.tree("given")
    given.only(*kind.parameters)
    arguments = {}
    for name, wanted in kind.parameters.items():
        if name not in given.items:
            raise SpecificationError(tree.place, f"the parameter {name} is not given", "give every parameter")
        arguments[name] = _value(given.items[name], wanted, model)
    if "result" not in tree.items:
        raise SpecificationError(tree.place, "the result is missing", "write result: VALUE")
    result = _value(tree.items["result"], kind.result, model)
    return Vector(tree.text("name"), tree.text("about", ""), arguments, result, tree.place)


def _value(node: Node, wanted: Type, model: Model) -> object:
    """The plain value of a node; a message is a mapping of its fields."""
    if isinstance(node, Scalar) and node.value is None and wanted.optional:
        return None
    if isinstance(node, Sequence) and wanted.item is not None:
        return [_value(item, wanted.item, model) for item in node.items]
    if isinstance(node, Tree) and wanted.kind == "message":
        message = model.messages[wanted.name]
        for key, place in node.keys.items():
            if message.field_named(key) is None:
                raise SpecificationError(
                    place, f"{wanted.name} has no field {key!r}", "name fields of the message"
                )
        return {key: item.value if isinstance(item, Scalar) else None for key, item in node.items.items()}
    python = {"int32": int, "int64": int, "bool": bool, "string": str}.get(wanted.kind)
    if isinstance(node, Scalar) and python is not None and type(node.value) is python:
        return node.value
    raise SpecificationError(node.place, f"this is no {wanted}", f"give a value of type {wanted}")


def rules_text(rules: Mapping[str, RuleSource], model: Model, sources: Mapping[str, bytes]) -> str:
    """The Python module with the signatures that the runtime's algorithms must have."""
    kinds = [kind for rule in rules.values() for kind in (*rule.type.parameters.values(), rule.type.result)]
    lines = [
        *certificate(sources),
        *docstring(f"The pure algorithms that the machines and invariants of {model.family} call."),
    ]
    lines += ["from __future__ import annotations", ""]
    python = [kind.python() for kind in kinds]
    if any("Sequence[" in each for each in python):
        lines.append("from collections.abc import Sequence")
    lines += ["from typing import Protocol", ""]
    for name in sorted({name for kind in kinds for name in kind.messages()}):
        lines.append(f"from replispec.wire.{model.family}.{model.messages[name].module} import {name}")
    lines += [
        "",
        "class Rules(Protocol):",
        '    """What the rules of the runtime offer to guards and checks."""',
    ]
    for name, rule in rules.items():
        parameters = ", ".join(f"{each}: {kind.python()}" for each, kind in rule.type.parameters.items())
        lines += ["", f"    def {name}(self, {parameters}) -> {rule.type.result.python()}:"]
        lines += [f"        {line}" if line else "" for line in docstring(rule.about)]
        lines.append("        ...")
    return "\n".join([*lines, ""])


def rules_document(rules: Mapping[str, RuleSource], sources: Mapping[str, bytes]) -> str:
    """The Markdown page of all algorithms with their examples."""
    lines = [*banner(sources), "# Rules", ""]
    lines += [
        "Pure algorithms that guards and checks call. The examples decide what an implementation returns.",
        "",
    ]
    for name, rule in rules.items():
        parameters = ", ".join(f"{each}: {kind}" for each, kind in rule.type.parameters.items())
        lines += [
            f'<a id="{name}"></a>',
            "",
            f"## {name}",
            "",
            f"`{name}({parameters}) -> {rule.type.result}`",
            "",
            rule.about,
            "",
        ]
        if rule.clauses:
            lines += [f"Clauses: {', '.join(rule.clauses)}", ""]
        head = ["example", *rule.type.parameters, "result"]
        lines += [table_row(head), table_row(["---"] * len(head))]
        for vector in rule.vectors:
            what = f"{vector.name}: {vector.about}" if vector.about else vector.name
            row = [what, *(_shown(each) for each in vector.arguments.values()), _shown(vector.result)]
            lines.append(table_row(row))
        lines.append("")
    return "\n".join(lines)


def _shown(value: object) -> str:
    """A plain value for a reader: a message as its values in parentheses."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ", ".join(map(_shown, value)) or "(empty)"
    if isinstance(value, dict):
        return f"({', '.join(map(_shown, value.values()))})"
    return str(value)
