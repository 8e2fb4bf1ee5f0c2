"""From YAML to what effects say to a peer: the answers to its requests, and notices of this side's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from replispec.compiler.language import expressions as ex
from replispec.compiler.language.check import Scope, type_of
from replispec.compiler.model.binding import AnswerForm, Value
from replispec.compiler.model.machine import Machine
from replispec.compiler.model.message import Message, Model, SpecificationError
from replispec.compiler.model.value_types import STRING, Type, accepts
from replispec.compiler.model.versions import parse_versions
from replispec.compiler.read.binding_parts import (
    INSTANCE,
    enum_member,
    fields_of,
    message_named,
    read_remark,
)
from replispec.compiler.read.yaml_source import Tree

_NOTICE_KEYS: Final = ("message", "header", "body")
_ANSWER_KEYS: Final = ("code", *_NOTICE_KEYS, "remark", "counts_as", "releases")


class AnswerReader:
    """Reads the answers and notices of one machine; `local` is what the role knows."""

    def __init__(self, tree: Tree, machine: Machine, model: Model, local: Mapping[str, Type]) -> None:
        self._tree = tree
        self._machine = machine
        self._model = model
        self._local = local

    def answers(self) -> dict[str, AnswerForm]:
        """What answers say, by effect; of one that is written as its code alone, nothing more."""
        found: dict[str, AnswerForm] = {}
        answers = self._tree.tree("answers")
        for name, text in self._machine.answers.items():
            place = answers.place_of(name)
            code = enum_member(text, self._model, place)
            form = AnswerForm(name, place, code)
            if isinstance(answers.items[name], Tree):
                each = answers.tree(name)
                each.only(*_ANSWER_KEYS)
                form = self._counted(self._said(form, each), each)
            found[name] = form
        return found

    def notices(self) -> dict[str, AnswerForm]:
        """What effects tell peers that did not ask, by effect."""
        found: dict[str, AnswerForm] = {}
        for name, each in self._tree.trees("notices"):
            place = self._tree.tree("notices").place_of(name)
            each.only(*_NOTICE_KEYS)
            if name not in self._machine.effects():
                raise SpecificationError(
                    place, f"no edge does {name!r}", f"effects: {', '.join(self._machine.effects())}"
                )
            found[name] = self._said(AnswerForm(name, place), each)
        return found

    def notes(self) -> dict[str, str]:
        """What is noted for people when an effect is done, by effect."""
        notes = self._tree.tree("notes")
        for name in notes.items:
            if name not in self._machine.effects():
                raise SpecificationError(
                    notes.place_of(name),
                    f"no edge does {name!r}",
                    f"effects: {', '.join(self._machine.effects())}",
                )
        return {name: notes.text(name) for name in notes.items}

    def _said(self, form: AnswerForm, tree: Tree) -> AnswerForm:
        scope = effect_scope(self._machine, self._model, self._local, form.effect)
        if form.code is None:
            # Whoever is told did not ask: there is no event of theirs, and nothing local to it.
            scope = replace(scope, event=None, sources={})
        form = replace(form, remark=read_remark(tree, scope))
        if "message" not in tree.items:
            for key in ("header", "body"):
                if key in tree.items:
                    raise SpecificationError(
                        tree.place_of(key), f"the {key} of no message", "name the answer by message:"
                    )
            return form
        message = message_named(tree.text("message"), self._model, tree.place_of("message"))
        header = self._expressions(message, tree.tree("header"), scope)
        form = replace(form, header=message.name, header_fields=header)
        if "body" not in tree.items:
            return form
        if len(message.bodies) != 1:
            raise SpecificationError(
                tree.place_of("body"), f"{message.name} has {len(message.bodies)} bodies", "drop body:"
            )
        body = self._model.messages[message.bodies[0]]
        return replace(form, body=body.name, body_fields=self._values(body, tree.tree("body"), scope))

    def _counted(self, form: AnswerForm, tree: Tree) -> AnswerForm:
        """With the effect that the answer counts as, and the releases in which it does."""
        counts_as = tree.text("counts_as", "")
        if counts_as and counts_as not in self._machine.answers:
            raise SpecificationError(
                tree.place_of("counts_as"),
                f"no answer is named {counts_as!r}",
                f"answers: {', '.join(self._machine.answers)}",
            )
        if "releases" in tree.items and not counts_as:
            raise SpecificationError(tree.place_of("releases"), "releases of nothing", "give counts_as:")
        releases = parse_versions(tree.text("releases", ""), tree.place_of("releases"))
        return replace(form, counts_as=counts_as, releases=releases)

    def _expressions(self, message: Message, tree: Tree, scope: Scope) -> dict[str, ex.Expression]:
        values = self._values(message, tree, scope)
        return {name: each for name, each in values.items() if isinstance(each, ex.Expression)}

    def _values(self, message: Message, tree: Tree, scope: Scope) -> dict[str, Value]:
        """The value of each field that is said, in the order of the message."""
        kinds = fields_of(message, self._model)
        for name in tree.items:
            if name not in kinds:
                raise SpecificationError(
                    tree.place_of(name),
                    f"{message.name} has no field {name!r}",
                    f"fields: {', '.join(kinds)}",
                )
        return {
            name: self._value(message, name, kind, tree, scope)
            for name, kind in kinds.items()
            if name in tree.items
        }

    def _value(self, message: Message, name: str, wanted: Type, tree: Tree, scope: Scope) -> Value:
        place = tree.place_of(name)
        if wanted.kind == "message" and isinstance(tree.items[name], Tree):
            return self._values(self._model.messages[wanted.name], tree.tree(name), scope)
        node = ex.parse(tree.text(name), place)
        given = type_of(node, scope, place)
        if not _fits(wanted, given):
            raise SpecificationError(
                place,
                f"{message.name}.{name} is {wanted.required()}, not {given}",
                "give a value of its type",
            )
        return node


def _fits(wanted: Type, given: Type) -> bool:
    """Whether a value may be said in a field: a set is said as the list of its elements, ascending."""
    if wanted.kind == "list" and given.kind == "set":
        given = replace(given, kind="list")
    return accepts(replace(wanted, optional=True), given)


def effect_scope(machine: Machine, model: Model, local: Mapping[str, Type], effect: str) -> Scope:
    """Variables, the instance, and the fields that every event has on which the effect is done."""
    events = [machine.events[name] for name in machine.effects()[effect]]
    first, *others = (each.fields for each in events)
    common = {name: kind for name, kind in first.items() if all(other.get(name) == kind for other in others)}
    variables = {name: each.type for name, each in machine.variables.items()}
    return Scope(
        model,
        variables={**variables, INSTANCE: STRING},
        event=common,
        event_name=" and ".join(each.name for each in events),
        sources={"local": local},
    )
