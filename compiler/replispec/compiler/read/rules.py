"""From YAML to rules and their golden vectors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from replispec.compiler.check.python_names import check_word
from replispec.compiler.model.faults import attempt
from replispec.compiler.model.message import Model, SpecificationError
from replispec.compiler.model.rule import RuleSource, RuleType, Vector
from replispec.compiler.model.value_types import Type, parse_type
from replispec.compiler.read.yaml_source import Node, Scalar, Sequence, Tree

_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")


def read_rules(tree: Tree, model: Model) -> Iterator[RuleSource]:
    """The algorithms of one file of vectors. Raises SpecificationError for a value of a wrong type."""
    tree.only("rules")
    for name, rule in tree.trees("rules"):
        with attempt(name):
            place = tree.tree("rules").place_of(name)
            rule.only("about", "clause", "parameters", "result", "vectors")
            if not _NAME.fullmatch(name):
                raise SpecificationError(place, f"{name!r} is no name", "use lower case words joined by _")
            parameters = rule.tree("parameters")
            check_word(name, place)
            for each in parameters.items:
                check_word(each, parameters.place_of(each))
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
            _check_alike(vectors)
            yield RuleSource(name, rule.text("about"), rule.texts("clause"), kind, vectors, place)


def _check_alike(vectors: Iterable[Vector]) -> None:
    """Refuse two examples of one name, and two that give one input different results."""
    seen: list[Vector] = []
    for vector in vectors:
        for other in seen:
            if vector.name == other.name:
                raise SpecificationError(
                    vector.place, f"the example {vector.name!r} stands twice", f"see {other.place}"
                )
            if vector.arguments == other.arguments and vector.result != other.result:
                raise SpecificationError(
                    vector.place, f"{vector.name!r} contradicts {other.name!r}", f"see {other.place}"
                )
        seen.append(vector)


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
    """The plain value of a node; a message is a mapping of its fields, a map one of its keys."""
    if isinstance(node, Scalar) and node.value is None and wanted.optional:
        return None
    if isinstance(node, Sequence) and wanted.item is not None:
        return [_value(item, wanted.item, model) for item in node.items]
    if isinstance(node, Tree) and wanted.key is not None and wanted.item is not None:
        return {_key(key, wanted, node): _value(node.items[key], wanted.item, model) for key in node.items}
    if isinstance(node, Tree) and wanted.kind == "message":
        message = model.messages[wanted.name]
        for key, place in node.keys.items():
            if message.field_named(key) is None:
                raise SpecificationError(
                    place, f"{wanted.name} has no field {key!r}", "name fields of the message"
                )
        return {key: _bare(item) for key, item in node.items.items()}
    python = {"int32": int, "int64": int, "bool": bool, "string": str}.get(wanted.kind)
    if isinstance(node, Scalar) and python is not None and type(node.value) is python:
        return node.value
    raise SpecificationError(node.place, f"this is no {wanted}", f"give a value of type {wanted}")


def _bare(node: Node) -> object:
    """The plain value of what stands in a field of a message, at any depth."""
    if isinstance(node, Tree):
        return {key: _bare(item) for key, item in node.items.items()}
    return [_bare(item) for item in node.items] if isinstance(node, Sequence) else node.value


def _key(text: str, wanted: Type, node: Tree) -> int | str:
    """The key of a map, which YAML has as a text."""
    if wanted.key is None or not wanted.key.is_integer:
        return text
    if not text.isdecimal():
        raise SpecificationError(node.place_of(text), f"{text!r} is no key of {wanted}", "write a number")
    return int(text)
