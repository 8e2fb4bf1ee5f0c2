"""Invariants as data, and the engine that judges streams of events by them.

Generated code holds one object per invariant of the specification; a judge is fed the events of
one group, in order, and answers with a finding. Four shapes exist:

- set: one value per key, compared over all events, whatever their order;
- order: variables are folded over the events of each key, and checked on the way;
- pairing: like order, with the number of waiting requests and of given answers kept per key;
- as of the end: all events of a group are folded first, the checks look back on them.

An event is any object with the attributes that the specification's stream declares; an attribute
or a variable that was not seen is `UNKNOWN`, and what then cannot be answered is `unknown`.
Conditions are functions of (variables, event, rules); of a set invariant, whose `variables` is the
other event of the comparison.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from replispec.runtime.primitives.errors import LocalProtocolError
from replispec.runtime.primitives.machines import assigned, forgotten
from replispec.runtime.primitives.sentences import said
from replispec.runtime.primitives.unknown import UnknownRead

EVIDENCE_MAX: Final = 20
"""Pieces of evidence that a finding keeps; all are counted."""
KEYS_MAX: Final = 1 << 20
"""Keys that one judge remembers; what comes under a further key is `unknown`."""
VALUES_MAX: Final = 16
"""Different values that a set invariant remembers per key."""

Condition = Callable[[Any, Any, Any], bool]
Function = Callable[[Any, Any, Any], Any]


class Verdict(enum.StrEnum):
    """The outcome of one evaluation or of many."""

    OK = "ok"
    DIVERGED = "diverged"
    UNKNOWN = "unknown"
    VIOLATED = "violated"

    @property
    def rank(self) -> int:
        """0 for ok up to 3 for violated: the verdict of many is the one of the highest rank."""
        return _RANKS[self]


_RANKS: Final = {verdict: rank for rank, verdict in enumerate(Verdict)}


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of many evaluations: violated > unknown > diverged > ok; unknown for none."""
    return max(verdicts, key=_RANKS.__getitem__, default=Verdict.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Otherwise:
    """What it means that a check failed, when `condition` holds (None: always).

    `divergence` words the deviation of an implementation that is known to deviate like this.
    """

    verdict: Verdict
    condition: Condition | None = None
    divergence: str = ""
    says: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A condition that must hold; the first fitting entry of `otherwise` judges when it
    does not."""

    holds: Condition
    otherwise: tuple[Otherwise, ...] = ()
    says: str = ""


@dataclass(frozen=True, slots=True)
class FoldStep:
    """What one event does: checks first, then new variables.

    Of the steps of one event the first is taken whose `condition` holds (None: always).
    """

    event: str
    condition: Condition | None = None
    checks: tuple[Check, ...] = ()
    assign: Mapping[str, Function] = field(default_factory=dict)


def steps(*each: FoldStep) -> Mapping[str, tuple[FoldStep, ...]]:
    """Steps by their event, those of one event in this order."""
    found: dict[str, tuple[FoldStep, ...]] = {}
    for step in each:
        found[step.event] = (*found.get(step.event, ()), step)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Invariant:
    """What all shapes share.

    `stream` names the stream of events, `group` the attributes that a finding is about,
    `evaluated` says what one evaluation is, `says` is the sentence of a finding. `key` tells which
    events of a group belong together. `divergences` words the known deviations, `unseen` what was not seen.
    """

    id: str
    about: str
    clauses: tuple[str, ...]
    stream: str
    group: tuple[str, ...]
    evaluated: str
    says: str
    unseen: str = ""
    divergences: tuple[str, ...] = ()
    key: Callable[[Any, Any], tuple[Hashable, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetInvariant(Invariant):
    """Events of one key carry one value. `where` narrows the events that are evaluated."""

    event: str
    value: Callable[[Any, Any], Hashable]
    where: Callable[[Any, Any], bool] | None = None
    otherwise: tuple[Otherwise, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderInvariant(Invariant):
    """Variables are folded over the events of each key. `variables` are those at the start."""

    variables: Any = None
    steps: Mapping[str, tuple[FoldStep, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairingInvariant(OrderInvariant):
    """Requests and answers under one key.

    The fold itself keeps the variables `waiting` (requests without an answer so far), `answered`
    (answers since the last request) and `one_way` (the last request wants no answer), by the names
    of the three events.
    """

    request: str
    one_way: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndInvariant(OrderInvariant):
    """Judged as of the end: all events of a group are folded, then `check` is made on each event
    named `event` with what the group's variables are then."""

    event: str
    where: Callable[[Any, Any], bool] | None = None
    check: Check


@dataclass(frozen=True, slots=True)
class Evidence:
    """One evaluation that was not ok: the event, for a set invariant the event that it contradicts."""

    verdict: Verdict
    says: str
    event: Any
    other: Any = None
    divergence: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one invariant says about one group.

    `evaluated` counts all evaluations, `counts` those of each verdict; no evaluation at all is
    `unknown`, never ok. `evidence` holds at most EVIDENCE_MAX pieces, the worst verdict first.
    """

    invariant: str
    group: tuple[Hashable, ...]
    verdict: Verdict
    evaluated: int
    counts: Mapping[Verdict, int]
    evidence: tuple[Evidence, ...]


class Judge:
    """Judges the events of one group by one invariant. Feed them in the stream's order.

    `observer` gets every evaluation, ok included, for callers that need more than the evidence kept.
    `before` answers, for the first event of a key, with what an order invariant then remembers already;
    without it that is what it remembers at the start.
    """

    def __init__(
        self,
        invariant: Invariant,
        rules: Any,
        group: tuple[Hashable, ...] = (),
        *,
        observer: Callable[[Evidence], None] | None = None,
        before: Callable[[Any], Any] | None = None,
    ) -> None:
        self._observer = observer
        self._invariant = invariant
        self._rules = rules
        self._group = group
        self._counts = dict.fromkeys(Verdict, 0)
        self._evidence: dict[Verdict, list[Evidence]] = {verdict: [] for verdict in Verdict}
        self._feed = _feeder(invariant, rules, self._note)
        if before is not None and isinstance(self._feed, _OrderFold):
            self._feed.before = before

    def feed(self, name: str, event: Any) -> None:
        """Take one event; `name` is its kind in the stream. Events of other kinds are passed over."""
        self._feed.feed(name, event)

    def variables_of(self, event: Any) -> Any:
        """What an order invariant remembers for this event's key; None of other shapes."""
        return self._feed.variables_of(event) if isinstance(self._feed, _OrderFold) else None

    def finding(self) -> Finding:
        """The finding about everything that was fed. Call once, at the end."""
        self._feed.end()
        seen = [verdict for verdict, count in self._counts.items() if count]
        pieces = [piece for verdict in reversed(Verdict) for piece in self._evidence[verdict]]
        return Finding(
            invariant=self._invariant.id,
            group=self._group,
            verdict=worst(seen),
            evaluated=sum(self._counts.values()),
            counts=dict(self._counts),
            evidence=tuple(pieces[:EVIDENCE_MAX]),
        )

    def _note(self, evidence: Evidence) -> None:
        self._counts[evidence.verdict] += 1
        if self._observer is not None:
            self._observer(evidence)
        pieces = self._evidence[evidence.verdict]
        if evidence.verdict is not Verdict.OK and len(pieces) < EVIDENCE_MAX:
            pieces.append(evidence)


def judge(invariant: Invariant, events: Iterable[tuple[str, Any]], rules: Any) -> list[Finding]:
    """One finding per group that occurs in `events`, pairs of (kind, event), in their order."""
    judges: dict[tuple[Hashable, ...], Judge] = {}
    for name, event in events:
        group = tuple(getattr(event, each) for each in invariant.group)
        if group not in judges:
            judges[group] = Judge(invariant, rules, group)
        judges[group].feed(name, event)
    return [each.finding() for each in judges.values()]


_Note = Callable[[Evidence], None]


def _feeder(invariant: Invariant, rules: Any, note: _Note) -> _SetFold | _OrderFold:
    if isinstance(invariant, SetInvariant):
        return _SetFold(invariant, rules, note)
    if isinstance(invariant, PairingInvariant):
        return _PairingFold(invariant, rules, note)
    if isinstance(invariant, EndInvariant):
        return _EndFold(invariant, rules, note)
    if isinstance(invariant, OrderInvariant):
        return _OrderFold(invariant, rules, note)
    raise LocalProtocolError(f"{invariant.id} has no shape that can be judged")


def _judged(
    otherwise: Sequence[Otherwise], says: str, variables: Any, event: Any, rules: Any
) -> tuple[Verdict, str, str]:
    """Verdict, sentence and divergence of a check that failed."""
    for entry in otherwise:
        if entry.condition is None or entry.condition(variables, event, rules):
            return entry.verdict, said(entry.says or says, variables, event), entry.divergence
    return Verdict.VIOLATED, said(says, variables, event), ""


def _checked(checks: Sequence[Check], rule: Invariant, variables: Any, event: Any, rules: Any) -> Evidence:
    """The worst of several checks, as one evaluation."""
    found = Evidence(Verdict.OK, "", event)
    for check in checks:
        sentence = check.says or rule.says
        try:
            if check.holds(variables, event, rules):
                continue
            verdict, said, divergence = _judged(check.otherwise, sentence, variables, event, rules)
        except UnknownRead:
            verdict, said, divergence = Verdict.UNKNOWN, rule.unseen or "not seen enough to tell", ""
        if verdict.rank > found.verdict.rank:
            found = Evidence(verdict, said, event, divergence=divergence)
    return found


def stepped(
    invariant: OrderInvariant, steps: Sequence[FoldStep], variables: Any, event: Any, rules: Any
) -> tuple[Evidence | None, Any]:
    """The evaluation of one event by the first fitting of its `steps`, None when there is none, and the
    variables after it."""
    for at, step in enumerate(steps):
        try:
            if step.condition is not None and not step.condition(variables, event, rules):
                continue
        except UnknownRead:
            return _undecided(steps[at:], variables, event)
        found = _checked(step.checks, invariant, variables, event, rules) if step.checks else None
        return found, assigned(step.assign, variables, event, rules)
    return None, variables


def _undecided(steps: Sequence[FoldStep], variables: Any, event: Any) -> tuple[Evidence | None, Any]:
    """The same when it cannot be told which of these steps is the one."""
    found = None
    if any(step.checks for step in steps):
        found = Evidence(Verdict.UNKNOWN, "not seen enough to tell what this event means", event)
    names = {name for step in steps for name in step.assign}
    return found, forgotten(variables, names) if names else variables


def judged_at_end(
    invariant: EndInvariant, variables_of: Callable[[Any], Any], event: Any, rules: Any
) -> Evidence | None:
    """The evaluation of one event by the variables that all events left, None when it does not count.

    `variables_of` answers with those of an event's key.
    """
    try:
        if invariant.where is not None and not invariant.where(event, rules):
            return None
    except UnknownRead:
        return Evidence(Verdict.UNKNOWN, "not seen enough to tell whether this counts", event)
    return _checked((invariant.check,), invariant, variables_of(event), event, rules)


class _SetFold:
    """Remembers per key the first event of each value and compares every event with them."""

    def __init__(self, invariant: SetInvariant, rules: Any, note: _Note) -> None:
        self._invariant = invariant
        self._rules = rules
        self._note = note
        self._seen: dict[tuple[Hashable, ...], dict[Hashable, Any]] = {}

    def feed(self, name: str, event: Any) -> None:
        if name == self._invariant.event:
            evidence = self._evaluated(event)
            if evidence is not None:
                self._note(evidence)

    def end(self) -> None:
        """Nothing waits for the end."""

    def _evaluated(self, event: Any) -> Evidence | None:
        """The evaluation of one event; None when the invariant does not speak about it."""
        invariant = self._invariant
        try:
            if invariant.where is not None and not invariant.where(event, self._rules):
                return None
            key, value = invariant.key(event, self._rules), invariant.value(event, self._rules)
            values = self._seen.get(key)
        except UnknownRead:
            return Evidence(Verdict.UNKNOWN, "not seen enough to tell which key and value this is", event)
        if values is None:
            if len(self._seen) >= KEYS_MAX:
                return Evidence(Verdict.UNKNOWN, f"more than {KEYS_MAX} different keys", event)
            values = self._seen[key] = {}
        worst_of = Evidence(Verdict.OK, "", event)
        for other_value, other in values.items():
            if other_value != value:
                found = self._against(event, other)
                worst_of = found if found.verdict.rank > worst_of.verdict.rank else worst_of
        if len(values) < VALUES_MAX:
            values.setdefault(value, event)
        return worst_of

    def _against(self, event: Any, other: Any) -> Evidence:
        try:
            verdict, said, divergence = _judged(
                self._invariant.otherwise, self._invariant.says, other, event, self._rules
            )
        except UnknownRead:
            verdict, said, divergence = Verdict.UNKNOWN, "not seen enough to tell why two values differ", ""
        return Evidence(verdict, said, event, other, divergence)


class _OrderFold:
    """Keeps the variables of every key and takes the first fitting step of each event."""

    def __init__(self, invariant: OrderInvariant, rules: Any, note: _Note) -> None:
        self.before: Callable[[Any], Any] = lambda _: invariant.variables
        self._invariant = invariant
        self._rules = rules
        self._note = note
        self._variables: dict[tuple[Hashable, ...], Any] = {}

    def feed(self, name: str, event: Any) -> None:
        steps = self._invariant.steps.get(name)
        if not steps:
            return
        key = self._invariant.key(event, self._rules)
        variables = self._variables.get(key)
        if variables is None:
            if len(self._variables) >= KEYS_MAX:
                if any(step.checks for step in steps):
                    self._note(Evidence(Verdict.UNKNOWN, f"more than {KEYS_MAX} different keys", event))
                return
            variables = self.before(event)
        self._variables[key] = self._stepped(steps, variables, event)

    def end(self) -> None:
        """Nothing waits for the end."""

    def variables_of(self, event: Any) -> Any:
        """The variables of the events that belong together with this one, as they are now."""
        known = self._variables.get(self._invariant.key(event, self._rules))
        return self.before(event) if known is None else known

    def _stepped(self, steps: Sequence[FoldStep], variables: Any, event: Any) -> Any:
        """The variables after one event."""
        evidence, after = stepped(self._invariant, steps, variables, event, self._rules)
        if evidence is not None:
            self._note(evidence)
        return after


@dataclass(slots=True)
class _Pairing:
    """The variables that a pairing keeps by itself."""

    waiting: int = 0
    answered: int = 0
    one_way: bool = False


class _PairingFold(_OrderFold):
    """Counts requests and answers of every key; the steps only check."""

    def __init__(self, invariant: PairingInvariant, rules: Any, note: _Note) -> None:
        super().__init__(invariant, rules, note)
        self._pairing = invariant

    def _stepped(self, steps: Sequence[FoldStep], variables: Any, event: Any) -> Any:
        super()._stepped(steps, variables, event)
        return variables

    def feed(self, name: str, event: Any) -> None:
        pairing = self._pairing
        if name not in (pairing.request, pairing.one_way, pairing.answer):
            return
        key = pairing.key(event, self._rules)
        if key not in self._variables and len(self._variables) < KEYS_MAX:
            self._variables[key] = _Pairing()
        super().feed(name, event)
        counts = self._variables.get(key)
        if counts is None:
            return
        if name == pairing.answer:
            counts.waiting = max(counts.waiting - 1, 0)
            counts.answered += 1
        else:
            counts.answered = 0
            counts.one_way = name == pairing.one_way
            counts.waiting += name == pairing.request


class _EndFold(_OrderFold):
    """Folds everything, keeps the events to be judged, and judges them at the end."""

    def __init__(self, invariant: EndInvariant, rules: Any, note: _Note) -> None:
        super().__init__(invariant, rules, note)
        self._at_end = invariant
        self._waiting: list[Any] = []

    def feed(self, name: str, event: Any) -> None:
        super().feed(name, event)
        if name == self._at_end.event:
            self._waiting.append(event)

    def end(self) -> None:
        for event in self._waiting:
            evidence = judged_at_end(self._at_end, self.variables_of, event, self._rules)
            if evidence is not None:
                self._note(evidence)
        self._waiting.clear()
