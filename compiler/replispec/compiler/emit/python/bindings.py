"""Python modules of bindings: the event of a request, the event that an answer is.

One module beside that of the machine. What it needs of the runtime is `primitives.bindings`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from replispec.compiler.emit.python.annotations import annotation
from replispec.compiler.emit.python.binding_words import (
    BOUND,
    BindingWords,
    parameters,
    reads_local,
    snake,
)
from replispec.compiler.emit.python.bound_instances import InstanceBindings
from replispec.compiler.emit.python.bound_releases import (
    RELEASES,
    chosen_reader,
    readers_of,
    release_parameter,
    releases_text,
    request_tables,
)
from replispec.compiler.emit.python.bound_sends import send_nodes, view_nodes
from replispec.compiler.emit.python.codes import certificate
from replispec.compiler.emit.python.tree import (
    ABC,
    TYPING,
    Class,
    Constant,
    FunctionDef,
    Module,
    Node,
    homes,
    own,
)
from replispec.compiler.model.binding import Source
from replispec.compiler.model.machine import MachineSpec
from replispec.compiler.model.message import Model


def wire_module(machine: MachineSpec) -> str:
    """The name of the module of a machine's bindings."""
    return f"{machine.name}_wire"


class BindingsEmitter:
    """Writes the bindings of one machine. Pure: equal specifications give equal text."""

    def __init__(self, machine: MachineSpec, model: Model) -> None:
        self._machine = machine
        self._model = model
        self._words = BindingWords(machine, model)

    def text(self, sources: Mapping[str, bytes]) -> str:
        """The module, not yet formatted."""
        name = f"replispec.wire.{self._model.family}.machines.{wire_module(self._machine)}"
        about = f"What the events of {self._machine.name} are on the wire."
        nodes, place = list(self._nodes()), self._machine.place
        return Module(name, certificate(sources), about, nodes, homes(self._model), place).text()

    def _nodes(self) -> Iterator[Node]:
        bindings = self._machine.bindings
        if bindings.sources:
            yield Constant("ExtFields", f"{ABC.Mapping}[str, str | None]")
        if bindings.local:
            yield self._local()
        if bindings.is_answering:
            yield from InstanceBindings(self._machine, self._model, self._words).nodes()
        elif bindings.requests:
            yield from self._requests(bindings.requests)
        if bindings.outcomes:
            yield from self._outcomes(bindings.outcomes)
        yield from view_nodes(self._machine, self._model, self._words)
        yield from send_nodes(self._machine, self._model, self._words)

    def _local(self) -> Class:
        fields = []
        for each in self._machine.bindings.local.values():
            given = "".join(f", {name}: {annotation(kind)}" for name, kind in each.of.items())
            parameters = f"self{given}{', /' if given else ''}"
            decorators = () if each.of else ("property",)
            kind = annotation(each.type)
            if each.kept:
                kind = f"{BOUND.Kept}[{annotation(each.type.required())}]{' | None' * each.type.optional}"
            fields.append(
                FunctionDef(each.name, parameters, kind, ["..."], decorators=decorators, comment=each.about)
            )
        return Class("Local", "What only the role knows.", [str(TYPING.Protocol)], body=fields)

    # Requests that are heard

    def _requests(self, sources: tuple[Source, ...]) -> Iterator[Node]:
        about = (
            "The event that a request with this code and body is; None when it is none.\n\n"
            "Raises RemoteProtocolError when it cannot be read."
        )
        readers, event = readers_of(sources), self._words.event
        given = f"ext_fields: ExtFields, data: bytes{self._with_local}, {self._release}"
        inside = [
            *chosen_reader(self._machine),
            f"return None if read is None else read(ext_fields, data{self._local_argument})",
        ]
        yield FunctionDef("event_of", f"code: int, {given}", f"{event} | None", inside, about)
        for name, found in readers.items():
            yield self._request(name, found)
        kind = f"{ABC.Callable}[[ExtFields, bytes{self._local_kind}], {event} | None]"
        yield from request_tables(readers, kind, self._machine, self._words)

    def _request(self, name: str, sources: list[Source]) -> FunctionDef:
        events = " | ".join(dict.fromkeys(self._words.event_class(each.event) for each in sources))
        falls_through = " | None" * (sources[-1].condition is not None)
        first = sources[0]
        inside = [*self._read("header", first.header, sources), *self._read("body", first.body, sources)]
        for each in sources:
            if each.condition is not None:
                inside += [f"if {self._words.python(each.condition)}:", f"    return {self._made(each)}"]
            else:
                inside.append(f"return {self._made(each)}")
        if falls_through:
            inside.append("return None")
        given = self._parameters(("ext_fields: ExtFields", "data: bytes"), inside)
        return FunctionDef(name, given, f"{events}{falls_through}", inside)

    # Answers to what was asked

    def _outcomes(self, sources: tuple[Source, ...]) -> Iterator[Node]:
        asked = dict.fromkeys(name for each in sources for name in each.asked)
        given = f"code: int | None, ext_fields: ExtFields, data: bytes{self._with_local}, {self._release}"
        release = ", release" if self._has_releases else ""
        about = (
            "The event that the answer to a request is; None when the machine takes none from it.\n\n"
            "`asked` is the code of the request, `code` that of its answer: None when there is none that\n"
            "can be read. Raises RemoteProtocolError when the answer cannot be read."
        )
        event, final = self._words.event, TYPING.Final
        inside = [
            "read = _OUTCOMES.get(asked)",
            f"return None if read is None else read(code, ext_fields, data{self._local_argument}{release})",
        ]
        yield FunctionDef("outcome_of", f"asked: int, {given}", f"{event} | None", inside, about)
        readers: dict[str, str] = {}
        for names, reader in self._outcome_readers(asked, sources):
            readers |= dict.fromkeys(names, reader.name)
            yield reader
        kinds = f"{self._local_kind}{f', {RELEASES.Release} | None' if release else ''}"
        result = f"{ABC.Callable}[[int | None, ExtFields, bytes{kinds}], {event} | None]"
        rows = " ".join(f"{code}: {readers[name]}," for name in asked for code in self._words.codes(name))
        yield Constant("_OUTCOMES", f"{{{rows}}}", f"{final}[{ABC.Mapping}[int, {result}]]")
        rows = " ".join(
            f"{code}: ({self._events(name, sources)},)," for name in asked for code in self._words.codes(name)
        )
        kind = f"{final}[{ABC.Mapping}[int, tuple[type[{TYPING.Any}], ...]]]"
        about = "The events that the answer to a request may be, by the code of the request."
        yield Constant("OUTCOMES", f"{{{rows}}}", kind, about)

    def _outcome_readers(
        self, asked: Iterable[str], sources: tuple[Source, ...]
    ) -> Iterator[tuple[list[str], FunctionDef]]:
        """What reads the answers to each request; requests whose answers are read alike have one reader."""
        alike: dict[tuple[str, ...], tuple[list[str], FunctionDef]] = {}
        for name in asked:
            made = self._outcome(name, [each for each in sources if name in each.asked])
            names, reader = alike.setdefault((made.parameters, made.returns, *made.body), ([], made))
            names.append(name)
            reader.name = f"_{'_or_'.join(map(snake, names))}_answered"
        yield from alike.values()

    def _events(self, asked: str, sources: tuple[Source, ...]) -> str:
        events = [self._words.event_class(each.event) for each in sources if asked in each.asked]
        return ", ".join(dict.fromkeys(events))

    def _outcome(self, asked: str, sources: list[Source]) -> FunctionDef:
        """A match over the codes: those that are named, none, and all others."""
        events = dict.fromkeys(self._words.event_class(each.event) for each in sources)
        named = [each for each in sources if each.codes]
        other = next((each for each in sources if each.otherwise), None)
        none = next((each for each in sources if each.unanswered), None)
        result = " | ".join(events) + " | None" * (other is None or none is None)
        inside = ["match code:"]
        for each in named:
            inside.append(f"    case {' | '.join(map(self._words.python, each.codes))}{_when(each)}:")
            reads = [*self._read("header", each.header, [each]), *self._read("body", each.body, [each])]
            inside += [f"        {line}" for line in (*reads, f"return {self._made(each)}")]
        if none is not other:
            inside += ["    case None:", f"        return {self._made(none) if none is not None else None}"]
        inside += ["    case _:", f"        return {self._made(other) if other is not None else None}"]
        last = (f"release: {RELEASES.Release} | None",) if self._has_releases else ()
        given = self._parameters(("code: int | None", "ext_fields: ExtFields", "data: bytes"), inside, last)
        return FunctionDef(f"_{snake(asked)}_answered", given, result, inside)

    @property
    def _with_local(self) -> str:
        return ", local: Local" if self._asks else ""

    @property
    def _local_argument(self) -> str:
        return ", local" if self._asks else ""

    @property
    def _local_kind(self) -> str:
        return ", Local" if self._asks else ""

    @property
    def _asks(self) -> bool:
        """Whether anything that is heard is made of what only the role knows."""
        return any(
            reads_local((*each.fields.values(), each.condition)) for each in self._machine.bindings.sources
        )

    @property
    def _has_releases(self) -> bool:
        return self._machine.bindings.has_releases

    @property
    def _release(self) -> str:
        return release_parameter(is_used=self._has_releases)

    def _parameters(self, given: tuple[str, ...], inside: list[str], last: tuple[str, ...] = ()) -> str:
        """The parameters of a reader; those that it does not use start with an underscore."""
        local = ("local: Local",) if self._asks else ()
        return parameters((*given, *local, *last), inside)

    def _read(self, what: str, message: str, sources: list[Source]) -> Iterator[str]:
        """The line that reads header or body, where anything is taken from it."""
        nodes = [node for each in sources for node in (*each.fields.values(), each.condition)]
        is_header = any(each.header and not each.fields and not each.asked for each in sources)
        is_read = any(self._words.reads(what, node) for node in nodes)
        if not is_read and (what == "body" or not is_header):
            return
        if what == "header":
            yield f"header = {own(message)}.from_ext_fields(ext_fields)"
        else:
            yield f"body = {own(message)}.decode(data) if data else {own(message)}()"

    # Values

    def _made(self, source: Source) -> str:
        event = self._machine.events[source.event]
        name = self._words.event_class(source.event)
        if event.messages:
            read = f"{own(source.header)}.from_ext_fields(ext_fields)"
            return f"{name}({read})" if source.asked else f"{name}(header)"
        values = [f"{field}={self._value(source, field)}" for field in source.fields]
        return f"{name}({', '.join(values)})"

    def _value(self, source: Source, field: str) -> str:
        node = source.fields[field]
        text = self._words.python(node)
        label = self._words.label(node, source)
        return f'{BOUND.needed}({text}, "{label}")' if field in source.needed else text


def _when(source: Source) -> str:
    """The guard of a case that only some releases of a peer answer with."""
    if source.releases is None:
        return ""
    return f" if {RELEASES.spoken_in}({releases_text(source.releases)}, release)"
