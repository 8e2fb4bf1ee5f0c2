"""What the benchmark of mapped queues calls wrong, and that it says so; a slow machine is none."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import bench_queues
from benchmarks.family import Bench, Effort, QueuePart, WrongResultError
from benchmarks.rocketmq import queues_asked as asked
from benchmarks.rocketmq import queues_borders as borders
from benchmarks.rocketmq import queues_migrations as migrations
from benchmarks.rocketmq import queues_remapping as remapping
from benchmarks.rocketmq import queues_routes as routes
from benchmarks.rocketmq.family import FAMILY
from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq.client import ClientQueue, ReadMessage
from replispec.runtime.rocketmq.framing import Command, decode_command
from replispec.runtime.rocketmq.queues import LogicalQueue
from replispec.runtime.rocketmq.queues.forms import message_of_queues
from replispec.wire.rocketmq.broker import (
    PullMessageResponse,
    QueueData,
    SendMessageResponse,
    SendMessageV2Request,
    TopicRouteData,
)
from replispec.wire.rocketmq.codes import LogMagic, RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import LOGICAL_QUEUE_BROKER
from replispec.wire.rocketmq.logical_queue import LogicalQueueSegment, MigrateLogicalQueue
from replispec.wire.rocketmq.remoting import RemotingHeader
from replispec.wire.rocketmq.static_topic import TopicQueueMappingInfo
from replispec.wire.rocketmq.store import LogRecord


def frame(opaque: int, header: Header, body: bytes = b"", code: int = ResponseCode.SUCCESS) -> bytes:
    """An answer as it comes."""
    fields = RemotingHeader(code=code, opaque=opaque, flag=1, ext_fields=header.to_ext_fields())
    return Command(fields, body).encode()


def stored(opaque: int, queue: int, offset: int, code: int = ResponseCode.SUCCESS) -> bytes:
    return frame(opaque, SendMessageResponse(msg_id="m", queue_id=queue, queue_offset=offset), code=code)


# ---- messages ------------------------------------------------------------------------------------


def topic() -> asked.MeasuredTopic:
    return asked.MeasuredTopic("T", "b", 2)


SENT = [(0, 0), (1, 1), (0, 2), (1, 3)]
RIGHT = [stored(0, 0, 0), stored(1, 1, 0), stored(2, 0, 1), stored(3, 1, 1)]


def test_messages_are_stored_each_in_its_queue_one_after_the_other() -> None:
    found = topic()
    asked.judge_sent(found, SENT, RIGHT)
    assert found.stored == [{0: 0, 1: 2}, {0: 1, 1: 3}]
    asked.judge_sent(found, [(0, 4), (0, 5)], [stored(0, 0, 3), stored(1, 0, 2)])
    assert found.ends() == [4, 2]


@pytest.mark.parametrize(
    "wrong",
    [
        RIGHT[:3],
        [*RIGHT, stored(3, 1, 2)],
        [*RIGHT[:3], stored(3, 1, 2)],
        [*RIGHT[:3], stored(3, 1, 0)],
        [*RIGHT[:3], stored(3, 0, 2)],
        [*RIGHT[:3], stored(3, 1, -1)],
        [*RIGHT[:3], stored(3, 1, 1, ResponseCode.NO_PERMISSION)],
        [*RIGHT[:3], RIGHT[3][:-9]],
    ],
    ids=["missing", "more", "hole", "twice", "elsewhere", "undecided", "refused", "torn"],
)
def test_a_message_that_is_stored_otherwise_is_noticed(wrong: Sequence[bytes]) -> None:
    with pytest.raises(WrongResultError):
        asked.judge_sent(topic(), SENT, wrong)


def records(*of: tuple[int, int]) -> bytes:
    """Messages as they lie, by physical offset and number."""
    return b"".join(
        LogRecord(
            magic=LogMagic.MESSAGE_V1,
            queue_offset=offset,
            born_ip=bytes(4),
            store_ip=bytes(4),
            body=asked.body_of(number),
            topic="T",
        ).encode()
        for offset, number in of
    )


def pulled(following: int, delta: int | None, *of: tuple[int, int]) -> bytes:
    header = PullMessageResponse(next_begin_offset=following, offset_delta=delta, min_offset=0, max_offset=9)
    return frame(0, header, records(*of))


def read(*pulls: tuple[int, int, bytes]) -> None:
    found = topic()
    asked.judge_sent(found, SENT, RIGHT)
    asked.judge_read(found, [0, 0], pulls)


SECOND = (1, 0, pulled(2, 0, (0, 1), (1, 3)))


def test_what_is_read_is_what_was_sent_wherever_it_lies() -> None:
    read((0, 0, pulled(2, None, (0, 0), (1, 2))), SECOND)
    read((0, 0, pulled(1, -7, (7, 0))), (0, 1, pulled(2, -7, (8, 2))), SECOND)


@pytest.mark.parametrize(
    "wrong",
    [
        [pulled(2, 0, (0, 0), (1, 1))],
        [pulled(2, 0, (0, 0))],
        [pulled(1, 0, (0, 0))],
        [pulled(2, 0, (0, 0), (0, 0))],
        [pulled(2, 1, (0, 0), (1, 2))],
        [pulled(3, 0, (0, 0), (1, 2))],
    ],
    ids=["another message", "passed over", "not to the end", "twice", "shifted", "beyond"],
)
def test_a_message_that_is_read_otherwise_is_noticed(wrong: Sequence[bytes]) -> None:
    with pytest.raises(WrongResultError):
        read(*((0, number, each) for number, each in enumerate(wrong)), SECOND)


def test_requests_are_those_of_clients_that_know_the_kind_of_topic() -> None:
    plain, logical = topic(), asked.MeasuredTopic("T", "b", 2, is_logical=True)
    said = decode_command(asked.frame(RequestCode.SEND_MESSAGE_V2, logical.send(1), 3, b"x"))
    header = SendMessageV2Request.from_ext_fields(said.header.ext_fields or {})
    assert (header.queue_id, header.broker_name, said.header.opaque) == (1, "b", 3)
    assert header.sys_flag
    assert plain.send(1).to_ext_fields() != logical.send(1).to_ext_fields()
    assert asked.MeasuredTopic("T", "b", 2, is_static=True).pull(0, 0) != plain.pull(0, 0)


# ---- queues that move ----------------------------------------------------------------------------


def sent(number: int, queue: int, offset: int, status: str = "SEND_OK") -> Mapping[str, Any]:
    return {"number": number, "status": status, "queue": queue, "offset": offset}


def heard(body: int, queue: int, offset: int, broker: str = LOGICAL_QUEUE_BROKER) -> Mapping[str, Any]:
    return {"broker": broker, "queue": queue, "offset": offset, "body": str(body)}


SAID = [sent(0, 0, 0), sent(1, 1, 0), sent(2, 0, -1)]
READ = [heard(0, 0, 0), heard(1, 1, 0), heard(2, 0, 1)]


def test_messages_that_are_acknowledged_and_read_once_are_as_they_have_to_be() -> None:
    found = migrations.outcome_of(SAID, READ)
    assert found == migrations.Outcome(3, 0, 0, 0, [])
    found.check()


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ([*SAID[:2], {"number": 2, "status": "FAILED", "why": "refused"}], READ[:2]),
        (SAID, READ[:2]),
        (SAID, [*READ, READ[2]]),
        (SAID, [*READ[:2], heard(2, 0, 2)]),
        (SAID, [*READ[:2], heard(2, 1, 1)]),
        ([*SAID[:1], sent(1, 1, 3), SAID[2]], READ),
        (SAID, [heard(2, 0, 0), heard(1, 1, 0), heard(0, 0, 1)]),
        (SAID, [*READ[:2], heard(2, 0, 1, "broker-a")]),
    ],
    ids=["failed", "lost", "twice", "hole", "another queue", "another offset", "order", "another broker"],
)
def test_a_message_that_fails_or_is_lost_twice_or_elsewhere_is_noticed(
    said: Sequence[migrations.Line], read: Sequence[migrations.Line]
) -> None:
    with pytest.raises(WrongResultError):
        migrations.outcome_of(said, read).check()


def moved(end: int, begin: int) -> MigrateLogicalQueue:
    source = LogicalQueueSegment(logical_queue_delta=10, offset_delta=2, offset_max=end)
    return MigrateLogicalQueue(source, LogicalQueueSegment(logical_queue_delta=begin))


def test_a_queue_that_does_not_go_on_where_it_ended_is_noticed() -> None:
    migrations.judge_move(moved(7, 15))
    for wrong in (moved(7, 14), moved(7, 16), moved(-1, 15), MigrateLogicalQueue()):
        with pytest.raises(WrongResultError):
            migrations.judge_move(wrong)


def test_a_step_that_is_refused_is_noticed() -> None:
    refused = Command(RemotingHeader(code=ResponseCode.SYSTEM_ERROR, remark="no"))
    with pytest.raises(WrongResultError, match="no"):
        migrations.granted(refused)


def test_pauses_count_up_to_both_ends_of_what_is_measured() -> None:
    lines = [(at, b"") for at in (0.5, 1.25, 1.5, 3.0)]
    assert migrations.longest_ms(lines, 1.0, 2.0) == 500.0
    assert migrations.longest_ms([], 1.0, 3.0) == 2_000.0
    assert migrations.percentile(list(range(1, 501)), 99) == 495
    assert migrations.percentile([7.0], 99) == 7.0


def test_queues_that_are_not_where_they_were_sent_are_noticed() -> None:
    before = {index: "ab"[index % 2] for index in range(remapping.QUEUES)}
    after = {index: "cb"[index % 2] for index in range(remapping.QUEUES)}
    remapping.judge_moved(before, after, ["b", "c"])
    swapped = {index: "bc"[index % 2] for index in range(remapping.QUEUES)}
    for wrong, to in ((after, ["a", "b"]), ({**after, 0: "a"}, ["b", "c"]), (swapped, ["b", "c"])):
        with pytest.raises(WrongResultError):
            remapping.judge_moved(before, wrong, to)
    with pytest.raises(WrongResultError):
        remapping.judge_moved(before, {index: after[index] for index in range(5)}, ["b", "c"])


# ---- routes --------------------------------------------------------------------------------------


def logical_route(**changed: Any) -> TopicRouteData:
    queues = []
    for index in range(routes.QUEUES):
        segments = [routes.segment_at(number, *held) for number, held in routes.places(index).items()]
        if index == 1 and changed:
            segments[1] = replace(segments[1], **changed)
        queues.append(LogicalQueue(index, tuple(segments)))
    return TopicRouteData(logical_queues_info=message_of_queues(queues, "T").queues)


def static_route(last: int = routes.QUEUES) -> TopicRouteData:
    led = {"a": range(2, last), "b": range(2)}
    return TopicRouteData(
        topic_queue_mapping_by_broker={
            name: TopicQueueMappingInfo(curr_id_map=dict.fromkeys(each, 0)) for name, each in led.items()
        }
    )


def test_a_route_that_lacks_something_is_noticed() -> None:
    whole = logical_route()
    assert routes.fault_of_logical(whole, "T") is None
    assert routes.fault_of_logical(logical_route(physical_end=99), "T")
    assert routes.fault_of_logical(replace(whole, logical_queues_info=None), "T")
    less = {index: each for index, each in (whole.logical_queues_info or {}).items() if index}
    assert routes.fault_of_logical(replace(whole, logical_queues_info=less), "T")
    assert routes.fault_of_static(static_route(), "T") is None
    assert routes.fault_of_static(static_route(routes.QUEUES - 1), "T")
    assert routes.fault_of_plain(TopicRouteData(queue_datas=[QueueData(write_queue_nums=1)]), "T")


def test_what_brokers_tell_is_half_of_all_queues_each_and_together_all_segments() -> None:
    tables = [routes.logical_table(number, 2) for number in range(routes.BROKERS)]
    told = [table.logical_queues_info_map or {} for table in tables]
    counts = {len(each["Topic1"].queues or {}) for each in told}
    assert counts == {routes.QUEUES * routes.SEGMENTS // routes.BROKERS}


# ---- borders -------------------------------------------------------------------------------------


def row(*offsets: int, queue: int = 0) -> list[ReadMessage]:
    return [
        ReadMessage(ClientQueue("b", queue), at, borders.body_of(number)) for number, at in enumerate(offsets)
    ]


def test_a_queue_that_is_read_otherwise_over_its_borders_is_noticed() -> None:
    count = borders.BORDERS + 2
    jumping = [0, *(10_000 * each for each in range(1, count - 1))]
    borders.judge_read(borders.LOGICAL, row(*range(count)), count)
    borders.judge_read(borders.STATIC, row(*jumping, jumping[-1] + 1), count)
    for who, wrong in (
        (borders.LOGICAL, row(*range(count - 1))),
        (borders.LOGICAL, row(*range(count - 1), count)),
        (borders.LOGICAL, [*row(*range(count - 1)), *row(count - 1)]),
        (borders.PLAIN, [*row(*range(count))[:-1], *row(*range(count), queue=1)[-1:]]),
        (borders.STATIC, row(*range(count))),
    ):
        with pytest.raises(WrongResultError):
            borders.judge_read(who, wrong, count)


# ---- the whole -----------------------------------------------------------------------------------


def part(measure: Callable[[Bench, Effort], None]) -> QueuePart:
    return QueuePart(
        "things", ("plain", "mapped"), "plain", {"sent": ("1/s", True), "more": ("", True)}, measure
    )


def told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, measure: Callable[[Bench, Effort], None]) -> int:
    """The exit code of two parts, the first of which is this."""
    parts = {"first": part(measure), "second": part(lambda bench, _effort: bench.note("more", "plain", 1.0))}
    monkeypatch.setattr(bench_queues, "measured_family", lambda _: replace(FAMILY, queues=parts))
    monkeypatch.setattr(bench_queues, "end_in_order", lambda: None)
    monkeypatch.setattr(bench_queues, "OUT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["bench_queues", "--rounds", "2"])
    return bench_queues.main()


def test_a_slow_result_is_shown_with_its_ratio_of_the_same_round_and_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(bench: Bench, _effort: Effort) -> None:
        for plain, mapped in ((100.0, 50.0), (10.0, 2.0), (1.0, 0.9)):
            bench.note("sent", "plain", plain)
            bench.note("sent", "mapped", mapped)

    assert told(monkeypatch, tmp_path, measure) == 0
    shown = capsys.readouterr().out
    assert "| sent | 1/s | 10 (1 to 100) | 2 (0.9 to 50) | 0.50 |" in shown
    assert "| more |  | 1 |" in shown


def test_a_wrong_result_is_told_and_the_other_parts_are_measured_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(_bench: Bench, _effort: Effort) -> None:
        raise WrongResultError("a message is lost")

    assert told(monkeypatch, tmp_path, measure) == 1
    seen = capsys.readouterr()
    assert "bench-queues: first: a message is lost" in seen.err
    assert "| more |  | 1 |" in seen.out
    assert json.loads((tmp_path / "queues.json").read_text())["wrong"] == ["first: a message is lost"]
