"""From YAML to what effects say to a peer: the answers to its requests, and notices of this side's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from replispec.compiler.language.check import Scope, require, type_of
from replispec.compiler.model import expressions as ex
from replispec.compiler.model.binding import AnswerForm, Value
from replispec.compiler.model.machine import MachineSpec
from replispec.compiler.model.message import Message, Model, SpecificationError
from replispec.compiler.model.rule import RuleType
from replispec.compiler.model.value_types import Type
from replispec.compiler.model.versions import parse_versions
from replispec.compiler.read.binding_parts import (
    RoleTypes,
    effect_scope,
    enum_member,
    message_named,
    read_remark,
)
from replispec.compiler.read.values import EACH, read_values
from replispec.compiler.read.yaml_source import Scalar, Tree

_NOTICE_KEYS: Final = ("message", "header", "body")
_INSTEAD: Final = "instead"
_ANSWER_KEYS: Final = ("code", *_NOTICE_KEYS, "remark", "counts_as", "releases", "by_release")


class AnswerReader:
    """Reads the answers, notices and views of one machine; `known` is what the role knows."""

    def __init__(
        self, tree: Tree, machine: MachineSpec, model: Model, known: RoleTypes, rules: Mapping[str, RuleType]
    ) -> None:
        self._tree = tree
        self._machine = machine
        self._model = model
        self._known = known
        self._rules = rules

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
                form = replace(form, by_release=self._by_release(form, each))
            found[name] = form
        return found

    def notices(self) -> dict[str, AnswerForm]:
        """What effects tell peers that did not ask, by effect."""
        found: dict[str, AnswerForm] = {}
        for name, each in self._tree.trees("notices"):
            place = self._tree.tree("notices").place_of(name)
            each.only(*_NOTICE_KEYS, _INSTEAD)
            if name not in self._machine.effects():
                raise SpecificationError(
                    place, f"no edge does {name!r}", f"effects: {', '.join(self._machine.effects())}"
                )
            form = self._said(AnswerForm(name, place), each)
            found[name] = self._instead(form, each) if _INSTEAD in each.items else form
        return found

    def _instead(self, form: AnswerForm, tree: Tree) -> AnswerForm:
        """With what some of those who are told are told instead, each by its own number."""
        other = tree.tree(_INSTEAD)
        other.only("to", "header", "body")
        place = other.place_of("to")
        scope = effect_scope(form.effect, self._machine, self._model, self._known, self._rules)
        scope = replace(scope, event=None, rules={}, sources={}, questions={})
        to = ex.parse(other.text("to"), place)
        kind = type_of(to, scope, place)
        if kind.item is None or kind.kind != "set" or kind.optional:
            raise SpecificationError(place, f"{kind} is told something else", "give a set that is not none")
        scope = replace(scope, variables={**scope.variables, EACH: kind.item})
        message = self._model.messages[form.header]
        header = _expressions(read_values(message, other.tree("header"), scope))
        told = AnswerForm(form.effect, other.place, header=form.header, header_fields=header)
        if "body" in other.items:
            body = self._model.messages[form.body]
            told = replace(told, body=form.body, body_fields=read_values(body, other.tree("body"), scope))
        return replace(form, to=to, instead=told)

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
        scope = effect_scope(form.effect, self._machine, self._model, self._known, self._rules)
        if form.code is None:
            # Whoever is told did not ask: there is no event, and nothing is asked of the role.
            scope = replace(scope, event=None, rules={}, sources={}, questions={})
        form = replace(form, remark=read_remark(tree, scope))
        if "message" not in tree.items:
            for key in ("header", "body"):
                if key in tree.items:
                    raise SpecificationError(
                        tree.place_of(key), f"the {key} of no message", "name the answer by message:"
                    )
            return form
        message = message_named(tree.text("message"), self._model, tree.place_of("message"))
        header = _expressions(read_values(message, tree.tree("header"), scope))
        form = replace(form, header=message.name, header_fields=header)
        if "body" not in tree.items:
            return form
        if form.code is not None and isinstance(tree.items["body"], Scalar):
            return self._with_whole(form, message, tree, scope)
        if len(message.bodies) != 1:
            raise SpecificationError(
                tree.place_of("body"), f"{message.name} has {len(message.bodies)} bodies", "drop body:"
            )
        body = self._model.messages[message.bodies[0]]
        return replace(form, body=body.name, body_fields=read_values(body, tree.tree("body"), scope))

    def _with_whole(self, form: AnswerForm, message: Message, tree: Tree, scope: Scope) -> AnswerForm:
        """With a body that is one expression: the message that it is, or bytes that no message describes."""
        place = tree.place_of("body")
        body = message.bodies[0] if len(message.bodies) == 1 else ""
        node = ex.parse(tree.text("body"), place)
        wanted = Type("message", body, optional=True) if body else Type("bytes")
        require(node, wanted, scope, place, f"the body of {message.name}")
        return replace(form, body=body, whole=node)

    def _by_release(self, form: AnswerForm, tree: Tree) -> dict[str, AnswerForm]:
        """What is said to peers of some releases instead; the code is the same."""
        if "by_release" in tree.items and form.header:
            raise SpecificationError(
                tree.place_of("by_release"), f"{form.effect} says {form.header}, too", "drop message:"
            )
        found: dict[str, AnswerForm] = {}
        for text, each in tree.trees("by_release"):
            each.only(*_NOTICE_KEYS, "remark")
            place = tree.tree("by_release").place_of(text)
            releases = parse_versions(text, place)
            found[text] = self._said(AnswerForm(form.effect, place, form.code, releases=releases), each)
        return found

    def _counted(self, form: AnswerForm, tree: Tree) -> AnswerForm:
        """With the effect that the answer counts as, and the releases in which it does."""
        counts_as = tree.text("counts_as", "")
        if counts_as and counts_as not in self._machine.answers:
            raise SpecificationError(
                tree.place_of("counts_as"),
                f"no answer is named {counts_as!r}",
                f"answers: {', '.join(self._machine.answers)}",
            )
        if "releases" in tree.items and not counts_as and not form.header:
            raise SpecificationError(tree.place_of("releases"), "releases of nothing", "give counts_as:")
        releases = parse_versions(tree.text("releases", ""), tree.place_of("releases"))
        return replace(form, counts_as=counts_as, releases=releases)


def _expressions(values: Mapping[str, Value]) -> dict[str, ex.Expression]:
    return {name: each for name, each in values.items() if isinstance(each, ex.Expression)}
