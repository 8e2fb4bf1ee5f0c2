"""From YAML to the connections of a system: who dials whom, and what is said in order."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from typing import Final

from replispec.compiler.model.faults import attempt
from replispec.compiler.model.forms import stream_names
from replispec.compiler.model.message import Model, Place, SpecificationError
from replispec.compiler.model.system import OF_EVERY_INSTANCE, ConnectionSpec, EndSpec, PartySpec
from replispec.compiler.read.binding_parts import read_variable_name
from replispec.compiler.read.yaml_source import Tree

_KEYS: Final = ("about", "dials", "accepts", "opened", "closed", "streams")


def read_connections(tree: Tree, parties: Mapping[str, PartySpec], model: Model) -> dict[str, ConnectionSpec]:
    """The connections of a system by name. Raises SpecificationError."""
    found: dict[str, ConnectionSpec] = {}
    for name, entry in tree.trees("connections"):
        with attempt(name):
            found[name] = _connection(name, entry, tree.tree("connections").place_of(name), parties, model)
    ends = [(end.party, end.part, each) for each in found.values() for end in each.ends()]
    for index, (party, part, each) in enumerate(ends):
        if (party, part) in [other[:2] for other in ends[:index]]:
            raise SpecificationError(
                each.place, f"{party}.{part} is two ends of connections", "give each end a machine"
            )
    return found


def with_peers(
    parties: Mapping[str, PartySpec], connections: Mapping[str, ConnectionSpec]
) -> dict[str, PartySpec]:
    """The parties, with what their machines that accept connections are to each peer."""
    found = dict(parties)
    for each in connections.values():
        party = found[each.accepts.party]
        parts = dict(party.parts)
        parts[each.accepts.part] = replace(parts[each.accepts.part], peers=each.dials.party)
        found[party.name] = replace(party, parts=parts)
    return found


def _connection(
    name: str, tree: Tree, place: Place, parties: Mapping[str, PartySpec], model: Model
) -> ConnectionSpec:
    tree.only(*_KEYS)
    read_variable_name(name, place)
    streams = tree.texts("streams")
    known = stream_names(model)
    if len(streams) != 2 or any(each not in known for each in streams):
        raise SpecificationError(
            tree.place_of("streams"),
            f"{', '.join(streams) or 'nothing'} for two directions",
            f"name what who dials says, then what is said to it: {', '.join(known)}",
        )
    dials, accepts = (
        _end(tree, key, stream, parties) for key, stream in zip(("dials", "accepts"), streams, strict=True)
    )
    found = ConnectionSpec(
        name, tree.text("about", ""), place, dials, accepts, tree.text("opened"), tree.text("closed")
    )
    _check_events(found, tree, parties)
    check_free(name, place)
    party = parties[dials.party]
    if name in party.keeps or name in party.parts:
        raise SpecificationError(place, f"{name} is a name of {party.name} already", "give it another one")
    machine = parties[accepts.party].parts[accepts.part].machine
    if not any(state.final for state in machine.states.values()):
        raise SpecificationError(
            tree.place_of("accepts"),
            f"{machine.name} has no final state",
            "a connection that ended needs one",
        )
    return found


def check_free(name: str, place: Place, taken: Container[str] = ()) -> None:
    """Refuse a name by which an instance has something already."""
    if name in taken or name in OF_EVERY_INSTANCE:
        raise SpecificationError(place, f"{name} is a name already", "give it another one")


def _end(tree: Tree, key: str, stream: str, parties: Mapping[str, PartySpec]) -> EndSpec:
    party, _, part = tree.text(key).partition(".")
    if party not in parties or part not in parties[party].parts:
        known = ", ".join(f"{name}.{one}" for name, each in parties.items() for one in each.parts)
        raise SpecificationError(tree.place_of(key), f"no machine is named {tree.text(key)!r}", known)
    return EndSpec(party, part, stream)


def _check_events(connection: ConnectionSpec, tree: Tree, parties: Mapping[str, PartySpec]) -> None:
    """Refuse ends whose machines have no such events."""
    wanted = (
        ("opened", connection.opened, (connection.dials,)),
        ("closed", connection.closed, connection.ends()),
    )
    for key, event, ends in wanted:
        for end in ends:
            events = parties[end.party].parts[end.part].machine.events
            if event not in events or events[event].fields or events[event].messages:
                fitting = [each.name for each in events.values() if not each.fields and not each.messages]
                raise SpecificationError(
                    tree.place_of(key),
                    f"{end.party}.{end.part} has no event {event!r} without fields",
                    ", ".join(fitting),
                )
