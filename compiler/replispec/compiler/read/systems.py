"""From YAML to a system: parties, what effects mean, what happens around them, and what is promised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from replispec.compiler.language.check import InstanceType, Scope, require, type_of
from replispec.compiler.model import expressions as ex
from replispec.compiler.model.binding import Each
from replispec.compiler.model.faults import attempt, failures, whole_since
from replispec.compiler.model.machine import MachineSpec, VariableSpec
from replispec.compiler.model.message import Model, Place, SpecificationError
from replispec.compiler.model.rule import RuleType
from replispec.compiler.model.system import (
    ActSpec,
    ConnectionSpec,
    LocalSpec,
    PartSpec,
    PartySpec,
    PropertySpec,
    RaisesSpec,
    SystemSpec,
)
from replispec.compiler.model.value_types import BOOL, INT64, Type, parse_type
from replispec.compiler.read.binding_parts import read_name, read_variable_name
from replispec.compiler.read.system_connections import check_free, read_connections, with_peers
from replispec.compiler.read.system_effects import (
    MeaningReader,
    check_done_by_act,
    check_effects,
    check_told_apart,
    needed_local,
    peer_of,
)
from replispec.compiler.read.system_suite import RequestReader, check_requests, read_suite
from replispec.compiler.read.values import EACH, read_values
from replispec.compiler.read.yaml_source import Scalar, Tree

COUNT_MAX: Final = 9
"""Instances of a party: with more, nothing is explored to its end."""
BUDGET_MAX: Final = 9
"""How often something may happen: each one more multiplies the states."""
MESSAGES_MAX: Final = 16
"""Messages that are on their way at once."""
OF_MESSAGES: Final = ("lost", "late")
"""Budgets of what happens to messages; the others are named by acts."""
_ME: Final = "self"
_SPOKEN_FOR: Final = (_ME, "to", "peer", "world", "event", "local", "rules", "each")
"""What functions of a system are given by name beside instances."""
_PROMISED_BY_ALL: Final = "every_event_has_an_edge"
_SHAPES: Final = ("always", "eventually", "pauses")
_SYSTEM_KEYS: Final = (
    "system",
    "about",
    "parties",
    "connections",
    "acts",
    "budgets",
    "messages",
    "within",
    "promises",
    "suite",
)
_PARTY_KEYS: Final = ("about", "count", "machines", "keeps", "local", "effects")
_MACHINE_KEYS: Final = ("machine", "instance", "state", "begins")
_FLAGS: Final = ("quiet", "forgets", "crash")
_OF_CONNECTIONS: Final = ("opens", "breaks")
_ACT_KEYS: Final = (
    "about",
    "by",
    "each",
    "if",
    "do",
    "timer",
    "raises",
    "with",
    "where",
    "as",
    "assign",
    "budget",
    "requests",
    "over",
    *_OF_CONNECTIONS,
    *_FLAGS,
)
_PROMISE_KEYS: Final = ("about", "clause", "always", "eventually", "whenever", "pauses")


def read_system(
    tree: Tree, model: Model, rules: Mapping[str, RuleType], machines: Mapping[str, MachineSpec]
) -> SystemSpec:
    """The system that a file describes. Raises SpecificationError with the line of the fault."""
    return _Reader(tree, model, rules, machines).system()


def _instance_type(party: PartySpec, connections: Mapping[str, ConnectionSpec]) -> InstanceType:
    """What may be read of an instance; of a connection that it dials, with which instance it is."""
    dialled = {name: INT64 for name, each in connections.items() if each.dials.party == party.name}
    return InstanceType(
        party.name,
        {**{name: each.type for name, each in party.keeps.items()}, **dialled},
        {
            name: {variable: each.type for variable, each in part.machine.variables.items()}
            for name, part in party.parts.items()
        },
        {name: frozenset(part.machine.states) for name, part in party.parts.items()},
        {name: part.peers for name, part in party.parts.items() if part.peers},
        # Timers of a machine that is one for each peer have no names.
        {name: frozenset(part.machine.timers) for name, part in party.parts.items() if not part.peers},
    )


class _Reader:
    def __init__(
        self, tree: Tree, model: Model, rules: Mapping[str, RuleType], machines: Mapping[str, MachineSpec]
    ) -> None:
        self._tree = tree
        self._model = model
        self._machines = machines
        self._scope = Scope(model, rules=rules)
        self._parties: dict[str, PartySpec] = {}
        self._connections: dict[str, ConnectionSpec] = {}

    def system(self) -> SystemSpec:
        tree = self._tree
        tree.only(*_SYSTEM_KEYS)
        place = tree.place_of("system")
        if not tree.tree("parties").items:
            raise SpecificationError(place, "a system of nobody", "name its parties under parties")
        before = failures()
        for name, entry in tree.trees("parties"):
            with attempt(name):
                self._parties[name] = self._party(name, entry, tree.tree("parties").place_of(name))
        # Whatever speaks of a party that was refused would be refused for that alone.
        whole_since(before)
        self._connections = read_connections(tree, self._parties, self._model)
        whole_since(before)
        self._parties = with_peers(self._parties, self._connections)
        kinds = {name: _instance_type(each, self._connections) for name, each in self._parties.items()}
        single = {name: kinds[name] for name, each in self._parties.items() if each.count == 1}
        self._scope = replace(self._scope, parties=kinds, instances=single)
        for name, entry in tree.trees("parties"):
            with attempt(name):
                self._parties[name] = self._with_meaning(self._parties[name], entry)
        whole_since(before)
        budgets = self._numbers("budgets", BUDGET_MAX)
        within = self._condition(tree, "within", {}) if "within" in tree.items else None
        before_acts = failures()
        acts = tuple(self._acts(budgets))
        if failures() == before_acts:
            # What an act does that was refused is done by nobody.
            self._check_done(acts)
        promises = tuple(self._promises())
        if not tree.tree("promises").items:
            raise SpecificationError(place, "nothing is promised", "say under promises what must hold")
        messages = self._number(tree, "messages", MESSAGES_MAX)
        about = tree.text("about")
        suite = read_suite(tree.tree("suite"), self._parties) if "suite" in tree.items else None
        check_requests(acts, suite)
        whole = (self._parties, acts, promises, budgets, messages, within, self._connections, suite)
        return SystemSpec(tree.text("system"), about, place, *whole)

    def _check_done(self, acts: tuple[ActSpec, ...]) -> None:
        """Refuse effects that neither a machine nor an act does."""
        for name, tree in self._tree.trees("parties"):
            party = self._parties[name]
            done = {effect for part in party.parts.values() for effect in part.machine.effects()}
            done |= {effect for act in acts if act.party == name for effect in act.does}
            for effect in party.effects:
                if effect not in done:
                    with attempt(name):
                        place = tree.tree("effects").place_of(effect)
                        raise SpecificationError(
                            place, f"no machine and no act of {name} does {effect}", "leave it out"
                        )

    def _number(self, tree: Tree, key: str, most: int) -> int:
        node = tree.items.get(key)
        if not isinstance(node, Scalar) or type(node.value) is not int or not 0 <= node.value <= most:
            raise SpecificationError(
                tree.place_of(key), f"{key} is no number from 0 to {most}", "what is explored must be bounded"
            )
        return node.value

    def _numbers(self, key: str, most: int) -> dict[str, int]:
        tree = self._tree.tree(key)
        return {name: self._number(tree, name, most) for name in tree.items}

    def _expression(self, text: str, place: Place, names: Mapping[str, InstanceType]) -> ex.Expression:
        return ex.parse(text, place, {*self._scope.instances, *names, *self._parties})

    def _condition(self, tree: Tree, key: str, names: Mapping[str, InstanceType]) -> ex.Expression:
        place = tree.place_of(key)
        node = self._expression(tree.text(key), place, names)
        require(node, BOOL, self._inside(names), place, f"{tree.text(key)!r}")
        return node

    def _inside(self, names: Mapping[str, InstanceType]) -> Scope:
        return replace(self._scope, instances={**self._scope.instances, **names})

    # Parties

    def _party(self, name: str, tree: Tree, place: Place) -> PartySpec:
        """A party without what its expressions say."""
        tree.only(*_PARTY_KEYS)
        read_variable_name(name, place)
        if name == _ME:
            raise SpecificationError(place, "every instance is self to itself", "give the party another name")
        count = self._number(tree, "count", COUNT_MAX) if "count" in tree.items else 1
        if count == 0:
            raise SpecificationError(tree.place_of("count"), "a party of nobody", "leave it out")
        machines = tree.tree("machines")
        parts = {each: self._part(each, machines) for each in machines.items}
        check_told_apart(parts)
        keeps = {each: self._keep(each, tree.tree("keeps")) for each in tree.tree("keeps").items}
        for each in keeps:
            check_free(each, tree.tree("keeps").place_of(each), parts)
        return PartySpec(name, tree.text("about", ""), place, count, parts, keeps)

    def _part(self, name: str, machines: Tree) -> PartSpec:
        place = machines.place_of(name)
        read_variable_name(name, place)
        check_free(name, place)
        node = machines.items[name]
        if isinstance(node, Scalar):
            return PartSpec(name, self._machine(machines.text(name), place), place)
        tree = machines.tree(name)
        tree.only(*_MACHINE_KEYS)
        machine = self._machine(tree.text("machine"), tree.place_of("machine"))
        state = tree.text("state", "")
        if state and state not in machine.states:
            raise SpecificationError(
                tree.place_of("state"), f"{machine.name} has no state {state!r}", ", ".join(machine.states)
            )
        return PartSpec(name, machine, place, tree.text("instance", ""), state)

    def _machine(self, name: str, place: Place) -> MachineSpec:
        if name not in self._machines:
            raise SpecificationError(
                place, f"no machine is named {name!r}", f"known: {', '.join(self._machines)}"
            )
        return self._machines[name]

    def _keep(self, name: str, keeps: Tree) -> VariableSpec:
        place = keeps.place_of(name)
        read_variable_name(name, place)
        tree = keeps.tree(name)
        tree.only("type", "about", "initial", "durable")
        kind = parse_type(tree.text("type"), self._model, place)
        return VariableSpec(name, kind, tree.text("about", ""), place, durable=tree.flag("durable"))

    def _with_meaning(self, party: PartySpec, tree: Tree) -> PartySpec:
        """The party with its start, its role's knowledge and the meaning of its effects."""
        me = {"self": self._scope.parties[party.name]}
        parts = {name: self._begun(part, tree.tree("machines"), me) for name, part in party.parts.items()}
        keeps = {name: self._kept(each, tree.tree("keeps"), me) for name, each in party.keeps.items()}
        party = replace(party, parts=parts, keeps=keeps)
        local = {each.name: each for each in self._local(party, tree.tree("local"), me)}
        reader = self._reader(party, me)
        effects = reader.effects(tree.tree("effects"))
        party = replace(party, local=local, effects=effects, reasons=reader.reasons)
        check_effects(party, tree.place_of("effects"))
        for name in needed_local(party, self._machines):
            if name not in local:
                raise SpecificationError(
                    tree.place_of("local"), f"local.{name} of {party.name} is not said", f"write {name}: .."
                )
        return party

    def _reader(self, party: PartySpec, names: Mapping[str, InstanceType]) -> MeaningReader:
        whole = (party, self._parties, self._machines, self._connections)
        return MeaningReader(*whole, self._inside(names), self._expression)

    def _begun(self, part: PartSpec, machines: Tree, me: Mapping[str, InstanceType]) -> PartSpec:
        if isinstance(machines.items[part.name], Scalar):
            return part
        begins = machines.tree(part.name).tree("begins")
        me = {**me, **peer_of(part)}
        found = {}
        for name in begins.items:
            place = begins.place_of(name)
            if name not in part.machine.variables:
                raise SpecificationError(
                    place, f"{part.machine.name} has no variable {name!r}", ", ".join(part.machine.variables)
                )
            found[name] = self._start(begins, name, me, _ME)
            wanted = part.machine.variables[name].type
            require(found[name], wanted, self._inside(me), place, f"the start of {name}")
        return replace(part, begins=found)

    def _kept(self, kept: VariableSpec, keeps: Tree, me: Mapping[str, InstanceType]) -> VariableSpec:
        tree = keeps.tree(kept.name)
        if "initial" not in tree.items:
            return kept
        node = self._start(tree, "initial", me)
        require(node, kept.type, self._inside(me), tree.place_of("initial"), f"the start of {kept.name}")
        return replace(kept, initial=node)

    def _start(self, tree: Tree, key: str, me: Mapping[str, InstanceType], keeper: str = "") -> ex.Expression:
        """What a start is computed from: instances have their numbers first, and what `keeper` keeps before
        its machines begin."""
        place = tree.place_of(key)
        node = self._expression(tree.text(key), place, me)
        for each in ex.walk(node):
            if isinstance(each, ex.PartName) and each.names[1:] != ("number",):
                if each.names[0] == keeper and each.names[1] in me[keeper].keeps:
                    continue
                read = ".".join(each.names)
                raise SpecificationError(
                    place,
                    f"{read} begins, too",
                    "a start reads numbers of instances, and that of a machine what its instance keeps",
                )
        return node

    def _local(self, party: PartySpec, tree: Tree, me: Mapping[str, InstanceType]) -> Iterator[LocalSpec]:
        machines = (*(part.machine for part in party.parts.values()), *self._machines.values())
        for name in tree.items:
            place = tree.place_of(name)
            asked = [each.bindings.local[name] for each in machines if name in each.bindings.local]
            if not asked:
                raise SpecificationError(place, f"no machine asks for local.{name}", "leave it out")
            kind = asked[0].type
            if isinstance(tree.items[name], Tree):
                yield LocalSpec(name, kind, self._each(kind, tree.tree(name), me))
                continue
            names = dict(me)
            for part in party.parts.values():
                names |= peer_of(part) if name in part.machine.bindings.local else {}
            node = self._expression(tree.text(name), place, names)
            # What does not fit is refused by the codec that would write it.
            wanted = replace(kind, kind="int64") if kind.is_integer else kind
            require(node, wanted, replace(self._inside(names), variables=asked[0].of), place, f"local.{name}")
            yield LocalSpec(name, kind, node, tuple(asked[0].of))

    def _each(self, wanted: Type, tree: Tree, me: Mapping[str, InstanceType]) -> Each:
        """A list of messages, one for each element of a set."""
        tree.only(EACH, "of")
        place = tree.place_of(EACH)
        if wanted.item is None or wanted.item.kind != "message":
            raise SpecificationError(place, f"this is {wanted}, no list of messages", "give an expression")
        elements = self._expression(tree.text(EACH), place, me)
        scope = self._inside(me)
        kind = type_of(elements, scope, place)
        if kind.item is None or kind.kind not in ("list", "set") or kind.optional:
            raise SpecificationError(place, f"each of {kind}", "give it a list or set that is not none")
        inner = replace(scope, variables={EACH: kind.item})
        message = self._model.messages[wanted.item.name]
        values = read_values(message, tree.tree("of"), inner)
        for name, value in values.items():
            if not isinstance(value, ex.Expression):
                raise SpecificationError(
                    tree.tree("of").place_of(name), f"{name} is a message", "say it by an expression"
                )
        return Each(elements, values)

    # Acts and promises

    def _acts(self, budgets: Mapping[str, int]) -> Iterator[ActSpec]:
        used, before = set(OF_MESSAGES), failures()
        acts = self._tree.tree("acts")
        for name, tree in acts.entries():
            with attempt(name):
                used.add(tree.text("budget", ""))
                place = acts.place_of(name)
                if name in self._parties:
                    raise SpecificationError(place, f"{name} is a party already", "give the act another name")
                act = self._act(name, tree, place)
                if act.budget and act.budget not in budgets:
                    raise SpecificationError(
                        tree.place_of("budget"), f"no budget is named {act.budget!r}", ", ".join(budgets)
                    )
                yield act
        for name in budgets:
            # An act that was refused may have meant this one.
            if name not in used and failures() == before:
                place = self._tree.tree("budgets").place_of(name)
                raise SpecificationError(place, f"nothing takes from the budget {name}", "leave it out")

    def _act(self, name: str, tree: Tree, place: Place) -> ActSpec:
        tree.only(*_ACT_KEYS)
        read_name(name, place)
        by = tree.text("by")
        each = {one: tree.tree("each").text(one) for one in tree.tree("each").items}
        for its in (by, *each.values()):
            if its not in self._parties:
                raise SpecificationError(place, f"no party is named {its!r}", ", ".join(self._parties))
        for one in each:
            read_variable_name(one, place)
            if one in _SPOKEN_FOR:
                raise SpecificationError(place, f"{one} is something else to an act", "take another name")
        names = {_ME: by, **each}
        kinds = {one: self._scope.parties[its] for one, its in names.items()}
        condition = self._condition(tree, "if", kinds) if "if" in tree.items else None
        party = self._parties[by]
        reader = self._reader(party, kinds)
        does = tree.texts("do")
        for effect in does:
            if effect not in party.effects:
                raise SpecificationError(
                    tree.place_of("do"), f"{by} has no effect {effect!r}", ", ".join(party.effects)
                )
            check_done_by_act(party, effect, self._machines, tree.place_of("do"))
        for key in ("with", "where", "as"):
            if key in tree.items and "raises" not in tree.items:
                raise SpecificationError(tree.place_of(key), f"{key}, but nothing is raised", "say raises")
        means = tuple(reader.of_an_act(tree, names))
        timer = self._timer(tree, party) if "timer" in tree.items else None
        if timer is not None:
            event = party.parts[timer[0]].machine.timers[timer[1]].event
            means = (*means, RaisesSpec(timer[0], event, {}, None))
        crash = tree.flag("crash")
        if crash and timer is not None:
            raise SpecificationError(place, f"{name} is a timer and a crash", "make it two acts")
        opens, breaks = (self._connection(tree, key, by, each) for key in _OF_CONNECTIONS)
        if not (does or means or crash or opens or breaks):
            raise SpecificationError(place, f"{name} does nothing", "say do, timer, raises, assign or crash")
        return ActSpec(
            name,
            tree.text("about", ""),
            place,
            by,
            each,
            condition,
            does,
            means,
            tree.text("budget", ""),
            tree.flag("quiet"),
            tree.flag("forgets") or crash,
            timer,
            crash,
            opens,
            breaks,
            RequestReader(self._model, self._scope, self._expression).requests(tree, kinds),
        )

    def _timer(self, tree: Tree, party: PartySpec) -> tuple[str, str]:
        """The timer of a machine that ends."""
        place = tree.place_of("timer")
        if "raises" in tree.items:
            raise SpecificationError(place, "a timer raises its own event", "leave raises out")
        part, _, name = tree.text("timer").partition(".")
        if part not in party.parts or name not in party.parts[part].machine.timers:
            known = (f"{one}.{timer}" for one, each in party.parts.items() for timer in each.machine.timers)
            raise SpecificationError(
                place, f"{party.name} has no timer {tree.text('timer')!r}", ", ".join(known) or "it has none"
            )
        if party.parts[part].peers:
            raise SpecificationError(place, f"{part} is one for each peer", "raise the event of one instead")
        return part, name

    def _connection(self, tree: Tree, key: str, by: str, each: Mapping[str, str]) -> str:
        """The connection that an act opens or breaks; who dials it does either."""
        name = tree.text(key, "")
        if not name:
            return ""
        place = tree.place_of(key)
        found = self._connections.get(name)
        if found is None or found.dials.party != by:
            known = (one for one, its in self._connections.items() if its.dials.party == by)
            raise SpecificationError(place, f"{by} dials no connection {name!r}", ", ".join(known))
        if key == "opens" and list(each.values()) != [found.accepts.party]:
            raise SpecificationError(
                place,
                f"{name} is opened to nobody",
                f"name the other end: each: {{NAME: {found.accepts.party}}}",
            )
        return name

    def _promises(self) -> Iterator[PropertySpec]:
        promises = self._tree.tree("promises")
        for name, tree in promises.entries():
            with attempt(name):
                place = promises.place_of(name)
                tree.only(*_PROMISE_KEYS)
                read_name(name, place)
                if name == _PROMISED_BY_ALL:
                    raise SpecificationError(place, f"every system promises {name}", "take another name")
                shapes = [shape for shape in _SHAPES if shape in tree.items]
                if len(shapes) != 1 or ("whenever" in tree.items) != (shapes == ["eventually"]):
                    raise SpecificationError(
                        place,
                        f"{name} promises {' and '.join(shapes) or 'nothing'}",
                        "say always: CONDITION, whenever: and eventually:, or pauses: true",
                    )
                yield self._promise(name, shapes[0], tree, place)

    def _promise(self, name: str, shape: str, tree: Tree, place: Place) -> PropertySpec:
        holds = whenever = None
        if shape != "pauses":
            holds = self._condition(tree, shape, {})
        elif not tree.flag(shape):
            raise SpecificationError(place, "pauses is not true", "leave the promise out")
        if "whenever" in tree.items:
            whenever = self._condition(tree, "whenever", {})
        about = tree.text("about")
        return PropertySpec(name, about, place, shape, holds, whenever, tree.texts("clause"))
