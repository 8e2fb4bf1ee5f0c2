"""From YAML to bindings: which messages the events of a machine are, and where each of their fields is.

A peer's event arrives as one message or as one of several (`received_as:`), a request or an answer. Every
field of the event is an expression over `header`, `body` and, for requests, `local` and the variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from replispec.compiler.check.bindings import check_bindings
from replispec.compiler.check.python_names import check_word
from replispec.compiler.language.check import Scope, present_after, require, type_of
from replispec.compiler.model import expressions as ex
from replispec.compiler.model.binding import AnswerForm, Bindings, LocalField, Refusal, Remark, Source, Text
from replispec.compiler.model.machine import Event, MachineSpec
from replispec.compiler.model.message import Message, Model, SpecificationError
from replispec.compiler.model.rule import RuleType
from replispec.compiler.model.value_types import INT32, STRING, Type, fields_of, parse_type
from replispec.compiler.model.versions import parse_versions
from replispec.compiler.read.answers import AnswerReader
from replispec.compiler.read.binding_parts import (
    BODY_ITSELF,
    CODE,
    HEADER_ITSELF,
    INSTANCE,
    NOTHING,
    WHOLE_BODY,
    RoleTypes,
    code_text,
    enum_member,
    message_named,
    read_condition,
    read_remark,
    role_types,
)
from replispec.compiler.read.event_records import RecordReader
from replispec.compiler.read.payloads import PayloadReader
from replispec.compiler.read.yaml_source import Sequence, Tree

HEADER: Final = "HEADER_FIELDS"
NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
ASKING: Final = ("REQUEST", "ONEWAY")
ANSWERING: Final = "RESPONSE"
_SOURCE_KEYS: Final = (
    "message",
    "body",
    "answer_to",
    "codes",
    "otherwise",
    "unanswered",
    "instance",
    "if",
    "refused",
    "from",
    "releases",
)
EVENT_KEYS: Final = (*_SOURCE_KEYS[1:], "received_as", "record")
"""What binds an event, beside `message`."""
__all__ = ["EVENT_KEYS", "code_text", "is_bound", "read_bindings"]


def read_bindings(tree: Tree, machine: MachineSpec, model: Model, rules: Mapping[str, RuleType]) -> Bindings:
    """The bindings of a machine. Raises SpecificationError with the line of the first fault."""
    local = {each.name: each for each in _local(tree, model)}
    known = role_types(local)
    sources = tuple(_Sources(tree, machine, model, rules, known).sources())
    answers = AnswerReader(tree, machine, model, known, rules)
    payloads = PayloadReader(tree, machine, model, rules, known)
    records = RecordReader(tree, machine, model, rules, sources)
    missing = None
    if "missing" in tree.items:
        missing = enum_member(tree.text("missing"), model, tree.place_of("missing"))
    bindings = Bindings(
        local,
        sources,
        answers.answers()
        if missing is not None or any(each.instance is not None for each in sources)
        else _codes_alone(tree),
        answers.notices(),
        answers.notes(),
        records.log(),
        records.records(),
        missing,
        payloads.payloads(),
        payloads.views(),
    )
    check_bindings(machine, bindings, model)
    return bindings


def _codes_alone(tree: Tree) -> dict[str, AnswerForm]:
    """Of a machine whose requests name no instance, answers are codes: nothing says more of them."""
    answers = tree.tree("answers")
    for name in answers.items:
        if isinstance(answers.items[name], Tree):
            for key in answers.tree(name).items:
                if key != "code":
                    raise SpecificationError(
                        answers.tree(name).place_of(key),
                        f"nothing reads the {key} of {name}: none of its requests names an instance",
                        "write the code alone, give the requests instance:, or write missing:",
                    )
    return {}


def _local(tree: Tree, model: Model) -> Iterator[LocalField]:
    for name, each in tree.trees("local"):
        each.only("type", "about", "of", "kept")
        place = tree.tree("local").place_of(name)
        if not NAME.fullmatch(name):
            raise SpecificationError(place, f"{name!r} is no name", "use lower case words joined by _")
        check_word(name, place)
        given = each.tree("of")
        for key in given.items:
            check_word(key, given.place_of(key))
        of = {key: parse_type(given.text(key), model, given.place_of(key)) for key in given.items}
        kind = parse_type(each.text("type"), model, place)
        if each.flag("kept") and kind.kind != "message":
            raise SpecificationError(each.place_of("kept"), f"{kind} is kept", "keep messages only")
        yield LocalField(name, kind, each.text("about"), place, of, each.flag("kept"))


def _check_keys(event: Event, tree: Tree) -> None:
    """Refuse what would be read over: keys of a binding where nothing is bound, and two bindings at once."""
    idle: tuple[str, ...] = ()
    if "received_as" in tree.items:
        idle = (*_SOURCE_KEYS, "where")
    elif not is_bound(tree):
        idle = _SOURCE_KEYS
    elif not event.messages:
        idle = ("where",)
    for key in idle:
        if key in tree.items:
            advice = (
                "write if:" if key == "where" else "put it below received_as:, or bind the event by message:"
            )
            raise SpecificationError(tree.place_of(key), f"{key} says nothing of {event.name} here", advice)


def is_bound(tree: Tree) -> bool:
    """Whether the YAML of an event says where it comes from."""
    return any(key in tree.items for key in ("message", "answer_to", "received_as"))


def _of_releases(source: Source, tree: Tree) -> Source:
    """The source with the releases in which it holds; it need not say them."""
    releases = parse_versions(tree.text("releases", ""), tree.place_of("releases"))
    if releases is not None and (source.otherwise or source.unanswered):
        raise SpecificationError(
            tree.place_of("releases"),
            f"{source.event} is what no code names, in some releases only",
            "name its codes, or drop releases:",
        )
    return replace(source, releases=releases)


def _one_by_one(tree: Tree) -> Iterator[Tree]:
    """The binding once for each of its messages, where all of them say the same under the same names."""
    node = tree.items.get("message")
    if not isinstance(node, Sequence):
        yield tree
        return
    for each in node.items:
        yield replace(tree, items={**tree.items, "message": each})


class _Sources:
    """Reads where the events of one machine come from."""

    def __init__(
        self,
        tree: Tree,
        machine: MachineSpec,
        model: Model,
        rules: Mapping[str, RuleType],
        known: RoleTypes,
    ) -> None:
        self._tree = tree
        self._machine = machine
        self._model = model
        self._rules = rules
        self._known = known

    def sources(self) -> Iterator[Source]:
        """The sources of all events, in the order of the specification."""
        for name, tree in self._tree.trees("events"):
            event = self._machine.events[name]
            _check_keys(event, tree)
            if event.messages:
                yield from self._of_message_event(event, tree)
            elif "received_as" in tree.items:
                for each in tree.listed("received_as"):
                    each.only(*_SOURCE_KEYS)
                    for one in _one_by_one(each):
                        yield _of_releases(self._source(event, one), one)
            elif is_bound(tree):
                yield _of_releases(self._source(event, tree), tree)

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
            source = (
                self._as_answer(event, tree, message)
                if message.kind == ANSWERING
                else Source(event.name, tree.place, header=name)
            )
            yield _of_releases(source, tree)

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
        instance = self._instance(tree, scope)
        if instance is not None:
            scope = self._scope(message, body, event)
        condition = read_condition(tree, scope)
        present = NOTHING if condition is None else present_after(condition, when=True)
        refusals = self._refusals(tree, scope, present)
        present = present.union(*(present_after(each.condition, when=False) for each in refusals))
        fields = self._fields(event, tree, scope, present)
        return Source(
            event.name,
            tree.place,
            message.name,
            body,
            condition=condition,
            fields=fields,
            needed=self._needed(event, fields, scope, present),
            instance=instance,
            refusals=refusals,
        )

    def _as_answer(self, event: Event, tree: Tree, message: Message | None) -> Source:
        asked = tree.texts("answer_to") or self._requests_of(message)
        for name in asked:
            known = self._model.messages.get(name)
            if known is None or known.kind not in ASKING:
                raise SpecificationError(
                    tree.place_of("answer_to"), f"{name!r} is no request", "name a request of spec/proto"
                )
            if known.kind == "ONEWAY":
                raise SpecificationError(
                    tree.place_of("answer_to"), f"{name} is never answered", "it is a ONEWAY request: drop it"
                )
        if "if" in tree.items:
            raise SpecificationError(tree.place_of("if"), "an answer has codes, no condition", "drop if:")
        for key in ("instance", "refused"):
            if key in tree.items:
                raise SpecificationError(tree.place_of(key), f"an answer has no {key}", f"drop {key}:")
        codes = tuple(enum_member(text, self._model, tree.place_of("codes")) for text in tree.texts("codes"))
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
        message = message_named(name, self._model, place)
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
            if name not in message.bodies:
                raise SpecificationError(
                    tree.place_of("body"),
                    f"{name} is no body of {message.name}",
                    f"name one of: {', '.join(message.bodies) or 'none'}",
                )
            return message_named(name, self._model, tree.place_of("body")).name
        if len(message.bodies) > 1:
            names = ", ".join(message.bodies)
            raise SpecificationError(
                tree.place, f"{message.name} has several bodies: {names}", "name one by body:"
            )
        return message_named(message.bodies[0], self._model, message.place).name if message.bodies else ""

    def _scope(self, message: Message, body: str, event: Event | None = None) -> Scope:
        """What an expression may read: the message, and of an instance what is remembered."""
        sources: dict[str, Mapping[str, Type]] = {"header": fields_of(message, self._model)}
        if body:
            sources["body"] = fields_of(self._model.messages[body], self._model)
        if self._known.fields:
            sources["local"] = self._known.fields
        whole = {HEADER_ITSELF: Type("message", message.name)}
        if body:
            whole[WHOLE_BODY] = Type("message", body)
        if message.kind in ASKING and "missing" in self._tree.items:
            whole |= {BODY_ITSELF: Type("bytes"), CODE: INT32}
        questions = self._known.questions
        scope = Scope(self._model, whole, rules=self._rules, sources=sources, questions=questions)
        if event is None:
            return scope
        variables = {name: each.type for name, each in self._machine.variables.items()}
        named = {**whole, **variables, INSTANCE: STRING}
        return replace(scope, variables=named, event=event.fields, event_name=event.name)

    def _instance(self, tree: Tree, scope: Scope) -> ex.Expression | None:
        if "instance" not in tree.items:
            return None
        place = tree.place_of("instance")
        node = ex.parse(tree.text("instance"), place)
        require(node, replace(STRING, optional=True), scope, place, "the instance")
        return node

    def _refusals(self, tree: Tree, scope: Scope, present: frozenset[ex.Expression]) -> tuple[Refusal, ...]:
        """The requests that are refused before they are events, in the order in which they are looked for."""
        found: list[Refusal] = []
        for each in tree.listed("refused"):
            each.only("if", "code", "remark")
            condition = read_condition(each, scope, present)
            if condition is None:
                raise SpecificationError(each.place, "every request is refused", "give if:")
            remark = read_remark(each, scope, present | present_after(condition, when=True))
            code = enum_member(each.text("code"), self._model, each.place_of("code"))
            found.append(Refusal(condition, code, remark or Remark(((None, Text(())),)), each.place))
            present |= present_after(condition, when=False)
        return tuple(found)

    def _fields(
        self, event: Event, tree: Tree, scope: Scope, present: frozenset[ex.Expression] = NOTHING
    ) -> dict[str, ex.Expression]:
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
            require(node, replace(wanted, optional=True), scope, place, f"{event.name}.{name}", present)
            found[name] = node
        if len(list(ex.in_order(found))) < len(found):
            raise SpecificationError(
                tree.place_of("from"),
                f"fields of {event.name} are made of each other",
                "read one of them from the message",
            )
        return found

    def _needed(
        self,
        event: Event,
        fields: Mapping[str, ex.Expression],
        scope: Scope,
        present: frozenset[ex.Expression] = NOTHING,
    ) -> frozenset[str]:
        """The fields that must not be none, and are read from what may be."""
        return frozenset(
            name
            for name, node in fields.items()
            if not event.fields[name].optional and type_of(node, scope, event.place, present).optional
        )
