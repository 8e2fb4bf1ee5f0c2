"""The Python module of a system: a class for each party, the world, and what happens, as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from replispec.compiler.emit.python.annotations import annotation
from replispec.compiler.emit.python.codes import certificate
from replispec.compiler.emit.python.expressions import enum_refs, initial_value, strings
from replispec.compiler.emit.python.instances import EACH, ME, PEER, TO, Instances
from replispec.compiler.emit.python.naming import class_name
from replispec.compiler.emit.python.tree import (
    PRIMITIVES,
    TYPING,
    Class,
    Constant,
    Module,
    Names,
    Node,
    Ref,
    homes,
    own,
)
from replispec.compiler.language.text import to_text
from replispec.compiler.model import expressions as ex
from replispec.compiler.model.binding import Each
from replispec.compiler.model.forms import stream_members
from replispec.compiler.model.machine import MachineSpec
from replispec.compiler.model.message import Model
from replispec.compiler.model.system import (
    ActSpec,
    AsksSpec,
    AssignsSpec,
    BeginsSpec,
    ClosesSpec,
    ConnectionSpec,
    EndSpec,
    LocalSpec,
    MeaningSpec,
    PartSpec,
    PartySpec,
    PropertySpec,
    RaisesSpec,
    RequestSpec,
    SendsSpec,
    SystemSpec,
)
from replispec.compiler.model.value_types import fields_of

_SYSTEMS: Final = Names(f"{PRIMITIVES}.systems")
_BINDINGS: Final = Names(f"{PRIMITIVES}.bindings")
_MACHINES: Final = Names(f"{PRIMITIVES}.machines")
_IMMUTABLE: Final = Names(f"{PRIMITIVES}.immutable").immutable


def system_text(system: SystemSpec, model: Model, sources: Mapping[str, bytes]) -> str:
    """The module, not yet formatted."""
    name = f"replispec.wire.{model.family}.systems.{system.name}"
    nodes = list(_Emitter(system, model).nodes())
    return Module(name, certificate(sources), system.about, nodes, homes(model), system.place).text()


def systems_package(systems: Mapping[str, SystemSpec], family: str, sources: Mapping[str, bytes]) -> str:
    """The package of a family's systems: the names of their modules."""
    about = f"The systems of {family}: a module each."
    names = Constant("SYSTEMS", strings(tuple(systems)), f"{TYPING.Final}", "The names of the modules here.")
    return Module(f"replispec.wire.{family}.systems", certificate(sources), about, [names]).text()


class _Emitter:
    def __init__(self, system: SystemSpec, model: Model) -> None:
        self._system = system
        self._model = model
        self._instances = Instances(system, model)
        self._package = f"replispec.wire.{model.family}.machines"

    def nodes(self) -> Iterator[Node]:
        """The classes of the instances and of the world, then the system."""
        for party in self._system.parties.values():
            yield self._class(party)
        fields = [
            Constant(name, annotation=f"tuple[{class_name(name)}, ...]") for name in self._system.parties
        ]
        yield Class("World", "All instances.", decorators=[str(_IMMUTABLE)], body=fields)
        for party in self._system.parties.values():
            kind = f"{TYPING.Final}[{_SYSTEMS.PartyKind}]"
            yield Constant(_constant(party.name), self._party(party), kind)
        for each in self._system.connections.values():
            kind = f"{TYPING.Final}[{_SYSTEMS.Connection}]"
            yield Constant(_constant(each.name), self._connection(each), kind)
        for act in self._system.acts:
            yield Constant(_constant(act.name), self._act(act), f"{TYPING.Final}[{_SYSTEMS.Act}]")
        yield Constant("SYSTEM", self._whole(), f"{TYPING.Final}[{_SYSTEMS.System}]")

    def _class(self, party: PartySpec) -> Class:
        fields = [Constant("number", annotation="int")]
        for part in party.parts.values():
            machine = Ref(self._package, part.machine.name)
            kind = f"{_MACHINES.Configuration}[{machine}.State, {machine}.Variables]"
            fields.append(Constant(part.name, annotation=f"tuple[{kind}, ...]" if part.peers else kind))
        fields += [
            Constant(each.name, annotation=annotation(each.type), comment=each.about)
            for each in party.keeps.values()
        ]
        if self._fired(party):
            about = "The timers that are armed, as MACHINE.TIMER."
            fields.append(Constant("armed", annotation="frozenset[str]", comment=about))
        fields += [
            Constant(
                each.name, annotation="int", comment=f"The number of the {each.accepts.party}; 0 for none."
            )
            for each in self._system.connections.values()
            if each.dials.party == party.name
        ]
        about = party.about or f"One {party.name}."
        return Class(class_name(party.name), about, decorators=[str(_IMMUTABLE)], body=fields)

    # Expressions

    def _read(self, node: ex.Expression, instances: Instances) -> str:
        parties = sorted(instances.parties_of(node))
        return self._reading(instances.python(node), instances, parties, to_text(node))

    def _reading(self, text: str, instances: Instances, parties: list[str], words: str) -> str:
        """A function of what the text reads, with the parties that it may read any instance of."""
        names = instances.names_in(text)
        told = f", {strings(instances.told)}" if instances.told else ""
        given = f"lambda {', '.join(names.values())}: {text}" if names else f"lambda: {text}"
        given = {"frozenset()": "frozenset", "{}": "dict"}.get(text, given)
        reads = f"{strings(tuple(names))}, {strings(tuple(parties))}, {words!r}{told}"
        return f"{_SYSTEMS.Read}({given}, {reads})"

    # Parties

    def _party(self, party: PartySpec) -> str:
        mine = self._mine(party)
        about = (f"{party.name!r}", f"{party.about!r}", class_name(party.name), str(party.count))
        parts = ", ".join(map(self._part, party.parts.values()))
        local = [f"{each.name!r}: {self._local(each, mine)}" for each in party.local.values()]
        effects = [
            f"{name!r}: ({''.join(f'{self._meaning(each, party, mine)}, ' for each in means)})"
            for name, means in party.effects.items()
        ]
        given = [
            *about,
            f"({parts},)" if parts else "()",
            f"{{{', '.join(self._begins(party, mine))}}}",
            f"{{{', '.join(local)}}}",
            f"{{{', '.join(effects)}}}",
            strings(tuple(sorted(self._party_reads(party, mine)))),
            strings(self._fired(party)),
            strings(tuple(each.name for each in party.keeps.values() if each.durable)),
        ]
        return f"{_SYSTEMS.PartyKind}({', '.join(given)})"

    def _fired(self, party: PartySpec) -> tuple[str, ...]:
        """The timers of a party that an act ends, or an expression reads: of others nobody asks whether they
        are armed."""
        ended = {act.timer for act in self._system.acts if act.party == party.name and act.timer is not None}
        read = {
            (part, name)
            for part, name in self._system.read_of_machines()
            if part in party.parts and party.parts[part].is_timer(name)
        }
        return tuple(sorted(".".join(each) for each in ended | read))

    def _party_reads(self, party: PartySpec, mine: Instances) -> set[str]:
        """The parties that its role's knowledge and its effects may read."""
        found = set()
        for each in party.local.values():
            value = each.value
            found |= mine.parties_of(value.elements if isinstance(value, Each) else value)
        for one in (one for means in party.effects.values() for one in means):
            told = self._told(one, mine)
            for node in _expressions_of(one):
                found |= told.parties_of(node)
                if isinstance(one, AsksSpec) and told.reads_given(node, TO):
                    found.add(one.party)
        return found

    def _mine(self, party: PartySpec) -> Instances:
        """The instances that everything of a party may name: itself, and the peer whose turn it is."""
        dialler = next((part.peers for part in party.parts.values() if part.peers), "")
        return self._instances.with_given({ME: party.name, **({PEER: dialler} if dialler else {})})

    def _told(self, means: MeaningSpec, instances: Instances) -> Instances:
        """The instances that a meaning may name: one that asks somebody may name whom."""
        return instances.with_given({TO: means.party}) if isinstance(means, AsksSpec) else instances

    def _part(self, part: PartSpec) -> str:
        machine, bindings = part.machine, part.machine.bindings
        wire = str(Ref(self._package, f"{machine.name}_wire")) if bindings else "None"
        module = Ref(self._package, machine.name)
        given = f"{part.name!r}, {module}.MACHINE, {wire}, {bindings.is_answering}, {part.instance!r}"
        given += f", {part.peers!r}" if part.peers else ""
        return f"{_SYSTEMS.Part}({given})"

    def _begins(self, party: PartySpec, mine: Instances) -> Iterator[str]:
        for part in party.parts.values():
            machine = Ref(self._package, part.machine.name)
            if not part.begins and not part.state:
                continue
            state = part.state or next(each.name for each in part.machine.states.values() if each.initial)
            values = ", ".join(f"{name}={mine.python(node)}" for name, node in part.begins.items())
            text = f"{_MACHINES.Configuration}({machine}.State.{state}, {machine}.Variables({values}))"
            yield f"{part.name!r}: {self._reading(text, mine, [], state)}"
        for each in party.keeps.values():
            text = initial_value(each, self._model) if each.initial is None else mine.python(each.initial)
            if each.type.key is not None and each.initial is None:
                text = "{}"
            yield f"{each.name!r}: {self._reading(text, mine, [], '')}"

    def _local(self, local: LocalSpec, mine: Instances) -> str:
        if not isinstance(local.value, Each):
            return self._read(local.value, replace(mine, told=local.told))
        assert local.type.item is not None, "only a list has one message for each element"
        fields = []
        for name, value in local.value.fields.items():
            assert isinstance(value, ex.Expression), "messages within messages are not said in systems"
            fields.append(f"{name}={mine.python(value)}")
        elements = local.value.elements
        made = f"{own(local.type.item.name)}({', '.join(fields)})"
        text = f"tuple({made} for each in sorted({mine.python(elements)}))"
        names = [name for name in mine.names_in(text) if name != EACH]
        given = f"lambda {', '.join(names)}: {text}"
        parties = strings(tuple(sorted(mine.parties_of(elements))))
        return f"{_SYSTEMS.Read}({given}, {strings(tuple(names))}, {parties}, {local.name!r})"

    def _meaning(self, means: MeaningSpec, me: PartySpec, instances: Instances) -> str:
        instances = self._told(means, instances)
        match means:
            case AsksSpec(party, machine, says, where, is_notice, once, newest, sent_part):
                wire = Ref(self._package, f"{machine}_wire")
                said = f"{wire}.{says}" if says else "None"
                module = Ref(self._package, machine)
                sent = f"({sent_part!r}, {module}.{class_name(says)})" if sent_part else "None"
                asked = "None" if where is None else self._read(where, instances)
                return f"{_SYSTEMS.Asks}({party!r}, {said}, {asked}, {is_notice}, {once}, {newest}, {sent})"
            case RaisesSpec(part, event, fields, where, said):
                kind = self._event_class(me.parts[part].machine, event, said)
                values = ", ".join(
                    f"{name!r}: {self._read(node, instances)}" for name, node in fields.items()
                )
                asked = "None" if where is None else self._read(where, instances)
                return f"{_SYSTEMS.Raises}({part!r}, {kind}, {{{values}}}, {asked})"
            case AssignsSpec(values):
                rows = ", ".join(
                    f"{tuple(key.split('.'))!r}: {self._read(node, instances)}"
                    for key, node in values.items()
                )
                return f"{_SYSTEMS.Assigns}({{{rows}}})"
            case SendsSpec():
                return self._sends(means, instances)
            case ClosesSpec(connection):
                return f"{_SYSTEMS.Closes}({connection!r})"
            case BeginsSpec(part):
                return f"{_SYSTEMS.Begins}({part!r})"

    def _sends(self, means: SendsSpec, instances: Instances) -> str:
        says = f"{Ref(self._package, f'{means.machine}_wire')}.{means.says}"
        body, where = (
            "None" if each is None else self._read(each, instances) for each in (means.body, means.where)
        )
        given = f"{means.connection!r}, {says}, {body}, {where}, {means.repeated}, {means.once}"
        return f"{_SYSTEMS.SendsFrame}({given})"

    def _event_class(self, machine: MachineSpec, event: str, said: str = "") -> str:
        """What makes the event of its fields; of a message, it is made of the message."""
        made = f"{Ref(self._package, machine.name)}.{class_name(event)}"
        message = said or next(iter(machine.events[event].messages), "")
        return f"lambda **fields: {made}({own(message)}(**fields))" if message else made

    def _connection(self, connection: ConnectionSpec) -> str:
        messages = {
            message.name: own(message.name)
            for end in connection.ends()
            for message in stream_members(self._model, end.stream)
        }
        listed = ", ".join(f"{name!r}: {kind}" for name, kind in messages.items())
        ends = ", ".join(self._end(end, connection) for end in connection.ends())
        about = f"{connection.name!r}, {connection.about!r}"
        opened = self._event_of(connection.dials, connection.opened)
        return f"{_SYSTEMS.Connection}({about}, {ends}, {opened}, {{{listed}}})"

    def _end(self, end: EndSpec, connection: ConnectionSpec) -> str:
        stream = f"{Ref(f'replispec.wire.{self._model.family}', 'streams')}.{end.stream}"
        closed = self._event_of(end, connection.closed)
        return f"{_SYSTEMS.ConnectionEnd}({end.party!r}, {end.part!r}, {closed}, {stream})"

    def _event_of(self, end: EndSpec, event: str) -> str:
        machine = self._system.parties[end.party].parts[end.part].machine
        return self._event_class(machine, event)

    # The system

    def _act(self, act: ActSpec) -> str:
        party = self._system.parties[act.party]
        instances = self._mine(party).with_given(act.each)
        condition = "None" if act.condition is None else self._read(act.condition, instances)
        means = "".join(f"{self._meaning(each, party, instances)}, " for each in act.means)
        given = [
            f"{act.name!r}",
            f"{act.about!r}",
            f"{act.party!r}",
            repr(dict(act.each)),
            condition,
            strings(act.does),
            f"({means})",
            f"{act.budget!r}",
            str(act.quiet),
            str(act.forgets),
            "''" if act.timer is None else repr(".".join(act.timer)),
            str(act.crash),
            repr(act.opens),
            repr(act.breaks),
        ]
        if act.requests:
            given.append(f"({''.join(f'{self._request(each, instances)}, ' for each in act.requests)})")
        return f"{_SYSTEMS.Act}({', '.join(given)})"

    def _request(self, request: RequestSpec, instances: Instances) -> str:
        """A request that an act is: the instance on whose connection it is made, and what makes it."""
        header = self._message(request.message, request.fields, instances)
        code = self._code(request.message)
        text = f"{_BINDINGS.Call}({code}, {header}"
        if request.body:
            text += f", {self._message(request.body, request.body_fields, instances)}.encode()"
        nodes = (*request.fields.values(), *request.body_fields.values())
        parties = sorted({party for node in nodes for party in instances.parties_of(node)})
        return f"({request.over!r}, {self._reading(f'{text})', instances, parties, request.message)})"

    def _code(self, message: str) -> str:
        """The code of a request by its name."""
        number = self._model.messages[message].codes[0]
        names = enum_refs(self._model)
        codes = next(each for each in self._model.enums.values() if each.codes)
        member = next(each.name for each in codes.values if each.number == number)
        return f"{names[codes.name]}.{member}"

    def _message(self, name: str, fields: Mapping[str, ex.Expression], instances: Instances) -> str:
        kinds = fields_of(self._model.messages[name], self._model)
        said = []
        for field, node in fields.items():
            text = instances.python(node)
            said.append(f"{field}={f'sorted({text})' if kinds[field].kind == 'list' else text}")
        return f"{own(name)}({', '.join(said)})"

    def _property(self, promised: PropertySpec) -> str:
        holds, whenever = (
            "None" if each is None else self._read(each, self._instances)
            for each in (promised.holds, promised.whenever)
        )
        about = f"{promised.name!r}, {promised.about!r}, {promised.shape!r}"
        return f"{_SYSTEMS.Property}({about}, {holds}, {whenever}, {strings(promised.clauses)})"

    def _whole(self) -> str:
        system = self._system
        properties = "".join(f"{self._property(each)}, " for each in system.properties)
        given = [
            f"{system.name!r}",
            f"{self._model.family!r}",
            f"{system.about!r}",
            "World",
            f"({''.join(f'{_constant(name)}, ' for name in system.parties)})",
            f"({''.join(f'{_constant(each.name)}, ' for each in system.acts)})",
            f"({properties})",
            repr(dict(system.budgets)),
            str(system.messages_max),
            "None" if system.within is None else self._read(system.within, self._instances),
        ]
        if system.connections:
            given.append(f"({''.join(f'{_constant(name)}, ' for name in system.connections)})")
        if system.suite is not None:
            suite = system.suite
            words = f"{suite.subject!r}, {suite.kind!r}, {suite.profile!r}, {dict(suite.values)!r}"
            given.append(f"suite={_SYSTEMS.Suite}({words})")
        return f"{_SYSTEMS.System}({', '.join(given)})"


def _constant(name: str) -> str:
    return f"_{name.upper()}"


def _expressions_of(means: MeaningSpec) -> list[ex.Expression]:
    match means:
        case AssignsSpec(values):
            return list(values.values())
        case RaisesSpec(fields=fields, where=where):
            return [*fields.values(), *([] if where is None else [where])]
        case SendsSpec():
            return [each for each in (means.body, means.where) if each is not None]
        case AsksSpec():
            return [] if means.where is None else [means.where]
    return []
