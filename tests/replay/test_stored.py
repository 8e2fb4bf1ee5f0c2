"""What log bytes hold at the places of acknowledged messages is what producers sent, or a rule says so."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.replay.events.capture_events import CaptureEvents, Columns
from replispec.replay.events.event_tables import INT64_MAX, Coded
from replispec.replay.events.observation import Acknowledged, Batch, Observation, ObservationKind, Place
from replispec.replay.events.rocketmq.ranges import Epoch
from replispec.replay.events.rocketmq.same_logs import OneLog
from replispec.replay.events.rocketmq.sends import body_crc
from replispec.replay.events.rocketmq.stored import Ends, cuts_of, ends_of, least_of, stored, written_again
from replispec.replay.events.tables import to_tables
from replispec.replay.frames.digests import digest
from replispec.replay.frames.rocketmq.log_records import records_in
from replispec.runtime.primitives.unknown import UNKNOWN
from replispec.wire.rocketmq.codes import LogMagic, MessageFlag, RequestCode
from replispec.wire.rocketmq.store import LogBlank, LogRecord
from tests.replay.expectations import BODY_STORED
from tests.replay.scenarios import two_brokers
from tests.replay.test_judgement import assert_found, replayed

SIZES = {False: 4, True: 16}


def record(place: int, body: bytes, *, born_six: bool = False, store_six: bool = False) -> bytes:
    flags = born_six * MessageFlag.BORN_HOST_IPV6 | store_six * MessageFlag.STORE_HOST_IPV6
    return LogRecord(
        magic=LogMagic.MESSAGE_V2 if born_six else LogMagic.MESSAGE_V1,
        physical_offset=place,
        sys_flag=flags,
        born_ip=bytes(SIZES[born_six]),
        store_ip=bytes(SIZES[store_six]),
        body=body,
        topic="TopicA",
        properties=b"KEYS\x01a",
    ).encode()


def log_of(bodies: Sequence[bytes], begin: int) -> tuple[bytes, list[tuple[int, int, int]]]:
    """Log bytes from `begin` on, and place, end and CRC-32 of the body of each record."""
    log, found = b"", []
    for number, body in enumerate(bodies):
        place = begin + len(log)
        log += record(place, body, born_six=number % 2 == 1, store_six=number % 3 == 1)
        found.append((place, begin + len(log), crc32(body)))
    return log, found


# Bodies that hold magic numbers, and records of other places.
BODIES = st.lists(
    st.binary(max_size=60)
    | st.just(record(5, b"inner"))
    | st.just(LogMagic.MESSAGE_V1.to_bytes(4, "big", signed=True) * 9),
    max_size=6,
)


@given(BODIES, st.integers(0, 2**40), st.integers(0, 900), st.integers(0, 900))
def test_a_run_cut_anywhere_tells_the_records_that_lie_whole_in_it(
    bodies: list[bytes], begin: int, first: int, size: int
) -> None:
    log, known = log_of(bodies, begin)
    first = min(first, len(log))
    end = min(first + size, len(log))
    expected = [
        (place, crc) for place, until, crc in known if begin + first <= place and until <= begin + end
    ]
    buffer = b"before" + log[first:end] + b"behind it"
    assert records_in(buffer, 6, 6 + end - first, begin + first) == expected


@given(st.binary(max_size=400), st.integers(-(2**63), 2**63 - 1))
def test_any_bytes_are_read_to_their_end(data: bytes, offset: int) -> None:
    assert all(offset <= place < offset + len(data) for place, _ in records_in(data, 0, len(data), offset))


def test_what_is_blank_between_records_is_passed_over() -> None:
    first = record(0, b"one")
    blank = LogBlank(bytes(40)).encode()
    second = record(len(first) + len(blank), b"two")
    log = first + blank + second
    assert [crc for _, crc in records_in(log, 0, len(log), 0)] == [crc32(b"one"), crc32(b"two")]


@pytest.mark.parametrize("length", [-1, 1 << 30])
def test_a_body_that_does_not_fit_into_its_record_is_none(length: int) -> None:
    data = bytearray(record(0, b"a body"))
    at = data.index(b"a body") - 4
    data[at : at + 4] = length.to_bytes(4, "big", signed=True)
    assert records_in(bytes(data), 0, len(data), 0) == []


def test_only_a_request_with_one_message_has_the_body_of_a_record() -> None:
    known = digest(b"body")
    assert body_crc(RequestCode.SEND_MESSAGE_V2, {}, known) == crc32(b"body")
    assert body_crc(RequestCode.SEND_MESSAGE_V2, {"m": "false"}, known) == crc32(b"body")
    assert body_crc(RequestCode.SEND_MESSAGE_V2, {"m": "true"}, known) is None
    assert body_crc(RequestCode.SEND_MESSAGE, {"batch": "true"}, known) is None
    assert body_crc(RequestCode.SEND_BATCH_MESSAGE, {}, known) is None
    assert body_crc(RequestCode.SEND_MESSAGE_V2, {}, None) is None


# ---- events ---------------------------------------------------------------------------------------


def place(order: int, connection: str) -> Place:
    return Place("c", order, 0, connection, 0, order, 0)


def run(
    order: int,
    *records: tuple[int, bytes],
    at: int = 0,
    size: int = 1_000,
    connection: str = "ha",
) -> Batch:
    told = [{"offset": offset, "crc": crc32(body)} for offset, body in records]
    where = place(order, connection)
    return Batch(*where, epoch=1, offset=at, body_size=size, body_digest=7, records=told)


def torn(order: int, at: int, size: int) -> Batch:
    return replace(run(order, at=at, size=size), body_digest=None, records=None)


def sent(order: int, offset: int, body: bytes | None) -> Acknowledged:
    crc = None if body is None else crc32(body)
    return Acknowledged(*place(order, "producer"), offset=offset, body_crc=crc)


def columns(kind: ObservationKind, rows: Sequence[Observation], **told: Any) -> Columns:
    found = CaptureEvents(to_tables(rows)).columns(kind) if rows else CaptureEvents({}).columns(kind)
    for name, value in told.items():
        found = found.having(name, Coded(np.zeros(len(found), np.int64), [value]))
    return found


def compared(
    *rows: Observation,
    ends: Ends | None = None,
    epoch: int | None = 1,
    resumed: Collection[Epoch] = (),
    one: OneLog | None = None,
) -> list[SimpleNamespace]:
    runs = columns(ObservationKind.BATCH, [each for each in rows if isinstance(each, Batch)], group="g")
    messages = [each for each in rows if isinstance(each, Acknowledged)]
    sends = columns(ObservationKind.ACKNOWLEDGED, messages, group="g", epoch=epoch)
    begun_again = {*resumed, *written_again(sends)}
    table = stored(runs, sends, ends or {}, begun_again, one or OneLog({}, ()))
    return [table.event(row) for row in range(len(table))]


def verdicts(found: Sequence[SimpleNamespace]) -> list[bool | None]:
    return [None if each.crc is UNKNOWN else each.crc == each.sent_crc for each in found]


def test_where_a_master_began_again_its_epochs_messages_say_so() -> None:
    message = (100, b"sent")
    for resumed, expected in ((("g", 1), True), (("g", 2), False), (("other", 1), False)):
        (found,) = compared(sent(1, 100, b"sent"), run(2, message), resumed=[resumed])
        assert found.begun_again is expected


def test_every_connection_is_compared_with_what_was_sent() -> None:
    message, other = (100, b"sent"), (100, b"else")
    found = compared(sent(1, 100, b"sent"), run(2, message), run(3, other, connection="second"))
    assert [(each.offset, each.connection) for each in found] == [(100, "ha"), (100, "second")]
    assert verdicts(found) == [True, False]


def test_a_message_of_a_batch_is_not_compared() -> None:
    assert not compared(sent(1, 100, None), run(2, (100, b"sent")))


@pytest.mark.parametrize("epoch", [None, 2])
def test_a_message_of_another_epoch_or_an_unknown_one_is_not_compared(epoch: int | None) -> None:
    assert not compared(sent(1, 100, b"sent"), run(2, (100, b"else")), epoch=epoch)


def test_a_place_that_was_given_again_is_not_compared() -> None:
    assert not compared(sent(1, 100, b"sent"), sent(2, 100, b"else"), run(3, (100, b"third")))
    assert not compared(sent(1, 100, b"sent"), sent(2, 100, None), run(3, (100, b"third")))


def test_nothing_is_compared_where_other_bytes_may_be_due() -> None:
    rows = (sent(1, 100, b"sent"), sent(2, 300, b"more"), run(3, (100, b"sent"), (300, b"else")))
    assert verdicts(compared(*rows)) == [True, False]
    assert verdicts(compared(*rows, ends={("g", 1): 300})) == [True]


def test_bytes_that_are_missing_are_unknown_unless_another_connection_shows_them() -> None:
    rows = [sent(1, 100, b"sent"), sent(2, 300, b"more"), torn(3, 0, 50), torn(4, 0, 301), torn(5, 290, 5)]
    assert [(each.offset, each.crc) for each in compared(*rows)] == [(100, UNKNOWN), (300, UNKNOWN)]
    assert verdicts(compared(*rows, run(6, (300, b"more")))) == [None, True]
    assert not compared(sent(1, 301, b"sent"), torn(2, 0, 301))


def ends(*rows: tuple[int, Any], falls: Sequence[Any] = (), starts: Mapping[int, int] | None = None) -> int:
    """Where comparing epoch 1 ends, of messages at these places with these ends of their logs."""
    sends = columns(
        ObservationKind.ACKNOWLEDGED,
        [sent(order, offset, b"") for order, (offset, _) in enumerate(rows)],
        group="g",
        epoch=1,
    )
    cut = Coded(np.arange(len(rows)), [end for _, end in rows])
    told = [SimpleNamespace(**{"group": "g", "epoch": 1, "fell_from": None, **each}) for each in falls]
    due = least_of([ends_of(told, {"g": starts or {1: 0}}), cuts_of(sends, cut)])
    return due.get(("g", 1), INT64_MAX)


def test_comparing_ends_where_a_log_fell_and_where_a_later_epoch_starts() -> None:
    assert ends((100, None), (200, None)) == INT64_MAX
    assert ends((100, None), (200, 150), (300, 150)) == 150
    assert ends((100, None), (200, UNKNOWN)) == 200
    assert ends((100, None), starts={1: 0, 2: 500, 3: 400}) == 400
    assert ends((100, None), falls=[{"end": 60, "before": 90}, {"end": 30, "before": 30}]) == 60
    assert ends((100, None), falls=[{"end": 60, "before": UNKNOWN}]) == 60
    assert ends((100, None), falls=[{"end": 60, "before": None, "fell_from": UNKNOWN}]) == 60
    assert ends((100, None), falls=[{"end": 60, "before": None}]) == INT64_MAX


# ---- captures -------------------------------------------------------------------------------------


def test_a_damaged_body_in_a_log_is_told_with_the_frame_that_carried_it(tmp_path: Path) -> None:
    world = two_brokers()
    world.send(2)
    log = world.brokers[1].log
    at = bytes(log).rindex(b"message ")
    log[at] ^= 1
    world.replicate(2)
    world.ledger.expect(BODY_STORED, "violated")
    judgement = replayed(world.traffic.packets(), tmp_path / "damaged.pcap")
    assert_found(judgement, world.scenario())
    (finding,) = [each for each in judgement.findings if each.invariant == BODY_STORED]
    assert finding.counts["violated"] == 1
    assert "not the one acknowledged" in finding.says
