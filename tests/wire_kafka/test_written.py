"""What the classes of Apache Kafka 2.8.2 write is read as they mean it, and written by us byte for byte."""

from __future__ import annotations

import pytest

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.exchanges import OpenRequests
from replispec.wire.kafka.commands import APACHE_RESPONSE_FRAME, REQUESTS, RESPONSES
from replispec.wire.kafka.requests import ApacheRequestFrame, ApacheResponseFrame
from tests.wire_kafka.written import WRITTEN, Written, differences

written = pytest.mark.parametrize("each", WRITTEN, ids=[each.name for each in WRITTEN])
# Which versions a broker of ours answers, by key: the task's own list, not the specification's.
ANSWERED = {
    0: (3, 8), 1: (4, 11), 2: (1, 5), 3: (1, 8), 4: (0, 2), 5: (0, 1), 6: (3, 5), 18: (0, 2), 23: (0, 3),
}  # fmt: skip


@written
def test_kafkas_bytes_are_read_as_kafka_means_them_and_written_back(each: Written) -> None:
    message = each.kind.decode(each.data, version=each.version)
    assert differences(message, each.value) == []
    assert message.encode(version=each.version) == each.data


@written
def test_kafkas_bytes_cut_anywhere_or_with_one_more_are_blamed_on_the_peer(each: Written) -> None:
    for cut in range(len(each.data)):
        with pytest.raises(RemoteProtocolError):
            each.kind.decode(each.data[:cut], version=each.version)
    with pytest.raises(RemoteProtocolError):
        each.kind.decode(each.data + b"\0", version=each.version)


@pytest.mark.parametrize("table", [REQUESTS, RESPONSES], ids=["requests", "answers"])
def test_every_key_is_specified_in_the_versions_that_are_answered(table: tuple[object, ...]) -> None:
    forms = [form for form in table if form.releases.implementation == "apache"]  # type: ignore[attr-defined]
    assert {form.code: (form.first, form.last) for form in forms} == ANSWERED  # type: ignore[attr-defined]


def test_every_version_of_every_key_was_written_by_kafka() -> None:
    seen = {(each.key, each.version, each.kind) for each in WRITTEN}
    assert len(seen) == 2 * sum(last - first + 1 for first, last in ANSWERED.values())
    assert {form.code: (form.first, form.last) for form in APACHE_RESPONSE_FRAME.forms} == ANSWERED


def test_answers_are_read_by_the_key_and_version_of_their_requests() -> None:
    waiting = OpenRequests(APACHE_RESPONSE_FRAME, most=len(WRITTEN))
    for number, each in enumerate(WRITTEN[::2]):
        frame = ApacheRequestFrame(each.key, each.version, number, None, each.data)
        assert isinstance(APACHE_RESPONSE_FRAME.read_request(frame), each.kind)
        waiting.ask(frame)
    for number, each in enumerate(WRITTEN[1::2]):
        found = waiting.answered(ApacheResponseFrame(number, each.data)).message
        assert found == each.kind.decode(each.data, version=each.version)
    with pytest.raises(RemoteProtocolError, match="nobody waits"):
        waiting.answered(ApacheResponseFrame(7, b""))


def test_a_request_of_a_version_that_is_not_answered_is_told_by_its_frame() -> None:
    frame = ApacheRequestFrame(18, 3, 1, None, b"\0\0\0\0")
    assert APACHE_RESPONSE_FRAME.read_request(frame) is None
    assert (frame.api_key, frame.api_version, frame.correlation_id) == (18, 3, 1)
