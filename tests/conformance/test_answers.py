"""What a case may say of answers beside their fields: codes of earlier ones, flags, replies, addresses."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from replispec.conformance.encoding import Unsendable
from replispec.conformance.model import CaseError, Raw, Sent
from replispec.conformance.results import CaseVerdict
from replispec.conformance.rocketmq.remoting import RemotingEncoder
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode, ResponseCode
from tests.conformance.case_files import (
    CLOSED_ADDRESS,
    HEAD,
    METADATA,
    RELEASE,
    Listening,
    a_case,
    always,
    answer,
    judged,
    played,
    read,
    refused,
)

ASKED_CODE = 7
ONEWAY_ANSWER = RemotingFlag.RESPONSE | RemotingFlag.ONEWAY
FIRST = "{send: {code: 7}, expect: [{code: [SUCCESS, SYSTEM_ERROR], save: {first: code}}]}"
SAME = "{send: {code: 8}, expect: [{code: $first}]}"
LEADER = (
    "{send: {command: CONTROLLER_GET_METADATA_INFO},"
    " expect: [{code: SUCCESS, save: {leader: header.controllerLeaderAddress}}]}"
)
OPENED = "{open: {to: $leader}, over: leader}"


def test_the_code_of_an_earlier_answer_may_be_demanded_again(tmp_path: Path) -> None:
    assert played(tmp_path, always(ResponseCode.SYSTEM_ERROR), FIRST, SAME).verdict is CaseVerdict.PASS
    changing = played(tmp_path, lambda r: [answer(r, 1 if r.header.code == 7 else 0)], FIRST, SAME)
    assert changing.symptom == "step 2: code SUCCESS instead of SYSTEM_ERROR"


def test_the_flag_of_an_answer_is_compared_where_a_case_asks_for_it(tmp_path: Path) -> None:
    flagged = "{send: {code: 7}, expect: [{code: SUCCESS, flag: 1}]}"
    assert played(tmp_path, always(), flagged).verdict is CaseVerdict.PASS
    assert played(tmp_path, lambda r: [answer(r, flag=ONEWAY_ANSWER)], METADATA).verdict is CaseVerdict.PASS
    wrong = played(tmp_path, lambda r: [answer(r, flag=ONEWAY_ANSWER)], flagged)
    assert wrong.symptom == "step 1: flag 3 instead of 1"


def _asking(request: Command) -> Sequence[bytes]:
    """Asks back before it answers anything."""
    if request.is_answer:
        return []
    if request.header.code != ASKED_CODE:
        return [answer(request)]
    return [answer(request, RequestCode.NOTIFY_BROKER_ROLE_CHANGED, flag=0, opaque=505), answer(request)]


ASKED = "{send: {code: 7}, expect: [{command: NOTIFY_BROKER_ROLE_CHANGED}]}"
REPLY = "{reply: {code: SYSTEM_ERROR, header: {a: $set}, body: [1]}}"


def test_a_request_of_the_subject_is_answered_under_its_number(tmp_path: Path) -> None:
    subject = Listening(_asking)
    result = judged([read(tmp_path, ASKED, "{expect: [{code: SUCCESS}]}", REPLY)], _asking, subject=subject)
    assert result.results[0].verdict is CaseVerdict.PASS
    told = subject.received[-1]
    assert (told.is_answer, told.header.opaque, told.header.code) == (True, 505, ResponseCode.SYSTEM_ERROR)
    assert told.body == b"[1]"


def test_what_was_not_asked_is_not_answered(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="no step before takes a request over 'main'"):
        played(tmp_path, always(), METADATA, REPLY)


def test_an_address_that_the_subject_told_is_opened_and_judged(tmp_path: Path) -> None:
    nowhere = played(tmp_path, always(header={"controllerLeaderAddress": CLOSED_ADDRESS}), LEADER, OPENED)
    assert nowhere.verdict is CaseVerdict.FAIL
    assert nowhere.symptom.startswith("step 2: $leader: nobody listens at ")
    odd = played(tmp_path, always(header={"controllerLeaderAddress": "here"}), LEADER, OPENED)
    assert odd.symptom == "step 2: $leader: 'here' is not HOST:PORT"


def test_what_a_case_changed_for_everybody_is_put_back_however_it_went(tmp_path: Path) -> None:
    subject = Listening(always(ResponseCode.SYSTEM_ERROR))
    back = "afterwards: [{send: {code: 99}, over: afterwards, expect: [{code: SUCCESS}]}]"
    result = judged([read(tmp_path, METADATA, more=back)], always(), subject=subject)
    assert result.results[0].symptom == "step 1: code SYSTEM_ERROR instead of SUCCESS"
    assert [each.header.code for each in subject.received][-1] == 99


ENCODER = RemotingEncoder(RELEASE, 1)
FRAMES = ENCODER.raw(Raw(of=(Sent(code=7, body=[1], opaque=5), Sent(code=8, opaque=6))), {}).data


@pytest.mark.parametrize(
    ("place", "before"),
    [
        ("serialize_type", FRAMES[:4]),
        ("header", FRAMES[:8]),
        ("header - 1", FRAMES[:7]),
        ("body", FRAMES[: FRAMES.index(b"[1]")]),
        ("next", FRAMES[: FRAMES.index(b"[1]") + 3]),
        ("next + 12", FRAMES[: FRAMES.index(b"[1]") + 15]),
    ],
)
def test_bytes_are_cut_at_landmarks_of_the_first_frame(place: str, before: bytes) -> None:
    assert ENCODER.pieces(Raw(split=(place,)), FRAMES)[0] == before
    assert (
        ENCODER.raw(Raw(of=(Sent(code=7, body=[1], opaque=5), Sent(code=8, opaque=6)), keep=place), {}).data[
            :4
        ]
        == before[:4]
    )


@pytest.mark.parametrize("place", ["header - 8", "next + 900"])
def test_a_landmark_that_cuts_nothing_is_the_fault_of_the_case(place: str) -> None:
    with pytest.raises(Unsendable, match="cuts nothing"):
        ENCODER.pieces(Raw(split=(place,)), FRAMES)


def test_a_landmark_that_no_frame_has_is_refused_with_those_there_are(tmp_path: Path) -> None:
    step = "{bytes: {of: [{code: 7}], split: [tail]}, expect: [{code: SUCCESS}]}"
    assert refused(tmp_path, HEAD + a_case(step)).endswith(
        "'tail' is no place: a number, or total_length, serialize_type, header_length, header, body, next,"
        " and + N or - N"
    )
