"""Events of all kinds as plain rows, for tests that compare them."""

from __future__ import annotations

from typing import Any

from replispec.replay.events.tables import Events


def event_rows(events: Events) -> list[dict[str, Any]]:
    """Every row with its kind, kind by kind."""
    return [{"kind": kind.value, **row} for kind, table in events.items() for row in table.to_pylist()]
