"""What controllers decide about each broker set, walked answer by answer.

A request is decided somewhere between its own frame and that of its answer, and the frames of several
connections tell no order. An answer is ok when the machine comes to it from what is possible, when it does
so after another request that still waits for its answer, or when it did while the request was under way.
It is unknown when only requests that were not captured explain it, and violated when not even those do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import SimpleNamespace
from typing import Any, Final

from replispec.replay.events.content import seen_of, values_of
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.decisions import NOTIFIED
from replispec.replay.events.rocketmq.facts import BY_ADDRESS
from replispec.replay.events.rocketmq.groups import BrokerGroups
from replispec.replay.machines.steps import Findings, MachineFinding
from replispec.replay.machines.walks import Configurations, variants
from replispec.runtime.primitives.invariants import Verdict
from replispec.runtime.primitives.machines import (
    Configuration,
    Machine,
    Origin,
    distinct,
    everywhere,
    forgotten,
    reachable,
    ways,
)
from replispec.runtime.primitives.unknown import UNKNOWN, UnknownRead, is_same
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq.machines import broker_set

MACHINE: Final = broker_set.MACHINE
ANSWERS: Final = broker_set.ANSWERS
WAITING_MAX: Final = 64
"""Requests of one broker set that wait for their answers; what comes beyond is followed no further."""
_KINDS: Final[Mapping[str, type]] = {info.name: kind for kind, info in MACHINE.events.items()}
_OWN: Final = [kind for kind, info in MACHINE.events.items() if info.origin is Origin.LOCAL]
# Removals by an administrator are taken for seen: nothing else changes a set without an epoch.
_UNSEEN: Final = [kind for kind in MACHINE.events if kind is not broker_set.CleaningAsked]

# No answer tells what these hold: what they hold is left open rather than every possibility followed.
_UNCLAIMED: Final = ("cluster_name", "addresses", "check_codes")

Possible = tuple[Configurations, ...]
"""For each release that the controller may be of, what is possible."""
Claims = Mapping[str, Any]


def _decides(kind: type, code: int | None) -> frozenset[str]:
    """The effects of an event that answer with this code."""
    effects = {
        effect
        for (_, each), edges in (*MACHINE.transitions.items(), *MACHINE.overlays[0].transitions.items())
        if each is kind
        for edge in edges
        for effect in edge.do
    }
    return frozenset(each for each in effects if ANSWERS.get(each) == code)


_WRITES: Final = frozenset(
    kind for (_, kind), edges in MACHINE.transitions.items() if any(edge.assign for edge in edges)
)


def walk_broker_sets(rows: Sequence[Observation], groups: BrokerGroups, found: Findings) -> None:
    """Walk the machine of a broker set for each life of each group."""
    by_address = {
        row.controller for row in rows if row.kind == ObservationKind.FACT and row.named_by == BY_ADDRESS
    }
    sets: dict[str, _Set] = {}
    for row in rows:
        group = row.group or ""
        if row.kind == ObservationKind.CLEANED and row.text is None:
            sets[group] = _Set(begun=True)
        if row.kind != ObservationKind.DECISION or row.controller in by_address or not _is_claim(row, groups):
            continue
        one = sets.setdefault(group, _Set())
        if row.message == NOTIFIED:
            one.notified(row, found[group, MACHINE.finding])
        elif row.code is None:
            one.asks(row)
        else:
            one.answers(row, found[group, MACHINE.finding], ends_life=_ends_life(row, groups))


def _is_claim(row: Observation, groups: BrokerGroups) -> bool:
    """True when the row is about a broker set that some broker belongs to, and its controller is known.

    A request for an unknown broker name does not create a broker set.
    """
    if row.controller is None:
        return groups.name_at(row.address) is not None
    return row.controller in groups.controllers and row.name in groups.spoken


def _ends_life(row: Observation, groups: BrokerGroups) -> bool:
    key = groups.key(row)
    return key is not None and row.order in groups.lives.get(key, ())


@dataclass(slots=True)
class _Asked:
    """A request that waits, and all that was possible since it was sent."""

    kind: type
    facts: SimpleNamespace
    before: list[Possible]


def _variants() -> tuple[Machine[Any, Any], ...]:
    return tuple(variants(MACHINE, None))


@dataclass(slots=True)
class _Set:
    """One broker set in one life: what each controller may have known of it, and who waits for an answer.

    `begun`: the capture shows that nothing was known of it at first.
    """

    begun: bool = False
    machines: tuple[Machine[Any, Any], ...] = field(default_factory=_variants)
    known: dict[str | None, Possible] = field(default_factory=dict)
    last: str | None = None
    asked: dict[tuple[str, int, int | None], _Asked] = field(default_factory=dict)
    owners: dict[int, str | None] = field(default_factory=dict)

    def _possible(self, controller: str | None) -> Possible:
        """What is possible where this controller answers: what it knew, or what the last one did."""
        if not self.known:
            return tuple(self._first(each) for each in self.machines)
        own = self.known.get(controller)
        latest = self.known[self.last]
        if own is None or controller == self.last:
            return latest
        return tuple(distinct((*mine, *theirs)) for mine, theirs in zip(own, latest, strict=True))

    def _first(self, machine: Machine[Any, Any]) -> Configurations:
        if self.begun:
            return (Configuration(machine.initial, forgotten(machine.variables, _UNCLAIMED)),)
        return everywhere(machine)

    def _keep(self, controller: str | None, possible: Possible) -> None:
        self.known[controller] = possible
        self.last = controller
        for each in self.asked.values():
            each.before = [*each.before[1 - WAITING_MAX :], possible]

    def asks(self, row: Observation) -> None:
        """A request was sent."""
        kind = _KINDS[row.message or ""]
        if len(self.asked) >= WAITING_MAX:
            self.asked.pop(next(iter(self.asked)))
        before = [self._possible(row.controller)]
        self.asked[row.connection, row.direction, row.opaque] = _Asked(
            kind, seen_of(row.content, kind), before
        )

    def answers(self, row: Observation, finding: MachineFinding, *, ends_life: bool) -> None:
        """A request was answered; what the answer decides must be what the machine decides."""
        asked = self.asked.pop((row.connection, 1 - row.direction, row.opaque), None)
        if asked is None or ends_life:
            return
        effects = _decides(asked.kind, row.code)
        if not effects:
            return
        self._name_owner(asked, row)
        claims = values_of(row.content, broker_set.Variables)

        def decided(possible: Possible) -> Possible:
            return self._after(possible, asked, effects, claims)

        name = MACHINE.events[asked.kind].name
        self._judge(
            row, finding, decided, asked.before, f"{name}, answered {row.code}, telling {_shown(claims)}"
        )

    def notified(self, row: Observation, finding: MachineFinding) -> None:
        """A broker was told its role. What was sent before later changes is judged no more."""
        claims = values_of(row.content, broker_set.Variables)
        if row.master is None or row.master_epoch is None or self._is_late(claims):
            return

        def decided(possible: Possible) -> Possible:
            return tuple(_agreeing(each, claims) for each in possible)

        self._judge(row, finding, decided, (), f"a notification telling {_shown(claims)}", self.last)

    def _is_late(self, claims: Claims) -> bool:
        return any(
            _surely_less(claims[epoch], getattr(one.variables, epoch))
            for epoch in ("master_epoch", "sync_state_set_epoch")
            if epoch in claims
            for each in self._possible(self.last)
            for one in each
        )

    def _judge(
        self,
        row: Observation,
        finding: MachineFinding,
        decided: Callable[[Possible], Possible],
        before: Iterable[Possible],
        what: str,
        controller: str | None = None,
    ) -> None:
        where = controller or row.controller
        current = self._possible(where)
        explained = self._explained(current, decided, before)
        if explained is not None:
            self._keep(where, explained)
            finding.note(Verdict.OK, "", row)
            return
        after = decided(self._with(current, _UNSEEN))
        if any(after):
            self._keep(where, after)
            says = f"{MACHINE.name}: {what} follows only from requests that were not seen"
            finding.note(Verdict.UNKNOWN, says, row)
            return
        self._keep(where, tuple(everywhere(each) for each in self.machines))
        states = sorted({one.state.name for each in current for one in each})
        finding.note(
            Verdict.VIOLATED, f"{MACHINE.name}: {what} is not allowed in state {', '.join(states)}", row
        )

    def _explained(
        self, current: Possible, decided: Callable[[Possible], Possible], before: Iterable[Possible]
    ) -> Possible | None:
        """What is possible after a decision that what was seen explains; None when it does not.

        The least that explains it is tried first: nothing, what the controller does of its own, a request
        that waits, and then what was possible while this one did.
        """
        tried: tuple[Callable[[], Possible], ...] = (
            lambda: current,
            lambda: self._with(current, _OWN),
            lambda: self._with_waiting(current),
        )
        for possible in tried:
            after = decided(possible())
            if any(after):
                return after
        is_late = any(any(decided(each)) or any(decided(self._with(each, _OWN))) for each in before)
        return current if is_late else None

    def _with(self, possible: Possible, kinds: Sequence[type]) -> Possible:
        return tuple(
            reachable(machine, each, kinds, rules)
            for machine, each in zip(self.machines, possible, strict=True)
        )

    def _with_waiting(self, possible: Possible) -> Possible:
        """What is possible once one of the requests that still wait was decided."""
        found = possible
        for asked in self.asked.values():
            if asked.kind in _WRITES:
                after = self._after(possible, asked, None, {})
                found = tuple((*one, *more) for one, more in zip(found, after, strict=True))
        return self._with(tuple(map(distinct, found)), _OWN)

    def _after(
        self, possible: Possible, asked: _Asked, effects: frozenset[str] | None, claims: Claims
    ) -> Possible:
        """Where the request leads by edges with one of these effects (None: any), as far as it agrees."""
        found: list[Configurations] = []
        for machine, each in zip(self.machines, possible, strict=True):
            after = [
                way.configuration
                for one in each
                for way in ways(machine, one, asked.facts, asked.kind, rules)
                if effects is None or effects.intersection(way.edge.do)
            ]
            found.append(_agreeing(after, claims))
        return tuple(found)

    def _name_owner(self, asked: _Asked, row: Observation) -> None:
        """Tell the machine who holds the id that is applied for, as far as the capture does."""
        if asked.kind is not broker_set.IdApplied:
            return
        broker_id = asked.facts.broker_id
        asked.facts.owner_code = self.owners.get(broker_id, None if self.begun else UNKNOWN)
        if row.accepted:
            self.owners[broker_id] = asked.facts.check_code


# ---- rows ----------------------------------------------------------------------------------------


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def _agreeing(configurations: Iterable[Configuration[Any, Any]], claims: Claims) -> Configurations:
    """Those that do not contradict what was told, and now know it."""
    return distinct(
        replace(one, variables=replace(one.variables, **claims))
        for one in configurations
        if not any(_contradicts(getattr(one.variables, name), value) for name, value in claims.items())
    )


def _contradicts(known: Any, claims: Any) -> bool:
    """True when the value that was told is surely another one."""
    if is_same(known, claims):
        return False
    try:
        return bool(known != claims)
    except UnknownRead:
        return False


def _surely_less(claims: int, known: Any) -> bool:
    try:
        return bool(known > claims)
    except UnknownRead:
        return False


def _shown(claims: Claims) -> str:
    names = [each.name for each in fields(broker_set.Variables) if each.name in claims]
    return ", ".join(f"{name} {_value(claims[name])}" for name in names) or "nothing"


def _value(value: Any) -> str:
    return str(sorted(value)) if isinstance(value, frozenset) else str(value)
