"""Python modules of machines: states, events, variables, guards and the table of edges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from replispec.compiler.emit.python.codes import certificate
from replispec.compiler.language import expressions as ex
from replispec.compiler.language.text import to_python, to_text
from replispec.compiler.model.machine import Event, Guard, Machine, Table, Transition, Variable
from replispec.compiler.model.message import Model
from replispec.compiler.model.value_types import Type
from replispec.compiler.read.machines import guard_types

_ZEROS = {"bool": "False", "string": '""', "bytes": 'b""', "list": "()", "set": "frozenset()"}


def class_name(name: str) -> str:
    """`batch_received` as a class: BatchReceived."""
    return "".join(word.capitalize() for word in name.split("_"))


def quoted(text: str) -> str:
    """A Python literal of the text."""
    return repr(text)


def strings(names: tuple[str, ...]) -> str:
    """A Python tuple of the texts."""
    return f"({', '.join(map(repr, names))}{',' if len(names) == 1 else ''})"


def docstring(*paragraphs: str) -> list[str]:
    """The lines of a docstring of these paragraphs; empty ones are left out."""
    clean = [each.replace("\\", "\\\\").replace('"""', "'''") for each in paragraphs if each]
    if len(clean) == 1:
        return [f'"""{clean[0]}"""']
    lines = [f'"""{clean[0]}']
    for each in clean[1:]:
        lines += ["", each]
    return [*lines, '"""']


def enum_names(model: Model) -> dict[str, str]:
    """The Python name of every enum class in a module that imports `codes`."""
    return {name: f"codes.{name}" for name in model.enums}


def import_of(message: str, model: Model) -> str:
    """The line that imports the class of a message."""
    return f"from replispec.wire.{model.family}.{model.messages[message].module} import {message}"


def import_of_unknown(*, says_unknown: bool, asks_none: bool) -> Iterator[str]:
    """The line that imports what expressions need to speak of what was not seen."""
    names = ["UNKNOWN"] * says_unknown + ["is_none"] * asks_none
    if names:
        yield f"from replispec.runtime.primitives.unknown import {', '.join(names)}"


def value_text(variable: Variable, enums: Mapping[str, str]) -> str:
    """The Python text of a variable's value at the start."""
    if variable.initial is not None:
        return to_python(variable.initial, enums)
    return "None" if variable.type.optional else _ZEROS.get(variable.type.kind, "0")


class MachineEmitter:
    """Writes one machine. Pure: equal specifications give equal text."""

    def __init__(self, machine: Machine, model: Model) -> None:
        self._machine = machine
        self._model = model
        self._enums = enum_names(model)
        self._guards = {
            ("", name): f"{name}(variables, event{', rules' if kind.uses_rules else ''})"
            for name, kind in guard_types(machine).items()
        }

    def text(self, sources: Mapping[str, bytes]) -> str:
        """The module, not yet formatted."""
        machine = self._machine
        body = "\n".join(self._body())
        lines = certificate(sources)
        lines += docstring(machine.about, self._instance())
        lines += ["", "from __future__ import annotations", ""]
        lines += self._imports(body)
        return "\n".join([*lines, "", body, ""])

    def _instance(self) -> str:
        machine = self._machine
        if not machine.instance_key:
            return ""
        learns = "".join(f"; learns {name} from {source}" for name, source in machine.learns.items())
        return f"One instance per {machine.instance_key}{learns}."

    def _imports(self, body: str) -> Iterator[str]:
        yield "import enum"
        kinds = [name for name in ("Mapping", "Sequence") if f"{name}[" in body]
        if kinds:
            yield f"from collections.abc import {', '.join(kinds)}"
        yield "from dataclasses import dataclass"
        yield "from types import MappingProxyType"
        extra = "Any, " if "Any" in body else ""
        yield f"from typing import {extra}Final, Protocol, TypeVar"
        names = "Edge, EventKind, Machine, Origin, Overlay, Transitions"
        yield f"from replispec.runtime.primitives.machines import {names}"
        if "Releases(" in body:
            yield "from replispec.runtime.primitives.releases import Releases"
        yield from import_of_unknown(says_unknown=self._says_unknown(), asks_none="is_none(" in body)
        if "codes." in body:
            yield f"from replispec.wire.{self._model.family} import codes"
        for message in sorted(self._messages()):
            yield import_of(message, self._model)

    def _says_unknown(self) -> bool:
        """True when some expression of the machine says `unknown`."""
        nodes = [node for edge in self._machine.transitions() for node in edge.assign.values()]
        nodes += [each.initial for each in self._machine.variables.values() if each.initial is not None]
        return any(isinstance(part, ex.UnknownLiteral) for node in nodes for part in ex.walk(node))

    def _messages(self) -> set[str]:
        """Every message that the module names."""
        found: set[str] = set()
        for variable in self._machine.variables.values():
            found |= variable.type.messages()
        for event in self._machine.events.values():
            found |= set(event.messages)
            read = event.fields.items() if not event.messages else self._read_fields(event)
            for _, kind in read:
                found |= kind.messages()
        return found

    def _body(self) -> Iterator[str]:
        yield from self._states()
        yield from self._variables()
        for event in self._machine.events.values():
            yield from self._event(event)
        names = " | ".join(class_name(name) for name in self._machine.events)
        yield f"Event = {names}"
        yield from self._effects()
        yield from self._answers()
        for guard in self._machine.guards.values():
            yield from self._guard(guard)
        yield from self._tables()

    def _states(self) -> Iterator[str]:
        yield "class State(enum.Enum):"
        yield from _indented(
            docstring("The states.", f"Those of {self._machine.enum}." if self._machine.enum else "")
        )
        yield ""
        for state in self._machine.states.values():
            yield f"    {state.name} = {quoted(state.name)}"
            notes = [state.about] + [f"Never entered: {state.unreached}"] * bool(state.unreached)
            if any(notes):
                yield from _indented(docstring(" ".join(filter(None, notes))))
        yield ""

    def _variables(self) -> Iterator[str]:
        variables = self._machine.variables.values()
        lines = [f"{each.name}: {each.about}" for each in variables if each.about]
        yield "@dataclass(frozen=True, slots=True)"
        yield "class Variables:"
        yield from _indented(docstring("What the machine remembers beside its state.", "\n".join(lines)))
        yield ""
        for each in variables:
            yield f"    {each.name}: {each.type.python()} = {value_text(each, self._enums)}"
        yield ""

    def _event(self, event: Event) -> Iterator[str]:
        yield "@dataclass(frozen=True, slots=True)"
        yield f"class {class_name(event.name)}:"
        yield from _indented(docstring(event.about or _event_about(event)))
        yield ""
        if not event.messages:
            for name, kind in event.fields.items():
                yield f"    {name}: {kind.python()}"
            yield ""
            return
        yield f"    message: {' | '.join(event.messages)}"
        for name, kind in self._read_fields(event):
            yield from _indented(self._property(event, name, kind))
        yield ""

    def _read_fields(self, event: Event) -> list[tuple[str, Type]]:
        """The fields that some expression about the event reads, by name."""
        nodes: list[ex.Expression | None] = [event.where]
        for each in self._machine.transitions():
            if each.event == event.name:
                nodes += [each.condition, *each.assign.values()]
        nodes += [guard.condition for guard in self._machine.guards.values() if guard.event == event.name]
        read = {
            part.name
            for node in nodes
            if node is not None
            for part in ex.walk(node)
            if isinstance(part, ex.EventField)
        }
        return [(name, event.fields[name]) for name in sorted(read)]

    def _property(self, event: Event, name: str, kind: Type) -> Iterator[str]:
        messages = [self._model.messages[each] for each in event.messages]
        everywhere = all(message.field_named(name) is not None for message in messages)
        yield "@property"
        yield f"def {name}(self) -> {kind.python()}:"
        yield f'    """The message\'s {name}."""'
        if everywhere:
            yield f"    return self.message.{name}"
        else:
            yield f'    value: {kind.python()} = getattr(self.message, "{name}", None)'
            yield "    return value"

    def _effects(self) -> Iterator[str]:
        effects = self._machine.effects()
        yield ""
        yield 'EffectT_co = TypeVar("EffectT_co", covariant=True)'
        yield ""
        yield ""
        yield "class Effects(Protocol[EffectT_co]):"
        yield from _indented(
            docstring("What a core does on its edges: each method returns effects, in their order.")
        )
        for name, events in effects.items():
            kinds = " | ".join(map(class_name, events))
            yield f"    def {name}(self, event: {kinds}, /) -> tuple[EffectT_co, ...]:"
            yield f'        """Do {name.replace("_", " ")}."""'
            yield "        ..."
        yield ""

    def _answers(self) -> Iterator[str]:
        """The codes of the effects that answer a request; nothing for machines that answer none."""
        if not self._machine.answers:
            return
        yield "ANSWERS: Final[Mapping[str, int]] = MappingProxyType({"
        for name, code in sorted(self._machine.answers.items()):
            yield f"    {quoted(name)}: codes.{code},"
        yield "})"
        yield '"""The code with which an effect answers the request that its event is."""'
        yield ""

    def _guard(self, guard: Guard) -> Iterator[str]:
        kind = guard_types(self._machine)[guard.name]
        variables = "variables" if kind.variables else "_variables"
        rules = ", rules: Any" if kind.uses_rules else ""
        yield f"def {guard.name}({variables}: Any, event: Any{rules}) -> bool:"
        yield from _indented(docstring(guard.about, f"`{to_text(guard.condition)}`"))
        yield f"    holds: bool = {self._python(guard.condition)}"
        yield "    return holds"
        yield ""
        yield ""

    def _python(self, node: ex.Expression) -> str:
        return to_python(node, self._enums, self._guards)

    def _function(self, node_text: str) -> str:
        """A lambda of (variables, event, rules), parameters that it does not use marked so."""
        names = [
            name if name in bare_words(node_text) else f"_{name}" for name in ("variables", "event", "rules")
        ]
        return f"lambda {', '.join(names)}: {node_text}"

    def _tables(self) -> Iterator[str]:
        machine = self._machine
        yield "EVENTS: Final = MappingProxyType({"
        for event in machine.events.values():
            yield f"    {class_name(event.name)}: {self._kind(event)},"
        yield "})"
        yield ""
        yield "TRANSITIONS: Final[Transitions[State]] = MappingProxyType({"
        yield from self._rows(machine.table)
        yield "})"
        yield ""
        yield "OVERLAYS: Final[tuple[Overlay[State], ...]] = ("
        for overlay in machine.overlays:
            versions = overlay.versions
            yield "    Overlay("
            yield f'        Releases("{versions.implementation}", {versions.first!r}, {versions.last!r}),'
            yield "        MappingProxyType({"
            yield from self._rows(overlay.table)
            yield "        }),"
            yield "    ),"
        yield ")"
        yield ""
        named = {
            mark: [f"State.{each.name}" for each in machine.states.values() if getattr(each, mark)]
            for mark in ("initial", "final", "unreached")
        }
        yield "MACHINE: Final[Machine[State, Variables]] = Machine("
        yield f'    name="{machine.name}", states=State, initial={named["initial"][0]},'
        for mark in ("final", "unreached"):
            inside = f"{{{', '.join(named[mark])}}}" if named[mark] else ""
            yield f"    {mark}=frozenset({inside}),"
        yield "    variables=Variables(), events=EVENTS, transitions=TRANSITIONS, overlays=OVERLAYS,"
        if machine.finding:
            yield f"    finding={quoted(machine.finding)}, evaluated={quoted(machine.evaluated)},"
        yield ")"

    def _kind(self, event: Event) -> str:
        parts = [quoted(event.name), f"Origin.{'PEER' if event.is_peer else 'LOCAL'}"]
        if event.messages:
            parts.append(f"messages={strings(event.messages)}")
        if event.sends:
            parts.append("sends=True")
        if event.where is not None:
            parts.append(f"where={lambda_of(self._python(event.where))}")
        if event.timer:
            parts.append(f"timer={quoted(event.timer)}, default_ms={event.default_ms}")
        if event.hidden:
            parts.append("hidden=True")
        return f"EventKind({', '.join(parts)})"

    def _rows(self, table: Table) -> Iterator[str]:
        for (state, event), edges in table.items():
            inside = ", ".join(map(self._edge, edges))
            yield f"    (State.{state}, {class_name(event)}): ({inside}{',' if edges else ''}),"

    def _edge(self, edge: Transition) -> str:
        parts = [f"State.{edge.to}"]
        if edge.do:
            parts.append(f"do={strings(edge.do)}")
        if edge.condition is not None:
            parts.append(f"guard={lambda_of(self._python(edge.condition))}")
        if edge.assign:
            rows = (f"{quoted(name)}: {lambda_of(self._python(node))}" for name, node in edge.assign.items())
            parts.append(f"assign=MappingProxyType({{{', '.join(rows)}}})")
        if edge.clauses:
            parts.append(f"clauses={strings(edge.clauses)}")
        if edge.blames_peer:
            parts.append("blames_peer=True")
        if edge.tolerated:
            parts.append(f"tolerated={quoted(edge.tolerated)}")
        if edge.diverges:
            parts.append(f"diverges={quoted(edge.diverges)}")
        if edge.condition is not None:
            parts.append(f"text={quoted(to_text(edge.condition))}")
        return f"Edge({', '.join(parts)})"


def _event_about(event: Event) -> str:
    """A sentence for an event that the specification does not explain."""
    words = event.name.replace("_", " ")
    if event.timer:
        return f"The timer {event.timer} ran out."
    if event.messages:
        return f"{' or '.join(event.messages)} was {'sent' if event.sends else 'received'}."
    return f"{words[:1].upper()}{words[1:]}."


def _indented(lines: list[str] | Iterator[str]) -> Iterator[str]:
    for line in lines:
        for part in line.split("\n"):
            yield f"    {part}" if part else ""


def bare_words(text: str) -> set[str]:
    """The bare names of a piece of Python (not those after a dot)."""
    found: set[str] = set()
    word, after_dot = "", False
    for letter in f"{text} ":
        if letter.isalnum() or letter == "_":
            word += letter
            continue
        if word and not after_dot:
            found.add(word)
        after_dot = letter == "."
        word = ""
    return found


def lambda_of(text: str, names: tuple[str, ...] = ("variables", "event", "rules")) -> str:
    """A lambda with these parameters; those that `text` does not use start with an underscore."""
    called, _, arguments = text.partition("(")
    if called.isidentifier() and arguments == f"{', '.join(names)})":
        return called
    used = bare_words(text)
    return f"lambda {', '.join(name if name in used else f'_{name}' for name in names)}: {text}"
