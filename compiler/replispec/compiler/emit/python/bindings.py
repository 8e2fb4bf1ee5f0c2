"""Python modules of bindings: the event of a request, the event that an answer is.

One module beside that of the machine. What it needs of the runtime is `primitives.bindings`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from replispec.compiler.emit.python.binding_words import BindingWords, indented, snake
from replispec.compiler.emit.python.bound_instances import InstanceBindings
from replispec.compiler.emit.python.codes import certificate
from replispec.compiler.emit.python.machines import bare_words, class_name, docstring
from replispec.compiler.language import expressions as ex
from replispec.compiler.model.binding import Source
from replispec.compiler.model.machine import Machine
from replispec.compiler.model.message import Model

_HELPERS = (
    "Answer",
    "Claims",
    "Notice",
    "Refused",
    "as_set",
    "asked_for",
    "asked_text",
    "entry_of",
    "listed",
    "needed",
)


def _named(module: str, names: Iterable[str], words: set[str]) -> Iterator[str]:
    """The line that imports those of these names that a text has."""
    found = [name for name in names if name in words]
    if found:
        yield f"from {module} import {', '.join(found)}"


def wire_module(machine: Machine) -> str:
    """The name of the module of a machine's bindings."""
    return f"{machine.name}_wire"


class BindingsEmitter:
    """Writes the bindings of one machine. Pure: equal specifications give equal text."""

    def __init__(self, machine: Machine, model: Model) -> None:
        self._machine = machine
        self._model = model
        self._words = BindingWords(machine, model)

    def text(self, sources: Mapping[str, bytes]) -> str:
        """The module, not yet formatted."""
        body = "\n".join(self._body())
        lines = certificate(sources)
        lines += docstring(f"What the events of {self._machine.name} are on the wire.")
        lines += ["", "from __future__ import annotations", "", *self._imports(body), "", body, ""]
        return "\n".join(lines)

    def _imports(self, body: str) -> Iterator[str]:
        words, family = bare_words(body), self._model.family
        yield from _named("collections.abc", ("Callable", "Mapping", "Sequence"), words)
        yield from _named("dataclasses", ("dataclass",), words)
        yield "from types import MappingProxyType"
        yield from _named("typing", ("Any", "Final", "Protocol"), words)
        events = [class_name(name) for name in self._machine.events]
        # Only a machine with instances refuses and answers: in others an event may have such a name.
        hidden = () if self._machine.bindings.has_instances else events
        helpers = [name for name in _HELPERS if name not in hidden]
        yield from _named("replispec.runtime.primitives.bindings", helpers, words)
        yield from _named("replispec.runtime.primitives.errors", ("LocalProtocolError",), words)
        yield from _named("replispec.runtime.primitives.releases", ("Releases",), words)
        yield from _named(f"replispec.wire.{family}", ("codes",), words)
        yield from _named(f"replispec.wire.{family}.rules", ("Rules",), words)
        for name in sorted(words & self._model.messages.keys()):
            yield f"from replispec.wire.{family}.{self._model.messages[name].module} import {name}"
        module = f"replispec.wire.{family}.machines.{self._machine.name}"
        yield from _named(module, sorted([*events, "Event", "Variables"]), words)

    def _body(self) -> Iterator[str]:
        bindings = self._machine.bindings
        yield "ExtFields = Mapping[str, str | None]"
        yield ""
        if bindings.local:
            yield from self._local()
        if bindings.has_instances:
            yield from InstanceBindings(self._machine, self._model, self._words).lines()
        elif bindings.requests:
            yield from self._requests(bindings.requests)
        if bindings.outcomes:
            yield from self._outcomes(bindings.outcomes)

    def _local(self) -> Iterator[str]:
        yield "class Local(Protocol):"
        yield from indented(docstring("What only the role knows."))
        for each in self._machine.bindings.local.values():
            yield ""
            yield "    @property"
            yield f"    def {each.name}(self) -> {each.type.python()}:"
            yield f"        {docstring(each.about)[0]}"
            yield "        ..."
        yield ""

    # Requests that are heard

    def _requests(self, sources: tuple[Source, ...]) -> Iterator[str]:
        groups = self._by_request(sources)
        given = f"code: int, ext_fields: ExtFields, data: bytes{self._with_local}"
        yield f"def event_of({given}) -> Event | None:"
        about = "The event that a request with this code and body is; None when it is none."
        yield from indented(docstring(about, "Raises RemoteProtocolError when it cannot be read."))
        yield "    read = REQUESTS.get(code)"
        yield f"    return None if read is None else read(ext_fields, data{self._local_argument})"
        yield ""
        for name, found in groups.items():
            yield from self._request(name, found)
        kind = f"Callable[[ExtFields, bytes{self._local_kind}], Event | None]"
        yield f"REQUESTS: Final[Mapping[int, {kind}]] = MappingProxyType({{"
        for name in groups:
            for code in self._words.codes(name):
                yield f"    {code}: _{snake(name)},"
        yield "})"
        yield '"""How each request is read, by its code."""'
        yield ""

    def _by_request(self, sources: tuple[Source, ...]) -> dict[str, list[Source]]:
        groups: dict[str, list[Source]] = {}
        for each in sources:
            groups.setdefault(each.header, []).append(each)
        return groups

    def _request(self, name: str, sources: list[Source]) -> Iterator[str]:
        events = " | ".join(dict.fromkeys(class_name(each.event) for each in sources))
        falls_through = " | None" * (sources[-1].condition is not None)
        inside = [*self._read("header", name, sources), *self._read("body", sources[0].body, sources)]
        for each in sources:
            if each.condition is not None:
                inside += [f"if {self._words.python(each.condition)}:", f"    return {self._made(each)}"]
            else:
                inside.append(f"return {self._made(each)}")
        if falls_through:
            inside.append("return None")
        parameters = self._parameters(("ext_fields: ExtFields", "data: bytes"), inside)
        yield f"def _{snake(name)}({parameters}) -> {events}{falls_through}:"
        yield from indented(inside)
        yield ""

    # Answers to what was asked

    def _outcomes(self, sources: tuple[Source, ...]) -> Iterator[str]:
        asked = dict.fromkeys(name for each in sources for name in each.asked)
        yield "def outcome_of("
        yield f"    asked: int, code: int | None, ext_fields: ExtFields, data: bytes{self._with_local}"
        yield ") -> Event | None:"
        about = "The event that the answer to a request is; None when the machine takes none from it."
        more = (
            "`asked` is the code of the request, `code` that of its answer: None when there is none that\n"
            "can be read. Raises RemoteProtocolError when the answer cannot be read."
        )
        yield from indented(docstring(about, more))
        yield "    read = _OUTCOMES.get(asked)"
        yield f"    return None if read is None else read(code, ext_fields, data{self._local_argument})"
        yield ""
        for name in asked:
            yield from self._outcome(name, [each for each in sources if name in each.asked])
        result = f"Callable[[int | None, ExtFields, bytes{self._local_kind}], Event | None]"
        yield f"_OUTCOMES: Final[Mapping[int, {result}]] = MappingProxyType({{"
        for name in asked:
            for code in self._words.codes(name):
                yield f"    {code}: _{snake(name)}_answered,"
        yield "})"
        yield ""
        yield "OUTCOMES: Final[Mapping[int, tuple[type[Any], ...]]] = MappingProxyType({"
        for name in asked:
            events = dict.fromkeys(class_name(each.event) for each in sources if name in each.asked)
            for code in self._words.codes(name):
                yield f"    {code}: ({', '.join(events)},),"
        yield "})"
        yield '"""The events that the answer to a request may be, by the code of the request."""'

    def _outcome(self, asked: str, sources: list[Source]) -> Iterator[str]:
        """A match over the codes: those that are named, none, and all others."""
        events = dict.fromkeys(class_name(each.event) for each in sources)
        named = [each for each in sources if each.codes]
        other = next((each for each in sources if each.otherwise), None)
        none = next((each for each in sources if each.unanswered), None)
        result = " | ".join(events) + " | None" * (other is None or none is None)
        inside = ["match code:"]
        for each in named:
            inside.append(f"    case {' | '.join(map(self._words.python, each.codes))}:")
            reads = [*self._read("header", each.header, [each]), *self._read("body", each.body, [each])]
            inside += [f"        {line}" for line in (*reads, f"return {self._made(each)}")]
        if none is not other:
            inside += ["    case None:", f"        return {self._made(none) if none is not None else None}"]
        inside += ["    case _:", f"        return {self._made(other) if other is not None else None}"]
        given = ("code: int | None", "ext_fields: ExtFields", "data: bytes")
        yield f"def _{snake(asked)}_answered({self._parameters(given, inside)}) -> {result}:"
        yield from indented(inside)
        yield ""

    @property
    def _with_local(self) -> str:
        return ", local: Local" if self._machine.bindings.local else ""

    @property
    def _local_argument(self) -> str:
        return ", local" if self._machine.bindings.local else ""

    @property
    def _local_kind(self) -> str:
        return ", Local" if self._machine.bindings.local else ""

    def _parameters(self, given: tuple[str, ...], inside: list[str]) -> str:
        """The parameters of a reader; those that it does not use start with an underscore."""
        if self._machine.bindings.local:
            given = (*given, "local: Local")
        used = bare_words("\n".join(inside))
        return ", ".join(each if each.partition(":")[0] in used else f"_{each}" for each in given)

    def _read(self, what: str, message: str, sources: list[Source]) -> Iterator[str]:
        """The line that reads header or body, where anything is taken from it."""
        nodes = [node for each in sources for node in (*each.fields.values(), each.condition)]
        parts = [part for node in nodes if node is not None for part in ex.walk(node)]
        is_header = any(each.header and not each.fields and not each.asked for each in sources)
        is_read = any(isinstance(each, ex.SourceField) and each.of == what for each in parts)
        if not is_read and (what == "body" or not is_header):
            return
        if what == "header":
            yield f"header = {message}.from_ext_fields(ext_fields)"
        else:
            yield f"body = {message}.decode(data) if data else {message}()"

    # Values

    def _made(self, source: Source) -> str:
        event = self._machine.events[source.event]
        name = class_name(source.event)
        if event.messages:
            return (
                f"{name}({source.header}.from_ext_fields(ext_fields))" if source.asked else f"{name}(header)"
            )
        values = [f"{field}={self._value(source, field)}" for field in source.fields]
        return f"{name}({', '.join(values)})"

    def _value(self, source: Source, field: str) -> str:
        node = source.fields[field]
        text = self._words.python(node)
        return f'needed({text}, "{self._words.label(node, source)}")' if field in source.needed else text
