"""`replispec decode` prints every frame, for people and for scripts, and obeys nothing that it prints."""

import json
from typing import Any

import pytest

from replispec.cli.frame_text import json_line, text_line
from replispec.cli.rocketmq.family import FAMILY
from replispec.replay.engines.decoding import decode_capture
from replispec.replay.frames.tables import FRAMES
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode, ResponseCode
from tests.cli.command import CAPTURES, replispec

CAPTURE = CAPTURES / "k2_newbroker_oldcontroller.pcap"
SECOND = 10**9


def _row(**columns: Any) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(FRAMES.names)
    row |= {"time_ns": 12 * SECOND + 5, "source": "10.0.0.1:5000", "destination": "10.0.0.2:6000"}
    return row | {"complete": True, "body_size": 0} | columns


def _text(row: dict[str, Any], start_ns: int) -> str:
    return text_line(row, start_ns, FAMILY.words)


def test_every_frame_is_one_line_of_text() -> None:
    shown = replispec("decode", CAPTURE)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert len(shown.stdout.splitlines()) == decode_capture(CAPTURE).frames.num_rows > 0


def test_every_frame_is_one_json_object_with_the_columns_of_the_table() -> None:
    frames = decode_capture(CAPTURE).frames
    shown = replispec("decode", CAPTURE, "--format", "json", "--order", "connection")
    rows = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [(row["connection"], row["sequence"]) for row in rows] == list(
        zip(frames["connection"].to_pylist(), frames["sequence"].to_pylist(), strict=True)
    )
    assert {key for row in rows for key in row} <= set(FRAMES.names)
    assert [row for row in rows if None in row.values()] == []


def test_what_members_of_a_group_say_is_named() -> None:
    row = _row(code=30013, flag=RemotingFlag.ONEWAY, opaque=8, ext_fields=[("term", "1")], body_size=4)
    assert _text(row, 2 * SECOND).endswith("  oneway 30013  ENTRIES  opaque=8  term=1  body=4")


@pytest.mark.parametrize(
    "code",
    [
        RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC,
        RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_PREPARE,
        RequestCode.DELETE_TOPIC_IN_NAMESRV,
    ],
)
def test_what_is_said_of_logical_queues_is_named(code: RequestCode) -> None:
    row = _row(code=code, flag=0, opaque=9, body_size=7)
    assert _text(row, 2 * SECOND).endswith(f"  request {int(code)}  {code.name}  opaque=9  body=7")


def test_frames_come_in_the_order_of_time_unless_asked_otherwise() -> None:
    shown = replispec("decode", CAPTURE, "--format", "json")
    times = [json.loads(line)["time_ns"] for line in shown.stdout.splitlines()]
    assert times == sorted(times)


def test_a_request_shows_when_who_what_and_its_fields() -> None:
    row = _row(
        code=RequestCode.CONTROLLER_ELECT_MASTER,
        flag=0,
        opaque=7,
        ext_fields=[("brokerName", "broker-a"), ("brokerId", None)],
        body_size=12,
    )
    assert _text(row, 2 * SECOND) == (
        "    10.000000005  10.0.0.1:5000 > 10.0.0.2:6000  request 1002  CONTROLLER_ELECT_MASTER  opaque=7  "
        "brokerName=broker-a  brokerId=(none)  body=12"
    )


def test_an_answer_whose_code_changed_its_meaning_shows_both() -> None:
    row = _row(
        code=ResponseCode.CONTROLLER_MASTER_STILL_EXIST,
        flag=RemotingFlag.RESPONSE,
        opaque=7,
        remark="no\nmaster",
    )
    assert _text(row, 0).endswith(
        "answer 2011  CONTROLLER_ELECT_MASTER_FAILED or CONTROLLER_MASTER_STILL_EXIST  opaque=7  "
        "remark=no\\u000amaster"
    )


@pytest.mark.parametrize(
    ("flag", "said"), [(0, "request"), (RemotingFlag.ONEWAY, "oneway"), (RemotingFlag.RESPONSE, "answer")]
)
def test_an_unknown_code_is_shown_as_its_number(flag: int, said: str) -> None:
    assert f"{said} 4242  (unknown code)" in _text(_row(code=4242, flag=flag, opaque=1), 0)


def test_a_replication_frame_shows_its_message_and_what_is_missing() -> None:
    row = _row(
        message="HaTransferHeader", offset=1000, epoch=2, confirm_offset=900, body_size=64, complete=False
    )
    assert _text(row, 0).endswith(
        "HaTransferHeader  offset=1000  epoch=2  confirm_offset=900  body=64  (bytes of it are missing)"
    )


def test_the_epochs_of_a_handshake_are_shown() -> None:
    epochs = [{"epoch": 1, "start_offset": 0}, {"epoch": 2, "start_offset": 122390}]
    row = _row(message="HaHandshakeAnswer", max_offset=5, epochs=epochs)
    assert _text(row, 0).endswith("HaHandshakeAnswer  max_offset=5  epochs=[1 from 0, 2 from 122390]")


def test_a_terminal_is_never_given_what_it_would_obey() -> None:
    row = _row(code=1, flag=0, opaque=1, ext_fields=[("\x1b]0;owned\x07", "\x1b[2J" * 1000)])
    line = _text(row, 0)
    assert line.isprintable()
    assert "\\u001b]0;owned\\u0007=" in line
    assert len(line) < 2000


def test_a_json_body_keeps_every_digit_and_stays_on_its_line() -> None:
    line = json_line(_row(json_body=b'{"offset":\n123456789012345678901234567890}'))
    assert line.count(b"\n") == 1
    assert b'{"offset": 123456789012345678901234567890}' in line


def test_a_body_that_is_no_json_after_all_is_given_as_text() -> None:
    assert json.loads(json_line(_row(json_body=b'{1:"a"}')))["json_body"] == '{1:"a"}'
    assert json.loads(json_line(_row(json_body=b"[\xff")))["json_body"] == "[\ufffd"
    assert json.loads(json_line(_row(json_body=b"[" * 60_000)))["json_body"] == "[" * 60_000
