"""A group of one: every start is a term of its own, and nothing is taken from a disk that is not whole."""

from __future__ import annotations

import pytest

from replispec.controller.consensus import Alone, LogDamaged
from replispec.event.v1.event_pb2 import ControllerEvent, MemberState
from replispec.runtime.documents.official_seam import decode, encode
from replispec.runtime.primitives.errors import RemoteProtocolError

Kept = tuple[list[tuple[int, bytes]], bytes | None]


def started(kept: Kept = ([], None), *names: str) -> tuple[Alone, Kept]:
    """A member that started on what was kept and proposed a record about each broker set, all persisted."""
    records, state = list(kept[0]), kept[1]
    alone = Alone(records, state)
    for name in names:
        alone.propose(ControllerEvent(broker_name=name))
    if records:
        recovered = alone.ready()
        assert recovered is not None
        assert (recovered.records, recovered.state, len(recovered.entries)) == ((), None, len(records))
    ready = alone.ready()
    assert ready is not None
    alone.persisted()
    return alone, (records + list(ready.records), ready.state or state)


def test_a_start_is_a_term_that_was_voted_for_and_begins_with_a_record_that_decides_nothing() -> None:
    kept: Kept = ([], None)
    for term in (1, 2, 3):
        alone, kept = started(kept)
        assert alone.term == term
        state = decode(MemberState, kept[1] or b"", unknown_allowed=False)
        assert (state.term, state.HasField("voted_for"), state.voted_for) == (term, True, 0)
        last = decode(ControllerEvent, kept[0][-1][1], unknown_allowed=False)
        assert (last.term, last.broker_name, last.WhichOneof("decision")) == (term, "", None)


def test_what_was_persisted_comes_first_after_a_start_in_its_order() -> None:
    _, kept = started(([], None), "a", "b")
    _, kept = started(kept, "c")
    alone = Alone(*kept)
    recovered, begun = alone.ready(), alone.ready()
    assert recovered is not None
    assert begun is not None
    assert [each.event.broker_name for each in recovered.entries] == ["", "a", "b", "", "c"]
    assert [each.index for each in (*recovered.entries, *begun.entries)] == [1, 2, 3, 4, 5, 6]
    assert [index for index, _ in begun.records] == [6]


def test_proposals_of_a_term_are_numbered_and_handed_out_once() -> None:
    alone, _ = started()
    assert [alone.propose(ControllerEvent(broker_name=name)) for name in "ab"] == [2, 3]
    ready = alone.ready()
    assert ready is not None
    assert [each.event.proposal for each in ready.entries] == [2, 3]
    assert ready.state is None
    assert alone.ready() is None


def test_what_is_proposed_while_records_are_written_is_handed_out_together_after_them() -> None:
    alone, _ = started()
    alone.propose(ControllerEvent(broker_name="a"))
    assert alone.ready() is not None
    for name in "bc":
        alone.propose(ControllerEvent(broker_name=name))
    assert alone.ready() is None
    alone.persisted()
    ready = alone.ready()
    assert ready is not None
    assert [(each.index, each.event.broker_name) for each in ready.entries] == [(3, "b"), (4, "c")]


def test_what_was_refused_was_never_proposed() -> None:
    alone, _ = started()
    alone.propose(ControllerEvent(broker_name="a"))
    refused = alone.ready()
    assert refused is not None
    alone.propose(ControllerEvent(broker_name="b"))
    alone.refused()
    ready = alone.ready()
    assert ready is not None
    assert [(each.index, each.event.broker_name) for each in refused.entries] == [(2, "a")]
    assert [(each.index, each.event.broker_name) for each in ready.entries] == [(2, "b")]


def test_a_term_that_could_not_be_written_begins_again_as_the_same_one() -> None:
    alone = Alone([], None)
    first = alone.ready()
    alone.refused()
    alone.propose(ControllerEvent(broker_name="a"))
    again = alone.ready()
    assert first is not None
    assert again is not None
    assert (again.state, again.records[0]) == (first.state, first.records[0])
    assert [each.event.broker_name for each in again.entries] == ["", "a"]


def damaged(kept: Kept, index: int, data: bytes) -> Kept:
    """The same with other bytes for one record."""
    return [(number, data if number == index else each) for number, each in kept[0]], kept[1]


def test_a_log_that_no_controller_wrote_ends_the_start_and_says_where() -> None:
    _, kept = started(([], None), "a", "b")
    _, kept = started(kept)
    whole = dict(kept[0])
    newer = decode(ControllerEvent, whole[2], unknown_allowed=False)
    newer.format = 2
    late = decode(ControllerEvent, whole[4], unknown_allowed=False)
    late.term = 9
    for faulty, says in (
        (damaged(kept, 2, whole[2][:-1]), "record 2 of the log"),
        (damaged(kept, 2, whole[2] + b"\xa2\x06\x00"), "record 2 of the log"),
        (damaged(kept, 2, encode(newer)), "format 2"),
        ((kept[0][:1] + kept[0][2:], kept[1]), "record 2 of the log is missing"),
        (damaged(kept, 2, whole[4]), "record 3 of the log is of term 1, behind 2"),
        (damaged(kept, 4, encode(late)), "the log is of term 9, the member knows only 2"),
        ((kept[0], None), "the log is of term 2, the member knows only 0"),
        ((kept[0], b"\xff"), "the state of the member"),
        ((kept[0], encode(MemberState(format=2, term=2))), "the state of the member is of format 2"),
    ):
        with pytest.raises(LogDamaged, match=says):
            Alone(*faulty)


def test_nobody_else_is_in_the_group() -> None:
    alone, _ = started()
    with pytest.raises(RemoteProtocolError):
        alone.step(b"", 0)
    alone.tick(1)
    assert alone.is_leader
