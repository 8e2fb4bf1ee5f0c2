"""Broker ids that a controller granted, each under the life of the group whose id it is.

An id that was granted and not removed still belongs to its owner when a removal of other brokers made
the controller forget the set: whoever is granted it then holds it a second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import SimpleNamespace

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.groups import BrokerGroups
from replispec.replay.events.rocketmq.lives import FIRST_BROKER_ID, removed_by

_Held = dict[str, str | None]


def grants(rows: Iterable[Observation], groups: BrokerGroups) -> Iterator[SimpleNamespace]:
    """The events of the stream `grants`."""
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
        yield SimpleNamespace(row=row, group=group, broker_id=row.broker_id, check_code=row.text)


def _begins_anew(row: Observation, is_border: bool) -> bool:
    """True when no id from before is anybody's any more."""
    if row.kind == ObservationKind.CLEANED:
        return row.text is None
    return is_border and row.broker_id == FIRST_BROKER_ID
