"""From YAML to how a system shows on one wire: the subject of a case, and the requests that an act is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from replispec.compiler.language.check import InstanceType, Scope, type_of
from replispec.compiler.model import expressions as ex
from replispec.compiler.model.message import Message, Model, SpecificationError
from replispec.compiler.model.system import ActSpec, PartySpec, RequestSpec, SuiteSpec
from replispec.compiler.model.value_types import accepts, fields_of
from replispec.compiler.read.binding_parts import message_named
from replispec.compiler.read.system_effects import Parse
from replispec.compiler.read.yaml_source import Tree

SUITE_KEYS: Final = ("subject", "kind", "profile", "values")
_BODY: Final = "body"


def read_suite(tree: Tree, parties: Mapping[str, PartySpec]) -> SuiteSpec:
    """Whose wire shows what happens, as cases of the suite say it. Raises SpecificationError."""
    tree.only(*SUITE_KEYS)
    subject = tree.text("subject")
    party = parties.get(subject)
    if party is None or party.count != 1:
        single = ", ".join(name for name, each in parties.items() if each.count == 1)
        raise SpecificationError(
            tree.place_of("subject"), f"{subject!r} is no party of one", single or "no party is alone"
        )
    if not any(part.machine.bindings.is_answering for part in party.parts.values()):
        raise SpecificationError(
            tree.place_of("subject"), f"no machine of {subject} answers", "a case asks, and is answered"
        )
    values = {name: tree.tree("values").text(name) for name in tree.tree("values").items}
    return SuiteSpec(subject, tree.text("kind"), tree.text("profile"), values)


class RequestReader:
    """Reads the requests that acts are to their subject."""

    def __init__(self, model: Model, scope: Scope, parse: Parse) -> None:
        self._model = model
        self._scope = scope
        self._parse = parse

    def requests(self, tree: Tree, kinds: Mapping[str, InstanceType]) -> tuple[RequestSpec, ...]:
        """Every message under `requests`, in order."""
        over = tree.text("over", "")
        if over and ("requests" not in tree.items or over not in kinds):
            raise SpecificationError(
                tree.place_of("over"),
                f"over {over!r}, which asks nothing",
                f"{', '.join(kinds)}; say requests",
            )
        return tuple(self._request(name, each, tree, over, kinds) for name, each in tree.trees("requests"))

    def _request(
        self, name: str, tree: Tree, act: Tree, over: str, kinds: Mapping[str, InstanceType]
    ) -> RequestSpec:
        place = act.tree("requests").place_of(name)
        message = message_named(name, self._model, place)
        if not message.codes or message.kind == "RESPONSE":
            raise SpecificationError(place, f"{name} is no request", "name a message with a code")
        own = replace(tree, items={key: node for key, node in tree.items.items() if key != _BODY})
        body, body_fields = "", {}
        if _BODY in tree.items and len(message.bodies) == 1:
            body = message.bodies[0]
            body_fields = dict(self._fields(self._model.messages[body], tree.tree(_BODY), kinds))
        elif _BODY in tree.items:
            raise SpecificationError(tree.place_of(_BODY), f"{name} has no one body", "leave it out")
        return RequestSpec(name, dict(self._fields(message, own, kinds)), body, body_fields, over)

    def _fields(
        self, message: Message, tree: Tree, kinds: Mapping[str, InstanceType]
    ) -> Iterator[tuple[str, ex.Expression]]:
        wanted = fields_of(message, self._model)
        scope = replace(self._scope, instances={**self._scope.instances, **kinds})
        for name in tree.items:
            place = tree.place_of(name)
            if name not in wanted:
                raise SpecificationError(
                    place, f"{message.name} has no field {name!r}", f"fields: {', '.join(wanted)}"
                )
            node = self._parse(tree.text(name), place, kinds)
            given = type_of(node, scope, place)
            if given.kind == "set" and wanted[name].kind == "list":
                given = replace(given, kind="list")
            # What does not fit in its bits is refused by the codec that would write it.
            kind = replace(wanted[name], optional=True)
            if not accepts(replace(kind, kind="int64") if kind.is_integer else kind, given):
                raise SpecificationError(
                    place, f"{message.name}.{name} is {wanted[name].required()}, not {given}", "give its type"
                )
            yield name, node


def check_requests(acts: tuple[ActSpec, ...], suite: SuiteSpec | None) -> None:
    """Refuse requests of acts where no suite says whose wire they are on."""
    for act in acts:
        if act.requests and suite is None:
            raise SpecificationError(
                act.place, f"{act.name} is requests to nobody", "say suite: {subject: ..}"
            )
