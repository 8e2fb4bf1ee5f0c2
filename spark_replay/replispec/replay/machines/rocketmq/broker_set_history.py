"""What may have been true of one broker set, version after version, and which decisions that allows.

A version is what was possible at one time; the next one begins where a decision changed it. An answer says
how its request was decided, and some of what was true then: it fits a version when the machine decides so
there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from types import SimpleNamespace
from typing import Any, Final

from replispec.replay.machines.walks import Configurations, variants
from replispec.runtime.primitives.machines import (
    Configuration,
    Machine,
    Origin,
    Transitions,
    distinct,
    everywhere,
    forgotten,
    reachable,
    ways,
)
from replispec.runtime.primitives.unknown import UNKNOWN, UnknownRead, is_same, key_of
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq.machines import broker_set

_BY_ADDRESS: Final = (
    broker_set.KeptIdAsked,
    broker_set.RegisteredByAddress,
    broker_set.InfoAskedByAddress,
    broker_set.ElectionAskedByAddress,
    broker_set.AlterationAskedByAddress,
)
"""How brokers ask that are known by their addresses."""


def _of_ids(transitions: Transitions[Any]) -> Transitions[Any]:
    return {
        (state, kind): tuple(
            replace(edge, assign={name: to for name, to in edge.assign.items() if name != "by_address"})
            for edge in edges
        )
        for (state, kind), edges in transitions.items()
        if kind not in _BY_ADDRESS
    }


MACHINE: Final = replace(
    broker_set.MACHINE,
    events={kind: info for kind, info in broker_set.MACHINE.events.items() if kind not in _BY_ADDRESS},
    transitions=_of_ids(broker_set.MACHINE.transitions),
    overlays=tuple(
        replace(each, transitions=_of_ids(each.transitions)) for each in broker_set.MACHINE.overlays
    ),
)
"""The machine where nobody is known by its address alone: controllers that are asked so are not judged."""
ANSWERS: Final = broker_set.ANSWERS
VERSIONS_MAX: Final = 256
"""Versions of one broker set that are kept: what is further back explains nothing any more."""
WORK_MAX: Final = 4096
"""Steps of one broker set that are taken again before what may lie further back is left open."""
LED_MAX: Final = 4096
"""Possibilities of the broker sets of a capture whose way on is remembered."""
OWN: Final = tuple(kind for kind, info in MACHINE.events.items() if info.origin is Origin.LOCAL)
"""What a controller does of its own."""
ANYTHING: Final = tuple(MACHINE.events)
"""What may have happened where bytes were lost."""
UNSEEN: Final = tuple(kind for kind in ANYTHING if kind is not broker_set.CleaningAsked)
"""What may have happened where nothing was lost. Nothing but a removal by an administrator changes a set
without an epoch: it is taken for seen."""
WRITES: Final = frozenset(
    kind for (_, kind), edges in MACHINE.transitions.items() if any(edge.assign for edge in edges)
)
"""Requests that may change a broker set."""

# No answer tells what these hold: what they hold is left open rather than every possibility followed.
_UNCLAIMED: Final = ("cluster_name", "addresses", "check_codes")
_NAMES: Final = tuple(each.name for each in fields(broker_set.Variables))

Possible = tuple[Configurations, ...]
"""For each release that the controller may be of, what is possible."""
Claims = Mapping[str, Any]
Led = dict[Hashable, Possible]
"""Where possibilities lead by unseen events: sets, and the orders tried of one, come to the same ones."""


@dataclass(frozen=True, slots=True)
class Decision:
    """How a request was decided, or what a notification tells.

    `asked`: the event that the request is, None for a notification; `effects`: those that answer as it was
    answered, None for any; `claims`: values of variables after it.
    """

    kind: type | None
    asked: SimpleNamespace
    effects: frozenset[str] | None
    claims: Claims

    @property
    def is_write(self) -> bool:
        """True when it may have changed the broker set."""
        return self.kind in WRITES

    @property
    def key(self) -> Hashable:
        """What stands for it: decisions of one key lead on alike."""
        known = (frozenset(map(_item, each.items())) for each in (self.claims, vars(self.asked)))
        return self.kind, self.effects, *known


def _item(item: tuple[str, Any]) -> Hashable:
    name, value = item
    return name, tuple(map(key_of, value)) if isinstance(value, list) else key_of(value)


@cache
def effects_of(kind: type, code: int | None) -> frozenset[str]:
    """The effects of an event that answer with this code."""
    effects = {
        effect
        for (_, each), edges in (*MACHINE.transitions.items(), *MACHINE.overlays[0].transitions.items())
        if each is kind
        for edge in edges
        for effect in edge.do
    }
    return frozenset(each for each in effects if ANSWERS.get(each) == code)


@dataclass(frozen=True, slots=True)
class Step:
    """How a version came from the one before: perhaps one of the requests that waited was decided, then any
    of `kinds` happened unseen, any number of times, and then the decision was taken; without one,
    anything."""

    decision: Decision | None = None
    kinds: tuple[type, ...] = ()
    waiting: tuple[Decision, ...] = ()


@dataclass(slots=True)
class _Version:
    """What was possible, how it came to that, and what follows without anything that was seen (by the events
    that may)."""

    possible: Possible
    step: Step
    reached: dict[tuple[type, ...], Possible] = field(default_factory=dict)


class History:
    """The versions of one broker set in one life.

    `begun`: the capture shows that nothing was known of it at first. `unseen`: what may have happened without
    a frame that shows it. `led`: what is remembered for all histories of a capture. `number` counts the
    versions: the latest is `number - 1`. `work`: how many more steps are taken again to see whether something
    lies further back.
    """

    def __init__(self, *, begun: bool, unseen: tuple[type, ...], led: Led) -> None:
        self._machines: tuple[Machine[Any, Any], ...] = tuple(variants(MACHINE, None))
        self.unseen = unseen
        first = tuple(_first(each, begun=begun) for each in self._machines)
        self._versions = [_Version(first, Step())]
        self._led = led
        self._at_once: dict[Hashable, bool] = {}
        self._widened: dict[tuple[type, ...], tuple[int, list[Possible]]] = {}
        self.number = 1
        self.work = WORK_MAX

    @property
    def now(self) -> Possible:
        """What is possible in the latest version."""
        return self._versions[-1].possible

    def is_kept(self, version: int) -> bool:
        """True when all since this version is still known, and may still be looked at."""
        return self.work > 0 and version >= self.number - len(self._versions)

    def is_at_once(self, decision: Decision) -> bool:
        """True when the latest version allows the decision, which changes nothing and tells nothing new."""
        key = decision.key
        if key not in self._at_once:
            after = self._after(self.now, decision)
            says_nothing = not decision.claims and not decision.is_write
            self._at_once[key] = any(after) and (says_nothing or _are_all_same(self.now, after))
        return self._at_once[key]

    def after(self, step: Step) -> Possible:
        """Where a step leads from the latest version."""
        return self._taken(self._versions[-1], step)

    def goes_on(self, after: Possible, step: Step) -> None:
        """A step was taken: a new version, unless it is the same."""
        if not _are_all_same(self.now, after):
            self._versions = [*self._versions[1 - VERSIONS_MAX :], _Version(after, step)]
            self._at_once = {}
            self.number += 1

    def goes_anywhere(self) -> None:
        """Anything is possible from now on."""
        self.goes_on(self._anything(), Step())

    def had(self, step: Step, since: int) -> int | None:
        """The first version, from `since` on, in which the step may have been taken so that all that followed
        still follows; None when there is none. What follows has what `step` has unseen."""
        first = self.number - len(self._versions)
        for number in range(max(since, first), self.number - 1):
            if self._fits(number - first, step):
                return number
        return self.number - 1 if any(self.after(step)) else None

    def may_follow(self, step: Step) -> bool:
        """Whether a step may be taken now when every version came about with what `step` has unseen: the
        shortest explanation of a version need not be the true one."""
        first = self.number - len(self._versions)
        begun, wide = self._widened.get(step.kinds, (first, []))
        if begun != first or not wide:
            wide = [self._versions[0].possible]
        self._widened[step.kinds] = first, wide
        for at, later in enumerate(self._versions[1:], start=1):
            if not any(wide[at - 1]) or self.work <= 0:
                return False
            self.work -= 1
            if at == len(wide):
                wide.append(self._again(wide[at - 1], later.step, step.kinds))
        return any(self._taken(_Version(wide[-1], Step()), step))

    def _again(self, possible: Possible, step: Step, kinds: tuple[type, ...]) -> Possible:
        """Where a step leads that is taken again, with more that may have happened unseen."""
        every = tuple(dict.fromkeys((*step.kinds, *kinds)))
        return self._taken(_Version(possible, Step()), replace(step, kinds=every))

    def _fits(self, at: int, step: Step) -> bool:
        version = self._versions[at]
        after = self._taken(version, step)
        if _are_all_same(after, version.possible):
            return True
        for later in self._versions[at + 1 :]:
            if not any(after) or self.work <= 0:
                return False
            self.work -= 1
            after = self._again(after, later.step, step.kinds)
            if _are_all_same(after, later.possible):
                return True
        return any(after)

    def _taken(self, version: _Version, step: Step) -> Possible:
        if step.decision is None:
            return self._anything()
        found = version.possible
        for asked in step.waiting:
            if asked.is_write:
                after = self._after(version.possible, asked)
                found = tuple(distinct((*one, *more)) for one, more in zip(found, after, strict=True))
        if step.kinds and step.waiting:
            found = self._with(found, step.kinds)
        elif step.kinds:
            found = self._reached(version, step.kinds)
        return self._after(found, step.decision)

    def _anything(self) -> Possible:
        return tuple(_everywhere(each) for each in self._machines)

    def _after(self, possible: Possible, decision: Decision) -> Possible:
        """Where a decision leads, as far as it agrees with what it tells."""
        if decision.kind is None:
            return tuple(_agreeing(each, decision.claims) for each in possible)
        kind, effects = decision.kind, decision.effects
        found: list[Configurations] = []
        for machine, each in zip(self._machines, possible, strict=True):
            after = [
                way.configuration
                for one in each
                if decision.is_write or _agrees(one, decision.claims)
                for way in ways(machine, one, decision.asked, kind, rules)
                if effects is None or effects.intersection(way.edge.do)
            ]
            found.append(_agreeing(after, decision.claims))
        return tuple(found)

    def states(self) -> list[str]:
        """The names of the states that are possible now."""
        return sorted({one.state.name for each in self.now for one in each})

    def _reached(self, version: _Version, kinds: tuple[type, ...]) -> Possible:
        if kinds not in version.reached:
            version.reached[kinds] = self._with(version.possible, kinds)
        return version.reached[kinds]

    def _with(self, possible: Possible, kinds: tuple[type, ...]) -> Possible:
        """Where events of these classes lead unseen: the same possibilities come again whenever steps are
        taken again."""
        key = (kinds, *(tuple(map(_key, each)) for each in possible))
        if key not in self._led:
            if len(self._led) >= LED_MAX:
                del self._led[next(iter(self._led))]
            self._led[key] = tuple(
                reachable(machine, each, kinds, rules)
                for machine, each in zip(self._machines, possible, strict=True)
            )
        return self._led[key]


def shown(claims: Claims) -> str:
    """What was told, in words."""
    names = [name for name in _NAMES if name in claims]
    return ", ".join(f"{name} {_value(claims[name])}" for name in names) or "nothing"


def _value(value: Any) -> str:
    return str(sorted(value)) if isinstance(value, frozenset) else str(value)


def _first(machine: Machine[Any, Any], *, begun: bool) -> Configurations:
    if begun:
        return (Configuration(machine.initial, forgotten(machine.variables, _UNCLAIMED)),)
    return _everywhere(machine)


def _everywhere(machine: Machine[Any, Any]) -> Configurations:
    return tuple(
        replace(each, variables=replace(each.variables, by_address=frozenset()))
        for each in everywhere(machine)
    )


def _are_all_same(one: Possible, other: Possible) -> bool:
    return all(_are_same(mine, theirs) for mine, theirs in zip(one, other, strict=True))


def _are_same(one: Configurations, other: Configurations) -> bool:
    return len(one) == len(other) and all(any(_is_one(each, that) for that in other) for each in one)


def _is_one(one: Configuration[Any, Any], other: Configuration[Any, Any]) -> bool:
    return one.state is other.state and all(
        is_same(getattr(one.variables, name), getattr(other.variables, name)) for name in _NAMES
    )


def _key(one: Configuration[Any, Any]) -> Hashable:
    return (one.state, *(key_of(getattr(one.variables, name)) for name in _NAMES))


def _agreeing(configurations: Iterable[Configuration[Any, Any]], claims: Claims) -> Configurations:
    """Those that do not contradict what was told, and now know it."""
    return distinct(_knowing(one, claims) for one in configurations if _agrees(one, claims))


def _knowing(one: Configuration[Any, Any], claims: Claims) -> Configuration[Any, Any]:
    """A configuration that knows what was told; the same one where it is nothing new."""
    if all(is_same(getattr(one.variables, name), value) for name, value in claims.items()):
        return one
    return replace(one, variables=replace(one.variables, **claims))


def _agrees(one: Configuration[Any, Any], claims: Claims) -> bool:
    return not any(_contradicts(getattr(one.variables, name), value) for name, value in claims.items())


def _contradicts(known: Any, claims: Any) -> bool:
    """True when the value that was told is surely another one."""
    if is_same(known, claims):
        return False
    try:
        return bool(known != claims)
    except UnknownRead:
        return False


class Owners:
    """Who holds which id, as far as the capture tells.

    `begun` as in History; `whole`: nothing was lost in which an id may have been granted or removed.
    """

    def __init__(self, *, begun: bool, whole: bool) -> None:
        self._unheld = None if begun else UNKNOWN
        self._whole = whole
        self._codes: dict[int, Any] = {}
        self.granted = 0

    def name(self, decision: Decision) -> None:
        """Tell a decision about an application who holds the id."""
        if decision.kind is broker_set.IdApplied:
            code = self._codes.get(decision.asked.broker_id, self._unheld)
            known = self._whole or is_same(code, decision.asked.check_code)
            decision.asked.owner_code = code if known else UNKNOWN

    def learn(self, decision: Decision) -> None:
        """A request was granted; `granted` counts them."""
        self.granted += 1
        if decision.kind is broker_set.IdApplied:
            self._codes[decision.asked.broker_id] = decision.asked.check_code
        elif decision.kind is broker_set.CleaningAsked:
            for each in decision.asked.broker_ids or ():
                self._codes[each] = UNKNOWN
