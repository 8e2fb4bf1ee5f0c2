"""From YAML to what the effects of a party mean: messages, events of its other machines, new values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from replispec.compiler.language.check import InstanceType, Scope, require
from replispec.compiler.model import expressions as ex
from replispec.compiler.model.binding import expressions_in
from replispec.compiler.model.layout import derived_fields, is_constant
from replispec.compiler.model.machine import Event, MachineSpec
from replispec.compiler.model.message import Place, SpecificationError
from replispec.compiler.model.system import (
    AsksSpec,
    AssignsSpec,
    BeginsSpec,
    ClosesSpec,
    ConnectionSpec,
    MeaningSpec,
    PartSpec,
    PartySpec,
    RaisesSpec,
    SendsSpec,
)
from replispec.compiler.model.value_types import BOOL, Type
from replispec.compiler.read.yaml_source import Sequence, Tree

Parse = Callable[[str, Place, Mapping[str, InstanceType]], ex.Expression]
TO: Final = "to"
"""How `where` calls the instance that would be told."""
PEER: Final = "peer"
"""What the other end of a connection is called where a machine accepts one from each."""
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "asks": ("says", "once", "newest", "where"),
    "tells": ("says", "once", "where"),
    "raises": ("with", "where", "as"),
    "assign": (),
    "sends": ("over", "body", "where", "while", "once"),
    "closes": (),
    "begins": (),
    "nothing": (),
}
"""What an effect may mean, with what may be said beside."""


def check_told_apart(parts: Mapping[str, PartSpec]) -> None:
    """Refuse a party with two machines that hear, and are heard, by the same messages."""
    seen: dict[str, str] = {}
    for name, part in parts.items():
        other = seen.setdefault(part.machine.name, name)
        if other != name and part.machine.bindings:
            raise SpecificationError(
                part.place,
                f"{other} and {name} are one machine, and no message says which of them it is for",
                "make it a party of its own, or leave it out",
            )


def check_effects(party: PartySpec, place: Place) -> None:
    """Refuse a party of which an effect has no meaning. Raises SpecificationError."""
    for part in party.parts.values():
        bindings = part.machine.bindings
        said = {*bindings.answers, *bindings.notes} if bindings.is_answering else set()
        for effect in part.machine.effects():
            if effect not in said and effect not in party.effects:
                raise SpecificationError(
                    place,
                    f"what {effect} of {part.machine.name} means to {party.name} is not said",
                    f"write {effect}: {{asks, tells, raises, assign, or nothing: WHY}}",
                )


def peer_of(part: PartSpec) -> dict[str, InstanceType]:
    """The other end of the connection that a machine is an end of, by its name: its number may be read."""
    return {PEER: InstanceType(part.peers)} if part.peers else {}


def needed_local(party: PartySpec, machines: Mapping[str, MachineSpec]) -> Iterator[str]:
    """What machines of the party, and what it says by others, ask of the role."""
    own = {part.machine.name: part.machine for part in party.parts.values()}
    for machine in own.values():
        yield from machine.bindings.local
    for means in party.effects.values():
        for each in means:
            if isinstance(each, AsksSpec) and each.says and each.machine not in own:
                payload = machines[each.machine].bindings.sends[each.says]
                for node in expressions_in((payload.fields, payload.body_fields)):
                    for part in ex.walk(node):
                        if isinstance(part, ex.SourceField | ex.LocalCall):
                            yield part.name


def check_done_by_act(
    party: PartySpec, effect: str, machines: Mapping[str, MachineSpec], place: Place
) -> None:
    """Refuse an effect that an act does where it needs an edge of a machine: its event, or its notice."""
    for means in party.effects[effect]:
        nodes: list[ex.Expression] = []
        match means:
            case AsksSpec(says=""):
                raise SpecificationError(
                    place, f"{effect} is a notice of {means.machine}", "only an edge of the machine tells it"
                )
            case AsksSpec():
                payload = machines[means.machine].bindings.sends[means.says]
                nodes += expressions_in((payload.fields, payload.body_fields))
                nodes += [] if means.where is None else [means.where]
            case RaisesSpec():
                nodes += means.fields.values()
                nodes += [] if means.where is None else [means.where]
            case AssignsSpec():
                nodes += means.values.values()
        for node in (part for each in nodes for part in ex.walk(each)):
            if isinstance(node, ex.EventField):
                raise SpecificationError(
                    place,
                    f"{effect} reads event.{node.name}, and an act has no event",
                    "raise an event on which it is done",
                )


class MeaningReader:
    """Reads the meanings of one party's effects, or of an act of its instances.

    `reasons` say of effects why they mean nothing.
    """

    def __init__(
        self,
        party: PartySpec,
        parties: Mapping[str, PartySpec],
        machines: Mapping[str, MachineSpec],
        connections: Mapping[str, ConnectionSpec],
        scope: Scope,
        parse: Parse,
    ) -> None:
        self._party = party
        self._parties = parties
        self._machines = machines
        self._connections = connections
        self._scope = scope
        self._parse = parse
        self.reasons: dict[str, str] = {}

    def effects(self, tree: Tree) -> dict[str, tuple[MeaningSpec, ...]]:
        """The meaning of each effect that is named."""
        found = {}
        for name in tree.items:
            node = tree.items[name]
            listed = tree.listed(name) if isinstance(node, Sequence) else (tree.tree(name),)
            scope = self._with_event(name)
            found[name] = tuple(means for each in listed for means in self._one(each, name, scope))
        return found

    def of_an_act(self, tree: Tree, names: Mapping[str, str]) -> Iterator[MeaningSpec]:
        """What an act is beside the effects that it does; `names` are its instances with their parties."""
        if "assign" in tree.items:
            single = {name: name for name, each in self._parties.items() if each.count == 1}
            yield self._assigns(tree.tree("assign"), {**single, **names}, self._scope)
        if "raises" in tree.items:
            yield self._raises(tree, self._scope)

    def _with_event(self, effect: str) -> Scope:
        """The scope with what every event has on which the effect is done, and whom it is done for."""
        doing = [part for part in self._party.parts.values() if effect in part.machine.effects()]
        peers = {name: kind for part in doing for name, kind in peer_of(part).items()}
        is_of_peers = bool(peers) and all(part.peers for part in doing)
        outer = replace(self._scope, instances={**self._scope.instances, **(peers if is_of_peers else {})})
        kinds: list[Mapping[str, Type]] = [
            part.machine.events[event].fields
            for part in self._party.parts.values()
            for event in part.machine.effects().get(effect, ())
        ]
        if not kinds:
            return outer
        shared = {
            name: kind for name, kind in kinds[0].items() if all(each.get(name) == kind for each in kinds)
        }
        return replace(outer, event=shared, event_name=f"an event of {effect}")

    def _one(self, tree: Tree, effect: str, scope: Scope) -> Iterator[MeaningSpec]:
        kinds = [key for key in _KEYS if key in tree.items]
        if len(kinds) != 1:
            raise SpecificationError(
                tree.place, f"{effect} means {' and '.join(kinds) or 'nothing'}", "say one thing, or a list"
            )
        tree.only(kinds[0], *_KEYS[kinds[0]])
        match kinds[0]:
            case "asks" | "tells" as word:
                yield self._asks(tree, effect, word, scope)
            case "raises":
                yield self._raises(tree, scope)
            case "assign":
                yield self._assigns(tree.tree("assign"), {"self": self._party.name}, scope, bare=True)
            case "sends":
                yield self._sends(tree, scope)
            case "closes":
                yield ClosesSpec(self._connection(tree, "closes"))
            case "begins":
                yield self._begins(tree)
            case _:
                self.reasons[effect] = tree.text("nothing")

    def _begins(self, tree: Tree) -> BeginsSpec:
        name = tree.text("begins")
        part = self._party.parts.get(name)
        if part is None or part.peers:
            known = ", ".join(one for one, each in self._party.parts.items() if not each.peers)
            raise SpecificationError(
                tree.place_of("begins"), f"{self._party.name} has no one machine {name!r}", known
            )
        return BeginsSpec(name)

    def _asks(self, tree: Tree, effect: str, word: str, scope: Scope) -> AsksSpec:
        party = tree.text(word)
        if party not in self._parties:
            raise SpecificationError(
                tree.place_of(word), f"no party is named {party!r}", ", ".join(self._parties)
            )
        told = {TO: scope.parties[party]}
        where = self._where(tree, replace(scope, instances={**scope.instances, **told}), told)
        said = tree.text("says", "")
        machine, says = self._said(said or effect, tree.place, optional=not said and word == "tells")
        flags = word == "tells", tree.flag("once"), tree.flag("newest")
        sent = [
            part.name
            for part in self._party.parts.values()
            if part.machine.name == machine and says in part.machine.events
        ]
        return AsksSpec(party, machine, says, where, *flags, sent[0] if sent else "")

    def _said(self, name: str, place: Place, *, optional: bool) -> tuple[str, str]:
        """The machine and the name of what is sent; of a notice its machine alone."""
        machine, _, says = name.rpartition(".")
        own = {part.machine.name: part.machine for part in self._party.parts.values()}
        tried = [self._machines[machine]] if machine in self._machines else list(own.values())
        for each in tried:
            if says in each.bindings.sends:
                return each.name, says
            if optional and says in each.bindings.notices:
                return each.name, ""
        known = ", ".join(f"{each.name}.{one}" for each in own.values() for one in each.bindings.sends)
        raise SpecificationError(place, f"nothing says {name!r}", f"say it under sends of a machine; {known}")

    def _raises(self, tree: Tree, scope: Scope) -> RaisesSpec:
        place = tree.place_of("raises")
        part, _, name = tree.text("raises").partition(".")
        if part not in self._party.parts or name not in self._party.parts[part].machine.events:
            known = ", ".join(
                f"{one}.{event}" for one, each in self._party.parts.items() for event in each.machine.events
            )
            raise SpecificationError(place, f"{self._party.name} has no event {part}.{name}", known)
        event = self._party.parts[part].machine.events[name]
        peers = peer_of(self._party.parts[part])
        scope = replace(scope, instances={**scope.instances, **peers})
        fields = {
            each: self._field(event, each, tree.tree("with"), scope) for each in tree.tree("with").items
        }
        said = self._said_as(tree, event, place)
        if not event.messages:
            for each in event.fields:
                if each not in fields:
                    raise SpecificationError(place, f"{name} has a field {each}", f"say {each} under with")
        return RaisesSpec(part, name, fields, self._where(tree, scope, {}), said)

    def _said_as(self, tree: Tree, event: Event, place: Place) -> str:
        """As which of several messages an event is raised; empty where it is none, or one."""
        known = ", ".join(event.messages)
        if "as" in tree.items and tree.text("as") not in event.messages:
            raise SpecificationError(
                tree.place_of("as"), f"{event.name} is no {tree.text('as')}", known or "leave it out"
            )
        if "as" not in tree.items and len(event.messages) > 1:
            raise SpecificationError(place, f"{event.name} is any of {known}", "say as which one")
        said = tree.text("as") if "as" in tree.items else ""
        for each in tree.tree("with").items if said else ():
            if self._scope.model.messages[said].field_named(each) is None:
                fault = f"{said} has no field {each!r}"
                raise SpecificationError(tree.place_of("with"), fault, "leave it out")
        return said

    def _sends(self, tree: Tree, scope: Scope) -> SendsSpec:
        """What is said on a connection; a machine of the party that is an end of it says it."""
        place = tree.place_of("sends")
        connection = self._connection(tree, "over")
        ends = self._connections[connection].ends()
        parts = [self._party.parts[end.part] for end in ends if end.party == self._party.name]
        said = tree.text("sends")
        saying = [part for part in parts if said in part.machine.bindings.sends]
        if not saying:
            known = ", ".join(one for part in parts for one in part.machine.bindings.sends)
            raise SpecificationError(place, f"nothing on {connection} says {said!r}", known)
        scope = replace(scope, sources={"local": self._local()})
        body = None
        if "body" in tree.items:
            at = tree.place_of("body")
            body = self._parse(tree.text("body"), at, scope.instances)
            require(body, Type("bytes"), scope, at, "the body")
        key = "while" if "while" in tree.items else "where"
        if len({"while", "where"} & tree.items.keys()) == 2:
            raise SpecificationError(tree.place_of("while"), "while and where", "say one of them")
        where = self._where(tree, scope, {}, key)
        machine = saying[0].machine.name
        return SendsSpec(connection, machine, said, body, where, key == "while", tree.flag("once"))

    def _local(self) -> dict[str, Type]:
        """What the party's machines ask of their role."""
        machines = (part.machine for part in self._party.parts.values())
        return {one.name: one.type for each in machines for one in each.bindings.local.values()}

    def _connection(self, tree: Tree, key: str) -> str:
        """The connection that is named, of which this party is an end."""
        name = tree.text(key)
        own = [
            one
            for one, each in self._connections.items()
            if self._party.name in (each.dials.party, each.accepts.party)
        ]
        if name not in own:
            raise SpecificationError(
                tree.place_of(key), f"{self._party.name} is no end of {name!r}", ", ".join(own)
            )
        return name

    def _field(self, event: Event, name: str, tree: Tree, scope: Scope) -> ex.Expression:
        place = tree.place_of(name)
        if name not in event.fields:
            raise SpecificationError(place, f"{event.name} has no field {name!r}", ", ".join(event.fields))
        for each in event.messages:
            message = scope.model.messages[each]
            field = message.field_named(name)
            if name in derived_fields(message) or (field is not None and is_constant(field)):
                raise SpecificationError(place, f"{name} of {each} is not said, it follows", "leave it out")
        node = self._parse(tree.text(name), place, scope.instances)
        inner = replace(scope, sources={"local": self._local()})
        require(node, event.fields[name], inner, place, f"{event.name}.{name}")
        return node

    def _where(
        self, tree: Tree, scope: Scope, names: Mapping[str, InstanceType], key: str = "where"
    ) -> ex.Expression | None:
        if key not in tree.items:
            return None
        place = tree.place_of(key)
        node = self._parse(tree.text(key), place, {**scope.instances, **names})
        require(node, BOOL, scope, place, f"{tree.text(key)!r}")
        return node

    def _assigns(
        self, tree: Tree, names: Mapping[str, str], scope: Scope, *, bare: bool = False
    ) -> AssignsSpec:
        values = {}
        for name in tree.items:
            place = tree.place_of(name)
            instance, _, kept = f"self.{name}".rpartition(".") if bare else name.rpartition(".")
            party = self._parties.get(names.get(instance, ""))
            if party is None or kept not in party.keeps:
                raise SpecificationError(
                    place, f"{name} is kept by nobody", "assign INSTANCE.KEPT, or KEPT in an effect"
                )
            node = self._parse(tree.text(name), place, scope.instances)
            require(node, party.keeps[kept].type, scope, place, f"the value of {name}")
            values[f"{instance}.{kept}"] = node
        return AssignsSpec(values)
