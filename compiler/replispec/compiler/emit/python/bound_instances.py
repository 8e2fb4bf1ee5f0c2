"""Bindings of a machine with many instances, as a controller runs it: requests, answers, notices, records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from replispec.compiler.emit.python.binding_words import (
    BindingWords,
    asked_once,
    indented,
    parameters,
    snake,
)
from replispec.compiler.emit.python.bound_claims import claim_lines
from replispec.compiler.emit.python.bound_records import record_lines
from replispec.compiler.emit.python.machines import class_name, docstring
from replispec.compiler.language import expressions as ex
from replispec.compiler.language.check import type_of
from replispec.compiler.model.binding import AnswerForm, Source, Text, Value
from replispec.compiler.model.machine import Machine
from replispec.compiler.model.message import Model
from replispec.compiler.read.answers import effect_scope
from replispec.compiler.read.binding_parts import fields_of


class InstanceBindings:
    """Writes the bindings of one machine whose requests name an instance."""

    def __init__(self, machine: Machine, model: Model, words: BindingWords) -> None:
        self._machine = machine
        self._bindings = machine.bindings
        self._model = model
        self._words = words

    def lines(self) -> Iterator[str]:
        """The lines of the module, imports aside."""
        yield from self._instances()
        yield from self._requests()
        yield from self._answers()
        yield from self._notices()
        yield from claim_lines(self._machine, self._words)
        if self._bindings.log is not None:
            yield from record_lines(self._machine, self._bindings.log, self._words)

    # Requests

    def _instances(self) -> Iterator[str]:
        yield "@dataclass(frozen=True, slots=True)"
        yield "class Asked:"
        yield from indented(docstring("The event that a request is, and the instance that it is about."))
        yield ""
        yield "    instance: str"
        yield "    event: Event"
        yield ""
        yield "class Instances(Protocol):"
        yield from indented(docstring("The instances of the machine, as the role knows them."))
        yield ""
        yield "    def known(self, instance: str, /) -> tuple[Variables, Local]:"
        yield '        """What is remembered of an instance, and what only the role knows of it."""'
        yield "        ..."
        yield ""
        code = self._words.python(self._bindings.missing) if self._bindings.missing else "0"
        yield f"_MISSING: Final = {code}"
        yield ""

    def _requests(self) -> Iterator[str]:
        yield "def event_of("
        yield "    code: int, ext_fields: ExtFields, data: bytes, instances: Instances, rules: Rules"
        yield ") -> Asked | None:"
        about = "The event that a request with this code and body is; None when it is none."
        more = (
            "Raises RemoteProtocolError when it cannot be read, and Refused with the answer when something\n"
            "is missing or the request is refused whatever is remembered."
        )
        yield from indented(docstring(about, more))
        yield "    read = REQUESTS.get(code)"
        yield "    return None if read is None else read(ext_fields, data, instances, rules)"
        yield ""
        groups: dict[str, list[Source]] = {}
        for each in self._bindings.requests:
            groups.setdefault(each.header, []).append(each)
        for name, found in groups.items():
            yield from self._request(name, found)
        kind = "Callable[[ExtFields, bytes, Instances, Rules], Asked | None]"
        yield f"REQUESTS: Final[Mapping[int, {kind}]] = MappingProxyType({{"
        for name in groups:
            for code in self._words.codes(name):
                yield f"    {code}: _{snake(name)},"
        yield "})"
        yield '"""How each request is read, by its code."""'
        yield ""

    def _request(self, name: str, sources: list[Source]) -> Iterator[str]:
        first, body = sources[0], sources[0].body
        inside = [f"header = {name}.from_ext_fields(ext_fields)"]
        if any(isinstance(part, ex.SourceField) and part.of == "body" for part in _parts(sources)):
            inside.append(f"body = {body}.decode(data) if data else {body}()")
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
        given = ("ext_fields: ExtFields", "data: bytes", "instances: Instances", "rules: Rules")
        result = "Asked | None" if falls_through else "Asked"
        yield f"def _{snake(name)}({parameters(given, inside)}) -> {result}:"
        yield from indented(inside)
        yield ""

    def _refusals(self, source: Source) -> Iterator[str]:
        for each in source.refusals:
            yield f"if {self._words.python(each.condition)}:"
            yield f"    raise Refused({self._words.python(each.code)}, {self._words.remark(each.remark)})"

    def _made(self, source: Source) -> Iterator[str]:
        """The lines that make the event; fields that others are made of are read before."""
        parts = [part for node in source.fields.values() for part in ex.walk(node)]
        read_first = {part.name for part in parts if isinstance(part, ex.EventField)}
        plain = {f"event.{name}": name for name in read_first}
        values: dict[str, str] = {}
        for name in ex.in_order(source.fields):
            node = source.fields[name]
            text = self._words.python(node, plain)
            if name in source.needed:
                text = self._asked_for(node, source, plain)
            if name in read_first:
                yield f"{name} = {text}"
                text = name
            values[name] = text
        given = ", ".join(f"{name}={values[name]}" for name in source.fields)
        yield f"return Asked(instance, {class_name(source.event)}({given}))"

    def _asked_for(self, node: ex.Expression, source: Source, plain: Mapping[str, str] | None = None) -> str:
        """A value that the request must have; a text that it says as it stands is bounded, too."""
        text, label = self._words.python(node, plain), self._words.label(node, source)
        if not isinstance(node, ex.SourceField):
            is_safe = isinstance(node, ex.Function) and node.name == "first"
            return text if is_safe and node is source.instance else f'asked_for({text}, "{label}", _MISSING)'
        message = self._model.messages[source.header if node.of == "header" else source.body]
        is_text = fields_of(message, self._model)[node.name].kind == "string"
        return f'{"asked_text" if is_text else "asked_for"}({text}, "{label}", _MISSING)'

    # Answers and notices

    def _answers(self) -> Iterator[str]:
        yield "def answer_of("
        yield "    effect: str, instance: str, variables: Variables, event: Event, local: Local"
        yield ") -> Answer:"
        about = "What an effect answers, by its name; the variables are those after the step."
        yield from indented(docstring(about))
        yield "    return ANSWERS[effect](instance, variables, event, local)"
        yield ""
        for form in self._bindings.answers.values():
            yield from self._answer(form)
        kind = "Callable[[str, Variables, Any, Local], Answer]"
        yield f"ANSWERS: Final[Mapping[str, {kind}]] = MappingProxyType({{"
        for name in self._bindings.answers:
            yield f'    "{name}": _{name},'
        yield "})"
        yield '"""What each effect that answers says."""'
        yield ""
        steady = [name for name, form in self._bindings.answers.items() if _is_steady(form)]
        yield f"STEADY: Final = frozenset(({', '.join(map(repr, steady))},))"
        yield '"""Effects whose answers change only with the variables."""'
        yield ""
        yield "NOTES: Final[Mapping[str, str]] = MappingProxyType({"
        for name, text in self._bindings.notes.items():
            yield f"    {name!r}: {text!r},"
        yield "})"
        yield '"""What is noted for people when an effect is done."""'
        yield ""

    def _answer(self, form: AnswerForm) -> Iterator[str]:
        assert form.code is not None
        said = [self._words.python(form.code), *self._arguments(form)]
        inside = asked_once([*self._message_lines(form), f"return Answer({', '.join(said)})"])
        events = " | ".join(map(class_name, self._machine.effects()[form.effect]))
        given = ("instance: str", "variables: Variables", f"event: {events}", "local: Local")
        yield f"def _{form.effect}({parameters(given, inside)}) -> Answer:"
        yield from indented(inside)
        yield ""

    def _notices(self) -> Iterator[str]:
        if not self._bindings.notices:
            return
        yield "def notice_of(effect: str, instance: str, variables: Variables) -> Notice:"
        yield from indented(docstring("What an effect tells peers that did not ask, by its name."))
        yield "    return NOTICES[effect](instance, variables)"
        yield ""
        for form in self._bindings.notices.values():
            code = self._words.codes(form.header)[0]
            said = [code, *self._arguments(form)]
            inside = [*self._message_lines(form), f"return Notice({', '.join(said)})"]
            given = ("instance: str", "variables: Variables")
            yield f"def _{form.effect}({parameters(given, inside)}) -> Notice:"
            yield from indented(inside)
            yield ""
        yield "NOTICES: Final[Mapping[str, Callable[[str, Variables], Notice]]] = MappingProxyType({"
        for name in self._bindings.notices:
            yield f'    "{name}": _{name},'
        yield "})"
        yield '"""What each effect that notifies says."""'
        yield ""

    def _message_lines(self, form: AnswerForm) -> Iterator[str]:
        if form.header:
            yield f"header = {self._message(form, form.header, form.header_fields)}"
        if form.body:
            yield f"body = {self._message(form, form.body, form.body_fields)}"

    def _arguments(self, form: AnswerForm) -> Iterator[str]:
        if form.header:
            yield "header.to_ext_fields()"
        if form.body:
            yield "body.encode()"
        if form.remark is not None:
            yield f"remark={self._words.remark(form.remark)}"

    def _message(self, form: AnswerForm, message: str, fields: Mapping[str, Value]) -> str:
        kinds = fields_of(self._model.messages[message], self._model)
        values = []
        for name, value in fields.items():
            if isinstance(value, ex.Expression):
                text = self._said(value, form)
            else:
                text = self._message(form, kinds[name].name, value)
            values.append(f"{name}={text}")
        return f"{message}({', '.join(values)})"

    def _said(self, node: ex.Expression, form: AnswerForm) -> str:
        """A value as a message has it: a set ascending, a list as it is, a map by ascending key."""
        text, local = self._words.python(node), self._bindings.local
        known = {name: each.type for name, each in local.items()}
        kind = type_of(node, effect_scope(self._machine, self._model, known, form.effect), form.place)
        shapes = {"set": f"sorted({text})", "list": f"list({text})", "map": f"dict(sorted({text}.items()))"}
        said = shapes.get(kind.kind, text)
        return f"{said} if {text} is not None else None" if kind.optional and said != text else said


def _parts(sources: Iterable[Source]) -> Iterator[ex.Expression]:
    """All parts of what is read to make events of one request."""
    for each in sources:
        nodes = [*each.fields.values(), each.condition, each.instance]
        for refusal in each.refusals:
            nodes.append(refusal.condition)
            for condition, text in refusal.remark.choices:
                nodes += [condition, *_expressions(text)]
        for node in nodes:
            if node is not None:
                yield from ex.walk(node)


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
