"""Timers of a machine: what they raise, how long they last, and which edges arm and cancel them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from replispec.compiler.model.faults import attempt
from replispec.compiler.model.machine import Event, LongestSpec, MachineSpec, TimerSpec
from replispec.compiler.model.message import Place, SpecificationError
from replispec.compiler.model.parameter import ConfigurationSpec, Group, field_name
from replispec.compiler.read.binding_parts import read_name, read_variable_name
from replispec.compiler.read.parameters import default_ms
from replispec.compiler.read.yaml_source import Tree

_KEYS: Final = ("about", "period", "longest", "event", "periodic", "while", "restarts")
_WORDS: Final = ("arm", "cancel")
"""How an edge says under `do` that it arms or cancels a timer."""


@dataclass(frozen=True, slots=True)
class Doing:
    """What an edge does: effects, and the timers that it arms and cancels."""

    do: tuple[str, ...]
    arms: tuple[str, ...]
    cancels: tuple[str, ...]


def with_timers(
    machine: MachineSpec,
    tree: Tree,
    configuration: ConfigurationSpec,
    states: Callable[[Iterable[str]], tuple[str, ...]],
) -> MachineSpec:
    """The machine with its timers, and with events that know whose they are. `states` resolves groups."""
    timers = {each.name: each for each in _timers(machine, tree, configuration, states)}
    events = dict(machine.events)
    for each in reversed(timers.values()):
        events[each.event] = replace(events[each.event], timer=each.period, default_ms=each.default_ms)
    return replace(machine, timers=timers, events=events)


def _timers(
    machine: MachineSpec,
    tree: Tree,
    configuration: ConfigurationSpec,
    states: Callable[[Iterable[str]], tuple[str, ...]],
) -> Iterator[TimerSpec]:
    timers = tree.tree("timers")
    for name, entry in timers.entries():
        with attempt(name):
            place = timers.place_of(name)
            read_variable_name(name, place)
            entry.only(*_KEYS)
            event, period = entry.text("event"), entry.text("period")
            lasts_ms = default_ms(configuration, period, entry.place_of("period"))
            _check_event(machine, event, entry.place_of("event"))
            parameter = configuration.parameters[period]
            group = _group(configuration, period)
            armed = states(entry.texts("while"))
            _check_states(machine, armed, entry)
            yield TimerSpec(
                name,
                entry.text("about", ""),
                place,
                event,
                period,
                lasts_ms,
                field_name(parameter),
                group.field,
                entry.flag("periodic"),
                armed,
                _restarts(machine, entry, armed),
                _longest(configuration, entry, lasts_ms),
            )


def _group(configuration: ConfigurationSpec, name: str) -> Group:
    parameter = configuration.parameters[name]
    return next(each for each in configuration.groups if parameter in each.parameters)


def _longest(configuration: ConfigurationSpec, entry: Tree, lasts_ms: int) -> LongestSpec | None:
    """Up to what its pauses grow, if they do. The same roles have both, in the same place."""
    if "longest" not in entry.items:
        return None
    name, place = entry.text("longest"), entry.place_of("longest")
    longest_ms = default_ms(configuration, name, place)
    period = entry.text("period")
    if entry.flag("periodic"):
        raise SpecificationError(place, "what ends again and again has no pauses that grow", "leave it out")
    if longest_ms < lasts_ms:
        raise SpecificationError(place, f"{name} is shorter than {period}", "name a longer duration")
    if _group(configuration, name) is not _group(configuration, period):
        raise SpecificationError(place, f"{name} does not stand with {period}", "declare both in one file")
    if period not in (name, configuration.parameters[name].not_below):
        fault = f"{name} may be configured shorter than {period}"
        raise SpecificationError(place, fault, f"write not_below: {period} where it is declared")
    return LongestSpec(name, longest_ms, field_name(configuration.parameters[name]))


def _check_event(machine: MachineSpec, name: str, place: Place) -> None:
    event = machine.events.get(name)
    if event is None:
        raise SpecificationError(place, f"no event is named {name!r}", f"events: {', '.join(machine.events)}")
    if not _may_be_raised(event):
        raise SpecificationError(
            place,
            f"{name} comes with a message, with fields or by a timer of its own",
            "name an event of which nothing is said but what it is about",
        )


def _may_be_raised(event: Event) -> bool:
    return not (event.messages or event.fields or event.timer or event.is_peer or event.hidden)


def _check_states(machine: MachineSpec, states: tuple[str, ...], entry: Tree) -> None:
    known = ", ".join(machine.states)
    for state in states:
        if state not in machine.states:
            place = entry.place_of("while")
            raise SpecificationError(place, f"no state is named {state!r}", f"states: {known}")
        if machine.states[state].final:
            raise SpecificationError(
                entry.place_of("while"), f"nothing happens after {state}, which is final", "leave it out"
            )


def _restarts(machine: MachineSpec, entry: Tree, states: tuple[str, ...]) -> tuple[str, ...]:
    names = entry.texts("restarts")
    for name in names:
        if name not in machine.events:
            raise SpecificationError(
                entry.place_of("restarts"), f"no event is named {name!r}", ", ".join(machine.events)
            )
    if names and not states:
        raise SpecificationError(
            entry.place_of("restarts"), "restarts, but no while", "say in which states it runs, or arm it"
        )
    return names


def read_doing(tree: Tree, timers: Mapping[str, TimerSpec]) -> Doing:
    """What stands under `do`: names of effects, `arm TIMER` and `cancel TIMER`."""
    place = tree.place_of("do")
    effects: list[str] = []
    said: dict[str, list[str]] = {word: [] for word in _WORDS}
    for text in tree.texts("do"):
        word, _, name = text.partition(" ")
        if word not in said or not name:
            effects.append(read_name(text, place))
            continue
        if name not in timers:
            known = ", ".join(timers) or "none"
            raise SpecificationError(place, f"no timer is named {name!r}", f"timers: {known}")
        if any(name in names for names in said.values()):
            raise SpecificationError(place, f"{name} is armed or cancelled twice", "keep one of them")
        said[word].append(name)
    return Doing(tuple(effects), *(tuple(said[word]) for word in _WORDS))
