"""What controllers decide about each broker set, walked in an order that causes allow.

A request is decided somewhere between its own frame and that of its answer. The frames of one connection
are ordered, those of several are not, but by what they tell: neither epoch of a broker set ever falls. So
every connection is a thread of events, and what comes next is always the least by its epochs of what its
thread has come to. An answer is ok when the machine comes to it from what is possible: as it is, after what
the controller does of its own, after a request that still waits for its answer, or since its thread last
went on. It is unknown when only requests that were not captured explain it, and violated when not even
those do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from replispec.replay.events.content import seen_of, values_of
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.decisions import NOTIFIED
from replispec.replay.events.rocketmq.facts import BY_ADDRESS
from replispec.replay.events.rocketmq.groups import BrokerGroups
from replispec.replay.events.rocketmq.wholeness import controllers_were_seen
from replispec.replay.machines.group_walks import GroupWalk
from replispec.replay.machines.rocketmq.broker_set_history import (
    ANYTHING,
    MACHINE,
    OWN,
    UNSEEN,
    Decision,
    History,
    Led,
    Owners,
    Step,
    effects_of,
    shown,
)
from replispec.replay.machines.steps import Findings
from replispec.runtime.primitives.invariants import Verdict
from replispec.runtime.primitives.unknown import UNKNOWN, PartlySeen
from replispec.wire.rocketmq.machines import broker_set

WAITING_MAX: Final = 64
"""Requests of one broker set that wait for their answers; what comes beyond is followed no further."""
_KINDS: Final = {info.name: kind for kind, info in MACHINE.events.items()}
# The epoch of the set comes first: every election counts it up too.
_EPOCHS: Final = ("sync_state_set_epoch", "master_epoch")
_NEVER: Final = 2**31
_Request = tuple[str, int, int | None]
_Place = tuple[int, ...]


def walks_of_broker_sets(rows: Sequence[Observation], groups: BrokerGroups) -> Iterable[GroupWalk]:
    """The machine of a broker set for each life of each group."""
    by_address = {
        row.controller for row in rows if row.kind == ObservationKind.FACT and row.named_by == BY_ADDRESS
    }
    holed = not controllers_were_seen(rows, groups)
    begun = {row.group for row in rows if row.kind == ObservationKind.CLEANED and row.text is None}
    led: Led = {}
    sets: dict[str, _Set] = {}
    for row in rows:
        if (
            row.kind == ObservationKind.DECISION
            and row.controller not in by_address
            and _is_claim(row, groups)
        ):
            group = row.group or ""
            if group not in sets:
                sets[group] = _Set(group, begun=group in begun, holed=holed, led=led)
            sets[group].add(row, ends_life=groups.lives.is_end(groups.key(row), row))
    return sets.values()


def _is_claim(row: Observation, groups: BrokerGroups) -> bool:
    """True when the row is about a broker set that some broker belongs to, and its controller is known.

    A request for an unknown broker name does not create a broker set.
    """
    if row.controller is None:
        return groups.name_at(row.address) is not None
    return row.controller in groups.controllers and row.name in groups.spoken


@dataclass(slots=True)
class _Event:
    """A request (without `decision`), or what its answer or a notification says.

    `place`: among the events of a broker set, its epochs as far as its thread tells them; of those with the
    same, what changes the set comes first. `until`: the epochs that its thread tells next; it cannot lie
    behind them. `not_at_once`: the version, and how many grants were known, when it could not come at once.
    """

    row: Observation
    request: _Request
    asked: Decision
    decision: Decision | None = None
    place: _Place = ()
    until: _Place = ()
    not_at_once: tuple[int, int] | None = None

    @property
    def is_answer(self) -> bool:
        """True when a request was decided, which a notification does not say."""
        return self.decision is not None and self.decision.kind is not None

    @property
    def floats(self) -> bool:
        """True when no epoch says where it belongs."""
        return self.decision is not None and not any(each in self.decision.claims for each in _EPOCHS)

    @property
    def says(self) -> str:
        """What happened, in words."""
        assert self.decision is not None
        claims = shown(self.decision.claims)
        if self.decision.kind is None:
            return f"a notification telling {claims}"
        return f"{MACHINE.events[self.decision.kind].name}, answered {self.row.code}, telling {claims}"


@dataclass(slots=True)
class _Thread:
    """The events of one connection that are still to come, and the version that the last one needed."""

    events: deque[_Event] = field(default_factory=deque)
    since: int = 0
    epochs: list[int] = field(default_factory=lambda: [-1, -1])

    def look_ahead(self) -> None:
        """Tell every event what its thread tells next; all must have been added."""
        until: _Place = (_NEVER, _NEVER)
        for event in reversed(self.events):
            if event.decision is not None:
                told = _epochs(event.decision)
                until = tuple(one if one >= 0 else other for one, other in zip(told, until, strict=True))
                event.until = until

    def ready(self) -> list[_Event]:
        """What may come next: the first event, and answers behind an answer that they were asked for before,
        as no request lies between."""
        found: list[_Event] = []
        for event in islice(self.events, WAITING_MAX):
            if event.decision is None or (found and not event.is_answer):
                break
            found.append(event)
        return found or [*islice(self.events, 1)]

    def take(self, event: _Event) -> None:
        """It has come."""
        del self.events[next(at for at, each in enumerate(self.events) if each is event)]


@dataclass(frozen=True, slots=True)
class _Choice:
    """A way to choose what comes next: the least by `key` that follows.

    `floats_first`: what no epoch places comes before it. `asked_first`: what follows from what was asked
    comes before what only follows from what a controller did of its own. `in_turn`: what follows
    from nothing that was seen is left open at its turn, before what would go on without it.
    """

    key: Callable[[_Event], tuple[Any, ...]]
    floats_first: bool = True
    asked_first: bool = False
    in_turn: bool = False


def _by_epochs(event: _Event) -> tuple[Any, ...]:
    """What does not tell an epoch comes after what does; removals, which no epoch places, are last."""
    return _is_removal(event), [(each < 0, each) for each in event.place]


def _as_captured(event: _Event) -> tuple[Any, ...]:
    return (event.row.order,)


_CHOICES: Final = (
    _Choice(_by_epochs),
    _Choice(_by_epochs, asked_first=True),
    _Choice(_as_captured, floats_first=False),
    _Choice(_as_captured, floats_first=False, in_turn=True),
)
_Judged = list[tuple[Observation, Verdict, str]]


@dataclass(slots=True)
class _Set:
    """What was seen of one broker set in one life.

    `begun`: the capture shows that nothing was known of it at first; `holed`: bytes were lost; `led`: what
    the histories of all sets remember, see History.
    """

    group: str
    begun: bool
    holed: bool
    led: Led
    rows: list[tuple[Observation, bool]] = field(default_factory=list)

    def add(self, row: Observation, *, ends_life: bool) -> None:
        """One more row, in the order of its connection."""
        self.rows.append((row, ends_life))

    @property
    def groups(self) -> Collection[str]:
        """The group that is this set in one of its lives."""
        return (self.group,)

    def walk(self, found: Findings) -> None:
        """Note what the answers and notifications come to, in the order of the capture."""
        for row, verdict, says in self._judged():
            found[self.group, MACHINE.finding].note(verdict, says, row)

    def _judged(self) -> _Judged:
        """Judge every answer and notification in the order, of those tried, that leaves the fewest faults:
        verdicts in the order of the capture, each with what it says."""
        best: _Judged = []
        for choice in _CHOICES:
            history = History(begun=self.begun, unseen=ANYTHING if self.holed else UNSEEN, led=self.led)
            order = _Order(choice, history, Owners(begun=self.begun, whole=not self.holed))
            for row, ends_life in self.rows:
                order.add(row, ends_life=ends_life)
            judged = order.walk()
            best = min(best or judged, judged, key=_faults)
            if not _faults(best):
                break
        return best


def _faults(judged: _Judged) -> int:
    return sum(verdict is Verdict.VIOLATED for _, verdict, _ in judged)


class _Order:
    """One order of what was seen: the threads of the connections, and the history that comes of it."""

    def __init__(self, choice: _Choice, history: History, owners: Owners) -> None:
        self._choice = choice
        self._history = history
        self._owners = owners
        self._threads: dict[str, _Thread] = {}
        self._asked: dict[_Request, Decision] = {}
        self._waiting: dict[_Request, Decision] = {}
        self._before: dict[_Request, list[int]] = {}
        self._since: dict[_Request, int] = {}
        self._judged: _Judged = []

    def add(self, row: Observation, *, ends_life: bool) -> None:
        """One more row, in the order of its connection."""
        thread = self._threads.setdefault(row.connection, _Thread())
        for event in self._event(row, ends_life=ends_life):
            if event.decision is not None:
                told = _epochs(event.decision)
                before = self._before.pop(event.request, thread.epochs)
                place = map(max, before, told)
                event.place = (*place, not event.decision.is_write, row.order)
                thread.epochs = list(map(max, thread.epochs, told))
            else:
                self._before[event.request] = thread.epochs
            thread.events.append(event)

    def _event(self, row: Observation, *, ends_life: bool) -> Iterator[_Event]:
        claims = {} if row.code is None else values_of(row.content, broker_set.Variables)
        if row.message == NOTIFIED:
            if row.master is not None and row.master_epoch is not None:
                told = Decision(None, PartlySeen(), None, values_of(row.content, broker_set.Variables))
                yield _Event(row, (row.connection, -1, None), told, told)
        elif row.code is None:
            kind = _KINDS[row.message or ""]
            request = (row.connection, row.direction, row.opaque)
            asked = self._asked[request] = Decision(kind, seen_of(row.content, kind), None, {})
            yield _Event(row, request, asked)
        else:
            request = (row.connection, 1 - row.direction, row.opaque)
            known = self._asked.pop(request, None)
            if known is not None and known.kind is not None:
                effects = effects_of(known.kind, row.code)
                if effects and not ends_life:
                    yield _Event(row, request, known, Decision(known.kind, known.asked, effects, claims))

    def walk(self) -> _Judged:
        """Judge every answer and notification."""
        for thread in self._threads.values():
            thread.look_ahead()
        while self._go_on() or self._conclude():
            pass
        return sorted(self._judged, key=lambda each: each[0].order)

    def _heads(self) -> list[tuple[_Event, _Thread]]:
        """What comes next in each thread, the least first."""
        heads = [(event, thread) for thread in self._threads.values() for event in thread.ready()]
        return sorted(heads, key=lambda head: self._choice.key(head[0]))

    def _go_on(self) -> bool:
        """Take what the present explains; False when it explains nothing that comes next."""
        if self._take_at_once():
            return True
        heads = self._heads()
        choice = self._choice
        if choice.floats_first and any(self._take(*head) for head in _floating(heads)):
            return True
        if choice.asked_first and any(self._take(*head) for head in heads):
            return True
        nearest = heads[:1] if choice.in_turn else heads
        return any(self._take(*head) or self._take_after_unasked(*head) for head in nearest)

    def _take_at_once(self) -> bool:
        """Take all that changes nothing."""
        taken = False
        for thread in self._threads.values():
            while (event := self._at_once(thread)) is not None:
                if event.decision is None:
                    self._ask(event, thread)
                else:
                    self._judge(event, Verdict.OK)
                    self._done(event, thread, self._history.number - 1)
                taken = True
        return taken

    def _at_once(self, thread: _Thread) -> _Event | None:
        """The next request of a thread, or a decision that changes nothing; None when nothing is at once."""
        for event in thread.ready():
            known = self._history.number, self._owners.granted
            if event.decision is None:
                return event
            if event.not_at_once != known:
                if self._history.is_at_once(self._named(event)):
                    return event
                event.not_at_once = known
        return None

    def _ask(self, event: _Event, thread: _Thread) -> None:
        thread.take(event)
        self._since[event.request] = thread.since
        if len(self._waiting) >= WAITING_MAX:
            self._waiting.pop(next(iter(self._waiting)))
        self._waiting[event.request] = event.asked

    def _take(self, event: _Event, thread: _Thread) -> bool:
        """Take a decision that leads on from now."""
        return not _is_removal(event) and self._leads_on(event, thread, Step(self._named(event)))

    def _take_after_unasked(self, event: _Event, thread: _Thread) -> bool:
        """Take a decision that leads on after what the controller did of its own, or some other request."""
        decision = self._named(event)
        if _is_removal(event):
            return self._leads_on(event, thread, Step(decision))
        if event.floats and not decision.is_write and any(self._history.after(Step(decision, OWN))):
            self._judge(event, Verdict.OK)
            self._done(event, thread, self._history.number - 1)
            return True
        others = tuple(asked for request, asked in self._waiting.items() if request != event.request)
        return self._leads_on(event, thread, Step(decision, OWN)) or self._leads_on(
            event, thread, Step(decision, OWN, others)
        )

    def _leads_on(self, event: _Event, thread: _Thread, step: Step) -> bool:
        after = self._history.after(step)
        if not any(after):
            return False
        self._history.goes_on(after, step)
        self._judge(event, Verdict.OK)
        self._done(event, thread, self._history.number - 1)
        return True

    def _conclude(self) -> bool:
        """Nothing that comes next follows from the present; False when nothing is left."""
        heads = self._heads()
        for event, thread in heads:
            decision = self._named(event)
            for step in (Step(decision), Step(decision, OWN)):
                version = self._history.had(step, self._first(event, thread))
                if version is not None:
                    self._judge(event, Verdict.OK)
                    self._done(event, thread, version)
                    return True
        if heads:
            self._fault(*heads[0])
        return bool(heads)

    def _fault(self, event: _Event, thread: _Thread) -> None:
        """The least that is left does not follow from what was seen."""
        step = Step(self._named(event), self._history.unseen)
        after = self._history.after(step)
        if any(after):
            self._judge(event, Verdict.UNKNOWN, f"{event.says} follows only from requests that were not seen")
            self._history.goes_on(after, step)
            self._done(event, thread, self._history.number - 1)
            return
        if self._history.had(step, self._first(event, thread)) is not None or self._history.may_follow(step):
            self._judge(event, Verdict.UNKNOWN, f"{event.says} follows only from requests that were not seen")
        elif not self._history.is_kept(self._first(event, thread)):
            self._judge(event, Verdict.UNKNOWN, f"{event.says} may follow from what lies too far back")
        else:
            states = ", ".join(self._history.states())
            self._judge(event, Verdict.VIOLATED, f"{event.says} is not allowed in state {states}")
            if step.decision is not None and step.decision.is_write:
                self._history.goes_anywhere()
        self._done(event, thread, thread.since)

    def _named(self, event: _Event) -> Decision:
        """The decision, told who holds the id that it is about."""
        assert event.decision is not None
        self._owners.name(event.decision)
        return event.decision

    def _done(self, event: _Event, thread: _Thread, version: int) -> None:
        thread.take(event)
        thread.since = max(thread.since, version)

    def _first(self, event: _Event, thread: _Thread) -> int:
        """The first version in which it may have been decided: its thread's when it was asked."""
        return self._since.get(event.request, thread.since)

    def _judge(self, event: _Event, verdict: Verdict, says: str = "") -> None:
        assert event.decision is not None
        self._waiting.pop(event.request, None)
        if event.row.accepted:
            self._owners.learn(event.decision)
        self._judged.append((event.row, verdict, f"{MACHINE.name}: {says}" if says else ""))


def _floating(heads: Sequence[tuple[_Event, _Thread]]) -> list[tuple[_Event, _Thread]]:
    """What no epoch places, the first that has to come before anything else."""
    return sorted((head for head in heads if head[0].floats), key=lambda head: head[0].until)


def _is_removal(event: _Event) -> bool:
    return event.decision is not None and event.decision.kind is broker_set.CleaningAsked


def _epochs(decision: Decision) -> tuple[int, ...]:
    """The epochs that a decision tells, -1 for what it does not: a set is changed under the epoch of the
    asking master."""
    asked = getattr(decision.asked, "master_epoch", UNKNOWN) if decision.claims else UNKNOWN
    told = {"master_epoch": -1 if asked is UNKNOWN or asked is None else asked, **decision.claims}
    return tuple(told.get(name, -1) for name in _EPOCHS)
