"""What a master loses within its own masterEpoch is lost like everything else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.tables import to_tables
from replispec.replay.judges.rocketmq.judge import judge_capture
from replispec.runtime.primitives.invariants import Verdict
from replispec.wire.rocketmq.codes import RequestCode
from tests.replay.expectations import LOG_HOLDS, SEND_SURVIVES, Scenario
from tests.replay.scenarios import two_brokers
from tests.replay.test_judgement import assert_found, replayed
from tests.replay.test_stream_events import CONTROLLER, FIRST, acknowledged, fact, named, seen

KEPT = 1


def restarted(kept: int | None, *, afterwards: int = 3) -> Scenario:
    """The replica is gone; the master starts again with the first messages of its log (None: all)."""
    world = two_brokers()
    world.die(2)
    world.alter((1,))
    world.send(20)
    world.heartbeat_controller(1)
    log = world.brokers[1].log
    size = len(log) // 30
    end = len(log) if kept is None else kept * size
    before = world.ledger.evaluated[world.ledger.group, LOG_HOLDS]
    world.restart_shorter(1, end)
    world.announce(1)
    world.send(afterwards)
    world.heartbeat_controller(1)
    assert world.ledger.evaluated[world.ledger.group, LOG_HOLDS] == before + 2
    if kept is not None:
        world.ledger.expect(LOG_HOLDS, "violated")
    return world.scenario()


@pytest.mark.parametrize("kept", [0, 1, 7, 29])
@pytest.mark.parametrize("afterwards", [1, 4])
def test_what_a_master_comes_back_without_in_its_own_epoch_is_lost(
    kept: int, afterwards: int, tmp_path: Path
) -> None:
    scenario = restarted(kept, afterwards=afterwards)
    assert [loss.acknowledged for loss in scenario.losses] == [30 - kept]
    assert_found(replayed(scenario.packets, tmp_path / "shorter.pcap"), scenario)


def test_a_master_that_comes_back_with_its_whole_log_has_lost_nothing(tmp_path: Path) -> None:
    scenario = restarted(None)
    assert scenario.losses == ()
    assert_found(replayed(scenario.packets, tmp_path / "whole.pcap"), scenario)


# ---- acknowledgements alone -----------------------------------------------------------------------


def sent(connection: str, *offsets: int, first: int = 20, text: str | None = None) -> list[Observation]:
    """Messages that a producer's connection got acknowledged, one after the other."""
    rows = (acknowledged(first + at, FIRST, offset, text=text) for at, offset in enumerate(offsets))
    return [replace(row, connection=connection) for row in rows]


def registered(order: int, connection: str, set_epoch: int) -> list[Observation]:
    """The master starts and registers on a connection; the epoch of its set tells which run is later."""
    told: dict[str, Any] = {"name": "broker-a", "controller": CONTROLLER}
    rows = (
        seen(ObservationKind.BROKER, order, address=FIRST, **told),
        seen(
            ObservationKind.REGISTRATION,
            order,
            from_start=True,
            message="registration_sent",
            content="{}",
            address=FIRST,
            **told,
        ),
        seen(
            ObservationKind.FACT,
            order,
            code=RequestCode.CONTROLLER_REGISTER_BROKER,
            sync_state_set_epoch=set_epoch,
            **told,
        ),
    )
    return [replace(row, connection=connection) for row in rows]


def survival(*rows: Observation) -> tuple[Verdict, list[int]]:
    """The verdict on the messages, and where the first and the last lost one lies with their number."""
    judged = judge_capture("x.pcap", to_tables([*named(FIRST), fact(10, 1, "1", FIRST), *rows]))
    verdict = next(each.verdict for each in judged.findings if each.invariant == SEND_SURVIVES)
    losses = [(each.from_offset, each.to_offset, each.acknowledged) for each in judged.losses]
    return verdict, [number for each in losses for number in each]


def test_a_place_that_is_given_again_proves_that_the_log_was_cut_there() -> None:
    before, after = sent("a", 0, 100, 200, 300, 400), sent("b", 100, 190, first=41)
    assert survival(*STARTED_AGAIN, *before, beat(40, 100, "d"), *after) == (Verdict.VIOLATED, [100, 400, 4])


def test_which_of_two_messages_was_cut_off_with_what_lay_behind_it_is_open_without_a_cause() -> None:
    """The connections may have been captured in any order."""
    rows = [*sent("a", 0, 100, 200, 300, 400), *sent("b", 100, 190, first=40)]
    assert fates(*rows) == {Verdict.OK: 3, Verdict.VIOLATED: 1, Verdict.UNKNOWN: 3}


def test_two_acknowledged_messages_at_one_offset_are_one_lost_message() -> None:
    assert survival(*sent("a", 0, 100), *sent("b", 100, 200, first=21)) == (Verdict.VIOLATED, [100, 100, 1])


def test_an_acknowledgement_that_a_proxy_passes_on_is_of_the_same_message() -> None:
    client, proxy = sent("a", 0, 100, text="id"), sent("b", 0, 100, first=40, text="id")
    assert survival(*client, *proxy) == (Verdict.OK, [])


def test_offsets_of_two_producers_in_any_order_are_no_cut() -> None:
    later, earlier = sent("a", 500, 600, 700), sent("b", 0, 100, 200, first=40)
    assert survival(*later, *earlier) == (Verdict.OK, [])


def test_one_acknowledgement_of_an_old_place_loses_one_message_and_no_more() -> None:
    assert survival(*sent("a", 0, 100, 200, 300), *sent("b", 100, first=40)) == (
        Verdict.VIOLATED,
        [100, 100, 1],
    )


# ---- what a master says of its log -----------------------------------------------------------------


def beat(order: int, end: int, connection: str, epoch: int = 1) -> Observation:
    told: dict[str, Any] = {"epoch": epoch, "max_offset": end, "broker_id": 1, "timeout_ms": 10_000}
    row = seen(ObservationKind.ALIVE, order, name="broker-a", address=FIRST, **told)
    return replace(row, connection=connection)


STARTED_AGAIN = [*registered(11, "c", 1), beat(12, 0, "c"), *registered(39, "d", 2)]


def log_holds(*rows: Observation) -> Verdict:
    findings = judge_capture("x.pcap", to_tables([*named(FIRST), fact(10, 1, "1", FIRST), *rows])).findings
    return next(each.verdict for each in findings if each.invariant == LOG_HOLDS)


def test_a_log_that_ends_before_what_was_acknowledged_has_lost_it() -> None:
    rows = [*sent("a", 0, 100, 200), beat(23, 300, "c"), beat(40, 150, "d"), beat(41, 150, "d")]
    assert survival(*STARTED_AGAIN, *rows) == (Verdict.VIOLATED, [200, 200, 1])
    assert log_holds(*STARTED_AGAIN, *rows) is Verdict.VIOLATED


def test_a_shorter_log_that_only_the_order_of_the_capture_calls_the_later_one_is_no_fault() -> None:
    """The connection with the larger end may have been captured early."""
    rows = [*sent("a", 0, 100, 200), beat(23, 300, "c"), beat(40, 150, "d"), beat(41, 150, "d")]
    assert survival(*rows) == (Verdict.UNKNOWN, [])
    assert log_holds(*rows) is Verdict.UNKNOWN


def test_bytes_that_nobody_acknowledged_may_be_cut_off() -> None:
    rows = [*sent("a", 0, 100), beat(23, 300, "c"), beat(40, 200, "d"), beat(41, 200, "d")]
    assert survival(*rows) == (Verdict.OK, [])
    assert log_holds(*rows) is Verdict.UNKNOWN


def test_ends_told_by_connections_of_one_run_are_in_no_order() -> None:
    rows = [beat(20, 300, "c"), beat(30, 100, "d"), beat(31, 200, "d"), beat(40, 300, "c")]
    assert log_holds(*rows) is Verdict.OK


def test_a_single_heartbeat_with_a_short_log_loses_no_message() -> None:
    rows = [*STARTED_AGAIN, *sent("a", 0, 100, 200), beat(23, 300, "c"), beat(40, 50, "d")]
    assert survival(*rows)[1] == []
    assert log_holds(*rows) is Verdict.VIOLATED


def test_a_log_that_is_cut_after_its_master_was_deposed_says_nothing_of_its_epoch() -> None:
    rows = [beat(20, 300, "c"), fact(30, 2, "2", "10.0.0.3:10911"), beat(40, 100, "d"), beat(41, 100, "d")]
    assert log_holds(*rows) is Verdict.OK


# ---- connections that are captured late -------------------------------------------------------------


def test_of_two_messages_at_one_place_one_is_lost_however_late_connections_are() -> None:
    """What the second run acknowledged is captured among frames of the first one."""
    first = [beat(12, 0, "c"), *sent("a", 0, 100, 200, 300), beat(30, 400, "c")]
    displaced = sent("b", 100, 200, 300, 400, 500, first=24)
    again = [beat(40, 100, "d"), beat(41, 600, "d")]
    assert survival(*first, *displaced, *again) == (Verdict.VIOLATED, [100, 300, 3])


def test_a_message_that_either_run_may_hold_is_not_called_lost() -> None:
    """It lies behind all that the first run told, and the second one goes on beyond it."""
    first = [beat(12, 0, "c"), *sent("a", 0, 100), beat(30, 200, "c")]
    perhaps = sent("b", 200, 300, first=24)
    again = [beat(40, 100, "d"), beat(41, 150, "d"), beat(42, 500, "d")]
    verdict, losses = survival(*STARTED_AGAIN, *first, *perhaps, *again)
    assert (verdict, losses) == (Verdict.VIOLATED, [100, 100, 1])


def test_a_run_without_a_word_of_its_broker_is_the_one_whose_places_it_does_not_give_again() -> None:
    rows = [beat(12, 0, "c"), *sent("a", 0, 100, 200), beat(30, 300, "c")]
    alone = sent("b", 100, 200, 300, first=33)
    again = [beat(40, 100, "d"), beat(41, 400, "d")]
    assert survival(*STARTED_AGAIN, *rows, *alone, *again) == (Verdict.VIOLATED, [100, 200, 2])


HEADER = {"address": FIRST, "epoch": 1, "epoch_start_offset": 0, "offset": 300, "confirm_offset": 300}


@pytest.mark.parametrize("kind", [ObservationKind.REPORT, ObservationKind.HANDSHAKE])
def test_what_a_replica_sends_to_a_master_that_has_stopped_makes_no_two_runs_one(
    kind: ObservationKind,
) -> None:
    transfer = seen(ObservationKind.HEARTBEAT, 22, **HEADER)
    into_the_void = seen(kind, 45, address=FIRST)
    ha = [replace(transfer, connection="ha", direction=1), replace(into_the_void, connection="ha")]
    rows = [*sent("a", 0, 100, 200), beat(23, 300, "c"), *ha, beat(40, 150, "d"), beat(41, 150, "d")]
    assert survival(*rows) == (Verdict.UNKNOWN, [])


def test_a_master_that_goes_on_sending_on_a_connection_has_not_stopped() -> None:
    transfer = seen(ObservationKind.HEARTBEAT, 22, **HEADER)
    ha = [replace(transfer, connection="ha"), replace(transfer, connection="ha", order=45)]
    rows = [*sent("a", 0, 100, 200), beat(23, 300, "c"), *ha, beat(40, 150, "d"), beat(41, 150, "d")]
    assert survival(*rows) == (Verdict.OK, [])


# ---- a log that falls within one run ---------------------------------------------------------------

NEXT = "10.0.0.3:10911"


def test_a_log_that_one_connection_tells_to_fall_leaves_open_what_lay_behind() -> None:
    rows = [*sent("a", 0, 100, 200), beat(23, 300, "c"), beat(24, 150, "c"), *sent("b", 310, first=25)]
    assert survival(*rows) == (Verdict.UNKNOWN, [])


def fates(*rows: Observation) -> dict[str, int]:
    """How many messages have which verdict."""
    judged = judge_capture("x.pcap", to_tables([*named(FIRST), fact(10, 1, "1", FIRST), *rows]))
    return dict(next(each.counts for each in judged.findings if each.invariant == SEND_SURVIVES))


def test_a_later_fall_takes_back_nothing_that_an_earlier_one_proved_lost() -> None:
    rows = [*sent("a", 0, 100, 200), beat(23, 300, "c"), beat(40, 150, "d"), beat(41, 150, "d")]
    rows = [*STARTED_AGAIN, *rows]
    assert fates(*rows, beat(42, 120, "d")) == {Verdict.OK: 2, Verdict.VIOLATED: 1}
    assert fates(*rows, beat(42, 50, "d")) == {Verdict.OK: 1, Verdict.VIOLATED: 2}


@pytest.mark.parametrize("falls", [[150, 150], [150, 160], [150, 400, 200]])
def test_a_log_that_several_words_of_one_connection_tell_to_fall_is_a_fault(falls: list[int]) -> None:
    rows = [beat(20, 300, "c"), *(beat(21 + at, end, "c") for at, end in enumerate(falls)), still_master(30)]
    assert log_holds(*rows) is Verdict.VIOLATED
    assert survival(*sent("a", 0, 100, first=15), *rows) == (Verdict.OK, [])


def still_master(order: int) -> Observation:
    """A controller names the same master once more, on the connection of its heartbeats."""
    return replace(fact(order, 1, "1", FIRST), connection="c", direction=1)


@pytest.mark.parametrize("named_at", [None, 12], ids=["never", "before"])
def test_a_broker_that_nobody_calls_master_after_its_log_fell_may_have_been_deposed(
    named_at: int | None,
) -> None:
    """What a controller says was not captured: the broker may have cut its log as a replica."""
    rows = [beat(20, 300, "c"), beat(21, 150, "c"), beat(22, 150, "c")]
    named_before = [] if named_at is None else [still_master(named_at)]
    assert log_holds(*named_before, *rows) is Verdict.UNKNOWN


def test_one_word_that_the_next_one_may_have_overtaken_is_none() -> None:
    rows = [beat(20, 300, "c"), beat(21, 290, "c"), beat(22, 310, "c")]
    assert log_holds(*rows) is Verdict.UNKNOWN
    assert survival(*sent("a", 0, 100, 280, 300, first=15), *rows) == (Verdict.OK, [])
    assert survival(*sent("a", 0, 100, 290, first=15), *rows) == (Verdict.UNKNOWN, [])


def test_a_deposed_master_cuts_its_log_where_the_next_epoch_starts_and_that_is_no_fall() -> None:
    """It says so before it has bytes of that epoch, and the fact that deposes it is captured late."""
    cut = [beat(20, 300, "c"), beat(21, 200, "c"), beat(22, 200, "c"), fact(40, 2, "2", NEXT)]
    cut += named(NEXT)[1:]
    start = [{"epoch": 1, "start_offset": 0}, {"epoch": 2, "start_offset": 200}]
    answered = replace(
        seen(ObservationKind.ANSWER, 41, address=NEXT, max_offset=200, epochs=start), connection="ha"
    )
    assert log_holds(*cut, answered) is Verdict.OK
    assert log_holds(*cut) is Verdict.UNKNOWN
    start[1]["start_offset"] = 250
    assert log_holds(*cut, answered) is Verdict.UNKNOWN
    assert log_holds(*cut, answered, still_master(30)) is Verdict.VIOLATED


# ---- messages of one connection that was asked for them after the answers before -----------------------


def in_turn(connection: str, *offsets: int, first: int = 20) -> list[Observation]:
    """As `sent`, each requested after the answer before it."""
    orders = range(first, first + 2 * len(offsets), 2)
    rows = [
        acknowledged(order, FIRST, offset, None, order - 1)
        for order, offset in zip(orders, offsets, strict=True)
    ]
    return [replace(row, connection=connection) for row in rows]


def test_what_two_later_messages_of_one_connection_were_stored_before_is_lost() -> None:
    assert fates(*in_turn("a", 0, 100, 200, 300, 130, 230, 330)) == {
        Verdict.OK: 5,
        Verdict.UNKNOWN: 1,
        Verdict.VIOLATED: 1,
    }
    assert survival(*in_turn("a", 0, 100, 200, 300, 130, 160)) == (Verdict.VIOLATED, [200, 300, 2])


def test_a_message_that_one_later_one_alone_was_stored_before_is_in_doubt() -> None:
    assert fates(*in_turn("a", 0, 100, 200, 130, 330)) == {Verdict.OK: 4, Verdict.UNKNOWN: 1}


def test_of_one_batch_all_messages_are_one_word() -> None:
    rows = in_turn("a", 0, 100, 300, 130)
    again = acknowledged(rows[-1].order, FIRST, 160, None, rows[-1].order - 1)
    assert fates(*rows, replace(again, connection="a", index=1)) == {Verdict.OK: 4, Verdict.UNKNOWN: 1}


def test_messages_that_were_requested_together_are_answered_in_any_order() -> None:
    rows = [acknowledged(20 + at, FIRST, place, None, 19) for at, place in enumerate((0, 300, 200, 100))]
    assert survival(*rows) == (Verdict.OK, [])


def test_messages_of_two_connections_are_in_no_order() -> None:
    assert survival(*in_turn("a", 200, 300, 400), *in_turn("b", 0, 100, 150, first=40)) == (Verdict.OK, [])


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([beat(24, 300, "c"), beat(25, 310, "c")], id="it grows"),
        pytest.param([beat(24, 201, "c")], id="nothing acknowledged lay behind"),
        pytest.param([beat(24, 100, "d")], id="another connection of the run"),
        pytest.param([fact(24, 2, "2", NEXT), beat(25, 0, "c")], id="deposed"),
        pytest.param([beat(24, 0, "c", epoch=2)], id="another epoch"),
    ],
)
def test_a_connection_whose_log_does_not_fall_under_a_message_leaves_it_as_it_is(
    rows: list[Observation],
) -> None:
    known = [*sent("a", 0, 100, 200), beat(23, 300, "c"), *rows, beat(30, 300, "d")]
    assert fates(*known) == fates(*(each for each in known if each.kind != ObservationKind.ALIVE))


# ---- a set that may have been set up anew ------------------------------------------------------------


def without_controllers(*rows: Observation) -> tuple[Verdict, list[int]]:
    """As `survival`, where only a handshake answer tells the master, and its registration its address."""
    addresses = {"name": "broker-a", "address": FIRST, "ha_address": "10.0.0.2:10912", "cluster": "cluster"}
    told = {"address": "10.0.0.2:10912", "max_offset": 0, "epochs": [{"epoch": 1, "start_offset": 0}]}
    known = [seen(ObservationKind.BROKER, 1, **addresses), seen(ObservationKind.ANSWER, 2, **told)]
    judged = judge_capture("x.pcap", to_tables([*known, *rows]))
    verdict = next(each.verdict for each in judged.findings if each.invariant == SEND_SURVIVES)
    return verdict, [each.acknowledged for each in judged.losses]


def test_without_controllers_a_log_that_begins_again_may_be_that_of_another_set() -> None:
    assert without_controllers(*sent("a", 0, 100, 200), *sent("b", 0, 100, first=40)) == (Verdict.UNKNOWN, [])


def test_a_log_that_keeps_its_beginning_is_that_of_the_same_set() -> None:
    assert without_controllers(*sent("a", 0, 100, 200), *sent("b", 100, first=40)) == (Verdict.VIOLATED, [1])
    proxied = [*sent("a", 0, 100, text="id"), *sent("b", 0, text="id", first=40)]
    assert without_controllers(*proxied) == (Verdict.OK, [])


def test_with_a_controller_a_log_that_begins_again_has_lost_its_messages() -> None:
    assert survival(*sent("a", 0, 100, 200), *sent("b", 0, 100, first=40))[0] is Verdict.VIOLATED
