"""Bindings of a machine with many instances, as a controller runs it: requests, answers, notices, records."""

from __future__ import annotations

from collections.abc import Iterator

from replispec.compiler.emit.python.binding_words import (
    BOUND,
    BindingWords,
    asked_once,
    indented,
    parameters,
    snake,
)
from replispec.compiler.emit.python.bound_claims import claim_nodes
from replispec.compiler.emit.python.bound_records import record_nodes
from replispec.compiler.emit.python.tree import (
    ABC,
    DATACLASSES,
    TYPING,
    Class,
    Constant,
    FunctionDef,
    Node,
    own,
)
from replispec.compiler.model import expressions as ex
from replispec.compiler.model.binding import AnswerForm, Source, Text, Value
from replispec.compiler.model.machine import MachineSpec
from replispec.compiler.model.message import Message, Model
from replispec.compiler.model.value_types import fields_of


class InstanceBindings:
    """Writes the bindings of one machine whose requests name an instance."""

    def __init__(self, machine: MachineSpec, model: Model, words: BindingWords) -> None:
        self._machine = machine
        self._bindings = machine.bindings
        self._model = model
        self._words = words

    def nodes(self) -> Iterator[Node]:
        """What the module defines, beside what every module of bindings has."""
        yield from self._instances()
        yield from self._requests()
        yield from self._answers()
        yield from self._notices()
        yield from claim_nodes(self._machine, self._words)
        if self._bindings.log is not None:
            yield from record_nodes(self._machine, self._bindings.log, self._words)

    # Requests

    def _instances(self) -> Iterator[Node]:
        yield Class(
            "Asked",
            "The event that a request is, and the instance that it is about.",
            decorators=[f"{DATACLASSES.dataclass}(frozen=True, slots=True)"],
            body=[
                Constant("instance", annotation="str"),
                Constant("event", annotation=str(self._words.event)),
            ],
        )
        known = FunctionDef(
            "known",
            "self, instance: str, /",
            f"tuple[{self._words.variables}, Local]",
            (),
            "What is remembered of an instance, and what only the role knows of it.",
        )
        about = "The instances of the machine, as the role knows them."
        yield Class("Instances", about, [str(TYPING.Protocol)], body=[known])
        code = self._words.python(self._bindings.missing) if self._bindings.missing else "0"
        yield Constant("_MISSING", code, str(TYPING.Final))

    def _requests(self) -> Iterator[Node]:
        about = (
            "The event that a request with this code and body is; None when it is none.\n\n"
            "Raises RemoteProtocolError when it cannot be read, and Refused with the answer when something\n"
            "is missing or the request is refused whatever is remembered."
        )
        inside = [
            "read = REQUESTS.get(code)",
            "return None if read is None else read(ext_fields, data, instances, rules)",
        ]
        given = f"ext_fields: ExtFields, data: bytes, instances: Instances, rules: {self._words.rules}"
        yield FunctionDef("event_of", f"code: int, {given}", "Asked | None", inside, about)
        groups: dict[str, list[Source]] = {}
        for each in self._bindings.requests:
            groups.setdefault(each.header, []).append(each)
        for name, found in groups.items():
            yield self._request(name, found)
        kind = f"{ABC.Callable}[[ExtFields, bytes, Instances, {self._words.rules}], Asked | None]"
        rows = " ".join(f"{code}: _{snake(name)}," for name in groups for code in self._words.codes(name))
        annotated = f"{TYPING.Final}[{ABC.Mapping}[int, {kind}]]"
        yield Constant("REQUESTS", f"{{{rows}}}", annotated, "How each request is read, by its code.")

    def _request(self, name: str, sources: list[Source]) -> FunctionDef:
        first, body = sources[0], sources[0].body
        inside = [f"header = {own(name)}.from_ext_fields(ext_fields)"]
        reads_body = any(
            isinstance(part, ex.SourceField) and part.of == "body"
            for each in sources
            for node in (*each.fields.values(), *(refusal.condition for refusal in each.refusals))
            for part in ex.walk(node)
        )
        if reads_body:
            inside.append(f"body = {own(body)}.decode(data) if data else {own(body)}()")
        assert first.instance is not None
        inside.append(f"instance = {self._asked_for(first.instance, first)}")
        made: list[str] = []
        for each in sources:
            lines = [*self._refusals(each), *self._made(each)]
            if each.condition is not None:
                made += [f"if {self._words.python(each.condition)}:", *indented(lines)]
            else:
                made += lines
        text = "\n".join(made)
        known = ["variables" if "variables." in text else "_", "local" if "local." in text else "_"]
        if known != ["_", "_"]:
            inside.append(f"{', '.join(known)} = instances.known(instance)")
        inside += made
        falls_through = sources[-1].condition is not None
        if falls_through:
            inside.append("return None")
        given = (
            "ext_fields: ExtFields",
            "data: bytes",
            "instances: Instances",
            f"rules: {self._words.rules}",
        )
        result = "Asked | None" if falls_through else "Asked"
        return FunctionDef(f"_{snake(name)}", parameters(given, inside), result, inside)

    def _refusals(self, source: Source) -> Iterator[str]:
        for each in source.refusals:
            yield f"if {self._words.python(each.condition)}:"
            code, remark = self._words.python(each.code), self._words.remark(each.remark)
            yield f"    raise {BOUND.Refused}({code}, {remark})"

    def _made(self, source: Source) -> Iterator[str]:
        """The lines that make the event; fields that others are made of are read before."""
        parts = [part for node in source.fields.values() for part in ex.walk(node)]
        read_first = {part.name for part in parts if isinstance(part, ex.EventField)}
        plain = {f"event.{name}": name for name in read_first}
        values = []
        for name, node in source.fields.items():
            text = self._words.python(node, plain)
            if name in source.needed:
                text = self._asked_for(node, source)
            if name in read_first:
                yield f"{name} = {text}"
                text = name
            values.append(f"{name}={text}")
        yield f"return Asked(instance, {self._words.event_class(source.event)}({', '.join(values)}))"

    def _asked_for(self, node: ex.Expression, source: Source) -> str:
        """A value that the request must have; a text that it says as it stands is bounded, too."""
        text, label = self._words.python(node), self._words.label(node, source)
        if not isinstance(node, ex.SourceField):
            is_safe = isinstance(node, ex.Function) and node.name == "first"
            return (
                text
                if is_safe and node is source.instance
                else f'{BOUND.asked_for}({text}, "{label}", _MISSING)'
            )
        message = self._model.messages[source.header if node.of == "header" else source.body]
        is_text = fields_of(message, self._model)[node.name].kind == "string"
        reader = BOUND.asked_text if is_text else BOUND.asked_for
        return f'{reader}({text}, "{label}", _MISSING)'

    # Answers and notices

    def _answers(self) -> Iterator[Node]:
        words, final = self._words, TYPING.Final
        answers = self._bindings.answers
        given = (
            f"effect: str, instance: str, variables: {words.variables}, event: {words.event}, local: Local"
        )
        about = "What an effect answers, by its name; the variables are those after the step."
        inside = ["return ANSWERS[effect](instance, variables, event, local)"]
        yield FunctionDef("answer_of", given, str(BOUND.Answer), inside, about)
        for form in answers.values():
            yield self._answer(form)
        kind = f"{ABC.Callable}[[str, {words.variables}, {TYPING.Any}, Local], {BOUND.Answer}]"
        rows = " ".join(f'"{name}": _{name},' for name in answers)
        about = "What each effect that answers says."
        yield Constant("ANSWERS", f"{{{rows}}}", f"{final}[{ABC.Mapping}[str, {kind}]]", about)
        steady = ", ".join(repr(name) for name, form in answers.items() if _is_steady(form))
        about = "Effects whose answers change only with the variables."
        yield Constant("STEADY", f"frozenset(({steady},))", str(final), about)
        rows = " ".join(f"{name!r}: {text!r}," for name, text in self._bindings.notes.items())
        about = "What is noted for people when an effect is done."
        yield Constant("NOTES", f"{{{rows}}}", f"{final}[{ABC.Mapping}[str, str]]", about)

    def _answer(self, form: AnswerForm) -> FunctionDef:
        assert form.code is not None
        said = [self._words.python(form.code), *self._arguments(form)]
        inside = asked_once([*self._message_lines(form), f"return {BOUND.Answer}({', '.join(said)})"])
        events = " | ".join(map(self._words.event_class, self._machine.effects()[form.effect]))
        given = (
            "instance: str",
            f"variables: {self._words.variables}",
            f"event: {events}",
            "local: Local",
        )
        return FunctionDef(f"_{form.effect}", parameters(given, inside), str(BOUND.Answer), inside)

    def _notices(self) -> Iterator[Node]:
        notices = self._bindings.notices
        if not notices:
            return
        given = ("instance: str", f"variables: {self._words.variables}")
        about = "What an effect tells peers that did not ask, by its name."
        inside = ["return NOTICES[effect](instance, variables)"]
        yield FunctionDef("notice_of", ", ".join(("effect: str", *given)), str(BOUND.Notice), inside, about)
        for form in notices.values():
            code = self._words.codes(form.header)[0]
            said = [code, *self._arguments(form)]
            inside = [*self._message_lines(form), f"return {BOUND.Notice}({', '.join(said)})"]
            yield FunctionDef(f"_{form.effect}", parameters(given, inside), str(BOUND.Notice), inside)
        rows = " ".join(f'"{name}": _{name},' for name in notices)
        kind = f"{ABC.Callable}[[str, {self._words.variables}], {BOUND.Notice}]"
        annotated = f"{TYPING.Final}[{ABC.Mapping}[str, {kind}]]"
        about = "What each effect that notifies says."
        yield Constant("NOTICES", f"{{{rows}}}", annotated, about)

    def _message_lines(self, form: AnswerForm) -> Iterator[str]:
        if form.header:
            yield f"header = {self._message(self._model.messages[form.header], form.header_fields)}"
        if form.body:
            yield f"body = {self._message(self._model.messages[form.body], form.body_fields)}"

    def _arguments(self, form: AnswerForm) -> Iterator[str]:
        if form.header:
            yield "header.to_ext_fields()"
        if form.body:
            yield "body.encode()"
        if form.remark is not None:
            yield f"remark={self._words.remark(form.remark)}"

    def _message(self, message: Message, fields: dict[str, Value] | object) -> str:
        kinds = fields_of(message, self._model)
        assert hasattr(fields, "items")
        values = []
        for name, value in fields.items():
            if isinstance(value, ex.Expression):
                text = self._words.python(value)
                if kinds[name].kind == "list":
                    text = f"sorted({text})"
                elif kinds[name].kind == "map":
                    text = f"dict(sorted({text}.items()))"
            else:
                text = self._message(self._model.messages[kinds[name].name], value)
            values.append(f"{name}={text}")
        return f"{own(message.name)}({', '.join(values)})"


def _is_steady(form: AnswerForm) -> bool:
    """Whether an answer is made of the variables and the instance alone."""
    nodes: list[ex.Expression] = []

    def gather(values: object) -> None:
        for value in values.values() if hasattr(values, "values") else ():
            nodes.append(value) if isinstance(value, ex.Expression) else gather(value)

    gather(form.header_fields)
    gather(form.body_fields)
    for condition, text in form.remark.choices if form.remark is not None else ():
        nodes.extend([condition] if condition is not None else [])
        nodes.extend(_expressions(text))
    parts = [part for node in nodes for part in ex.walk(node)]
    return not any(isinstance(part, ex.EventField | ex.SourceField) for part in parts)


def _expressions(text: Text) -> Iterator[ex.Expression]:
    for part in text.parts:
        if isinstance(part, ex.Expression):
            yield part
