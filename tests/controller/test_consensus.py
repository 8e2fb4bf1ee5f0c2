"""A group of one: every start is a term of its own, and nothing is taken from a disk that is not whole."""

from __future__ import annotations

import pytest

from replispec.controller.consensus import LogDamaged
from replispec.controller.consensus.rocketmq import SingleNode
from replispec.event.v1.event_pb2 import ControllerEvent, MemberState
from replispec.runtime.documents.official_seam import decode, encode
from replispec.runtime.primitives.errors import RemoteProtocolError

OF_A_GROUP = MemberState(format=2, term=2, group="g/n0,n1,n2", member="n1")
KeptRecord = tuple[list[tuple[int, bytes]], bytes | None]


def started(kept: KeptRecord = ([], None), *names: str) -> tuple[SingleNode, KeptRecord]:
    """A member that started on what was kept and proposed a record about each broker set, all persisted."""
    records, state = list(kept[0]), kept[1]
    single = SingleNode(records, state)
    for name in names:
        single.propose(ControllerEvent(broker_name=name))
    if records:
        recovered = single.ready()
        assert recovered is not None
        assert (recovered.records, recovered.state, len(recovered.entries)) == ((), None, len(records))
    ready = single.ready()
    assert ready is not None
    single.persisted()
    return single, (records + list(ready.records), ready.state or state)


def test_a_start_is_a_term_that_was_voted_for_and_begins_with_a_record_that_decides_nothing() -> None:
    kept: KeptRecord = ([], None)
    for term in (1, 2, 3):
        single, kept = started(kept)
        assert single.term == term
        state = decode(MemberState, kept[1] or b"", unknown_allowed=False)
        assert (state.term, state.HasField("voted_for"), state.voted_for) == (term, True, 0)
        last = decode(ControllerEvent, kept[0][-1][1], unknown_allowed=False)
        assert (last.term, last.broker_name, last.WhichOneof("decision")) == (term, "", None)


def test_what_was_persisted_comes_first_after_a_start_in_its_order() -> None:
    _, kept = started(([], None), "a", "b")
    _, kept = started(kept, "c")
    single = SingleNode(*kept)
    recovered, begun = single.ready(), single.ready()
    assert recovered is not None
    assert begun is not None
    assert [each.event.broker_name for each in recovered.entries] == ["", "a", "b", "", "c"]
    assert [each.index for each in (*recovered.entries, *begun.entries)] == [1, 2, 3, 4, 5, 6]
    assert [index for index, _ in begun.records] == [6]


def test_proposals_of_a_term_are_numbered_and_handed_out_once() -> None:
    single, _ = started()
    assert [single.propose(ControllerEvent(broker_name=name)) for name in "ab"] == [2, 3]
    ready = single.ready()
    assert ready is not None
    assert [each.event.proposal for each in ready.entries] == [2, 3]
    assert ready.state is None
    assert single.ready() is None


def test_what_is_proposed_while_records_are_written_is_handed_out_together_after_them() -> None:
    single, _ = started()
    single.propose(ControllerEvent(broker_name="a"))
    assert single.ready() is not None
    for name in "bc":
        single.propose(ControllerEvent(broker_name=name))
    assert single.ready() is None
    single.persisted()
    ready = single.ready()
    assert ready is not None
    assert [(each.index, each.event.broker_name) for each in ready.entries] == [(3, "b"), (4, "c")]


def test_what_was_refused_was_never_proposed() -> None:
    single, _ = started()
    single.propose(ControllerEvent(broker_name="a"))
    refused = single.ready()
    assert refused is not None
    single.propose(ControllerEvent(broker_name="b"))
    single.refused()
    ready = single.ready()
    assert ready is not None
    assert [(each.index, each.event.broker_name) for each in refused.entries] == [(2, "a")]
    assert [(each.index, each.event.broker_name) for each in ready.entries] == [(2, "b")]


def test_a_term_that_could_not_be_written_begins_again_as_the_same_one() -> None:
    single = SingleNode([], None)
    first = single.ready()
    single.refused()
    single.propose(ControllerEvent(broker_name="a"))
    again = single.ready()
    assert first is not None
    assert again is not None
    assert (again.state, again.records[0]) == (first.state, first.records[0])
    assert [each.event.broker_name for each in again.entries] == ["", "a"]


def damaged(kept: KeptRecord, index: int, data: bytes) -> KeptRecord:
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
        ((kept[0], encode(MemberState(format=3, term=2))), "the state of the member is of format 3"),
        ((kept[0], encode(OF_A_GROUP)), "that of member 'n1' of the group 'g/n0,n1,n2'"),
    ):
        with pytest.raises(LogDamaged, match=says):
            SingleNode(*faulty)


def test_nobody_else_is_in_the_group() -> None:
    single, _ = started()
    with pytest.raises(RemoteProtocolError):
        single.step(30011, {}, b"")
    single.tick(1)
    assert single.is_leader
