"""What makes timers whole: each is armed somewhere, and wherever it may end an edge takes its event."""

from __future__ import annotations

from replispec.compiler.model.faults import attempt
from replispec.compiler.model.machine import MachineSpec, TimerSpec, Transition
from replispec.compiler.model.message import SpecificationError


def check_timers_of(machine: MachineSpec) -> None:
    """Refuse timers that nobody arms, that end where nothing takes their event, or are cancelled in vain, and
    edges of which the states say the contrary."""
    for edge in machine.transitions():
        with attempt():
            _check_edge(machine, edge)
    armed = {each.name: _armed_in(machine, each) for each in machine.timers.values()}
    for each in machine.timers.values():
        with attempt(each.name):
            _check_timer(machine, each, armed[each.name])
    for edge in machine.transitions():
        for name in edge.cancels:
            if not armed[name].intersection(edge.sources):
                with attempt():
                    raise SpecificationError(
                        edge.place, f"{name} is never armed in {'/'.join(edge.sources)}", "do not cancel it"
                    )


def _check_edge(machine: MachineSpec, edge: Transition) -> None:
    """Refuse an edge that arms what its states cancel, or cancels what they arm."""
    for state in edge.sources:
        arms, cancels = machine.implied_timing(edge, state)
        for name in cancels.intersection(edge.arms):
            raise SpecificationError(
                edge.place,
                f"{name} is armed on the way from {state} to {edge.to}, which cancels it",
                f"do not arm it, or say that it runs in {edge.to}, too",
            )
        for name in arms.intersection(edge.cancels):
            raise SpecificationError(
                edge.place,
                f"{name} is cancelled where {state}, {edge.event} to {edge.to} arms it",
                "do not cancel it, or take that out of its while or restarts",
            )


def _check_timer(machine: MachineSpec, timer: TimerSpec, armed: set[str]) -> None:
    if not armed:
        raise SpecificationError(
            timer.place,
            f"nothing arms the timer {timer.name}",
            f"do arm {timer.name} on an edge, or say while",
        )
    for state in machine.states:
        if state in armed and (state, timer.event) not in machine.table:
            raise SpecificationError(
                timer.place,
                f"{timer.name} may end in {state}, where no edge takes {timer.event}",
                "add an edge, or cancel it on the way there",
            )
    taken = {event for state, event in machine.table if state in timer.states}
    for event in timer.restarts:
        if event not in taken:
            raise SpecificationError(
                timer.place, f"no edge takes {event} where {timer.name} runs", "leave it out of restarts"
            )


def _armed_in(machine: MachineSpec, timer: TimerSpec) -> set[str]:
    """The states in which a timer may be armed, by whichever way they are reached."""
    found = {state for state in timer.states if machine.states[state].initial}
    while True:
        more = set()
        for edge in machine.transitions():
            for state in edge.sources:
                arms, cancels = machine.timing(edge, state)
                if timer.name in arms or (state in found and timer.name not in cancels):
                    more.add(edge.to)
        if more <= found:
            return found
        found |= more
