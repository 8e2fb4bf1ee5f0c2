"""From YAML to a machine: names, types and expressions, each refused at its own line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from replispec.compiler.check.machines import check_machine, check_overlays, check_pair
from replispec.compiler.check.timers import check_timers_of
from replispec.compiler.language.check import GuardType, Scope, present_after, require
from replispec.compiler.model import expressions as ex
from replispec.compiler.model.faults import attempt, failures, whole_since
from replispec.compiler.model.machine import (
    Event,
    Guard,
    MachineSpec,
    OverlaySpec,
    Pair,
    StateSpec,
    Table,
    Transition,
    VariableSpec,
)
from replispec.compiler.model.message import Model, Place, SpecificationError
from replispec.compiler.model.parameter import ConfigurationSpec
from replispec.compiler.model.rule import RuleType
from replispec.compiler.model.value_types import BOOL, Type, field_type, parse_type
from replispec.compiler.model.versions import parse_versions
from replispec.compiler.read.binding_parts import read_name, read_variable_name
from replispec.compiler.read.bindings import EVENT_KEYS, code_text, is_bound, read_bindings
from replispec.compiler.read.parameters import default_ms
from replispec.compiler.read.payloads import sent_names
from replispec.compiler.read.shorthand import SAME, Shorthand, read_shorthand
from replispec.compiler.read.timers import read_doing, with_timers
from replispec.compiler.read.yaml_source import Scalar, Tree

_Present = frozenset[ex.Expression]
_FINDING = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_STATE = re.compile(r"[A-Z][A-Z0-9_]*")
_EVENT_KEYS: Final = (
    "about",
    "origin",
    "message",
    "sends",
    "where",
    "fields",
    *("timer", "hidden"),
    *EVENT_KEYS,
)
_TRANSITION_KEYS: Final = (
    "from",
    "event",
    "if",
    "else",
    "to",
    "do",
    "assign",
    "clause",
    "blame",
    "tolerated",
    "diverges",
)


def read_machine(
    tree: Tree, model: Model, rules: Mapping[str, RuleType], configuration: ConfigurationSpec
) -> MachineSpec:
    """The machine that a file describes; its timers last as long as the parameters of their names say.

    Raises SpecificationError with the line of the first fault.
    """
    return _Reader(tree, model, rules, configuration).machine()


def guard_types(machine: MachineSpec) -> dict[str, GuardType]:
    """What each named guard of a machine needs of whoever uses it."""
    found: dict[str, GuardType] = {}
    variables = {name: each.type for name, each in machine.variables.items()}
    for guard in machine.guards.values():
        nodes = list(ex.walk(guard.condition))
        inner = [found[node.name] for node in nodes if isinstance(node, ex.GuardName)]
        reads = {node.name for node in nodes if isinstance(node, ex.Variable)}.union(
            *(each.variables for each in inner)
        )
        fields = {node.name for node in nodes if isinstance(node, ex.EventField)}.union(
            *(each.fields for each in inner)
        )
        event = machine.events[guard.event].fields
        found[guard.name] = GuardType(
            {name: variables[name] for name in sorted(reads)},
            {name: event[name] for name in sorted(fields)},
            guard.event,
            any(isinstance(node, ex.Rule) for node in nodes) or any(each.uses_rules for each in inner),
        )
    return found


class _Reader:
    def __init__(
        self, tree: Tree, model: Model, rules: Mapping[str, RuleType], configuration: ConfigurationSpec
    ) -> None:
        self._tree = tree
        self._model = model
        self._rules = rules
        self._configuration = configuration
        self._scope = Scope(model, rules=rules)
        self._shorthand = Shorthand()

    def machine(self) -> MachineSpec:
        """Read top down: what comes later may use what came before."""
        tree = self._tree
        tree.only(
            "machine",
            "about",
            "instance",
            "watched",
            "states",
            "groups",
            "enum",
            "variables",
            "let",
            "local",
            "missing",
            "log",
            "events",
            "timers",
            "answers",
            "notices",
            "notes",
            "sends",
            "views",
            "guards",
            "transitions",
            "overlays",
        )
        failed = failures()
        name = read_name(tree.text("machine"), tree.place_of("machine"))
        states = {each.name: each for each in self._states()}
        # Whatever speaks of a state whose name was refused would be refused for that alone.
        whole_since(failed)
        machine = MachineSpec(
            name=name,
            about=tree.text("about"),
            place=tree.place_of("machine"),
            states=states,
            enum=self._enum(),
            variables={each.name: each for each in self._variables()},
            events={},
            guards={},
            table={},
            overlays=(),
        )
        self._scope = replace(
            self._scope, variables={name: each.type for name, each in machine.variables.items()}
        )
        self._shorthand = read_shorthand(tree, machine.states)
        machine = replace(machine, events={each.name: each for each in self._events()})
        machine = with_timers(machine, tree, self._configuration, self._shorthand.states)
        machine = self._with_lets(self._with_guards(machine))
        edges = tuple(self._transitions(tree, "transitions", machine))
        whole_since(failed)
        machine = replace(machine, table=self._table(edges))
        machine = replace(machine, overlays=tuple(self._overlays(machine)))
        machine = self._with_answers(self._with_watched(self._with_instance(machine)))
        whole_since(failed)
        check_machine(machine, self._model)
        check_timers_of(machine)
        return replace(machine, bindings=read_bindings(tree, machine, self._model, self._rules))

    def _with_lets(self, machine: MachineSpec) -> MachineSpec:
        """The machine with its names of expressions: none may be that of a guard, as both are functions."""
        lets = self._shorthand.lets
        for name in lets.keys() & machine.guards.keys():
            place = self._tree.tree("let").place_of(name)
            raise SpecificationError(place, f"{name} is a guard, too", "give one of them another name")
        return replace(machine, lets=lets)

    def _condition(
        self, text: str, scope: Scope, place: Place, present: _Present = frozenset()
    ) -> ex.Expression:
        node = self._shorthand.parse(text, place)
        require(node, BOOL, scope, place, f"{text!r}", present)
        return node

    def _states(self) -> Iterable[StateSpec]:
        for name, tree in self._tree.trees("states"):
            with attempt(name):
                place = self._tree.tree("states").place_of(name)
                if not _STATE.fullmatch(name):
                    raise SpecificationError(
                        place, f"{name!r} is no name of a state", "use capital words joined by _"
                    )
                tree.only("about", "initial", "final", "unreached")
                flags = tree.flag("initial"), tree.flag("final")
                yield StateSpec(name, tree.text("about", ""), place, *flags, tree.text("unreached", ""))

    def _enum(self) -> str:
        name = self._tree.text("enum", "")
        if name and name not in self._model.enums:
            raise SpecificationError(
                self._tree.place_of("enum"), f"no enum is named {name!r}", "name one of spec/proto"
            )
        return name

    def _variables(self) -> Iterable[VariableSpec]:
        variables = self._tree.tree("variables")
        for name, node in variables.items.items():
            with attempt(name):
                place = variables.place_of(name)
                read_variable_name(name, place)
                if isinstance(node, Scalar):
                    yield VariableSpec(name, parse_type(node.text, self._model, place), "", place)
                    continue
                tree = variables.tree(name)
                tree.only("type", "about", "initial", "durable")
                kind, initial = parse_type(tree.text("type"), self._model, place), None
                if "initial" in tree.items:
                    initial = ex.parse(tree.text("initial"), place)
                    require(initial, kind, Scope(self._model), place, f"the start of {name}")
                yield VariableSpec(name, kind, tree.text("about", ""), place, initial, tree.flag("durable"))

    def _events(self) -> Iterable[Event]:
        for name, tree in self._tree.trees("events"):
            with attempt(name):
                place = self._tree.tree("events").place_of(name)
                read_name(name, place)
                tree.only(*_EVENT_KEYS)
                yield self._event(name, tree, place)

    def _event(self, name: str, tree: Tree, place: Place) -> Event:
        # An event with fields is not its message, but made of it: see the bindings.
        received, sent = tree.texts("message") if "fields" not in tree.items else (), sent_names(tree)
        timer = tree.text("timer", "")
        origin = tree.text("origin", "peer" if received or is_bound(tree) else "local")
        if origin not in ("peer", "local"):
            raise SpecificationError(tree.place_of("origin"), f"{origin!r} is no origin", "use peer or local")
        if sum(map(bool, (received, sent, timer, "fields" in tree.items))) > 1:
            raise SpecificationError(
                place, f"{name} is of several kinds", "give one of message, sends, timer, fields"
            )
        if sent and origin == "peer":
            raise SpecificationError(
                place, f"{name} is sent, but by the peer", "write origin: local, or message:"
            )
        hidden = tree.flag("hidden")
        if hidden and (received or sent or origin == "peer"):
            raise SpecificationError(place, f"{name} is hidden, though the wire shows it", "drop hidden")
        fields = (
            self._message_fields(received + sent, place) if received or sent else self._local_fields(tree)
        )
        event = Event(
            name,
            tree.text("about", ""),
            place,
            origin == "peer",
            received + sent,
            bool(sent),
            fields,
            hidden=hidden,
        )
        if timer:
            lasts_ms = default_ms(self._configuration, timer, tree.place_of("timer"))
            event = replace(event, timer=timer, default_ms=lasts_ms)
        if "where" in tree.items:
            scope = Scope(self._model, event=fields, event_name=name, rules=self._rules)
            event = replace(event, where=self._condition(tree.text("where"), scope, tree.place_of("where")))
        return event

    def _local_fields(self, tree: Tree) -> dict[str, Type]:
        fields = tree.tree("fields")
        return {
            read_name(name, fields.place_of(name)): parse_type(
                fields.text(name), self._model, fields.place_of(name)
            )
            for name in fields.items
        }

    def _message_fields(self, names: Iterable[str], place: Place) -> dict[str, Type]:
        """The fields of the forms of a message; one that some forms lack may be none."""
        forms = []
        for name in names:
            message = self._model.messages.get(name)
            if message is None:
                raise SpecificationError(place, f"no message is named {name!r}", "name one of spec/proto")
            typed = ((each.name, field_type(each, message, self._model)) for each in message.fields)
            forms.append({each: kind for each, kind in typed if kind is not None})
        fields: dict[str, Type] = {}
        for name in dict.fromkeys(name for form in forms for name in form):
            kinds = [form[name] for form in forms if name in form]
            if len({kind.required() for kind in kinds}) == 1:
                optional = len(kinds) < len(forms) or any(kind.optional for kind in kinds)
                fields[name] = replace(kinds[0], optional=optional)
        return fields

    def _with_guards(self, machine: MachineSpec) -> MachineSpec:
        for name, tree in self._tree.trees("guards"):
            with attempt(name):
                place = self._tree.tree("guards").place_of(name)
                tree.only("if", "event", "about", "clause")
                read_name(name, place)
                event = self._event_named(tree.text("event"), machine, place)
                scope = self._edge_scope(machine, event)
                condition = self._condition(tree.text("if"), scope, place)
                guard = Guard(name, tree.text("about"), place, event.name, condition, tree.texts("clause"))
                machine = replace(machine, guards={**machine.guards, name: guard})
        return machine

    def _event_named(self, name: str, machine: MachineSpec, place: Place) -> Event:
        if name not in machine.events:
            raise SpecificationError(
                place, f"no event is named {name!r}", f"events: {', '.join(machine.events)}"
            )
        return machine.events[name]

    def _edge_scope(self, machine: MachineSpec, event: Event) -> Scope:
        guards = {("", name): kind for name, kind in guard_types(machine).items() if kind.event == event.name}
        return replace(self._scope, event=event.fields, event_name=event.name, guards=guards)

    def _transitions(self, tree: Tree, key: str, machine: MachineSpec) -> Iterable[Transition]:
        earlier: dict[Pair, _Present] = {}
        for item in tree.listed(key):
            with attempt():
                item.only(*_TRANSITION_KEYS)
                for name in item.texts("event"):
                    event = self._event_named(name, machine, item.place_of("event"))
                    sources, to = self._shorthand.states(item.texts("from")), item.text("to")
                    if to == SAME and len(set(sources)) == len(sources):
                        for source in sources:
                            yield self._transition(item, machine, event, earlier, (source,), source)
                    else:
                        yield self._transition(item, machine, event, earlier, sources, to)

    def _transition(
        self,
        tree: Tree,
        machine: MachineSpec,
        event: Event,
        earlier: dict[Pair, _Present],
        sources: tuple[str, ...],
        to: str,
    ) -> Transition:
        """An edge from each source. `earlier` holds what is present because earlier edges were not taken."""
        for name in (*sources, to):
            if name not in machine.states:
                raise SpecificationError(
                    tree.place, f"no state is named {name!r}", f"states: {', '.join(machine.states)}"
                )
        if not sources or len(set(sources)) < len(sources):
            raise SpecificationError(
                tree.place, "from is empty or names a state twice", "name every state once"
            )
        scope = self._edge_scope(machine, event)
        pairs = [(state, event.name) for state in sources]
        present = frozenset.intersection(*(earlier.get(pair, frozenset()) for pair in pairs))
        condition = None
        if "if" in tree.items:
            condition = self._condition(tree.text("if"), scope, tree.place_of("if"), present)
            meaning = ex.with_guards(
                condition, {name: guard.condition for name, guard in machine.guards.items()}
            )
            for pair in pairs:
                earlier[pair] = earlier.get(pair, frozenset()) | present_after(meaning, when=False)
            present |= present_after(meaning, when=True)
        blame = tree.text("blame", "")
        if blame not in ("", "peer") or (blame and not event.is_peer):
            raise SpecificationError(
                tree.place, f"{blame!r} cannot be blamed for {event.name}", "blame: peer, on a peer's event"
            )
        doing = read_doing(tree, machine.timers)
        return Transition(
            sources=sources,
            event=event.name,
            to=to,
            place=tree.place,
            condition=condition,
            otherwise=tree.flag("else"),
            do=doing.do,
            arms=doing.arms,
            cancels=doing.cancels,
            assign=self._assign(tree, machine, scope, present),
            clauses=tree.texts("clause"),
            blames_peer=bool(blame),
            tolerated=tree.text("tolerated", ""),
            diverges=tree.text("diverges", ""),
        )

    def _assign(
        self, tree: Tree, machine: MachineSpec, scope: Scope, present: _Present
    ) -> dict[str, ex.Expression]:
        """The new values; what the conditions found present is present."""
        assign = tree.tree("assign")
        found = {}
        for name in assign.items:
            place = assign.place_of(name)
            if name not in machine.variables:
                raise SpecificationError(
                    place, f"no variable is named {name!r}", f"variables: {', '.join(machine.variables)}"
                )
            node = self._shorthand.parse(assign.text(name), place)
            require(node, machine.variables[name].type, scope, place, f"the new value of {name}", present)
            found[name] = node
        return found

    def _table(self, transitions: Iterable[Transition]) -> Table:
        table: dict[Pair, list[Transition]] = {}
        for each in transitions:
            for state in each.sources:
                table.setdefault((state, each.event), []).append(each)
        for pair, edges in table.items():
            check_pair(pair, edges)
        return {pair: tuple(edges) for pair, edges in table.items()}

    def _overlays(self, machine: MachineSpec) -> Iterable[OverlaySpec]:
        overlays = []
        for text, tree in self._tree.trees("overlays"):
            place = self._tree.tree("overlays").place_of(text)
            versions = parse_versions(text, place)
            if versions is None:
                raise SpecificationError(
                    place, "an overlay without releases", "write ours@5.1.0..: {add: [..]}"
                )
            tree.only("about", "add", "remove")
            overlays.append(OverlaySpec(versions, self._overlay_table(tree, machine), place))
        check_overlays(overlays)
        return overlays

    def _overlay_table(self, tree: Tree, machine: MachineSpec) -> Table:
        """All edges of every pair that differs: added edges come before those that stay."""
        removed: set[Pair] = set()
        for item in tree.listed("remove"):
            item.only("from", "event")
            for state in item.texts("from"):
                pair = (state, item.text("event"))
                if pair not in machine.table:
                    raise SpecificationError(
                        item.place, f"{state} has no edge on {pair[1]}", "remove what exists"
                    )
                removed.add(pair)
        added: dict[Pair, list[Transition]] = {}
        for each in self._transitions(tree, "add", machine):
            for state in each.sources:
                added.setdefault((state, each.event), []).append(each)
        table: Table = {}
        for pair in sorted(removed | set(added)):
            kept = () if pair in removed else machine.table.get(pair, ())
            edges = (*added.get(pair, ()), *kept)
            if edges:
                check_pair(pair, edges)
            table[pair] = edges
        return table

    def _with_answers(self, machine: MachineSpec) -> MachineSpec:
        """The codes of the effects that answer a request, each a value of an enum of spec/proto."""
        tree = self._tree.tree("answers")
        known = machine.effects()
        for name in tree.items:
            if name not in known:
                raise SpecificationError(
                    tree.place_of(name), f"no edge does {name!r}", f"effects: {', '.join(known)}"
                )
            text = code_text(tree, name)
            enum, _, value = text.partition(".")
            values = self._model.enums[enum].values if enum in self._model.enums else ()
            if value not in {each.name for each in values}:
                raise SpecificationError(
                    tree.place_of(name), f"{text!r} is no value of an enum", "write ENUM.NAME"
                )
        return replace(machine, answers={name: code_text(tree, name) for name in tree.items})

    def _with_watched(self, machine: MachineSpec) -> MachineSpec:
        """What judges of traffic find when they watch the machine; nothing when they do not."""
        if "watched" not in self._tree.items:
            return machine
        tree = self._tree.tree("watched")
        tree.only("finding", "evaluated")
        finding = tree.text("finding")
        if not _FINDING.fullmatch(finding):
            raise SpecificationError(
                tree.place_of("finding"), f"{finding!r} names no finding", "use lower case words joined by -"
            )
        return replace(machine, finding=finding, evaluated=tree.text("evaluated"))

    def _with_instance(self, machine: MachineSpec) -> MachineSpec:
        tree = self._tree.tree("instance")
        tree.only("key", "learns")
        learns = tree.tree("learns")
        for name in learns.items:
            message, _, field_name = learns.text(name).partition(".")
            known = self._model.messages.get(message)
            if known is None or known.field_named(field_name) is None:
                raise SpecificationError(
                    learns.place_of(name), f"no field {message}.{field_name}", "write MESSAGE.FIELD"
                )
        learned = {name: learns.text(name) for name in learns.items}
        return replace(machine, instance_key=tree.text("key", ""), learns=learned)
