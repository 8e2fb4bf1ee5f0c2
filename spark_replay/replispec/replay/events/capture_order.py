"""The order of a capture: as frames were seen delivered, and within a direction as its bytes stand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from replispec.replay.events.observation import Observation, ObservationKind


def capture_place(row: Observation) -> tuple[Any, ...]:
    """Where a row stands in the order of its capture: as it was seen delivered; within one direction in the
    order of the bytes.

    A connection is opened before its first frame, and a gap stands after the frame before it.
    """
    side = (row.kind is ObservationKind.GAP) - (row.kind is ObservationKind.OPENED)
    return row.capture, row.order, row.connection, row.direction, row.sequence, row.index, side


def in_capture_order(observations: Iterable[Observation]) -> list[Observation]:
    """Sorted by their places in the capture."""
    return sorted(observations, key=capture_place)
