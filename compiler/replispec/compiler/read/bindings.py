"""From YAML to bindings: which messages the events of a machine are, and where each of their fields is.

A peer's event is heard in one message or several (`heard:`), as a request or as the answer to one. Every
field of the event is an expression over `header`, `body` and, for requests, `local` and the variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from replispec.compiler.check.bindings import check_bindings
from replispec.compiler.language import expressions as ex
from replispec.compiler.language.check import RuleType, Scope, present_after, require, type_of
from replispec.compiler.model.binding import Bindings, LocalField, Source
from replispec.compiler.model.machine import Event, Machine
from replispec.compiler.model.message import Message, Model, Place, SpecificationError
from replispec.compiler.model.value_types import BOOL, Type, field_type, parse_type
from replispec.compiler.read.yaml_source import Tree

HEADER: Final = "REMOTING_HEADER"
ASKING: Final = ("REQUEST", "ONEWAY")
ANSWERING: Final = "RESPONSE"
_SOURCE_KEYS: Final = ("message", "body", "answer_to", "codes", "otherwise", "unanswered", "if", "from")
_NOTHING: Final[frozenset[ex.Expression]] = frozenset()
EVENT_KEYS: Final = (*_SOURCE_KEYS[1:], "heard")
"""What binds an event, beside `message`."""


def read_bindings(tree: Tree, machine: Machine, model: Model, rules: Mapping[str, RuleType]) -> Bindings:
    """The bindings of a machine. Raises SpecificationError with the line of the first fault."""
    local = {each.name: each for each in _local(tree, model)}
    sources = tuple(_Sources(tree, machine, model, rules, local).sources())
    bindings = Bindings(local, sources)
    check_bindings(machine, bindings, model)
    return bindings


def _local(tree: Tree, model: Model) -> Iterator[LocalField]:
    for name, each in tree.trees("local"):
        each.only("type", "about")
        place = tree.tree("local").place_of(name)
        yield LocalField(name, parse_type(each.text("type"), model, place), each.text("about"), place)


def is_bound(tree: Tree) -> bool:
    """Whether the YAML of an event says where it comes from."""
    return any(key in tree.items for key in ("message", "answer_to", "heard"))


class _Sources:
    """Reads where the events of one machine come from."""

    def __init__(
        self,
        tree: Tree,
        machine: Machine,
        model: Model,
        rules: Mapping[str, RuleType],
        local: Mapping[str, LocalField],
    ) -> None:
        self._tree = tree
        self._machine = machine
        self._model = model
        self._rules = rules
        self._local = {name: each.type for name, each in local.items()}

    def sources(self) -> Iterator[Source]:
        """The sources of all events, in the order of the specification."""
        for name, tree in self._tree.trees("events"):
            event = self._machine.events[name]
            if event.messages:
                yield from self._of_message_event(event, tree)
            elif "heard" in tree.items:
                for each in tree.listed("heard"):
                    each.only(*_SOURCE_KEYS)
                    yield self._source(event, each)
            elif is_bound(tree):
                yield self._source(event, tree)

    def _of_message_event(self, event: Event, tree: Tree) -> Iterator[Source]:
        """A message event is the header of its message. Frames of streams are not read here."""
        if event.sends or "where" in tree.items:
            return
        for name in event.messages:
            message = self._model.messages[name]
            if message.layout != HEADER:
                continue
            if "from" in tree.items:
                raise SpecificationError(
                    tree.place_of("from"), f"{event.name} is the message itself", "give it fields: to bind"
                )
            yield (
                self._as_answer(event, tree, message)
                if message.kind == ANSWERING
                else Source(event.name, tree.place, header=name)
            )

    def _source(self, event: Event, tree: Tree) -> Source:
        if not event.is_peer:
            raise SpecificationError(
                tree.place, f"{event.name} is local, but bound to a message", "write origin: peer"
            )
        message = self._message(tree)
        is_answer = "answer_to" in tree.items or (message is not None and message.kind == ANSWERING)
        if is_answer:
            return self._as_answer(event, tree, message)
        if message is None:
            raise SpecificationError(
                tree.place, f"{event.name} is bound to no message", "give message: or answer_to:"
            )
        for key in ("codes", "otherwise", "unanswered"):
            if key in tree.items:
                raise SpecificationError(
                    tree.place_of(key), f"{message.name} is a request", f"only answers have {key}"
                )
        body = self._body(tree, message)
        scope = self._scope(message, body)
        condition, present = None, _NOTHING
        if "if" in tree.items:
            condition = ex.parse(tree.text("if"), tree.place_of("if"))
            require(condition, BOOL, scope, tree.place_of("if"), "the condition")
            present = present_after(condition, when=True)
        fields = self._fields(event, tree, scope)
        return Source(
            event.name,
            tree.place,
            message.name,
            body,
            condition=condition,
            fields=fields,
            needed=self._needed(event, fields, scope, present),
        )

    def _as_answer(self, event: Event, tree: Tree, message: Message | None) -> Source:
        asked = tree.texts("answer_to") or self._requests_of(message)
        for name in asked:
            known = self._model.messages.get(name)
            if known is None or known.kind not in ASKING:
                raise SpecificationError(
                    tree.place_of("answer_to"), f"{name!r} is no request", "name a request of spec/proto"
                )
        if "if" in tree.items:
            raise SpecificationError(tree.place_of("if"), "an answer has codes, no condition", "drop if:")
        codes = tuple(self._code(text, tree.place_of("codes")) for text in tree.texts("codes"))
        otherwise, unanswered = tree.flag("otherwise"), tree.flag("unanswered")
        if not codes and not otherwise and not unanswered:
            raise SpecificationError(
                tree.place,
                f"{event.name} does not say which answers it is",
                "give codes: [ResponseCode.SUCCESS], otherwise: true or unanswered: true",
            )
        if message is None and event.fields:
            message = self._answer_of(asked, tree)
        if (event.fields or event.messages) and (otherwise or unanswered):
            raise SpecificationError(
                tree.place, f"{event.name} has fields, which not every answer has", "name its codes"
            )
        header = message.name if message is not None else ""
        if event.messages or message is None:
            return Source(event.name, tree.place, header, "", asked, codes, otherwise, unanswered)
        body = self._body(tree, message)
        scope = self._scope(message, body)
        fields = self._fields(event, tree, scope)
        needed = self._needed(event, fields, scope)
        return Source(event.name, tree.place, header, body, asked, codes, fields=fields, needed=needed)

    def _message(self, tree: Tree) -> Message | None:
        if "message" not in tree.items:
            return None
        name, place = tree.text("message"), tree.place_of("message")
        message = self._model.messages.get(name)
        if message is None:
            raise SpecificationError(place, f"no message is named {name!r}", "name one of spec/proto")
        if message.layout != HEADER:
            raise SpecificationError(
                place, f"{name} is no header of a command", "bind a request or an answer, or drop fields:"
            )
        return message

    def _requests_of(self, answer: Message | None) -> tuple[str, ...]:
        codes = set(answer.codes) if answer is not None else set()
        return tuple(
            each.name
            for each in self._model.messages.values()
            if each.kind in ASKING and codes.intersection(each.codes)
        )

    def _answer_of(self, asked: tuple[str, ...], tree: Tree) -> Message:
        codes = {code for name in asked for code in self._model.messages[name].codes}
        found = [
            each
            for each in self._model.messages.values()
            if each.kind == ANSWERING and codes.intersection(each.codes)
        ]
        if len(found) != 1:
            names = ", ".join(each.name for each in found) or "none"
            raise SpecificationError(
                tree.place, f"the message of the answer is ambiguous: {names}", "name it by message:"
            )
        return found[0]

    def _body(self, tree: Tree, message: Message) -> str:
        name = tree.text("body", "")
        if name:
            if name not in self._model.messages:
                raise SpecificationError(
                    tree.place_of("body"), f"no message is named {name!r}", "name one of spec/proto"
                )
            return name
        if len(message.bodies) > 1:
            names = ", ".join(message.bodies)
            raise SpecificationError(
                tree.place, f"{message.name} has several bodies: {names}", "name one by body:"
            )
        return message.bodies[0] if message.bodies else ""

    def _code(self, text: str, place: Place) -> ex.EnumMember:
        return enum_member(text, self._model, place)

    def _scope(self, message: Message, body: str) -> Scope:
        sources = {"header": fields_of(message, self._model)}
        if self._local:
            sources["local"] = self._local
        if body:
            sources["body"] = fields_of(self._model.messages[body], self._model)
        return Scope(self._model, rules=self._rules, sources=sources)

    def _fields(self, event: Event, tree: Tree, scope: Scope) -> dict[str, ex.Expression]:
        """What each field of the event is read from; what a message leaves out is found out then."""
        given = tree.tree("from")
        for name in given.items:
            if name not in event.fields:
                raise SpecificationError(
                    given.place_of(name),
                    f"{event.name} has no field {name!r}",
                    f"fields: {', '.join(event.fields) or 'none'}",
                )
        found: dict[str, ex.Expression] = {}
        for name, wanted in event.fields.items():
            if name not in given.items:
                raise SpecificationError(
                    tree.place_of("from"),
                    f"nothing says where {event.name}.{name} comes from",
                    f"write from: {{{name}: header.NAME}}",
                )
            place = given.place_of(name)
            node = ex.parse(given.text(name), place)
            require(node, replace(wanted, optional=True), scope, place, f"{event.name}.{name}")
            found[name] = node
        return found

    def _needed(
        self,
        event: Event,
        fields: Mapping[str, ex.Expression],
        scope: Scope,
        present: frozenset[ex.Expression] = _NOTHING,
    ) -> frozenset[str]:
        """The fields that must not be none, and are read from what may be."""
        return frozenset(
            name
            for name, node in fields.items()
            if not event.fields[name].optional and type_of(node, scope, event.place, present).optional
        )


def fields_of(message: Message, model: Model) -> dict[str, Type]:
    """The types of a message's fields, maps included; all may be none."""
    found: dict[str, Type] = {}
    for field in message.fields:
        kind = field_type(field, message, model)
        if kind is not None:
            found[field.name] = kind
    return found


def enum_member(text: str, model: Model, place: Place) -> ex.EnumMember:
    """The value of an enum that `text` names as ENUM.NAME. Raises SpecificationError when there is none."""
    node = ex.parse(text, place)
    if not isinstance(node, ex.EnumMember):
        raise SpecificationError(place, f"{text!r} is no value of an enum", "write ENUM.NAME")
    type_of(node, Scope(model), place)
    return node
