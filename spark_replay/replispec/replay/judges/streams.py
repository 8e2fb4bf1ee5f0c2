"""Every invariant judged over the streams of one capture: lists event by event, tables by columns.

What is listed is little, and judged whole; in its stream it stands before the events of a table. A table may
be cut: by groups, and a group's events by the keys of the invariants, or anywhere where these are judged as
of the end. Each part is judged without the others, and what they come to is added up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from replispec.replay.events.event_tables import EventTable
from replispec.replay.judges.by_columns import ColumnJudge, Variables, judge_events
from replispec.replay.judges.parts import PartFinding, PartFindings
from replispec.runtime.primitives.invariants import Invariant, Judge, OrderInvariant

Carried = dict[tuple[str, str], Variables]
"""What invariants remember, by group and id."""


class ListedEvent(Protocol):
    """An event, the stream that it belongs to, its kind there, and the broker group that it is about."""

    @property
    def stream(self) -> str:
        """The stream."""
        ...

    @property
    def name(self) -> str:
        """Its kind."""
        ...

    @property
    def group(self) -> str:
        """The group."""
        ...

    @property
    def event(self) -> Any:
        """The object with its attributes; `row` is what shows it."""
        ...


class StreamJudges:
    """The invariants, and what they remember of the listed events of one capture.

    `rules` are those of the family; the invariant `of_sends` is that of acknowledged messages.
    """

    def __init__(
        self,
        invariants: Mapping[str, Invariant],
        listed: Iterable[ListedEvent],
        rules: Any,
        of_sends: str,
    ) -> None:
        by_stream: dict[str, dict[str, list[ListedEvent]]] = defaultdict(lambda: defaultdict(list))
        for event in listed:
            by_stream[event.stream][event.group].append(event)
        self._invariants = invariants
        self._found: PartFindings = {}
        self._judges: dict[tuple[str, str], Judge] = {}
        self._columns = {
            each.id: ColumnJudge(each, rules, of_sends=each.id == of_sends) for each in invariants.values()
        }
        for invariant in invariants.values():
            for group, events in by_stream[invariant.stream].items():
                found = self._found[group, invariant.id] = PartFinding()
                fed = ((each.name, each.event) for each in events)
                self._judges[group, invariant.id] = judge_events(
                    invariant, rules, fed, found, of_sends=invariant.id == of_sends
                )

    def listed(self) -> PartFindings:
        """What the listed events come to."""
        return self._found

    def of(self, table: EventTable, carried: Carried | None = None) -> PartFindings:
        """What a part of the events of one stream comes to; `carried`: what is remembered of the stretches
        before it, where it is one of several that are judged one after the other."""
        found: PartFindings = {}
        judged = [each for each in self._invariants.values() if each.stream == table.stream]
        templates = table.templates()
        for group, rows in table.parts("group"):
            own = table.take(rows)
            common = templates.take(rows)
            for invariant in judged:
                before = self._variables_of(group, invariant)
                known = None if carried is None else carried.setdefault((group, invariant.id), {})
                found[group, invariant.id] = self._columns[invariant.id].judge(own, common, before, known)
        return found

    def _variables_of(self, group: str, invariant: Invariant) -> Callable[[Any], Any]:
        """What was remembered of the listed events when the first one of the table comes."""
        if (group, invariant.id) in self._judges:
            return self._judges[group, invariant.id].variables_of
        first = invariant.variables if isinstance(invariant, OrderInvariant) else None
        return lambda _: first
