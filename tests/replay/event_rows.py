"""Events of all kinds as rows, for tests that look at single ones."""

from __future__ import annotations

from typing import Any

from replispec.replay.events.kinds import KINDS
from replispec.replay.events.observation import Observation
from replispec.replay.events.tables import Events, rows_of


def event_rows(events: Events) -> list[dict[str, Any]]:
    """Every row with its kind, kind by kind."""
    return [{"kind": kind.value, **row} for kind, table in events.items() for row in table.to_pylist()]


def from_tables(events: Events) -> list[Observation]:
    """The inverse of to_tables: kind by kind."""
    return [row for kind in KINDS if kind in events for row in rows_of(kind, events[kind])]
