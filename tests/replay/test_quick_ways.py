"""What is read by columns tells what the generated readers of single frames tell, whatever peers write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from replispec.replay.events.observation import ObservationKind
from replispec.replay.events.observe import observe
from replispec.replay.events.rocketmq import commands
from replispec.replay.events.tables import SCHEMAS, Events
from replispec.replay.frames.tables import FRAMES, HOLES, STREAMS
from replispec.replay.pairing import pairs as pairing
from replispec.replay.pairing.delivery import Delivered, Integers, delivered
from replispec.replay.pairing.rocketmq.family import CORRELATION
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq.broker import SendMessageResponse
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode, ResponseCode

SIZE = 10
REQUEST, ANSWER, ONE_WAY = RemotingFlag.REQUEST, RemotingFlag.RESPONSE, RemotingFlag.ONEWAY
ID = rules.message_id("10.0.0.1:10911", 4096)
NUMBERS = ("", "0", "7", "-1", "+1", " 1", "1 ", "007", "1.0", "1e3", "0x1", "true", "\u0663", "1\n", "null")
LONG = ("9" * 9, "9" * 10, "9" * 18, "9" * 19, "9" * 20, "9" * 21, "2147483647", "2147483648", str(2**63))
TEXTS = st.sampled_from((*NUMBERS, *LONG))
ODD_IDS = (ID.lower(), f"{ID},{ID}", ID[:-1], ID + "0", "G" + ID[1:], ID[:-1] + "\u00b2", "", ",", "F" * 32)
V6_ID = rules.message_id("[2001:db8::1]:10911", 5)
IDS = st.sampled_from((ID, *ODD_IDS, "0" * 32, "7F000001FFFFFFFF" + "8" * 16, V6_ID, "\u0661" * 16))
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "msgId": st.none() | IDS,
        "queueId": st.none() | TEXTS,
        "queueOffset": st.none() | TEXTS,
        "transactionId": st.none() | TEXTS,
        "other": st.none() | TEXTS,
    },
)


def table(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Frames of one connection, as they were captured; positions follow from their number."""
    counts = [0, 0]
    made = []
    for place, row in enumerate(rows):
        index = counts[row["direction"]]
        counts[row["direction"]] += 1
        plain = {"capture": "c", "connection": "a<->b", "source": "a", "destination": "b", "acknowledged": -1}
        where = {"sequence": SIZE * index, "index": index, "size": SIZE, "record_offset": 100 * place}
        told = {"time_ns": place, "protocol": "remoting", "complete": True, "version": 0}
        made.append({**plain, **where, **told, "from_start": True, **row})
    return pa.Table.from_pylist(made, FRAMES)


def streams() -> pa.Table:
    plain = {"capture": "c", "connection": "a<->b", "protocol": "remoting", "from_start": True}
    rows = [{**plain, "direction": side, "first_number": 0, "accepted": side == 1} for side in (0, 1)]
    return pa.Table.from_pylist(rows, STREAMS)


def nothing_plain(frames: pairing.Numbered) -> Any:
    nothing = np.zeros(0, np.int64)
    return pairing._Plain(nothing, nothing, nothing, np.arange(len(frames)))


FRAME = st.tuples(st.integers(0, 1), st.integers(-2, 3), st.sampled_from([REQUEST, ANSWER, ONE_WAY]))


@given(st.lists(FRAME, max_size=12))
@example([(0, 1, REQUEST), (1, 1, ANSWER), (0, 1, REQUEST), (1, 1, ANSWER)])
@example([(0, 1, REQUEST), (1, 1, ANSWER), (1, 1, ANSWER)])
@example([(0, 1, REQUEST), (0, 1, ONE_WAY), (1, 1, ANSWER)])
@example([(1, 1, ANSWER), (0, 1, REQUEST)])
@example([(0, 2**31 - 1, REQUEST), (1, -1, REQUEST), (1, 2**31 - 1, ANSWER), (0, -1, ANSWER)])
def test_pairs_by_columns_are_those_that_are_judged_one_by_one(frames: list[tuple[int, int, int]]) -> None:
    rows = [{"direction": side, "opaque": opaque, "flag": flag, "code": 1} for side, opaque, flag in frames]
    ordered = delivered(table(rows), streams())
    found = pairing.pair(ordered, CORRELATION)
    with patch.object(pairing, "_plainly", nothing_plain):
        expected = pairing.pair(ordered, CORRELATION)
    assert found.request_of.tolist() == expected.request_of.tolist()
    assert (found.counts, found.unanswered) == (expected.counts, expected.unanswered)
    assert [row for row, _ in found.evidence] == [row for row, _ in expected.evidence]


# What requests say of when their messages were made: well, badly, or not at all.
BORN: Sequence[dict[str, str | None]] = (
    {"g": "7"},
    {"bornTimestamp": "8"},
    {"g": ""},
    {"g": "x", "bornTimestamp": None},
    {"g": "7", "bornTimestamp": ""},
    {"g": "9" * 19},
    {"g": "\u0667"},
    {"g": "7\n"},
    {"m": "true"},
    {"m": "false"},
    {"batch": "true", "m": "false"},
    {"batch": "?"},
    {"batch": None},
    {},
)


def observed(fields: Sequence[dict[str, str | None] | None], code: int) -> Events:
    """What answers with these fields to sends tell."""
    rows: list[dict[str, Any]] = []
    for opaque, each in enumerate(fields):
        told = None if each is None else list(each.items())
        asked = {"direction": 0, "flag": REQUEST, "code": RequestCode.SEND_MESSAGE_V2}
        born = list(BORN[opaque % len(BORN)].items())
        answered = {"direction": 1, "flag": ANSWER, "code": code, "ext_fields": told}
        rows += [
            {**asked, "ext_fields": born, "body_digest": opaque, "opaque": opaque},
            {**answered, "opaque": opaque},
        ]
    return observe(table(rows), HOLES.empty_table(), streams())


def one_by_one(
    _frames: Delivered, answers: Integers, _requests: Integers, _durations: Integers
) -> tuple[pa.Table, Integers]:
    return SCHEMAS[ObservationKind.ACKNOWLEDGED].empty_table(), answers


CODES = st.sampled_from([ResponseCode.SUCCESS] * 3 + [ResponseCode.SYSTEM_ERROR])


@given(st.lists(st.none() | FIELDS, max_size=8), CODES)
@example([{"msgId": ID, "queueId": "0", "queueOffset": "1"}, {"msgId": f"{ID},{ID}"}, None, {}], 0)
@example([{"msgId": ID}] * len(BORN), 0)
def test_acknowledgements_by_columns_are_those_of_the_generated_header(
    fields: list[dict[str, str | None] | None], code: int
) -> None:
    found = observed(fields, code)
    with patch.object(commands, "acknowledged", one_by_one):
        expected = observed(fields, code)
    for kind, rows in expected.items():
        assert found[kind].equals(rows), kind
    told = len(expected[ObservationKind.ACKNOWLEDGED]) + len(expected[ObservationKind.UNDECODABLE])
    assert (told >= len(fields)) == (code == ResponseCode.SUCCESS or not fields)


def test_the_fields_that_are_read_by_columns_are_those_of_the_header() -> None:
    """What is written above by hand is what the specification calls them."""
    assert {"msgId", "queueId", "queueOffset", "transactionId"} <= SendMessageResponse.KEYS


def test_a_plain_capture_needs_no_header_object() -> None:
    plain: dict[str, str | None] = {"msgId": ID, "queueId": "3", "queueOffset": "123456789012"}
    with patch.object(SendMessageResponse, "from_ext_fields", side_effect=AssertionError):
        (row,) = observed([plain], ResponseCode.SUCCESS)[ObservationKind.ACKNOWLEDGED].to_pylist()
    assert (row["address"], row["offset"], row["duration_ns"]) == ("10.0.0.1:10911", 4096, 1)
