"""Bindings of a machine with many instances, as a controller runs it: requests, answers, notices, records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from replispec.compiler.emit.python.binding_words import (
    BOUND,
    BindingWords,
    asked_once,
    indented,
    parameters,
    read_once,
)
from replispec.compiler.emit.python.bound_claims import claim_nodes
from replispec.compiler.emit.python.bound_records import record_nodes
from replispec.compiler.emit.python.bound_releases import (
    RELEASES,
    chosen_reader,
    readers_of,
    release_parameter,
    releases_text,
    request_tables,
)
from replispec.compiler.emit.python.bound_values import message_text
from replispec.compiler.emit.python.expressions import bare_words, strings
from replispec.compiler.emit.python.tree import (
    ABC,
    PRIMITIVES,
    TYPING,
    Class,
    Constant,
    FunctionDef,
    Names,
    Node,
    Ref,
    own,
)
from replispec.compiler.model import expressions as ex
from replispec.compiler.model.binding import AnswerForm, Source, Text, Value, expressions_in
from replispec.compiler.model.machine import MachineSpec
from replispec.compiler.model.message import Model
from replispec.compiler.model.value_types import fields_of

_SHARED_FROM: Final = 4
"""Lines of a reader that is worth sharing."""


class InstanceBindings:
    """Writes the bindings of one machine whose requests name an instance."""

    def __init__(self, machine: MachineSpec, model: Model, words: BindingWords) -> None:
        self._machine = machine
        self._bindings = machine.bindings
        self._model = model
        self._words = words
        # A machine without instances answers for itself: nothing names which one is asked.
        self._is_one = not machine.bindings.has_instances
        local = ["local: Local"] if machine.bindings.local or not self._is_one else []
        heard = [node for each in machine.bindings.requests for node in _heard(each)]
        said = [node for form in machine.bindings.answers.values() for node in _nodes(form)]
        rules = f"rules: {words.rules}"
        self._readers = [*local, *([rules] if _are_ruled(heard) else [])]
        if not self._is_one:
            self._readers = ["instances: Instances", rules]
        self._reads_code = any(map(_reads_code, heard))
        if self._reads_code:
            self._readers.insert(0, "code: int")
        self._asked = str(words.event) if self._is_one else "Asked"
        self._given = [*([] if self._is_one else ["instance: str"]), f"variables: {words.variables}"]
        self._knows = [*local, *([rules] if _are_ruled(said) else [])]

    def nodes(self) -> Iterator[Node]:
        """What the module defines, beside what every module of bindings has."""
        requests = list(self._requests()) if self._bindings.requests else []
        if any("_MISSING" in line for node in requests for line in node.lines()):
            code = self._words.python(self._bindings.missing) if self._bindings.missing else "0"
            yield Constant("_MISSING", code, str(TYPING.Final))
        if requests and not self._is_one:
            yield from self._instance_classes()
            yield self._event_of()
        yield from requests
        if not self._is_one:
            yield self._answer_of()
        yield from self._answers()
        if self._is_one:
            yield self._bound()
        yield from self._notices()
        if not self._is_one:
            yield from claim_nodes(self._machine, self._words)
        if self._bindings.log is not None:
            yield from record_nodes(self._machine, self._bindings.log, self._words)

    # Requests

    def _instance_classes(self) -> Iterator[Class]:
        yield Class(
            "Asked",
            "The event that a request is, and the instance that it is about.",
            decorators=[str(Names(f"{PRIMITIVES}.immutable").immutable)],
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

    def _event_of(self) -> FunctionDef:
        about = (
            "The event that a request with this code and body is; None when it is none.\n\n"
            "Raises RemoteProtocolError when it cannot be read, and Refused with the answer when something\n"
            "is missing or the request is refused whatever is remembered."
        )
        handed = "".join(f", {each.partition(':')[0]}" for each in self._readers)
        inside = [
            *chosen_reader(self._machine),
            f"return None if read is None else read(ext_fields, data{handed})",
        ]
        given = ["code: int", "ext_fields: ExtFields", "data: bytes", *self._readers[self._reads_code :]]
        given.append(release_parameter(is_used=self._bindings.has_releases))
        return FunctionDef("event_of", ", ".join(given), f"{self._asked} | None", inside, about)

    def _requests(self) -> Iterator[Node]:
        readers = readers_of(self._bindings.requests)
        yield from _once_each([self._request(name, found) for name, found in readers.items()], self._readers)
        kinds = "".join(f", {each.partition(': ')[2]}" for each in self._readers)
        kind = f"{ABC.Callable}[[ExtFields, bytes{kinds}], {self._asked} | None]"
        yield from request_tables(readers, kind, self._machine, self._words)

    def _request(self, name: str, sources: list[Source]) -> FunctionDef:
        first, body = sources[0], sources[0].body
        header = f"header = {own(first.header)}.from_ext_fields(ext_fields)"
        inside = [header]
        nodes = [node for each in sources for node in _heard(each) if node is not None]
        summed = self._model.messages[first.header].body_checksum
        decoded = f"body = {own(body)}.decode(data) if data else {own(body)}()"
        reads_body = any(self._words.reads("body", node) for node in nodes)
        if reads_body and summed is not None and summed.checksum is not None:
            said = f"header.{summed.name}, {summed.checksum.mask}"
            inside.append(f"{BOUND.check_body}(data, {said})")
        # A request that is refused whatever its body says need not have one that can be read.
        is_refused_by_body = any(self._words.reads("body", node) for node in _refused_by(first))
        is_late = reads_body and len(sources) == 1 and not is_refused_by_body
        if reads_body and not is_late:
            inside.append(decoded)
        if first.instance is not None:
            inside.append(f"instance = {self._asked_for(first.instance, first)}")
        made: list[str] = []
        for each in sources:
            lines = [*self._refusals(each), *[decoded] * is_late, *self._made(each)]
            if each.condition is not None:
                made += [f"if {self._words.python(each.condition)}:", *indented(lines)]
            else:
                made += lines
        if self._is_one:
            made = read_once(made, nodes, self._words)
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
        return FunctionDef(name, parameters(given, inside), result, inside)

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
        made = f"{self._words.event_class(source.event)}({given})"
        yield f"return {made}" if self._is_one else f"return Asked(instance, {made})"

    def _asked_for(self, node: ex.Expression, source: Source, plain: Mapping[str, str] | None = None) -> str:
        """A value that the request must have; a text that it says as it stands is bounded, too."""
        text, label = self._words.python(node, plain), self._words.label(node, source)
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

    def _answer_of(self) -> FunctionDef:
        given = [*self._given, f"event: {self._words.event}", *self._knows]
        about = "What an effect answers, by its name; the variables are those after the step."
        arguments = ", ".join(each.partition(":")[0] for each in given)
        inside = [f"return ANSWERS[effect]({arguments})"]
        if self._bindings.answers_by_release:
            choices = "_ANSWERS_BY_RELEASE.get(effect, ())"
            inside = [
                f"answer = {RELEASES.of_release}({choices}, release) or ANSWERS[effect]",
                f"return answer({arguments})",
            ]
        given.append(release_parameter(is_used=self._bindings.answers_by_release))
        return FunctionDef("answer_of", ", ".join(("effect: str", *given)), str(BOUND.Answer), inside, about)

    def _bound(self) -> FunctionDef:
        """The machine with its bindings, for the runner of all that answer for themselves."""
        known = dict.fromkeys(each for each in (*self._readers, *self._knows) if each != "code: int")
        steady = self._steady()
        said = [
            str(Ref(self._words.event.module, "MACHINE")),
            "REQUESTS" if self._bindings.requests else "{}",
            "ANSWERS",
            *([f"steady=frozenset({strings(steady)})"] if steady else []),
            *_handed("reads", [each for each in self._readers if each != "code: int"]),
            *_handed("says", self._knows),
            *(["reads_code=True"] if self._reads_code else []),
            *(["released=RELEASED"] if self._bindings.requests and self._bindings.has_releases else []),
            *(["answered=_ANSWERS_BY_RELEASE"] if self._bindings.answers_by_release else []),
        ]
        inside = [f"return {BOUND.Bound}({', '.join(said)})"]
        about = "The machine with these bindings, as a role runs it that knows this."
        return FunctionDef("bound", ", ".join(known), str(BOUND.Bound), inside, about)

    def _steady(self) -> tuple[str, ...]:
        return tuple(name for name, form in self._bindings.answers.items() if _read_by(form) == set())

    def _yes_or_no(self, form: AnswerForm) -> tuple[str, ...] | None:
        """What an answer reads beside the variables, if that is nothing but yes or no."""
        read = _read_by(form)
        local = self._bindings.local
        if read is None or any(local[name].type.kind != "bool" or local[name].of for name in read):
            return None
        return tuple(sorted(read))

    def _answers(self) -> Iterator[Node]:
        final, answers = TYPING.Final, self._bindings.answers
        for form in answers.values():
            yield self._answer(form, f"_{form.effect}")
            for number, each in enumerate(form.by_release.values()):
                yield self._answer(each, f"_{form.effect}_{number}")
        kinds = [each.partition(": ")[2] for each in (*self._given, f"event: {TYPING.Any}", *self._knows)]
        kind = f"{ABC.Callable}[[{', '.join(kinds)}], {BOUND.Answer}]"
        rows = " ".join(f'"{name}": _{name},' for name in answers)
        about = "What each effect that answers says."
        yield Constant("ANSWERS", f"{{{rows}}}", f"{final}[{ABC.Mapping}[str, {kind}]]", about)
        yield from self._answers_by_release(kind)
        if not self._is_one:
            about = "Effects whose answers change only with the variables, and with these yes or no."
            kept = {name: self._yes_or_no(form) for name, form in answers.items()}
            rows = " ".join(f'"{name}": {strings(read)},' for name, read in kept.items() if read is not None)
            kind = f"{final}[{ABC.Mapping}[str, tuple[str, ...]]]"
            yield Constant("STEADY", f"{{{rows}}}", kind, about)
        if self._bindings.notes:
            rows = " ".join(f"{name!r}: {text!r}," for name, text in self._bindings.notes.items())
            about = "What is noted for people when an effect is done."
            yield Constant("NOTES", f"{{{rows}}}", f"{final}[{ABC.Mapping}[str, str]]", about)

    def _answers_by_release(self, kind: str) -> Iterator[Constant]:
        if not self._bindings.answers_by_release:
            return
        rows = []
        for name, form in self._bindings.answers.items():
            choices = [
                f"({releases_text(each.releases)}, _{name}_{number})"
                for number, each in enumerate(form.by_release.values())
                if each.releases is not None
            ]
            if choices:
                rows.append(f'"{name}": ({", ".join(choices)},),')
        kinds = f"tuple[tuple[{RELEASES.Releases}, {kind}], ...]"
        annotated = f"{TYPING.Final}[{ABC.Mapping}[str, {kinds}]]"
        yield Constant("_ANSWERS_BY_RELEASE", f"{{{' '.join(rows)}}}", annotated)

    def _answer(self, form: AnswerForm, function: str) -> FunctionDef:
        assert form.code is not None
        said = [self._words.python(form.code), *self._arguments(form)]
        inside = asked_once([*self._message_lines(form), f"return {BOUND.Answer}({', '.join(said)})"])
        events = " | ".join(map(self._words.event_class, self._machine.effects()[form.effect]))
        given = (*self._given, f"event: {events}", *self._knows)
        return FunctionDef(function, parameters(given, inside), str(BOUND.Answer), inside)

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
        yield from self._told_instead(given)

    def _told_instead(self, given: tuple[str, ...]) -> Iterator[Node]:
        """What some of those that are notified are told instead."""
        forms = [each for each in self._bindings.notices.values() if each.to is not None]
        for form in forms:
            assert form.to is not None
            assert form.instead is not None
            notice = [*self._message_lines(form.instead)]
            code = self._words.codes(form.header)[0]
            said = ", ".join([code, *self._arguments(form.instead)])
            inside = [
                f"found: dict[int, {BOUND.Notice}] = {{}}",
                f"for each in sorted({self._words.python(form.to)}):",
                *indented([*notice, f"found[each] = {BOUND.Notice}({said})"]),
                "return found",
            ]
            result = f"{ABC.Mapping}[int, {BOUND.Notice}]"
            about = f"Who is told something else by {form.effect}, and what."
            yield FunctionDef(f"{form.effect}_instead", parameters(given, inside), result, inside, about)

    def _message_lines(self, form: AnswerForm) -> Iterator[str]:
        if form.header_fields:
            yield f"header = {self._said(form.header, form.header_fields)}"
        if form.body and form.whole is None:
            yield f"body = {self._said(form.body, form.body_fields)}"

    def _said(self, message: str, fields: Mapping[str, Value]) -> str:
        return message_text(self._model.messages[message], fields, self._model, self._words)

    def _arguments(self, form: AnswerForm) -> Iterator[str]:
        if form.header_fields:
            yield "header.to_ext_fields()"
        if form.body or form.whole is not None:
            yield self._bytes(form) if form.header_fields else f"body={self._bytes(form)}"
        if form.remark is not None:
            yield f"remark={self._words.remark(form.remark)}"

    def _bytes(self, form: AnswerForm) -> str:
        """The bytes of the body that an answer has."""
        if form.whole is None:
            return "body.encode()"
        text = self._words.python(form.whole)
        return f"{BOUND.encoded}({text})" if form.body else text


def _once_each(readers: list[FunctionDef], handed: list[str]) -> Iterator[FunctionDef]:
    """The readers of requests; what several do that differ only in the header is one function."""
    alike: dict[tuple[str, ...], list[FunctionDef]] = {}
    for each in readers:
        is_long = each.body[0].startswith("header = ") and len(each.body) > _SHARED_FROM
        alike.setdefault(tuple(each.body[1:]) if is_long else (each.name,), []).append(each)
    for inside, found in alike.items():
        if len(found) == 1:
            yield from found
            continue
        headers = [each.body[0].removeprefix("header = ") for each in found]
        kinds = " | ".join(each.partition(".")[0] for each in headers)
        given = (f"header: {kinds}", "data: bytes", *handed)
        shared = f"_read{found[-1].name}"
        yield FunctionDef(shared, parameters(given, inside), found[0].returns, inside)
        passed = "".join(f", {each.partition(':')[0]}" for each in given[1:])
        for each, header in zip(found, headers, strict=True):
            body = [f"return {shared}({header}{passed})"]
            yield FunctionDef(
                each.name,
                parameters(("ext_fields: ExtFields", "data: bytes", *handed), body),
                each.returns,
                body,
            )


def _handed(name: str, given: Iterable[str]) -> list[str]:
    """What readers or answers are handed, as a tuple of these parameters."""
    names = "".join(f"{each.partition(':')[0]}, " for each in given)
    return [f"{name}=({names})"] if names else []


def _read_by(form: AnswerForm) -> set[str] | None:
    """What an answer reads of `local` beside the variables and the instance; None where it reads more, or
    says another thing to peers of another release."""
    parts = [part for node in _nodes(form) for part in ex.walk(node)]
    read = {part.name for part in parts if isinstance(part, ex.SourceField) and part.of == "local"}
    others = (
        isinstance(part, ex.EventField | ex.LocalCall)
        or (isinstance(part, ex.SourceField) and part.of != "local")
        for part in parts
    )
    return None if form.by_release or any(others) else read


def _are_ruled(nodes: Iterable[ex.Expression | None]) -> bool:
    """Whether any of these asks a rule."""
    return any(isinstance(part, ex.Rule) for node in nodes if node is not None for part in ex.walk(node))


def _reads_code(node: ex.Expression | None) -> bool:
    return node is not None and ex.Variable("code") in ex.walk(node)


def _refused_by(source: Source) -> list[ex.Expression | None]:
    """All that decides before the event is made: whose it is, and whether it is refused."""
    made = {id(node) for node in source.fields.values()}
    return [node for node in _heard(source) if id(node) not in made]


def _heard(source: Source) -> list[ex.Expression | None]:
    """All that a request is read and refused by."""
    nodes = [*source.fields.values(), source.condition, source.instance]
    for refusal in source.refusals:
        nodes.append(refusal.condition)
        for condition, text in refusal.remark.choices:
            nodes += [condition, *_expressions(text)]
    return nodes


def _nodes(form: AnswerForm) -> list[ex.Expression]:
    """All that an answer is made of."""
    nodes = [*expressions_in(form.header_fields.values()), *expressions_in(form.body_fields.values())]
    nodes += [form.whole] if form.whole is not None else []
    for condition, text in form.remark.choices if form.remark is not None else ():
        nodes.extend([condition] if condition is not None else [])
        nodes.extend(_expressions(text))
    return nodes


def _expressions(text: Text) -> Iterator[ex.Expression]:
    for part in text.parts:
        if isinstance(part, ex.Expression):
            yield part
