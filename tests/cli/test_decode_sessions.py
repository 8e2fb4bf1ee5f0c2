"""`replispec decode` of a real ZooKeeper's capture: answers are shown by their requests."""

import json
from pathlib import Path

from tests.cli.command import replispec

CAPTURE = Path(__file__).parents[1] / "wire_zookeeper/captures/zookeeper_3_5_9.pcap"


def shown(*options: str) -> str:
    """What the command prints of the capture."""
    done = replispec("decode", CAPTURE, *options)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_sessions_requests_answers_and_what_was_watched_are_worded() -> None:
    said = shown()
    for expected in (
        "ConnectRequest  timeout=6000  session_id=0x0  zxid=0x0",
        "request GET_DATA  xid=11  path=/a  watch=True",
        "answer GET_DATA  xid=11  zxid=0x63  data=one  stat.czxid=96",
        "answer EXISTS  xid=6  zxid=0x5f  NO_NODE",
        "operations[0].check.path=/a",
        "notification  event=1  status=3  path=/b",
        "answer SET_WATCHES  xid=-8",
        "answer 999  xid=1  zxid=-0x1  UNIMPLEMENTED",
        "word  RUOK",
    ):
        assert expected in said, expected
    assert "nobody waits" not in said


def test_credentials_are_not_shown() -> None:
    assert "u:p" not in shown()
    assert b"u:p".hex() not in shown("--format", "json")


def test_rows_hold_what_frames_say_alone() -> None:
    rows = [json.loads(line) for line in shown("--format", "json", "--order", "connection").splitlines()]
    assert {row["said"] for row in rows} == {
        "AdminWordFrame",
        "ConnectRequest",
        "ConnectResponse",
        "RequestFrame",
        "ReplyFrame",
    }
    assert {row["protocol"] for row in rows} == {"zookeeper_requests", "zookeeper_answers"}
