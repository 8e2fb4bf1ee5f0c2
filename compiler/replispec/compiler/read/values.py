"""From YAML to what a message says: an expression for each field, or further messages."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from replispec.compiler.check.whole_messages import require_whole
from replispec.compiler.language.check import Scope, type_of
from replispec.compiler.model import expressions as ex
from replispec.compiler.model.binding import Each, Value
from replispec.compiler.model.message import Message, SpecificationError
from replispec.compiler.model.value_types import Type, accepts, fields_of
from replispec.compiler.read.yaml_source import Tree

EACH: Final = "each"
"""The name under which the fields of one element of a list read what it is made of."""
_EACH_KEYS: Final = (EACH, "of")


def read_values(message: Message, tree: Tree, scope: Scope) -> dict[str, Value]:
    """The value of each field that is said, in the order of the message. Raises SpecificationError."""
    kinds = fields_of(message, scope.model)
    for name in tree.items:
        if name not in kinds:
            raise SpecificationError(
                tree.place_of(name), f"{message.name} has no field {name!r}", f"fields: {', '.join(kinds)}"
            )
    return {
        name: _value(message, name, kind, tree, scope) for name, kind in kinds.items() if name in tree.items
    }


def _value(message: Message, name: str, wanted: Type, tree: Tree, scope: Scope) -> Value:
    place = tree.place_of(name)
    if isinstance(tree.items[name], Tree):
        if wanted.kind == "message":
            return _whole(scope.model.messages[wanted.name], tree.tree(name), scope)
        if wanted.kind == "list" and wanted.item is not None and wanted.item.kind == "message":
            return _each(scope.model.messages[wanted.item.name], tree.tree(name), scope)
        if wanted.kind == "map" and not tree.tree(name).items:
            return {}
        raise SpecificationError(
            place, f"{message.name}.{name} is {wanted.required()}, no message", "give an expression"
        )
    node = ex.parse(tree.text(name), place)
    given = type_of(node, scope, place)
    if not _fits(wanted, given):
        raise SpecificationError(
            place, f"{message.name}.{name} is {wanted.required()}, not {given}", "give a value of its type"
        )
    return node


def _each(message: Message, tree: Tree, scope: Scope) -> Each:
    tree.only(*_EACH_KEYS)
    place = tree.place_of(EACH)
    elements = ex.parse(tree.text(EACH), place)
    kind = type_of(elements, scope, place)
    if kind.item is None or kind.kind not in ("list", "set") or kind.optional:
        raise SpecificationError(place, f"each of {kind}", "give it a list or set that is not none")
    inner = replace(scope, variables={**scope.variables, EACH: kind.item})
    return Each(elements, _whole(message, tree.tree("of"), inner))


def _whole(message: Message, tree: Tree, scope: Scope) -> dict[str, Value]:
    """What is said in a message within another one."""
    values = read_values(message, tree, scope)
    require_whole(message, values, tree.place)
    return values


def _fits(wanted: Type, given: Type) -> bool:
    """Whether a value may be said in a field: a set is said as the list of its elements, ascending."""
    if wanted.kind == "list" and given.kind == "set":
        given = replace(given, kind="list")
    return accepts(replace(wanted, optional=True), given)
