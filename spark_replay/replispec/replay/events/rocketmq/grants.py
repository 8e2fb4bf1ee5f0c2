"""Broker ids that a controller granted, each under the life of the group whose id it is.

An id that was granted and not removed still belongs to its owner when a removal of other brokers made
the controller forget the set: whoever is granted it then holds it a second time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from types import SimpleNamespace

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.groups import BrokerGroups
from replispec.replay.events.rocketmq.lives import FIRST_BROKER_ID, removed_by
from replispec.replay.events.rocketmq.wholeness import controllers_were_seen

ASKED = "next_id_asked"
"""The event of the broker set's machine that an answer to 1012 decides."""
_Held = dict[str, str | None]


# Connections may be seen this late: who asks sooner after a grant may have been answered before it.
SETTLING_NS = 5_000_000_000


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


def offers(rows: Iterable[Observation]) -> Iterator[SimpleNamespace]:
    """The events of the stream `offers`. `rows`: in the order of the capture."""
    owned: dict[str | None, dict[str, int]] = {}
    for row in rows:
        if row.kind == ObservationKind.CLEANED:
            for each in removed_by(row):
                owned.get(row.group, {}).pop(each, None)
        elif row.kind == ObservationKind.GRANTED:
            owned.setdefault(row.group, {}).setdefault(str(row.broker_id), row.time_ns)
        elif row.kind == ObservationKind.DECISION and row.message == ASKED and row.accepted:
            told = json.loads(row.content or "{}").get("next_broker_id")
            asked_ns = row.time_ns - (row.duration_ns or 0)
            granted_ns = owned.get(row.group, {}).get(str(told))
            is_owned = granted_ns is not None and granted_ns + SETTLING_NS < asked_ns
            yield SimpleNamespace(row=row, group=row.group, broker_id=told, owned=is_owned)


def _begins_anew(row: Observation, is_border: bool) -> bool:
    """True when no id from before is anybody's any more."""
    if row.kind == ObservationKind.CLEANED:
        return row.text is None
    return is_border and row.broker_id == FIRST_BROKER_ID
