"""Bindings of a machine with many instances, as a controller runs it: requests, answers, notices, records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from replispec.compiler.emit.python.binding_words import (
    BindingWords,
    asked_once,
    indented,
    parameters,
)
from replispec.compiler.emit.python.bound_claims import claim_lines
from replispec.compiler.emit.python.bound_records import record_lines
from replispec.compiler.emit.python.bound_releases import (
    PARAMETER,
    chosen_reader,
    readers_of,
    releases_text,
    request_tables,
)
from replispec.compiler.emit.python.bound_values import expressions_in, message_text
from replispec.compiler.emit.python.expressions import strings
from replispec.compiler.emit.python.machines import bare_words, class_name, docstring
from replispec.compiler.language import expressions as ex
from replispec.compiler.model.binding import AnswerForm, Source, Text, Value
from replispec.compiler.model.machine import Machine
from replispec.compiler.model.message import Model
from replispec.compiler.read.binding_parts import fields_of


class InstanceBindings:
    """Writes the bindings of one machine whose requests name an instance."""

    def __init__(self, machine: Machine, model: Model, words: BindingWords) -> None:
        self._machine = machine
        self._bindings = machine.bindings
        self._model = model
        self._words = words
        # A machine without instances answers for itself: nothing names which one is asked.
        self._is_one = not machine.bindings.has_instances
        local = ["local: Local"] if machine.bindings.local or not self._is_one else []
        heard = [node for each in machine.bindings.requests for node in _heard(each)]
        said = [node for form in machine.bindings.answers.values() for node in _nodes(form)]
        rules = "rules: Rules"
        self._readers = [*local, *([rules] if _are_ruled(heard) else [])]
        if not self._is_one:
            self._readers = ["instances: Instances", rules]
        self._asked = "Event" if self._is_one else "Asked"
        self._given = [*([] if self._is_one else ["instance: str"]), "variables: Variables"]
        self._knows = [*local, *([rules] if _are_ruled(said) else [])]

    def lines(self) -> Iterator[str]:
        """The lines of the module, imports aside."""
        yield from self._instances()
        yield from self._requests()
        yield from self._answers()
        yield from self._notices()
        if not self._is_one:
            yield from claim_lines(self._machine, self._words)
        if self._bindings.log is not None:
            yield from record_lines(self._machine, self._bindings.log, self._words)

    # Requests

    def _instances(self) -> Iterator[str]:
        if not self._is_one:
            yield from self._instance_classes()
        code = self._words.python(self._bindings.missing) if self._bindings.missing else "0"
        yield f"_MISSING: Final = {code}"
        yield ""

    def _instance_classes(self) -> Iterator[str]:
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

    def _requests(self) -> Iterator[str]:
        yield "def event_of("
        release = f", {PARAMETER}" if self._bindings.has_releases else ""
        given = "".join(f", {each}" for each in self._readers)
        yield f"    code: int, ext_fields: ExtFields, data: bytes{given}{release}"
        yield f") -> {self._asked} | None:"
        about = "The event that a request with this code and body is; None when it is none."
        more = (
            "Raises RemoteProtocolError when it cannot be read, and Refused with the answer when something\n"
            "is missing or the request is refused whatever is remembered."
        )
        yield from indented(docstring(about, more))
        yield from chosen_reader(self._machine)
        handed = "".join(f", {each.partition(':')[0]}" for each in self._readers)
        yield f"    return None if read is None else read(ext_fields, data{handed})"
        yield ""
        readers = readers_of(self._bindings.requests)
        for name, found in readers.items():
            yield from self._request(name, found)
        kinds = "".join(f", {each.partition(': ')[2]}" for each in self._readers)
        kind = f"Callable[[ExtFields, bytes{kinds}], {self._asked} | None]"
        yield from request_tables(readers, kind, self._machine, self._words)

    def _request(self, name: str, sources: list[Source]) -> Iterator[str]:
        first, body = sources[0], sources[0].body
        header = f"header = {first.header}.from_ext_fields(ext_fields)"
        inside = [header]
        reads_body = any(
            isinstance(part, ex.SourceField) and part.of == "body"
            for each in sources
            for node in (*each.fields.values(), *(refusal.condition for refusal in each.refusals))
            for part in ex.walk(node)
        )
        if reads_body:
            inside.append(f"body = {body}.decode(data) if data else {body}()")
        if first.instance is not None:
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
        if known != ["_", "_"] and not self._is_one:
            inside.append(f"{', '.join(known)} = instances.known(instance)")
        inside += made
        if "header" not in bare_words("\n".join(inside[1:])):
            inside.remove(header)
        falls_through = sources[-1].condition is not None
        if falls_through:
            inside.append("return None")
        given = ("ext_fields: ExtFields", "data: bytes", *self._readers)
        result = f"{self._asked} | None" if falls_through else self._asked
        yield f"def {name}({parameters(given, inside)}) -> {result}:"
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
        values = []
        for name, node in source.fields.items():
            text = self._words.python(node, plain)
            if name in source.needed:
                text = self._asked_for(node, source)
            if name in read_first:
                yield f"{name} = {text}"
                text = name
            values.append(f"{name}={text}")
        made = f"{class_name(source.event)}({', '.join(values)})"
        yield f"return {made}" if self._is_one else f"return Asked(instance, {made})"

    def _asked_for(self, node: ex.Expression, source: Source) -> str:
        """A value that the request must have; a text that it says as it stands is bounded, too."""
        text, label = self._words.python(node), self._words.label(node, source)
        if not isinstance(node, ex.SourceField):
            is_safe = isinstance(node, ex.Function) and node.name == "first"
            return text if is_safe and node is source.instance else f'asked_for({text}, "{label}", _MISSING)'
        message = self._model.messages[source.header if node.of == "header" else source.body]
        is_text = fields_of(message, self._model)[node.name].kind == "string"
        return f'{"asked_text" if is_text else "asked_for"}({text}, "{label}", _MISSING)'

    # Answers and notices

    def _answers(self) -> Iterator[str]:
        yield "def answer_of("
        given = [*self._given, "event: Event", *self._knows]
        release = f", {PARAMETER}" if self._bindings.answers_by_release else ""
        yield f"    effect: str, {', '.join(given)}{release}"
        yield ") -> Answer:"
        about = "What an effect answers, by its name; the variables are those after the step."
        yield from indented(docstring(about))
        arguments = ", ".join(each.partition(":")[0] for each in given)
        if self._bindings.answers_by_release:
            yield "    answer = of_release(_ANSWERS_BY_RELEASE.get(effect, ()), release) or ANSWERS[effect]"
            yield f"    return answer({arguments})"
        else:
            yield f"    return ANSWERS[effect]({arguments})"
        yield ""
        for form in self._bindings.answers.values():
            yield from self._answer(form, f"_{form.effect}")
            for number, each in enumerate(form.by_release.values()):
                yield from self._answer(each, f"_{form.effect}_{number}")
        kinds = [each.partition(": ")[2] for each in (*self._given, "event: Any", *self._knows)]
        kind = f"Callable[[{', '.join(kinds)}], Answer]"
        yield f"ANSWERS: Final[Mapping[str, {kind}]] = MappingProxyType({{"
        for name in self._bindings.answers:
            yield f'    "{name}": _{name},'
        yield "})"
        yield '"""What each effect that answers says."""'
        yield ""
        yield from self._answers_by_release(kind)
        steady = [name for name, form in self._bindings.answers.items() if _is_steady(form)]
        yield f"STEADY: Final[frozenset[str]] = frozenset({strings(tuple(steady))})"
        yield '"""Effects whose answers change only with the variables."""'
        yield ""
        if not self._bindings.notes:
            return
        yield "NOTES: Final[Mapping[str, str]] = MappingProxyType({"
        for name, text in self._bindings.notes.items():
            yield f"    {name!r}: {text!r},"
        yield "})"
        yield '"""What is noted for people when an effect is done."""'
        yield ""

    def _answers_by_release(self, kind: str) -> Iterator[str]:
        if not self._bindings.answers_by_release:
            return
        kinds = f"tuple[tuple[Releases, {kind}], ...]"
        yield f"_ANSWERS_BY_RELEASE: Final[Mapping[str, {kinds}]] = MappingProxyType({{"
        for name, form in self._bindings.answers.items():
            rows = [
                f"({releases_text(each.releases)}, _{name}_{number})"
                for number, each in enumerate(form.by_release.values())
                if each.releases is not None
            ]
            if rows:
                yield f'    "{name}": ({", ".join(rows)},),'
        yield "})"
        yield ""

    def _answer(self, form: AnswerForm, function: str) -> Iterator[str]:
        assert form.code is not None
        said = [self._words.python(form.code), *self._arguments(form)]
        inside = asked_once([*self._message_lines(form), f"return Answer({', '.join(said)})"])
        events = " | ".join(map(class_name, self._machine.effects()[form.effect]))
        given = (*self._given, f"event: {events}", *self._knows)
        yield f"def {function}({parameters(given, inside)}) -> Answer:"
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
        if form.header_fields:
            yield f"header = {self._said(form.header, form.header_fields)}"
        if form.body:
            yield f"body = {self._said(form.body, form.body_fields)}"

    def _said(self, message: str, fields: Mapping[str, Value]) -> str:
        return message_text(self._model.messages[message], fields, self._model, self._words)

    def _arguments(self, form: AnswerForm) -> Iterator[str]:
        if form.header_fields:
            yield "header.to_ext_fields()"
        if form.body:
            yield "body.encode()" if form.header_fields else "body=body.encode()"
        if form.remark is not None:
            yield f"remark={self._words.remark(form.remark)}"


def _is_steady(form: AnswerForm) -> bool:
    """Whether an answer is made of the variables and the instance alone, for peers of all releases."""
    if form.by_release:
        return False
    parts = [part for node in _nodes(form) for part in ex.walk(node)]
    return not any(isinstance(part, ex.EventField | ex.SourceField | ex.LocalCall) for part in parts)


def _are_ruled(nodes: Iterable[ex.Expression | None]) -> bool:
    """Whether any of these asks a rule."""
    return any(isinstance(part, ex.Rule) for node in nodes if node is not None for part in ex.walk(node))


def _heard(source: Source) -> list[ex.Expression | None]:
    """All that a request is read and refused by."""
    refusals = [each.condition for each in source.refusals]
    return [*source.fields.values(), source.condition, source.instance, *refusals]


def _nodes(form: AnswerForm) -> list[ex.Expression]:
    """All that an answer is made of."""
    nodes = [*expressions_in(form.header_fields.values()), *expressions_in(form.body_fields.values())]
    for condition, text in form.remark.choices if form.remark is not None else ():
        nodes.extend([condition] if condition is not None else [])
        nodes.extend(_expressions(text))
    return nodes


def _expressions(text: Text) -> Iterator[ex.Expression]:
    for part in text.parts:
        if isinstance(part, ex.Expression):
            yield part
