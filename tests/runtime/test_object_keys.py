"""Maps whose keys are objects, as Java's library writes and reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.jsons import dumps, loads, object_key
from replispec.wire.rocketmq.client import ResetOffsetBody, TopicOffset, TopicStatsTable
from replispec.wire.rocketmq.message_queue import MessageQueue

WRITTEN = (
    b'{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"T,{1:\\"}"}:{"lastUpdateTimestamp":5,'
    b'"maxOffset":1,"minOffset":0},{"brokerName":"broker-a","queueId":1,"topic":"T"}:{"lastUpdateTimestamp":0,'
    b'"maxOffset":0,"minOffset":0}},"topicPutTps":0.5}'
)


def test_what_java_writes_is_read_and_written_again_byte_by_byte() -> None:
    found = TopicStatsTable.decode(WRITTEN)
    keys = [MessageQueue.decode(each.encode()) for each in found.offset_table or ()]
    assert [(each.topic, each.queue_id) for each in keys] == [('T,{1:"}', 0), ("T", 1)]
    assert found.topic_put_tps == 0.5
    assert found.encode() == WRITTEN


def test_bare_numbers_and_objects_are_keys_of_one_text() -> None:
    assert loads(b'{"a":{1:2,{"x":3}:{-4:5}}}') == {"a": {"1": 2, '{"x":3}': {"-4": 5}}}


@pytest.mark.parametrize("text", [b"{{1:2}}", b'{{"a":{}}:1}', b'{{"a":1}', b'[{"a":1}:2]', b'{"a":1}:2'])
def test_what_is_no_flat_object_is_no_key(text: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        loads(text)


@given(st.dictionaries(st.text(), st.integers(-(2**63), 2**63 - 1), max_size=5))
def test_any_text_of_a_key_comes_back(offsets: dict[str, int]) -> None:
    assert ResetOffsetBody.decode(ResetOffsetBody(offset_table=offsets).encode()).offset_table == offsets


@given(st.builds(MessageQueue, broker_name=st.text(), queue_id=st.integers(0, 9), topic=st.text()))
def test_any_queue_is_a_key(queue: MessageQueue) -> None:
    key = queue.encode().decode()
    body = ResetOffsetBody(offset_table={key: 7}).encode()
    assert body == b'{"offsetTable":{' + key.encode() + b":7}}"
    (found,) = ResetOffsetBody.decode(body).offset_table or {}
    assert MessageQueue.decode(found.encode()) == queue


def test_a_text_that_is_no_object_is_quoted() -> None:
    assert dumps({object_key("plain"): 1}) == b'{"plain":1}'
    with pytest.raises(RemoteProtocolError, match="a number was expected"):
        TopicStatsTable.decode(b'{"topicPutTps":"x"}')
    assert TopicOffset.decode(b"{}") == TopicOffset()
