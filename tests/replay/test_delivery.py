"""Frames are taken in the order in which they were delivered, not in which their last packet came."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from replispec.replay.delivery import delivered
from replispec.replay.frames import FRAMES


def frames(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([{"connection": "a", "size": 10, **row} for row in rows], FRAMES)


def test_a_late_packet_delivers_what_waited_for_it() -> None:
    found = delivered(
        frames(
            {"direction": 0, "sequence": 0, "index": 0, "record_offset": 900},
            {"direction": 0, "sequence": 10, "index": 1, "record_offset": 100},
            {"direction": 1, "sequence": 0, "index": 0, "record_offset": 500},
        )
    )
    places = list(
        zip(found.frames["direction"].to_pylist(), found.frames["sequence"].to_pylist(), strict=True)
    )
    assert places == [(1, 0), (0, 0), (0, 10)]
    assert found.order.tolist() == [500, 900, 900]


def test_connections_do_not_wait_for_each_other() -> None:
    found = delivered(
        frames(
            {"direction": 0, "sequence": 0, "index": 0, "record_offset": 900},
            {"connection": "b", "direction": 0, "sequence": 0, "index": 0, "record_offset": 100},
        )
    )
    assert found.order.tolist() == [900, 100]
    assert found.frames["connection"].to_pylist() == ["a", "b"]


def test_nothing_is_delivered_of_nothing() -> None:
    assert delivered(FRAMES.empty_table()).order.tolist() == []
