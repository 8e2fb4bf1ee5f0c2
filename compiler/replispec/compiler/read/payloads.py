"""From YAML to what this side says of its own: what it sends, and what it shows of an instance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from replispec.compiler.check.whole_messages import require_whole
from replispec.compiler.language.check import Scope, require
from replispec.compiler.model import expressions as ex
from replispec.compiler.model.binding import Payload, Value, View
from replispec.compiler.model.layout import FixedRun, steps
from replispec.compiler.model.machine import MachineSpec
from replispec.compiler.model.message import Message, Model, Place, SpecificationError
from replispec.compiler.model.rule import RuleType
from replispec.compiler.model.value_types import Type
from replispec.compiler.read.binding_parts import RoleTypes, effect_scope, machine_scope, message_named
from replispec.compiler.read.values import read_values
from replispec.compiler.read.yaml_source import Tree

_BODY: Final = "body"
_VIEW_KEYS: Final = ("about", "message", "fields")


def sent_names(tree: Tree) -> tuple[str, ...]:
    """The messages that an event sends: their names, or their names with what they say."""
    node = tree.items.get("sends")
    return tuple(node.items) if isinstance(node, Tree) else tree.texts("sends")


class PayloadReader:
    """Reads the payloads and views of one machine; `known` is what the role knows."""

    def __init__(
        self, tree: Tree, machine: MachineSpec, model: Model, rules: Mapping[str, RuleType], known: RoleTypes
    ) -> None:
        self._tree = tree
        self._machine = machine
        self._model = model
        self._rules = rules
        self._known = known

    def payloads(self) -> dict[str, Payload]:
        """What is sent by events that say it, and by effects, by their names."""
        found: dict[str, Payload] = {}
        scope = machine_scope(self._machine, self._model, self._known, self._rules)
        for name, tree in self._tree.trees("events"):
            if isinstance(tree.items.get("sends"), Tree):
                place = tree.place_of("sends")
                found |= self._payload(name, tree.tree("sends"), place, scope)
        sends = self._tree.tree("sends")
        for name, tree in sends.entries():
            place = sends.place_of(name)
            if name not in self._machine.effects():
                known = ", ".join(self._machine.effects())
                raise SpecificationError(place, f"no edge does {name!r}", f"effects: {known}")
            if name in found:
                raise SpecificationError(
                    place, f"{name} is an event that sends, and an effect", "rename one of them"
                )
            effect = effect_scope(name, self._machine, self._model, self._known, self._rules)
            found |= self._payload(name, tree, place, effect)
        return found

    def views(self) -> dict[str, View]:
        """What is shown of an instance, by name."""
        found: dict[str, View] = {}
        scope = machine_scope(self._machine, self._model, self._known, self._rules)
        for name, tree in self._tree.trees("views"):
            tree.only(*_VIEW_KEYS)
            place = self._tree.tree("views").place_of(name)
            message = message_named(tree.text("message"), self._model, tree.place_of("message"))
            fields = read_values(message, tree.tree("fields"), scope)
            require_whole(message, fields, tree.tree("fields").place)
            found[name] = View(name, tree.text("about"), place, message.name, fields)
        return found

    def _payload(self, name: str, tree: Tree, place: Place, scope: Scope) -> dict[str, Payload]:
        """What is said in the one form of the message that this side sends; others are only watched."""
        said = [
            each for each in tree.items if tree.items[each] is not None and isinstance(tree.items[each], Tree)
        ]
        if len(said) != 1:
            raise SpecificationError(
                place,
                f"{name} says the fields of {len(said)} messages",
                "give one of them fields, and null to those that only others send",
            )
        message = message_named(said[0], self._model, tree.place_of(said[0]))
        fields = tree.tree(said[0])
        body = ""
        body_fields: Mapping[str, Value] = {}
        whole: ex.Expression | None = None
        own = fields
        if message.bodies and _BODY in fields.items:
            body = self._body(message, fields)
            body_fields = read_values(self._model.messages[body], fields.tree(_BODY), scope)
            require_whole(self._model.messages[body], body_fields, fields.tree(_BODY).place)
            own = _without_body(fields)
        elif message.codes and _BODY in fields.items:
            whole = self._whole(message, fields, scope)
            own = _without_body(fields)
        values = read_values(message, own, scope)
        is_fixed = _is_fixed(message, values)
        if is_fixed:
            message = replace(message, fields=_first_run(message).fields)
        require_whole(message, values, fields.place)
        return {name: Payload(name, place, message.name, values, body, body_fields, is_fixed, whole)}

    def _whole(self, message: Message, fields: Tree, scope: Scope) -> ex.Expression:
        place = fields.place_of(_BODY)
        node = ex.parse(fields.text(_BODY), place)
        require(node, Type("bytes"), scope, place, f"the body of {message.name}")
        return node

    def _body(self, message: Message, fields: Tree) -> str:
        if len(message.bodies) > 1:
            names = ", ".join(message.bodies)
            raise SpecificationError(
                fields.place_of(_BODY), f"{message.name} has several bodies: {names}", "it cannot be said"
            )
        return message.bodies[0]


def _without_body(fields: Tree) -> Tree:
    return replace(fields, items={key: node for key, node in fields.items.items() if key != _BODY})


def _is_fixed(message: Message, values: Mapping[str, Value]) -> bool:
    """Whether only the part of fixed size is said, with how much follows."""
    if message.layout != "BINARY" or not message.head:
        return False
    run = {field.name for field in _first_run(message).fields}
    lengths = {field.length for field in message.fields if field.length}
    return bool(lengths & run & values.keys()) and values.keys() <= run


def _first_run(message: Message) -> FixedRun:
    run = steps(message)[0]
    assert isinstance(run, FixedRun), f"{message.name} begins with a part of fixed size"
    return run
