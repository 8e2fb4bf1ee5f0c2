"""A machine of the specification watched from outside: every event that was seen is judged as a step.

A watcher knows neither the state nor the variables, sees no hidden event, and may not know the
release. It keeps all that is possible: for each release that may be the one, a set of states with
what is known of the variables. What no possibility allows is violated; what is allowed only if
something unseen was so, and is a fault if it was not, is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from replispec.runtime.primitives.invariants import Verdict
from replispec.runtime.primitives.machines import (
    Configuration,
    Machine,
    Way,
    distinct,
    everywhere,
    reachable,
    ways,
    with_hidden,
)
from replispec.runtime.primitives.releases import Release
from replispec.runtime.primitives.unknown import Unseen

Configurations = tuple[Configuration[Any, Any], ...]


def variants(machine: Machine[Any, Any], release: Release | None) -> list[Machine[Any, Any]]:
    """The machine as this release walks it; without one in every way that some release does, and plain."""
    if release is not None:
        return [machine.for_release(*release)]
    borders = {(each.releases.implementation, each.releases.first or ()) for each in machine.overlays}
    return [machine.for_release("", ()), *(machine.for_release(*border) for border in sorted(borders))]


def beginning(machine: Machine[Any, Any]) -> Configurations:
    """The first state, with variables that were not seen."""
    return tuple(each for each in everywhere(machine) if each.state is machine.initial)


@dataclass(slots=True)
class Possible:
    """One release that may be the one, and where its machine may be."""

    machine: Machine[Any, Any]
    configurations: Configurations


@dataclass(frozen=True, slots=True)
class JudgedStep:
    """The verdict about one step, and what it says when it is not ok."""

    verdict: Verdict
    says: str = ""


@dataclass(slots=True)
class Walk:
    """One instance of a machine. `machine` has its overlays still; `rules` are those of its family.

    `machines` are the ways in which it may walk, for each release that may be the one.
    """

    machine: Machine[Any, Any]
    release: Release | None
    rules: Any
    possible: list[Possible] = field(init=False)
    machines: tuple[Machine[Any, Any], ...] = field(init=False)

    def __post_init__(self) -> None:
        self.machines = tuple(variants(self.machine, self.release))
        self.forget()

    def forget(self) -> None:
        """Anything may have happened."""
        self.possible = [Possible(each, everywhere(each)) for each in self.machines]

    def begin(self) -> None:
        """The instance is seen from its beginning: in its first state, with variables that were not seen."""
        self.forget()
        for one in self.possible:
            one.configurations = beginning(one.machine)

    def meanwhile(self, kinds: Sequence[type]) -> None:
        """Events of these classes may have happened, any number of times: elsewhere, where nothing tells
        when."""
        for one in self.possible:
            one.configurations = reachable(one.machine, one.configurations, kinds, self.rules)

    def perhaps(self, names: Iterable[str]) -> None:
        """One of these events (by the specification's names) may have happened, and nobody saw it."""
        kinds = [kind for kind, info in self.machine.events.items() if info.name in names]
        for one in self.possible:
            before = with_hidden(one.machine, one.configurations, self.rules)
            after = [
                way.configuration
                for each in before
                for kind in kinds
                for way in ways(one.machine, each, Unseen(), kind, self.rules)
            ]
            one.configurations = distinct((*one.configurations, *after))

    def kind_of(self, message: str, facts: Any, *, sent: bool) -> type | None:
        """The class of the event that a message, or an event by its own name, is; None for none."""
        named = [kind for kind, info in self.machine.events.items() if info.name == message]
        return named[0] if named else self.machine.kind_of(message, facts, self.rules, sent=sent)

    def step(self, kind: type, event: Any) -> JudgedStep:
        """Judge one event and take it. After a fault anything is possible."""
        found = [_stepped(one, kind, event, self.rules) for one in self.possible]
        best = min(found, key=lambda each: each.verdict.rank)
        states = sorted({each.state.name for one in self.possible for each in one.configurations})
        if best.verdict is Verdict.VIOLATED:
            self.forget()
        else:
            self.possible = [
                Possible(one.machine, own.configurations)
                for one, own in zip(self.possible, found, strict=True)
                if own.verdict is not Verdict.VIOLATED
            ]
        name = self.machine.events[kind].name
        if best.verdict is Verdict.VIOLATED:
            return JudgedStep(
                best.verdict, f"{self.machine.name}: {name} is not allowed in state {', '.join(states)}"
            )
        if best.verdict is Verdict.DIVERGED:
            return JudgedStep(best.verdict, f"{self.machine.name}: {best.deviation}")
        if best.verdict is Verdict.UNKNOWN:
            return JudgedStep(
                best.verdict, f"{self.machine.name}: not seen enough to tell whether {name} is a step"
            )
        return JudgedStep(best.verdict)


@dataclass(frozen=True, slots=True)
class _Stepped:
    """The best that any configuration comes to, and where those that allow the event lead."""

    verdict: Verdict
    configurations: Configurations
    deviation: str = ""


def _stepped(one: Possible, kind: type, event: Any, rules: Any) -> _Stepped:
    after: list[Configuration[Any, Any]] = []
    best, deviation = Verdict.VIOLATED, ""
    for each in with_hidden(one.machine, one.configurations, rules):
        found = ways(one.machine, each, event, kind, rules)
        innocent = [way for way in found if _is_innocent(way)]
        if not innocent:
            continue
        after += [way.configuration for way in innocent]
        allowed = [way for way in innocent if not way.edge.diverges]
        deviation = deviation or innocent[0].edge.diverges
        certain = len(innocent) == len(found) or any(way.surely for way in innocent)
        verdict = (Verdict.OK if allowed else Verdict.DIVERGED) if certain else Verdict.UNKNOWN
        best = min(best, verdict, key=lambda each: each.rank)
    return _Stepped(best, distinct(after), deviation)


def _is_innocent(way: Way[Any, Any]) -> bool:
    """True when the edge lays no blame on the peer, or lets its deviation pass."""
    return not way.edge.blames_peer or bool(way.edge.tolerated)
