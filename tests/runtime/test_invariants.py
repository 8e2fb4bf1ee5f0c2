"""The engine that judges, and the ten invariants on hand-made streams of events."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.runtime.primitives import invariants as engine
from replispec.runtime.primitives.errors import LocalProtocolError
from replispec.runtime.primitives.invariants import (
    EVIDENCE_MAX,
    Finding,
    Invariant,
    Judge,
    SetInvariant,
    Verdict,
    judge,
    worst,
)
from replispec.runtime.primitives.unknown import UNKNOWN
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.invariants import INVARIANTS

Event = tuple[str, SimpleNamespace]


def found(name: str, events: Iterable[Event]) -> Finding:
    """The finding about the one group of these events."""
    findings = judge(INVARIANTS[name], list(events), rules)
    assert len(findings) == 1
    return findings[0]


def verdicts(name: str, *events: Event) -> dict[str, int]:
    """How many evaluations came to which verdict."""
    return {verdict.value: count for verdict, count in found(name, events).counts.items() if count}


def fact(**changes: Any) -> Event:
    plain: dict[str, Any] = {
        "group": "g",
        "stream": "s",
        "named_by": "id",
        "code": int(RequestCode.CONTROLLER_GET_REPLICA_INFO),
        "master_epoch": 1,
        "sync_state_set_epoch": None,
        "body_epoch": None,
        "master_address": None,
        "master": "1",
        "members": None,
        "edits": 0,
        "learners": frozenset(),
        "succeeded": frozenset(),
        "whole": True,
    }
    return "fact", SimpleNamespace(**{**plain, **changes})


def members(*ids: str) -> frozenset[str]:
    return frozenset(ids)


# ---- facts ---------------------------------------------------------------------------------------


def test_an_epoch_with_one_master_is_ok_and_with_two_violated() -> None:
    assert verdicts("one-master-per-epoch", fact(), fact(stream="t"), fact(master="2", master_epoch=2)) == {
        "ok": 3
    }
    finding = found("one-master-per-epoch", [fact(), fact(master="2"), fact()])
    assert finding.verdict is Verdict.VIOLATED
    assert finding.counts[Verdict.VIOLATED] == 2
    assert finding.evidence[0].says == "masterEpoch 1 names 2 as master, and elsewhere 1"
    assert finding.evidence[0].other.master == "1"


def test_what_names_no_master_or_no_epoch_is_not_evaluated() -> None:
    finding = found("one-master-per-epoch", [fact(master=None), fact(master_epoch=None)])
    assert (finding.verdict, finding.evaluated) == (Verdict.UNKNOWN, 0)


def test_names_by_address_and_by_id_are_not_compared() -> None:
    assert verdicts("one-master-per-epoch", fact(), fact(named_by="address", master="127.0.0.1:30910")) == {
        "ok": 2
    }


@pytest.mark.parametrize(
    ("second", "verdict", "says"),
    [
        ({"master_epoch": 3, "master": "2"}, "ok", ""),
        ({"master_epoch": 5}, "ok", ""),
        ({"master_epoch": 1, "master": None}, "violated", "masterEpoch fell from 2 to 1"),
        ({"master_epoch": 1}, "violated", "masterEpoch fell from 2 to 1"),
        ({"master": "2"}, "violated", "the master changed from 1 to 2 within masterEpoch 2"),
        ({"sync_state_set_epoch": 3}, "violated", "syncStateSetEpoch fell from 4 to 3"),
        ({"sync_state_set_epoch": None}, "ok", ""),
        ({"master": None}, "ok", ""),
        ({"stream": "t", "master_epoch": 1}, "ok", ""),
        ({"named_by": "address", "master": "a:1"}, "ok", ""),
    ],
)
def test_epochs_grow_within_a_stream(second: dict[str, Any], verdict: str, says: str) -> None:
    first = {"master_epoch": 2, "sync_state_set_epoch": 4}
    finding = found("epochs-grow", [fact(**first), fact(**{**first, **second})])
    assert (finding.verdict, finding.evaluated) == (verdict, 2)
    assert [piece.says for piece in finding.evidence] == [says] * bool(says)


def test_one_fall_is_one_violation() -> None:
    events = [fact(master_epoch=epoch) for epoch in (1, 5, 3, 3, 4)]
    assert verdicts("epochs-grow", *events) == {"ok": 4, "violated": 1}


def test_a_master_that_was_absent_for_a_while_still_needs_a_greater_epoch() -> None:
    events = [fact(master_epoch=2), fact(master_epoch=2, master=None), fact(master_epoch=2, master="2")]
    assert verdicts("epochs-grow", *events) == {"ok": 2, "violated": 1}


def test_a_set_epoch_stands_for_one_set() -> None:
    one = {"sync_state_set_epoch": 2, "members": members("1", "2")}
    assert verdicts("set-is-function-of-epoch", fact(**one), fact(**one, stream="t")) == {"ok": 2}
    two = {"sync_state_set_epoch": 2, "members": members("1")}
    assert verdicts("set-is-function-of-epoch", fact(**one), fact(**two)) == {"ok": 1, "violated": 1}


def test_a_known_deviation_is_told_from_a_violation() -> None:
    old = {"named_by": "address", "sync_state_set_epoch": 2}
    before = fact(**old, members=members("a:1", "b:1"))
    after = fact(**old, members=members("b:1"), code=int(RequestCode.NOTIFY_BROKER_ROLE_CHANGED))
    finding = found("set-is-function-of-epoch", [before, after])
    assert finding.verdict is Verdict.DIVERGED
    assert finding.evidence[0].divergence.startswith("apache@5.0.0..5.1.0: ")
    assert verdicts("set-is-function-of-epoch", after, before) == {"ok": 1, "diverged": 1}
    edited = fact(sync_state_set_epoch=2, members=members("1"), edits=1)
    assert verdicts(
        "set-is-function-of-epoch", fact(sync_state_set_epoch=2, members=members("1", "2")), edited
    ) == {
        "ok": 1,
        "diverged": 1,
    }


def test_a_learner_stays_outside_the_set() -> None:
    learners = members("3")
    assert verdicts("learner-outside-set", fact(members=members("1", "2"), learners=learners)) == {"ok": 1}
    assert verdicts("learner-outside-set", fact(members=members("1", "3"), learners=learners)) == {
        "violated": 1
    }
    first = fact(members=members("3", "2"), learners=learners, master="3")
    assert verdicts("learner-outside-set", first) == {"diverged": 1}
    later = fact(members=members("3"), learners=learners, master="3", succeeded=learners)
    assert verdicts("learner-outside-set", later) == {"violated": 1}
    at_times = fact(members=members("1", "3"), learners=UNKNOWN)
    assert verdicts("learner-outside-set", at_times) == {"unknown": 1}
    both = fact(members=members("3", "4"), learners=members("3", "4"), master="3")
    assert verdicts("learner-outside-set", both) == {"violated": 1}


def alteration(**changes: Any) -> Event:
    plain = {
        "group": "g",
        "requester": "1",
        "named_by": "id",
        "master_epoch": 1,
        "accepted": True,
        "master": "1",
        "whole": True,
    }
    return "alteration", SimpleNamespace(**{**plain, **changes})


def test_only_a_master_alters() -> None:
    assert verdicts("only-master-alters", alteration()) == {"ok": 1}
    assert verdicts("only-master-alters", alteration(requester="2")) == {"violated": 1}
    assert verdicts("only-master-alters", alteration(requester="2", accepted=False)) == {"ok": 1}
    assert verdicts("only-master-alters", alteration(master=UNKNOWN)) == {"unknown": 1}
    assert verdicts("only-master-alters", alteration(master=UNKNOWN, accepted=False)) == {"ok": 1}


# ---- replication ---------------------------------------------------------------------------------


# What this connection had told before of epochs and their starts: nothing yet.
TOLD_BEFORE = ("epoch_at_offset", "start_before", "lower_start", "upper_start")


def ha(name: str, **attributes: Any) -> Event:
    return name, SimpleNamespace(group="g", connection=attributes.pop("connection", "c"), **attributes)


def batch(offset: int, size: int, *, epoch: int = 1, start: int = 0, known: list[int] | None = None) -> Event:
    return ha(
        "batch",
        offset=offset,
        body_size=size,
        epoch=epoch,
        epoch_start_offset=start,
        confirm_offset=0,
        known_starts=sorted({start, *(known or [])}),
        recounted=False,
        log_end=None,
        **dict.fromkeys(TOLD_BEFORE),
    )


def report(offset: int) -> Event:
    return ha("report", max_offset=offset)


def answer(offset: int) -> Event:
    return ha("answer", max_offset=offset)


HANDSHAKE = ha("handshake", sync_from_last_file=False, async_learner=False)


@pytest.mark.parametrize(
    ("events", "wanted"),
    [
        ([answer(100), report(100)], {"ok": 1}),
        ([answer(100), report(101)], {"violated": 1}),
        ([answer(100), batch(100, 50), report(150)], {"ok": 1}),
        ([answer(100), batch(0, 50), report(100)], {"ok": 1}),
        ([answer(100), batch(100, 50), report(151)], {"violated": 1}),
        ([report(5)], {"unknown": 1}),
        ([batch(100, 50), report(150)], {"ok": 1}),
        ([answer(100), ha("gap"), report(500)], {"unknown": 1}),
        ([answer(100), ha("gap"), batch(600, 1), report(500)], {"ok": 1}),
        ([answer(100), HANDSHAKE, answer(50), report(100)], {"violated": 1}),
    ],
)
def test_a_replica_reports_no_more_than_was_sent(events: list[Event], wanted: dict[str, int]) -> None:
    assert verdicts("ack-within-sent", *events) == wanted


@pytest.mark.parametrize(
    ("events", "wanted"),
    [
        ([ha("opened"), HANDSHAKE, answer(9), report(100), batch(100, 50), batch(150, 1)], {"ok": 2}),
        ([HANDSHAKE, report(0), batch(700, 50), batch(750, 1)], {"ok": 2}),
        ([HANDSHAKE, report(100), batch(101, 50), batch(151, 1)], {"violated": 1, "ok": 1}),
        ([HANDSHAKE, report(100), batch(100, 50), report(120), batch(150, 1)], {"ok": 2}),
        ([HANDSHAKE, report(100), batch(100, 50), HANDSHAKE, report(20), batch(20, 1)], {"ok": 2}),
        ([report(100), batch(100, 50), batch(150, 1)], {"unknown": 1, "ok": 1}),
        ([ha("heartbeat", offset=100), batch(100, 50)], {"ok": 1}),
        ([ha("heartbeat", offset=-1), batch(100, 50)], {"unknown": 1}),
        ([HANDSHAKE, report(9), ha("gap"), batch(100, 50), batch(150, 1)], {"unknown": 1, "ok": 1}),
        ([ha("opened"), report(100), batch(100, 50)], {"ok": 1}),
    ],
)
def test_runs_of_bytes_form_a_chain(events: list[Event], wanted: dict[str, int]) -> None:
    assert verdicts("offset-chain", *events) == wanted


def test_connections_are_judged_apart() -> None:
    other = ha("handshake", connection="d", sync_from_last_file=False, async_learner=False)
    events = [HANDSHAKE, report(100), other, batch(100, 50)]
    assert verdicts("offset-chain", *events) == {"ok": 1}


@pytest.mark.parametrize(
    ("event", "verdict"),
    [
        (batch(0, 100), "ok"),
        (batch(0, 100, known=[100, 500]), "ok"),
        (batch(0, 101, known=[100]), "violated"),
        (batch(0, 1120, epoch=2, start=1120), "diverged"),
        (batch(0, 1121, epoch=2, start=1120), "violated"),
        (batch(1120, 10, epoch=2, start=1120), "ok"),
        (batch(0, 1120, epoch=2, start=1120, known=[500]), "violated"),
    ],
)
def test_a_run_lies_in_one_epoch(event: Event, verdict: str) -> None:
    assert verdicts("batch-in-one-epoch", event) == {verdict: 1}


# ---- requests and answers ------------------------------------------------------------------------


def pair(name: str, opaque: int = 1, requester: int = 0, *, from_start: bool = True) -> Event:
    return name, SimpleNamespace(
        group="*", connection="c", requester=requester, opaque=opaque, from_start=from_start
    )


@pytest.mark.parametrize(
    ("events", "wanted"),
    [
        ([pair("request"), pair("answer")], {"ok": 1}),
        ([pair("request"), pair("answer"), pair("answer")], {"ok": 1, "violated": 1}),
        ([pair("request"), pair("answer"), pair("request"), pair("answer")], {"ok": 2}),
        ([pair("request"), pair("request"), pair("answer"), pair("answer")], {"ok": 2}),
        ([pair("one_way"), pair("answer")], {"violated": 1}),
        ([pair("answer")], {"violated": 1}),
        ([pair("answer", from_start=False)], {"unknown": 1}),
        ([pair("request"), pair("answer", requester=1)], {"violated": 1}),
        ([pair("request"), pair("answer", opaque=2)], {"violated": 1}),
        ([pair("request"), pair("one_way"), pair("answer")], {"ok": 1}),
    ],
)
def test_requests_and_answers_pair(events: list[Event], wanted: dict[str, int]) -> None:
    assert verdicts("pairing", *events) == wanted


def test_a_request_without_an_answer_is_no_evaluation() -> None:
    finding = found("pairing", [pair("request")])
    assert (finding.verdict, finding.evaluated) == (Verdict.UNKNOWN, 0)


def sends(name: str, **attributes: Any) -> Event:
    return name, SimpleNamespace(group="g", **attributes)


def started(epoch: int, start: int) -> Event:
    return sends("epoch_started", epoch=epoch, start_offset=start)


def acknowledged(epoch: Any, offset: int) -> Event:
    return sends("acknowledged", epoch=epoch, offset=offset, cut_to=None, given_again=False)


def test_acknowledged_messages_after_the_next_epoch_are_lost_whenever_that_becomes_known() -> None:
    events = [
        acknowledged(1, 499),
        acknowledged(1, 500),
        acknowledged(2, 500),
        started(2, 500),
        started(1, 0),
    ]
    finding = found("acknowledged-send-survives", events)
    assert finding.counts == {
        Verdict.OK: 2,
        Verdict.DIVERGED: 0,
        Verdict.UNKNOWN: 0,
        Verdict.VIOLATED: 1,
    }
    assert finding.evidence[0].event.offset == 500


def test_a_message_of_an_unknown_epoch_is_unknown() -> None:
    assert verdicts("acknowledged-send-survives", acknowledged(UNKNOWN, 5), started(2, 500)) == {"unknown": 1}


def test_a_later_epoch_whose_start_was_not_seen_leaves_the_message_open() -> None:
    events = [acknowledged(1, 5), acknowledged(3, 5), started(1, 0), sends("epoch_unseen", epoch=3)]
    assert verdicts("acknowledged-send-survives", *events) == {"unknown": 1, "ok": 1}
    assert verdicts("acknowledged-send-survives", *events, started(2, 9)) == {"unknown": 1, "ok": 1}
    assert verdicts("acknowledged-send-survives", *events, started(2, 5)) == {"violated": 1, "ok": 1}


# ---- the engine ----------------------------------------------------------------------------------


def test_the_verdict_of_many_is_the_worst() -> None:
    assert worst([]) is Verdict.UNKNOWN
    assert worst([Verdict.OK, Verdict.DIVERGED]) is Verdict.DIVERGED
    assert worst([Verdict.DIVERGED, Verdict.UNKNOWN, Verdict.OK]) is Verdict.UNKNOWN
    assert worst([Verdict.UNKNOWN, Verdict.VIOLATED]) is Verdict.VIOLATED


def test_evidence_is_bounded_and_the_worst_comes_first() -> None:
    events = [report(5)] * 30 + [answer(1)] + [report(5)] * 30
    finding = found("ack-within-sent", events)
    assert len(finding.evidence) == EVIDENCE_MAX
    assert {piece.verdict for piece in finding.evidence} == {Verdict.VIOLATED}
    assert (finding.evaluated, finding.counts[Verdict.UNKNOWN]) == (60, 30)


def test_groups_get_findings_of_their_own() -> None:
    events = [fact(), fact(group="h", master="2"), fact(master="3")]
    findings = judge(INVARIANTS["one-master-per-epoch"], events, rules)
    assert [(each.group, each.verdict) for each in findings] == [(("g",), "violated"), (("h",), "ok")]


def test_keys_beyond_the_bound_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "KEYS_MAX", 2)
    facts = [fact(master_epoch=epoch) for epoch in (1, 2, 3, 1)]
    assert verdicts("one-master-per-epoch", *facts) == {"ok": 3, "unknown": 1}
    pairs = [event for opaque in range(3) for event in (pair("request", opaque), pair("answer", opaque))]
    assert verdicts("pairing", *pairs) == {"ok": 2, "unknown": 1}
    reports = [ha("report", connection=name, max_offset=1) for name in "abc"]
    assert verdicts("ack-within-sent", *reports) == {"unknown": 3}


def test_values_beyond_the_bound_are_still_compared_with_those_remembered() -> None:
    facts = [fact(master=str(number)) for number in range(40)]
    assert verdicts("one-master-per-epoch", *facts) == {"ok": 1, "violated": 39}


def test_an_invariant_without_a_shape_is_our_own_fault() -> None:
    bare = Invariant(
        id="x",
        about="",
        clauses=(),
        stream="",
        group=(),
        evaluated="",
        says="",
        key=lambda _event, _rules: (),
    )
    with pytest.raises(LocalProtocolError, match="x has no shape"):
        Judge(bare, rules)


# None stands for a value that was not seen.
STRANGE = st.one_of(st.none(), st.integers(-1, 3))


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["fact", "batch", "report", "answer", "gap", "handshake", "heartbeat", "other"]),
            st.fixed_dictionaries(
                dict.fromkeys(("offset", "body_size", "max_offset", "epoch_start_offset"), STRANGE)
            ),
        ),
        max_size=12,
    )
)
def test_a_judge_answers_whatever_was_not_seen(events: list[tuple[str, dict[str, Any]]]) -> None:
    """Unknown values end in verdicts, never in an exception."""
    for name in ("ack-within-sent", "offset-chain", "batch-in-one-epoch"):
        judged = Judge(INVARIANTS[name], rules)
        for kind, attributes in events:
            known = {key: UNKNOWN if value is None else value for key, value in attributes.items()}
            known |= dict.fromkeys(("known_starts", "recounted", "log_end", *TOLD_BEFORE), UNKNOWN)
            row = SimpleNamespace(group="g", connection="c", epoch=1, **known)
            judged.feed(kind, row)
        assert judged.finding().verdict in Verdict


def test_what_leaves_a_check_open_is_said_in_the_words_of_its_rule() -> None:
    finding = found("acknowledged-send-survives", [acknowledged(UNKNOWN, 5), sends("epoch_unseen", epoch=2)])
    (piece,) = finding.evidence
    assert piece.says == (
        "the masterEpoch of a message, its place, whether its log was cut before or after it, or whether its "
        "broker set was set up anew was not seen"
    )


def test_no_rule_that_can_be_left_open_shows_its_expression() -> None:
    set_shaped = {each.id for each in INVARIANTS.values() if isinstance(each, SetInvariant)}
    # What these ask is told by every event of theirs.
    always_told = {"id-granted-once", "pairing"}
    assert {each.id for each in INVARIANTS.values() if not each.unseen} <= set_shaped | always_told


def test_a_sentence_tells_what_a_set_holds_in_the_same_order_in_every_process() -> None:
    event = SimpleNamespace(
        group="g",
        leader="c:1",
        live=frozenset(f"10.0.0.{number}:10911" for number in range(1, 6)),
        reached=frozenset(),
        silent=frozenset(f"10.0.0.{number}:10911" for number in range(1, 6)),
    )
    finding = found("heartbeats-reach-leader", [("leader_changed", event)])
    silent = "10.0.0.1:10911, 10.0.0.2:10911, 10.0.0.3:10911, 10.0.0.4:10911, 10.0.0.5:10911"
    assert finding.evidence[0].says == (
        f"{silent} sent the new leader c:1 no heartbeat, and others many while it led"
    )
