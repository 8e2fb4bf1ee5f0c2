"""What observations are joined to: names, epochs, and doubts."""

from __future__ import annotations

from typing import Any

from replispec.replay.events.kinds import of_kind
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.stream_events import join
from replispec.replay.events.tables import to_tables
from replispec.replay.judges.rocketmq.judge import judge_capture
from replispec.runtime.primitives.invariants import Verdict
from replispec.runtime.primitives.unknown import UNKNOWN

CONTROLLER, FIRST, SECOND, THIRD = "10.0.0.1:9878", "10.0.0.2:10911", "10.0.0.3:10911", "10.0.0.4:10911"
SECONDS = 10 * 10**9
SURVIVES = "acknowledged-send-survives"


def seen(kind: ObservationKind, order: int, **told: Any) -> Observation:
    time_ns = order * SECONDS
    return of_kind(kind, "x.pcap", order, time_ns, "connection", 0, order, 0, **told)


def named(*addresses: str) -> list[Observation]:
    brokers = [
        seen(ObservationKind.BROKER, 1, name="broker-a", address=address, controller=CONTROLLER)
        for address in addresses
    ]
    return [seen(ObservationKind.CONTROLLER, 0, name="group", controller=CONTROLLER), *brokers]


def fact(order: int, epoch: int, master: str, address: str) -> Observation:
    told = {"master": master, "master_address": address, "master_epoch": epoch, "named_by": "id"}
    return seen(ObservationKind.FACT, order, name="broker-a", controller=CONTROLLER, **told)


def acknowledged(
    order: int, address: str, offset: int, text: str | None = None, request_order: int | None = None
) -> Observation:
    told: dict[str, Any] = {"address": address, "offset": offset, "text": text}
    return seen(ObservationKind.ACKNOWLEDGED, order, **told, request_order=request_order)


def epochs_of(*rows: Observation) -> list[Any]:
    tables = join(to_tables([*named(FIRST, SECOND), *rows])).tables
    return [epoch for each in tables if each.stream == "sends" for epoch in each.known["epoch"].listed()]


FACTS = [fact(10, 1, "1", FIRST), fact(20, 2, "2", SECOND), fact(30, 3, "1", FIRST)]


def test_a_message_belongs_to_the_epoch_that_its_place_and_those_of_others_leave() -> None:
    starts = [{"epoch": epoch, "start_offset": 50 * (epoch - 1)} for epoch in (1, 2, 3)]
    told = seen(ObservationKind.ANSWER, 40, address=FIRST, max_offset=300, epochs=starts)
    sends = [acknowledged(15, FIRST, 0), acknowledged(25, SECOND, 60), acknowledged(35, FIRST, 100)]
    assert epochs_of(*FACTS, *sends, told) == [1, 2, 3]
    # What lies between was stored, and acknowledged to nobody: perhaps in its first epoch.
    assert epochs_of(*FACTS, *sends[:2], acknowledged(35, FIRST, 200), told) == [1, 2, UNKNOWN]


def test_without_starts_of_epochs_the_order_of_the_capture_tells_no_epoch() -> None:
    sends = [acknowledged(15, FIRST, 0), acknowledged(25, SECOND, 100), acknowledged(35, FIRST, 200)]
    assert epochs_of(*FACTS, *sends) == [UNKNOWN, 2, UNKNOWN]


def test_a_message_of_a_broker_that_no_fact_names_has_an_unknown_epoch() -> None:
    (epoch,) = epochs_of(fact(10, 1, "1", FIRST), acknowledged(15, SECOND, 0))
    assert epoch is UNKNOWN


def test_answers_that_may_have_been_lost_leave_survival_unknown() -> None:
    rows = [*named(FIRST), fact(10, 1, "1", FIRST), acknowledged(15, FIRST, 0)]
    whole = judge_capture("x.pcap", to_tables(rows))
    doubt = judge_capture("x.pcap", to_tables([*rows, seen(ObservationKind.UNSEEN, 0, address=FIRST)]))
    elsewhere = seen(ObservationKind.UNSEEN, 0, address="10.9.9.9:1")
    of_others = judge_capture("x.pcap", to_tables([*rows, elsewhere]))
    verdicts = [
        next(finding.verdict for finding in judgement.findings if finding.invariant == SURVIVES)
        for judgement in (whole, doubt, of_others)
    ]
    assert verdicts == [Verdict.OK, Verdict.UNKNOWN, Verdict.OK]


def test_id_one_given_to_another_owner_begins_a_second_life() -> None:
    granted = {"name": "broker-a", "controller": CONTROLLER, "broker_id": 1}
    rows = [
        *named(FIRST, SECOND),
        seen(ObservationKind.GRANTED, 2, text="10.0.0.2:10911;1", **granted),
        seen(ObservationKind.GRANTED, 3, text="10.0.0.2:10911;1", **granted),
        fact(10, 1, "1", FIRST),
        seen(ObservationKind.GRANTED, 20, text="10.0.0.3:10911;2", **granted),
        fact(30, 1, "1", SECOND),
    ]
    groups = [row.group for row in join(to_tables(rows)).rows if row.kind == ObservationKind.FACT]
    assert groups == ["group/broker-a", "group/broker-a#2"]


def test_a_whole_set_that_was_removed_ends_a_life_and_single_ids_do_not() -> None:
    removed = {"name": "broker-a", "controller": CONTROLLER}
    rows = [
        *named(FIRST),
        fact(10, 1, "1", FIRST),
        seen(ObservationKind.CLEANED, 15, text="2", **removed),
        fact(20, 1, "1", FIRST),
        seen(ObservationKind.CLEANED, 25, text=None, **removed),
        fact(30, 1, "1", FIRST),
    ]
    groups = [row.group for row in join(to_tables(rows)).rows if row.kind == ObservationKind.FACT]
    assert groups == ["group/broker-a", "group/broker-a", "group/broker-a#2"]


def lives(*rows: Observation) -> list[str | None]:
    joined = join(to_tables([*named(FIRST), *rows])).rows
    return [row.group for row in joined if row.kind == ObservationKind.FACT]


def in_sync(order: int, *members: str) -> Observation:
    told = {"master": "1", "master_address": FIRST, "master_epoch": 1, "named_by": "id"}
    return seen(
        ObservationKind.FACT, order, name="broker-a", controller=CONTROLLER, members=list(members), **told
    )


def removed(order: int, text: str) -> Observation:
    return seen(ObservationKind.CLEANED, order, name="broker-a", controller=CONTROLLER, text=text)


def test_removing_the_last_in_sync_replica_ends_a_life() -> None:
    last = [in_sync(10, "1", "2"), removed(12, "1"), in_sync(14, "2"), removed(16, "2;3"), in_sync(20, "4")]
    assert lives(*last) == ["group/broker-a", "group/broker-a", "group/broker-a#2"]


def test_removing_all_ids_one_by_one_ends_a_life_when_all_grants_were_seen() -> None:
    def granted(order: int, broker_id: int) -> Observation:
        told = {"name": "broker-a", "controller": CONTROLLER, "text": f"10.0.0.2:10911;{broker_id}"}
        return seen(ObservationKind.GRANTED, order, broker_id=broker_id, **told)

    both = [removed(12, "1"), removed(14, "2"), fact(20, 1, "3", FIRST)]
    assert lives(granted(2, 1), granted(4, 2), *both) == ["group/broker-a#2"]
    assert lives(granted(4, 2), *both) == ["group/broker-a"]


def test_a_set_of_which_nothing_else_was_seen_can_be_removed() -> None:
    removal = seen(ObservationKind.CLEANED, 10, name="broker-a", controller=CONTROLLER)
    assert lives(removal, fact(20, 1, "1", FIRST)) == ["group/broker-a#2"]
