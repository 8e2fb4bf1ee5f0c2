"""Broker ids that a controller granted, each under the life of the group whose id it is.

An id that was granted and not removed still belongs to its owner when a removal of other brokers made
the controller forget the set: whoever is granted it then holds it a second time.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.groups import BrokerGroups
from replispec.replay.events.rocketmq.lives import FIRST_BROKER_ID, Key, removed_by
from replispec.replay.events.rocketmq.wholeness import controllers_were_seen
from replispec.runtime.primitives.unknown import UNKNOWN
from replispec.wire.rocketmq.codes import ResponseCode

ASKED, APPLIED = "next_id_asked", "id_applied"
"""The events of the broker set's machine that an answer to 1012 and one to 1013 decide."""
_Held = dict[str, str | None]


def grants(rows: Sequence[Observation], groups: BrokerGroups) -> Iterator[SimpleNamespace]:
    """The events of the stream `grants`."""
    whole = controllers_were_seen(rows, groups)
    held: dict[tuple[str, str], _Held] = {}
    for row in rows:
        key = groups.key(row)
        if key is None or row.kind not in (ObservationKind.CLEANED, ObservationKind.GRANTED):
            continue
        if _begins_anew(row, groups.lives.is_end(key, row)):
            held.pop(key, None)
        own = held.setdefault(key, {})
        if row.kind == ObservationKind.CLEANED:
            for each in removed_by(row):
                own.pop(each, None)
            continue
        group = own.setdefault(str(row.broker_id), row.group)
        yield SimpleNamespace(row=row, group=group, broker_id=row.broker_id, check_code=row.text, whole=whole)


def offers(rows: Sequence[Observation], groups: BrokerGroups) -> Iterator[SimpleNamespace]:
    """The events of the stream `offers`. `rows`: in the order of the capture."""
    may_be_gone = _removed(rows, groups)
    whole = controllers_were_seen(rows, groups)
    granted = _granted(rows)
    words = _Words()
    for row in rows:
        words.hear(row)
        if row.kind == ObservationKind.DECISION and row.message == ASKED and row.accepted:
            told = json.loads(row.content or "{}").get("next_broker_id")
            owned: Any = (row.group, row.connection, told) in words.owned
            gone = may_be_gone(row, str(told)) or not whole
            if (owned and gone) or (not owned and granted.get((row.group, told), set()) - {row.connection}):
                owned = UNKNOWN
            yield SimpleNamespace(row=row, group=row.group, broker_id=told, owned=owned)


@dataclass(slots=True)
class _Words:
    """What one connection after the other tells of ids: `owned` are those that somebody has, by group and
    connection. A refused id is somebody's where it is not beyond the next one that the connection told."""

    owned: set[tuple[str | None, str, int | None]] = field(default_factory=set)
    _next: dict[tuple[str | None, str], int] = field(
        default_factory=lambda: defaultdict(lambda: FIRST_BROKER_ID)
    )
    _asked: dict[tuple[str, int, int | None], int | None] = field(default_factory=dict)

    def hear(self, row: Observation) -> None:
        """The next row of the capture."""
        at = row.group, row.connection
        if row.kind == ObservationKind.GRANTED:
            self.owned.add((*at, row.broker_id))
        if row.kind != ObservationKind.DECISION:
            return
        content = json.loads(row.content or "{}") if row.message in (ASKED, APPLIED) else {}
        if row.message == ASKED:
            self._next[at] = max(self._next[at], content.get("next_broker_id") or FIRST_BROKER_ID)
        elif row.message == APPLIED and row.code is None:
            self._asked[row.connection, 1 - row.direction, row.opaque] = content.get("broker_id")
        elif row.message == APPLIED and row.code == ResponseCode.CONTROLLER_BROKER_ID_INVALID:
            refused = self._asked.get((row.connection, row.direction, row.opaque))
            if refused is not None and refused <= self._next[at]:
                self.owned.add((*at, refused))


def _granted(rows: Iterable[Observation]) -> dict[tuple[str | None, int | None], set[str]]:
    """The connections on which an id of a group was granted."""
    found: dict[tuple[str | None, int | None], set[str]] = defaultdict(set)
    for row in rows:
        if row.kind == ObservationKind.GRANTED:
            found[row.group, row.broker_id].add(row.connection)
    return found


def _removed(rows: Iterable[Observation], groups: BrokerGroups) -> Callable[[Observation, str], bool]:
    """Tells whether an id of a row's broker set was removed somewhere, alone or with the set."""
    found: dict[Key | None, set[str]] = defaultdict(set)
    whole_sets = {key for key, ends in groups.lives.ends.items() if ends}
    for row in rows:
        if row.kind == ObservationKind.CLEANED:
            found[groups.key(row)] |= removed_by(row)
    return lambda row, each: groups.key(row) in whole_sets or each in found[groups.key(row)]


def _begins_anew(row: Observation, is_border: bool) -> bool:
    """True when no id from before is anybody's any more."""
    if row.kind == ObservationKind.CLEANED:
        return row.text is None
    return is_border and row.broker_id == FIRST_BROKER_ID
