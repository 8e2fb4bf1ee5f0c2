"""Python modules of machines: states, events, variables, guards and the table of edges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from replispec.compiler.emit.python.annotations import annotation
from replispec.compiler.emit.python.codes import certificate
from replispec.compiler.emit.python.expressions import (
    ARGUMENTS,
    enum_refs,
    initial_value,
    lambda_of,
    python_of,
    strings,
    used_names,
)
from replispec.compiler.emit.python.naming import class_name
from replispec.compiler.emit.python.tree import (
    ABC,
    PRIMITIVES,
    TYPING,
    Class,
    Constant,
    FunctionDef,
    Module,
    Names,
    Node,
    Ref,
    homes,
    own,
    plain,
)
from replispec.compiler.language.text import to_text
from replispec.compiler.model import expressions as ex
from replispec.compiler.model.machine import (
    Event,
    Guard,
    MachineSpec,
    OverlaySpec,
    Table,
    TimerSpec,
    Transition,
)
from replispec.compiler.model.message import Model
from replispec.compiler.model.value_types import Type

_MACHINES = Names(f"{PRIMITIVES}.machines")
_PERIODS = Names(f"{PRIMITIVES}.periods")
_RELEASES = Names(f"{PRIMITIVES}.releases")
_IMMUTABLE = str(Names(f"{PRIMITIVES}.immutable").immutable)
# Edges that are shorter than this are said for each state.
_ROW_SHARED_FROM = 180
# Where the state of a pair stands in the text of its edges.
_HERE = "\x03"
# An assignment that is shorter than this is not worth a name.
_ASSIGNMENT_NAMED_FROM = 70


class MachineEmitter:
    """Writes one machine. Pure: equal specifications give equal text."""

    def __init__(self, machine: MachineSpec, model: Model) -> None:
        self._machine = machine
        self._model = model
        self._enums = enum_refs(model)
        self._guards = {("", name): f"{name}({', '.join(ARGUMENTS)})" for name in machine.guards}
        call = f"({', '.join(ARGUMENTS)})"
        said = {part for node in _expressions(machine) for part in ex.walk(node)}
        self._lets = {node: f"{name}{call}" for name, node in machine.lets.items() if node in said}
        self._assignments = self._named_assignments()

    def text(self, sources: Mapping[str, bytes]) -> str:
        """The module, not yet formatted."""
        machine, package = self._machine, f"replispec.wire.{self._model.family}.machines"
        about = "\n\n".join(filter(None, (machine.about, self._instance())))
        name = f"{package}.{machine.name}"
        nodes, home = list(self._nodes()), homes(self._model)
        return Module(name, certificate(sources), about, nodes, home, machine.place).text()

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
        yield from self._answers()
        for name, node in self._machine.lets.items():
            if node in self._lets:
                yield self._let(name, node)
        for guard in self._machine.guards.values():
            yield self._guard(guard)
        yield from self._tables()

    def _states(self) -> Class:
        values = []
        for state in self._machine.states.values():
            notes = [state.about] + [f"Never entered: {state.unreached}"] * bool(state.unreached)
            values.append(Constant(state.name, repr(state.name), comment=" ".join(filter(None, notes))))
        about = f"The states, those of {self._machine.enum}." if self._machine.enum else ""
        return Class("State", about, [str(_MACHINES.MachineState)], body=values)

    def _variables(self) -> Class:
        values = [
            Constant(each.name, initial_value(each, self._model), annotation(each.type), comment=each.about)
            for each in self._machine.variables.values()
        ]
        about = "" if values else "Nothing is remembered beside the state."
        return Class("Variables", about, [], [_IMMUTABLE], values)

    def _event(self, event: Event) -> Class:
        body: list[Constant | FunctionDef] = []
        if event.messages:
            body.append(Constant("message", annotation=" | ".join(str(own(each)) for each in event.messages)))
            body += [self._property(event, name, kind) for name, kind in self._read_fields(event)]
        else:
            body += [Constant(name, annotation=annotation(kind)) for name, kind in event.fields.items()]
        return Class(class_name(event.name), event.about or _event_about(event), [], [_IMMUTABLE], body)

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

    def _property(self, event: Event, name: str, kind: Type) -> FunctionDef:
        messages = [self._model.messages[each] for each in event.messages]
        if all(message.field_named(name) is not None for message in messages):
            body = [f"return self.message.{name}"]
        else:
            body = [f'value: {annotation(kind)} = getattr(self.message, "{name}", None)', "return value"]
        return FunctionDef(name, "self", annotation(kind), body, decorators=["property"])

    def _answers(self) -> Iterator[Constant]:
        """The codes of the effects that answer a request; nothing for machines that answer none."""
        if self._machine.answers:
            codes = {name: code.partition(".") for name, code in sorted(self._machine.answers.items())}
            rows = [f"{name!r}: {self._enums[enum]}.{value}," for name, (enum, _, value) in codes.items()]
            about = "The code with which an effect answers the request that its event is."
            kind = f"{TYPING.Final}[{ABC.Mapping}[str, int]]"
            yield Constant("ANSWERS", f"{{{' '.join(rows)}}}", kind, about)

    def _let(self, name: str, node: ex.Expression) -> FunctionDef:
        inner = {other: call for other, call in self._lets.items() if other != node}
        text = python_of(node, self._model, self._guards, inner)
        parameters = ", ".join(f"{each}: {TYPING.Any}" for each in used_names(text))
        return FunctionDef(name, parameters, str(TYPING.Any), [f"return {text}"])

    def _guard(self, guard: Guard) -> FunctionDef:
        text = self._python(guard.condition)
        parameters = ", ".join(f"{name}: {TYPING.Any}" for name in used_names(text))
        body = [f"holds: bool = {text}", "return holds"]
        return FunctionDef(guard.name, parameters, "bool", body, guard.about)

    def _python(self, node: ex.Expression) -> str:
        return python_of(node, self._model, self._guards, self._lets)

    def _tables(self) -> Iterator[Constant]:
        machine, final = self._machine, TYPING.Final
        kinds = (f"{class_name(event.name)}: {self._kind(event)}," for event in machine.events.values())
        annotated = f"{final}[{ABC.Mapping}[type, {_MACHINES.EventKind}]]"
        yield Constant("EVENTS", f"{{{' '.join(kinds)}}}", annotated)
        if machine.timers:
            timers = " ".join(f"{each.name!r}: {self._timer(each)}," for each in machine.timers.values())
            yield Constant("TIMERS", f"{{{timers}}}", f"{final}[{ABC.Mapping}[str, {_PERIODS.Timer}]]")
        for text, name in self._assignments.items():
            yield Constant(name, text, f"{final}[{ABC.Mapping}[str, {_MACHINES.Assign}]]")
        rows = " ".join(self._rows(machine.table, {}))
        yield Constant("TRANSITIONS", f"{{{rows}}}", f"{final}[{_MACHINES.Transitions}[State]]")
        if machine.overlays:
            overlays = " ".join(f"{self._overlay(each)}," for each in machine.overlays)
            kind = f"{final}[tuple[{_MACHINES.Overlay}[State], ...]]"
            yield Constant("OVERLAYS", f"({overlays})", kind)
        yield Constant("MACHINE", self._whole(), f"{final}[{_MACHINES.Machine}[State, Variables]]")

    def _overlay(self, overlay: OverlaySpec) -> str:
        versions = overlay.versions
        releases = f'{_RELEASES.Releases}("{versions.implementation}", {versions.first!r}, {versions.last!r})'
        rows = " ".join(self._rows(overlay.table, self._machine.table))
        return f"{_MACHINES.Overlay}({releases}, {{{rows}}})"

    def _whole(self) -> str:
        machine = self._machine
        named = {
            mark: ", ".join(f"State.{each.name}" for each in machine.states.values() if getattr(each, mark))
            for mark in ("initial", "final", "unreached")
        }
        parts = [f'"{machine.name}", State, {named["initial"]}, Variables(), EVENTS, TRANSITIONS']
        parts += [f"{mark}=frozenset({{{named[mark]}}})" for mark in ("final", "unreached") if named[mark]]
        if machine.overlays:
            parts.append("overlays=OVERLAYS")
        if machine.timers:
            parts.append("timers=TIMERS")
        if durable := machine.durable():
            parts.append(f"durable=frozenset({strings(durable)})")
        if machine.is_logged:
            parts.append("is_logged=True")
        if machine.finding:
            parts.append(f"finding={machine.finding!r}, evaluated={machine.evaluated!r}")
        return f"{_MACHINES.Machine}({', '.join(parts)},)"

    def _timer(self, timer: TimerSpec) -> str:
        parts = [repr(timer.name), class_name(timer.event), repr(timer.period), str(timer.default_ms)]
        parts.append(repr(timer.field))
        if timer.group:
            parts.append(f"group={timer.group!r}")
        if timer.longest is not None:
            name, longest_ms, field = timer.longest
            parts.append(f"longest={_PERIODS.Longest}({name!r}, {longest_ms}, {field!r})")
        if timer.periodic:
            parts.append("periodic=True")
        if timer.states:
            parts.append(f"states=frozenset({{{', '.join(f'State.{each}' for each in timer.states)}}})")
        return f"{_PERIODS.Timer}({', '.join(parts)})"

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
        """The pairs with their edges; those of `base` that come last are taken from there.

        States in which an event does the same share a row, unless it is short.
        """
        alike: dict[tuple[str, str], list[str]] = {}
        for (state, event), edges in table.items():
            alike.setdefault((event, self._edges(state, event, edges, base)), []).append(state)
        for (event, text), states in alike.items():
            name = class_name(event)
            if len(states) == 1 or len(plain(text)) < _ROW_SHARED_FROM:
                yield from (
                    f"(State.{each}, {name}): {text.replace(_HERE, f'State.{each}')}," for each in states
                )
                continue
            every = ", ".join(f"State.{state}" for state in states)
            among = "State" if len(states) == len(self._machine.states) else f"({every})"
            yield f"**{{(state, {name}): {text.replace(_HERE, 'state')} for state in {among}}},"

    def _edges(self, state: str, event: str, edges: tuple[Transition, ...], base: Table) -> str:
        """The edges of a pair, in which `_HERE` stands for its state."""
        kept = base.get((state, event), ())
        inside = [self._edge(edge, state) for edge in edges]
        if kept and edges[-len(kept) :] == kept:
            inside[-len(kept) :] = [f"*TRANSITIONS[{_HERE}, {class_name(event)}]"]
        return f"({', '.join(inside)}{',' if inside else ''})"

    def _edge(self, edge: Transition, state: str) -> str:
        parts = [_HERE if edge.to == state else f"State.{edge.to}"]
        if edge.do:
            parts.append(f"do={strings(edge.do)}")
        for word, names in zip(("arms", "cancels"), self._machine.timing(edge, state), strict=True):
            if names:
                parts.append(f"{word}={strings(names)}")
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
        return f"{{{', '.join(rows)}}}"

    def _named_assignments(self) -> dict[str, str]:
        """The assignments that several edges make, with the names of constants: after what they do."""
        edges = [edge for edge in self._machine.transitions() if edge.assign]
        counts = Counter(text for edge in edges for text in [self._assignment(edge)] * len(edge.sources))
        found: dict[str, Transition] = {}
        for edge in edges:
            text = self._assignment(edge)
            if counts[text] > 1 and len(plain(text)) >= _ASSIGNMENT_NAMED_FROM:
                found.setdefault(text, edge)
        # The smallest one of those that do the same has the plain name; the others say what they add to it.
        names: dict[str, str] = {}
        for text, edge in sorted(found.items(), key=lambda each: len(each[1].assign)):
            base = _assignment_name(edge)
            smaller = next((found[other] for other, name in names.items() if name == base), edge)
            tried = _assignment_names(edge, smaller)
            name = next((each for each in tried if each not in names.values()), None)
            if name is not None:
                names[text] = name
        return {text: names[text] for text in found if text in names}


def _assignment_name(edge: Transition) -> str:
    """What the assignment of an edge is called: after the first thing that the edge does."""
    return f"_{(edge.do or (edge.event,))[0].upper()}"


def _assignment_names(edge: Transition, smaller: Transition) -> Iterator[str]:
    """What it may be called, beside a `smaller` one that has the plain name: what it adds, and when."""
    name = _assignment_name(edge)
    added = [variable.upper() for variable in edge.assign if variable not in smaller.assign]
    for start in (name, f"{name}_ON_{edge.event.upper()}"):
        yield start
        yield from (f"{start}_WITH_{variable}" for variable in added)


def _expressions(machine: MachineSpec) -> Iterator[ex.Expression]:
    """All that the module of a machine says in expressions."""
    yield from (guard.condition for guard in machine.guards.values())
    yield from (event.where for event in machine.events.values() if event.where is not None)
    for edge in machine.transitions():
        yield from edge.assign.values()
        if edge.condition is not None:
            yield edge.condition


def _event_about(event: Event) -> str:
    """A sentence for an event that the specification does not explain."""
    if event.timer:
        return f"The timer {event.timer} ran out."
    if event.messages:
        return f"{' or '.join(event.messages)} was {'sent' if event.sends else 'received'}."
    return ""


def package_module(machines: Mapping[str, MachineSpec], family: str) -> str:
    """The package of the family's machines, with those that judges of traffic watch."""
    package = f"replispec.wire.{family}.machines"
    watched = {each.finding: name for name, each in machines.items() if each.finding}
    nodes: list[Node] = []
    if watched:
        rows = " ".join(f'"{finding}": {Ref(package, name)}.MACHINE,' for finding, name in watched.items())
        kind = f"{TYPING.Final}[{ABC.Mapping}[str, {_MACHINES.Machine}[{TYPING.Any}, {TYPING.Any}]]]"
        about = "The machines that judges of traffic watch, by the name of what they find."
        nodes.append(Constant("WATCHED", f"{{{rows}}}", kind, about))
    header = ["# @generated by `make generate`. Do not edit."]
    return Module(f"{package}.__init__", header, f"Machines of {family}, one module each.", nodes).text()
