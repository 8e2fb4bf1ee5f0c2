"""Frames stand in the order in which the accepting end sent and received them, whatever the file's order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.replay.frames.tables import FRAMES, STREAMS
from replispec.replay.pairing.delivery import Delivered, delivered

OPENER, ACCEPTOR = 0, 1
SIZE = 10


def frames(*rows: dict[str, Any]) -> pa.Table:
    plain = {"connection": "a", "size": SIZE, "acknowledged": -1}
    return pa.Table.from_pylist([{**plain, **row} for row in rows], FRAMES)


def streams(*numbers: tuple[int, int], connection: str = "a") -> pa.Table:
    """Both directions of a connection that direction 0 opened, by the numbers of their first bytes."""
    rows = [
        {"connection": connection, "direction": direction, "first_number": number, "accepted": direction == 1}
        for pair in numbers
        for direction, number in enumerate(pair)
    ]
    return pa.Table.from_pylist(rows, STREAMS)


def places(found: Delivered) -> list[tuple[int, int]]:
    columns = (found.integers(name).tolist() for name in ("direction", "sequence"))
    return list(zip(*columns, strict=True))


def talk(first: tuple[int, int], count: int) -> list[dict[str, Any]]:
    """Requests of SIZE bytes and an answer to each, one after the other; positions wrap in 32 bits."""
    rows = []
    for number in range(count):
        at = SIZE * number
        asked, answered = (first[0] + at) % 2**32, (first[1] + at) % 2**32
        rows += [
            {"direction": OPENER, "sequence": at, "index": number, "acknowledged": answered},
            {"direction": ACCEPTOR, "sequence": at, "index": number, "acknowledged": (asked + SIZE) % 2**32},
        ]
    return rows


@given(
    first=st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
    order=st.permutations(range(16)),
)
def test_an_answer_stands_behind_the_request_that_its_sender_had_received(
    first: tuple[int, int], order: list[int]
) -> None:
    rows = talk(first, 8)
    for row, place in zip(rows, order, strict=True):
        row["record_offset"] = 1000 * place
    found = delivered(frames(*rows), streams(first))
    assert places(found) == [(row["direction"], row["sequence"]) for row in rows]
    assert found.received.tolist() == [at // 2 + at % 2 for at in range(16)]
    assert (np.diff(found.order) > 0).all()


def test_what_crossed_on_the_way_was_sent_before_the_other_was_received() -> None:
    found = delivered(
        frames(
            {"direction": OPENER, "sequence": 0, "index": 0, "record_offset": 100, "acknowledged": 500},
            {"direction": ACCEPTOR, "sequence": 0, "index": 0, "record_offset": 200, "acknowledged": 900},
        ),
        streams((900, 500)),
    )
    assert places(found) == [(ACCEPTOR, 0), (OPENER, 0)]
    assert found.received.tolist() == [0, 0]


@pytest.mark.parametrize("behind", [1, 1 << 22])
def test_what_acknowledges_less_than_the_first_byte_tells_no_order(behind: int) -> None:
    rows = talk((5_000_000, 7_000), 6)
    for place, row in enumerate(rows):
        row["record_offset"] = 1000 * place
    sound = places(delivered(frames(*rows), streams((5_000_000, 7_000))))
    rows[1]["acknowledged"] = 5_000_000 - behind
    assert places(delivered(frames(*rows), streams((5_000_000, 7_000)))) == sound


@pytest.mark.parametrize("number", [0, 95, 135, 2**31, 2**32 - 1])
def test_one_damaged_number_moves_no_other_frame(number: int) -> None:
    rows = talk((100, 7000), 6)
    for place, row in enumerate(rows):
        row["record_offset"] = 1000 * place
    sound = places(delivered(frames(*rows), streams((100, 7000))))
    rows[5]["acknowledged"] = number
    assert places(delivered(frames(*rows), streams((100, 7000)))) == sound


def test_a_copy_sent_again_tells_no_more_than_what_was_sent_after_it() -> None:
    rows = talk((0, 0), 3)
    for place, row in enumerate(rows):
        row["record_offset"] = 1000 * place
    # The first answer was lost on the way, and sent again after all the others.
    rows[1].update(acknowledged=3 * SIZE, record_offset=9000)
    found = delivered(frames(*rows), streams((0, 0)))
    order = places(found)
    assert order.index((ACCEPTOR, 0)) < order.index((ACCEPTOR, SIZE))
    assert order.index((OPENER, 0)) < order.index((ACCEPTOR, 0)) < order.index((OPENER, 2 * SIZE))


def test_without_numbers_a_late_packet_delivers_what_waited_for_it() -> None:
    found = delivered(
        frames(
            {"direction": 0, "sequence": 0, "index": 0, "record_offset": 900},
            {"direction": 0, "sequence": 10, "index": 1, "record_offset": 100},
            {"direction": 1, "sequence": 0, "index": 0, "record_offset": 500},
        ),
        streams((0, 0)),
    )
    assert places(found) == [(1, 0), (0, 0), (0, 10)]
    assert found.order.tolist() == [500, 900, 901]


def test_connections_do_not_wait_for_each_other() -> None:
    found = delivered(
        frames(
            {"direction": 0, "sequence": 0, "index": 0, "record_offset": 900},
            {"connection": "b", "direction": 0, "sequence": 0, "index": 0, "record_offset": 100},
        ),
        pa.concat_tables([streams((0, 0)), streams((0, 0), connection="b")]),
    )
    assert found.order.tolist() == [900, 100]
    assert found.frames["connection"].to_pylist() == ["a", "b"]


def test_nothing_is_delivered_of_nothing() -> None:
    assert delivered(FRAMES.empty_table(), STREAMS.empty_table()).order.tolist() == []
