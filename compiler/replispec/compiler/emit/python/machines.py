"""Python modules of machines: states, events, variables, guards and the table of edges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from replispec.compiler.emit.python.annotations import annotation
from replispec.compiler.emit.python.codes import certificate
from replispec.compiler.emit.python.expressions import (
    ARGUMENTS,
    bare_words,
    enum_refs,
    initial_value,
    lambda_of,
    python_of,
    strings,
    used_names,
)
from replispec.compiler.emit.python.tree import (
    ABC,
    DATACLASSES,
    PRIMITIVES,
    TYPING,
    Class,
    Constant,
    Function,
    Module,
    Names,
    Node,
    Ref,
    homes,
    own,
    plain,
)
from replispec.compiler.language import expressions as ex
from replispec.compiler.language.text import CONSTANTS, to_text
from replispec.compiler.model.machine import Event, Guard, Machine, Overlay, Table, Transition
from replispec.compiler.model.message import Model
from replispec.compiler.model.value_types import Type

_MACHINES = Names(f"{PRIMITIVES}.machines")
_RELEASES = Names(f"{PRIMITIVES}.releases")
_PROXY = Names("types").MappingProxyType
_FROZEN = f"{DATACLASSES.dataclass}(frozen=True, slots=True)"
__all__ = ["MachineEmitter", "bare_words", "class_name", "docstring", "enum_names", "package_module"]
# An assignment that is shorter than this is not worth a name.
_ASSIGNMENT_NAMED_FROM = 70


def class_name(name: str) -> str:
    """`batch_received` as a class: BatchReceived."""
    return "".join(word.capitalize() for word in name.split("_"))


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
    """The Python name of every enum class in a module that imports `codes` and `constants`."""
    return {CONSTANTS: "constants", **{name: f"codes.{name}" for name in model.enums}}


class MachineEmitter:
    """Writes one machine. Pure: equal specifications give equal text."""

    def __init__(self, machine: Machine, model: Model) -> None:
        self._machine = machine
        self._model = model
        self._enums = enum_refs(model)
        self._guards = {("", name): f"{name}({', '.join(ARGUMENTS)})" for name in machine.guards}
        self._assignments = self._named_assignments()

    def text(self, sources: Mapping[str, bytes]) -> str:
        """The module, not yet formatted."""
        machine, package = self._machine, f"replispec.wire.{self._model.family}.machines"
        about = "\n\n".join(filter(None, (machine.about, self._instance())))
        name = f"{package}.{machine.name}"
        return Module(name, certificate(sources), about, list(self._nodes()), homes(self._model)).text()

    def _instance(self) -> str:
        machine = self._machine
        if not machine.instance_key:
            return ""
        learns = "".join(f"; learns {name} from {source}" for name, source in machine.learns.items())
        return f"One instance per {machine.instance_key}{learns}."

    def _nodes(self) -> Iterator[Node]:
        yield self._states()
        yield self._variables()
        for event in self._machine.events.values():
            yield self._event(event)
        yield Constant("Event", " | ".join(map(class_name, self._machine.events)))
        yield from self._effects()
        yield from self._answers()
        for guard in self._machine.guards.values():
            yield self._guard(guard)
        yield from self._tables()

    def _states(self) -> Class:
        values = []
        for state in self._machine.states.values():
            notes = [state.about] + [f"Never entered: {state.unreached}"] * bool(state.unreached)
            values.append(Constant(state.name, repr(state.name), comment=" ".join(filter(None, notes))))
        about = f"The states, those of {self._machine.enum}." if self._machine.enum else "The states."
        return Class("State", about, [str(Names("enum").Enum)], body=values)

    def _variables(self) -> Class:
        values = [
            Constant(each.name, initial_value(each, self._enums), annotation(each.type), comment=each.about)
            for each in self._machine.variables.values()
        ]
        return Class("Variables", "What the machine remembers beside its state.", [], [_FROZEN], values)

    def _event(self, event: Event) -> Class:
        body: list[Constant | Function] = []
        if event.messages:
            body.append(Constant("message", annotation=" | ".join(str(own(each)) for each in event.messages)))
            body += [self._property(event, name, kind) for name, kind in self._read_fields(event)]
        else:
            body += [Constant(name, annotation=annotation(kind)) for name, kind in event.fields.items()]
        return Class(class_name(event.name), event.about or _event_about(event), [], [_FROZEN], body)

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

    def _property(self, event: Event, name: str, kind: Type) -> Function:
        messages = [self._model.messages[each] for each in event.messages]
        if all(message.field_named(name) is not None for message in messages):
            body = [f"return self.message.{name}"]
        else:
            body = [f'value: {annotation(kind)} = getattr(self.message, "{name}", None)', "return value"]
        return Function(name, "self", annotation(kind), body, decorators=["property"])

    def _effects(self) -> Iterator[Node]:
        yield Constant("EffectT_co", f'{TYPING.TypeVar}("EffectT_co", covariant=True)')
        methods = []
        for name, events in self._machine.effects().items():
            kinds = " | ".join(map(class_name, events))
            methods.append(Function(name, f"self, event: {kinds}, /", "tuple[EffectT_co, ...]", ["..."]))
        about = "What a core does on its edges: each method returns effects, in their order."
        yield Class("Effects", about, [f"{TYPING.Protocol}[EffectT_co]"], body=methods)

    def _answers(self) -> Iterator[Constant]:
        """The codes of the effects that answer a request; nothing for machines that answer none."""
        if self._machine.answers:
            codes = {name: code.partition(".") for name, code in sorted(self._machine.answers.items())}
            rows = [f"{name!r}: {self._enums[enum]}.{value}," for name, (enum, _, value) in codes.items()]
            about = "The code with which an effect answers the request that its event is."
            kind = f"{TYPING.Final}[{ABC.Mapping}[str, int]]"
            yield Constant("ANSWERS", f"{_PROXY}({{{' '.join(rows)}}})", kind, about)

    def _guard(self, guard: Guard) -> Function:
        text = self._python(guard.condition)
        parameters = ", ".join(f"{name}: {TYPING.Any}" for name in used_names(text))
        body = [f"holds: bool = {text}", "return holds"]
        return Function(guard.name, parameters, "bool", body, guard.about)

    def _python(self, node: ex.Expression) -> str:
        return python_of(node, self._enums, self._guards)

    def _tables(self) -> Iterator[Constant]:
        machine, final = self._machine, TYPING.Final
        kinds = (f"{class_name(event.name)}: {self._kind(event)}," for event in machine.events.values())
        yield Constant("EVENTS", f"{_PROXY}({{{' '.join(kinds)}}})", str(final))
        for text, name in self._assignments.items():
            yield Constant(name, text, f"{final}[{ABC.Mapping}[str, {_MACHINES.Assign}]]")
        rows = " ".join(self._rows(machine.table, {}))
        yield Constant("TRANSITIONS", f"{_PROXY}({{{rows}}})", f"{final}[{_MACHINES.Transitions}[State]]")
        if machine.overlays:
            overlays = " ".join(f"{self._overlay(each)}," for each in machine.overlays)
            kind = f"{final}[tuple[{_MACHINES.Overlay}[State], ...]]"
            yield Constant("OVERLAYS", f"({overlays})", kind)
        yield Constant("MACHINE", self._whole(), f"{final}[{_MACHINES.Machine}[State, Variables]]")

    def _overlay(self, overlay: Overlay) -> str:
        versions = overlay.versions
        releases = f'{_RELEASES.Releases}("{versions.implementation}", {versions.first!r}, {versions.last!r})'
        rows = " ".join(self._rows(overlay.table, self._machine.table))
        return f"{_MACHINES.Overlay}({releases}, {_PROXY}({{{rows}}}))"

    def _whole(self) -> str:
        machine = self._machine
        named = {
            mark: ", ".join(f"State.{each.name}" for each in machine.states.values() if getattr(each, mark))
            for mark in ("initial", "final", "unreached")
        }
        parts = [f'name="{machine.name}", states=State, initial={named["initial"]}']
        parts += [
            f"{mark}=frozenset({f'{{{named[mark]}}}' if named[mark] else ''})"
            for mark in ("final", "unreached")
        ]
        parts.append("variables=Variables(), events=EVENTS, transitions=TRANSITIONS")
        if machine.overlays:
            parts.append("overlays=OVERLAYS")
        if machine.finding:
            parts.append(f"finding={machine.finding!r}, evaluated={machine.evaluated!r}")
        return f"{_MACHINES.Machine}({', '.join(parts)},)"

    def _kind(self, event: Event) -> str:
        parts = [repr(event.name), f"{_MACHINES.Origin}.{'PEER' if event.is_peer else 'LOCAL'}"]
        if event.messages:
            parts.append(f"messages={strings(event.messages)}")
        if event.sends:
            parts.append("sends=True")
        if event.where is not None:
            parts.append(f"where={lambda_of(self._python(event.where))}")
        if event.timer:
            parts.append(f"timer={event.timer!r}, default_ms={event.default_ms}")
        if event.hidden:
            parts.append("hidden=True")
        return f"{_MACHINES.EventKind}({', '.join(parts)})"

    def _rows(self, table: Table, base: Table) -> Iterator[str]:
        """The pairs with their edges; those of `base` that come last are taken from there."""
        for pair, edges in table.items():
            state, event = (f"State.{pair[0]}", class_name(pair[1]))
            kept = base.get(pair, ())
            inside = list(map(self._edge, edges))
            if kept and edges[-len(kept) :] == kept:
                inside[-len(kept) :] = [f"*TRANSITIONS[{state}, {event}]"]
            yield f"({state}, {event}): ({', '.join(inside)}{',' if inside else ''}),"

    def _edge(self, edge: Transition) -> str:
        parts = [f"State.{edge.to}"]
        if edge.do:
            parts.append(f"do={strings(edge.do)}")
        if edge.condition is not None:
            parts.append(f"guard={lambda_of(self._python(edge.condition))}")
        if edge.assign:
            text = self._assignment(edge)
            parts.append(f"assign={self._assignments.get(text, text)}")
        if edge.clauses:
            parts.append(f"clauses={strings(edge.clauses)}")
        if edge.blames_peer:
            parts.append("blames_peer=True")
        if edge.tolerated:
            parts.append(f"tolerated={edge.tolerated!r}")
        if edge.diverges:
            parts.append(f"diverges={edge.diverges!r}")
        if edge.condition is not None and not isinstance(edge.condition, ex.GuardName):
            parts.append(f"text={to_text(edge.condition)!r}")
        return f"{_MACHINES.Edge}({', '.join(parts)})"

    def _assignment(self, edge: Transition) -> str:
        rows = (f"{name!r}: {lambda_of(self._python(node))}" for name, node in edge.assign.items())
        return f"{_PROXY}({{{', '.join(rows)}}})"

    def _named_assignments(self) -> dict[str, str]:
        """The assignments that several edges make, with the names of constants: after what they do."""
        edges = [edge for edge in self._machine.transitions() if edge.assign]
        counts = Counter(text for edge in edges for text in [self._assignment(edge)] * len(edge.sources))
        found: dict[str, str] = {}
        for edge in edges:
            text = self._assignment(edge)
            if counts[text] == 1 or text in found or len(plain(text)) < _ASSIGNMENT_NAMED_FROM:
                continue
            name = f"_{(edge.do or (edge.event,))[0].upper()}"
            if name in found.values():
                name = f"{name}_ON_{edge.event.upper()}"
            while name in found.values():
                name = f"{name}_TOO"
            found[text] = name
        return found


def _event_about(event: Event) -> str:
    """A sentence for an event that the specification does not explain."""
    if event.timer:
        return f"The timer {event.timer} ran out."
    if event.messages:
        return f"{' or '.join(event.messages)} was {'sent' if event.sends else 'received'}."
    return ""


def package_module(machines: Mapping[str, Machine], family: str) -> str:
    """The package of the family's machines, with those that judges of traffic watch."""
    package = f"replispec.wire.{family}.machines"
    watched = {each.finding: name for name, each in machines.items() if each.finding}
    nodes: list[Node] = []
    if watched:
        rows = " ".join(f'"{finding}": {Ref(package, name)}.MACHINE,' for finding, name in watched.items())
        kind = f"{TYPING.Final}[{ABC.Mapping}[str, {_MACHINES.Machine}[{TYPING.Any}, {TYPING.Any}]]]"
        about = "The machines that judges of traffic watch, by the name of what they find."
        nodes.append(Constant("WATCHED", f"{_PROXY}({{{rows}}})", kind, about))
    header = ["# @generated by `make generate`. Do not edit."]
    return Module(f"{package}.__init__", header, f"Machines of {family}, one module each.", nodes).text()
