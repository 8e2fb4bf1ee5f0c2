"""Invariants judged over whole columns of events, with the results of judging one event after the other.

What an invariant asks is traced once (`machines/traces.py`); keys are folded each on its own. Whatever cannot
be judged so is judged event by event: which way was taken changes nothing of what comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import numpy as np

from replispec.replay.events.capture_order import capture_place
from replispec.replay.events.event_tables import Coded, Codes, EventTable, Flags, Rows, Templates, split
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.judges.parts import LostRange, PartFinding, Place, PlacedProofs, Proof
from replispec.replay.machines.folds import ColumnFold, Folded
from replispec.replay.machines.shapes import Structure
from replispec.replay.tcp.pieces import WORDS
from replispec.runtime.primitives.invariants import (
    EVIDENCE_MAX,
    KEYS_MAX,
    EndInvariant,
    Evidence,
    Invariant,
    Judge,
    OrderInvariant,
    PairingInvariant,
    Verdict,
    judged_at_end,
    stepped,
)
from replispec.runtime.primitives.unknown import UNKNOWN, UnknownRead

Variables = dict[Hashable, Any]
"""What an invariant remembers, by its keys."""
Judged = Verdict | None
"""What one event comes to; None when the invariant says nothing of it."""


class InvariantFold:
    """The steps of an invariant that folds variables; of one that is judged as of the end, its check."""

    def __init__(self, invariant: OrderInvariant, rules: Any) -> None:
        self._invariant = invariant
        self._rules = rules

    def evaluated(self, variables: Any, name: str, event: Any) -> tuple[Evidence | None, Any]:
        """The evaluation of one event, None when there is none, and the variables after it."""
        invariant = self._invariant
        if isinstance(invariant, EndInvariant):
            if name != invariant.event:
                return None, variables
            return judged_at_end(invariant, lambda _: variables, event, self._rules), variables
        return stepped(invariant, invariant.steps.get(name, ()), variables, event, self._rules)

    def apart(self, state: Any) -> tuple[Structure, list[tuple[str, Any]]]:
        """The class of the variables, and their values."""
        if state is None:
            return None, []
        return type(state), [(each.name, getattr(state, each.name)) for each in fields(state)]

    def together(self, structure: Structure, values: Sequence[Any]) -> Any:
        """The variables."""
        return None if structure is None else structure(*values)

    def step(self, state: Any, name: str, event: Any) -> tuple[Judged, Any]:
        """The verdict on one event, and the variables after it."""
        evidence, after = self.evaluated(state, name, event)
        return None if evidence is None else evidence.verdict, after


class ColumnJudge:
    """Judges tables of one group's events by one invariant. `rules` are those of its family.

    `of_sends`: whether its events are acknowledged messages: what is violated was lost.
    """

    def __init__(self, invariant: Invariant, rules: Any, *, of_sends: bool = False) -> None:
        self._invariant = invariant
        self._rules = rules
        self._of_sends = of_sends
        self._fold: InvariantFold | None = None
        if isinstance(invariant, OrderInvariant) and not isinstance(invariant, PairingInvariant):
            self._fold = InvariantFold(invariant, rules)
            self._columns = ColumnFold(self._fold)

    def judge(
        self,
        table: EventTable,
        templates: Templates,
        variables_of: Callable[[Any], Any],
        carried: Variables | None = None,
    ) -> PartFinding:
        """The finding about all events of the table, which are of one group.

        `variables_of` answers with the variables before the first event of a key, by an event of it. Of a
        table that is judged stretch by stretch `carried` has them from one to the next.
        """
        if carried is not None:
            variables_of = self._carried(carried, variables_of)
        keys = self._keys(templates)
        if self._fold is None or keys is None:
            return self._one_by_one(table, variables_of, carried)
        finding = PartFinding()
        for _, rows in split(keys):
            own = table.take(rows)
            event = table.event(int(rows[0]))
            folded = self._columns.run(variables_of(event), own, templates.take(rows))
            if carried is not None:
                carried[self._invariant.key(event, self._rules)] = folded.state
            self._note(finding, self._fold, own, folded)
        return finding

    def _keys(self, templates: Templates) -> Codes | None:
        """The key of every event as a code; None when columns do not tell it, or there are too many."""
        known: dict[Any, int] = {}
        try:
            of_each = [
                known.setdefault(self._invariant.key(SimpleNamespace(**each.known), self._rules), len(known))
                for each in templates.each
            ]
        except (AttributeError, UnknownRead):
            return None
        steps = self._invariant.steps if isinstance(self._invariant, OrderInvariant) else {}
        folds_what_it_judges = isinstance(self._invariant, EndInvariant) and any(
            each.name in steps for each in templates.each
        )
        if len(known) > KEYS_MAX or folds_what_it_judges:
            return None
        return np.array(of_each, dtype=np.int64)[templates.codes]

    def _note(
        self, finding: PartFinding, fold: InvariantFold, table: EventTable, folded: Folded[Any, Judged]
    ) -> None:
        numbers = np.bincount(folded.codes, minlength=len(folded.outcomes))
        for code, verdict in enumerate(folded.outcomes):
            if verdict is None:
                continue
            finding.count(verdict, int(numbers[code]))
            rows = np.flatnonzero(folded.codes == code)
            if self._of_sends:
                finding.messages += _true(table.known["is_message"], rows)
                finding.followed += _true(table.known["followed"], rows)
                _add_alone(finding, table, rows, verdict)
            if verdict is Verdict.OK:
                continue
            if verdict is Verdict.VIOLATED and self._of_sends:
                _lose(finding, table.take(rows))
            for row in rows[:EVIDENCE_MAX].tolist():
                evidence, _ = fold.evaluated(folded.before(row), table.name(row), table.shown(row))
                assert evidence is not None
                finding.keep([placed(evidence, place_of(evidence))])

    def _carried(self, carried: Variables, first: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def variables_of(event: Any) -> Any:
            key = self._invariant.key(event, self._rules)
            return carried[key] if key in carried else first(event)

        return variables_of

    def _one_by_one(
        self, table: EventTable, variables_of: Callable[[Any], Any], carried: Variables | None
    ) -> PartFinding:
        finding = PartFinding()
        events = ((table.name(row), table.shown(row)) for row in range(len(table)))
        judge = judge_events(
            self._invariant, self._rules, events, finding, of_sends=self._of_sends, before=variables_of
        )
        if carried is not None and self._fold is not None:
            for event in map(table.event, range(len(table))):
                carried[self._invariant.key(event, self._rules)] = judge.variables_of(event)
        return finding


def _true(column: Coded, rows: Rows) -> int:
    """How many of these events have a flag."""
    return int(_flags(column, rows).sum())


def _flags(column: Coded, rows: Rows) -> Flags:
    found: Flags = np.array([bool(value) for value in column.values], np.bool_)[column.codes[rows]]
    return found


def _add_alone(finding: PartFinding, table: EventTable, rows: Rows, verdict: Verdict) -> None:
    """Count messages behind which no later start was seen: those that were lost, those of unsure epochs."""
    message, followed, epoch = (table.known[name] for name in ("is_message", "followed", "epoch"))
    alone = rows[_flags(message, rows) & ~_flags(followed, rows)]
    if verdict is Verdict.VIOLATED:
        finding.lost_alone += len(alone)
    else:
        unsure = np.array([value is UNKNOWN for value in epoch.values], np.bool_)
        finding.unsure += int(unsure[epoch.codes[alone]].sum())


def _lose(finding: PartFinding, table: EventTable) -> None:
    epochs, offsets = table.known["epoch"], table.numbers["offset"].numbers
    for code, rows in split(epochs.codes):
        own = offsets[rows]
        finding.lose(_seen(epochs.values[code]), LostRange(int(own.min()), int(own.max()), len(own)))
    finding.lose_at(table.places, table.places[table.known["in_doubt"].where(True)])


def _seen(epoch: Any) -> int | None:
    return None if epoch is UNKNOWN else int(epoch)


def judge_events(
    invariant: Invariant,
    rules: Any,
    events: Iterator[tuple[str, Any]],
    finding: PartFinding,
    *,
    of_sends: bool = False,
    before: Callable[[Any], Any] | None = None,
) -> Judge:
    """Judge one event after the other; the finding gets what they come to.

    Returns the judge, for what it remembers; `before` is what it remembers already.
    """
    judge = Judge(invariant, rules, observer=_observer(finding) if of_sends else None, before=before)
    for name, event in events:
        judge.feed(name, event)
    found = judge.finding()
    for verdict, number in found.counts.items():
        finding.count(verdict, number)
    finding.keep(placed(evidence, place_of(evidence)) for evidence in found.evidence)
    return judge


def _observer(finding: PartFinding) -> Callable[[Evidence], None]:
    def note(evidence: Evidence) -> None:
        event: Any = evidence.event
        finding.messages += event.is_message
        finding.followed += event.followed
        alone = bool(event.is_message and not event.followed)
        finding.lost_alone += alone and evidence.verdict is Verdict.VIOLATED
        finding.unsure += alone and evidence.verdict is not Verdict.VIOLATED and event.epoch is UNKNOWN
        if evidence.verdict is Verdict.VIOLATED:
            finding.lose(_seen(event.epoch), LostRange(event.offset, event.offset, 1))
            finding.lost_at.append(event.place)
            if event.in_doubt:
                finding.in_doubt.append(event.place)

    return note


def place_of(evidence: Evidence) -> Place:
    """Where an evaluation stands in the order of its stream.

    That is the order of the capture; what may have been acknowledged in lost bytes stands behind it, and
    ranges, which are of several frames, tell their own. What one frame shows several of says where `within`.
    """
    event: Any = evidence.event
    within = getattr(event, "within", 0)
    if hasattr(event, "rank"):
        return (event.epoch, event.rank, within)
    return (event.row.kind == ObservationKind.UNSEEN, *capture_place(event.row), within)


def placed(evidence: Evidence, place: Place) -> PlacedProofs:
    """The frame that an evaluation is about, and the one that it contradicts."""
    text = evidence.says
    if evidence.divergence:
        text = f"{text} ({evidence.divergence})"
    rows = [getattr(event, "row", None) for event in (evidence.event, evidence.other)]
    proofs = tuple(proof_of(row, text, evidence.verdict) for row in rows if row is not None)
    return PlacedProofs(evidence.verdict, place, proofs)


def proof_of(row: Observation, text: str, verdict: Verdict) -> Proof:
    """A row as a proof; of lost bytes with the reason."""
    if row.kind in (ObservationKind.UNSEEN, ObservationKind.GAP) and row.text in WORDS:
        text = f"{text}; bytes here were {WORDS[row.text]}"
    return Proof(row.time_ns, row.connection, row.direction, row.sequence, text, verdict.value)
