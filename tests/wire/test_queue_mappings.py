"""Static topics and the logical queues of RIP-21, byte by byte as Apache's releases write them.

Keys, their order and their quotes are as measured: of 5.1.1, 5.3.3 and 5.4.0, and of the published client of
5.0.0-PREVIEW.
"""

from __future__ import annotations

import pytest

from replispec.runtime.primitives.json_messages import BareMessage, JsonMessage
from replispec.wire.rocketmq.broker import (
    GetRouteInfoRequest,
    RegisterBrokerBody,
    TopicConfigTable,
    TopicQueueMappingTable,
    TopicRouteData,
)
from replispec.wire.rocketmq.client import TopicStatsTable
from replispec.wire.rocketmq.codes import RouteFlag
from replispec.wire.rocketmq.logical_queue import (
    CreateLogicalQueue,
    LogicalQueues,
    LogicalQueueSegment,
    LogicalQueueSegmentKey,
    LogicalQueueSegments,
    MigrateLogicalQueue,
    ReuseLogicalQueue,
    SealLogicalQueue,
    UpdateLogicalQueueMapping,
)
from replispec.wire.rocketmq.static_topic import (
    TopicConfigAndQueueMapping,
    TopicQueueMappingDetail,
    TopicQueueMappingInfo,
    UpdateStaticTopicRequest,
)

Kind = type[JsonMessage] | type[BareMessage]
ITEM = (
    b'{"bname":"broker-a","endOffset":-1,"gen":0,"logicOffset":0,"queueId":0,"startOffset":0,"timeOfEnd":-1,'
    b'"timeOfStart":-1}'
)
DETAIL = (
    b'{"bname":"broker-a","currIdMap":{},"dirty":false,"epoch":1700000001000,"hostedQueues":{0:[%b]},'
    b'"scope":"__global__","topic":"T","totalQueues":2}' % ITEM
)
INFO = (
    b'{"bname":"broker-a","currIdMap":{0:0,3:1},"dirty":false,"epoch":1700000001000,"scope":"__global__",'
    b'"topic":"T","totalQueues":4}'
)
CONFIG = (
    b'"order":false,"perm":6,"readQueueNums":2,"topicFilterType":"SINGLE_TAG","topicName":"T","topicSysFlag":0,'
    b'"writeQueueNums":2}'
)
VERSION = b'{"counter":1,"stateVersion":0,"timestamp":1700000000000}'
SEGMENT = (
    b'{"brokerAddr":"127.0.0.1:10911","firstMsgTimeMillis":-1,"lastMsgTimeMillis":-1,"logicalQueueDelta":0,'
    b'"logicalQueueIndex":0,"messageQueue":{"brokerName":"b1","queueId":0,"topic":"T"},"offsetDelta":0,'
    b'"offsetMax":101,"state":"ReadOnly"}'
)
STATS = (
    b'{"offsetTable":{{"brokerName":"a","queueId":0,"topic":"T"}:{"lastUpdateTimestamp":5,"maxOffset":7,'
    b'"minOffset":0}},"topicPutTps":0.0}'
)
# By what it is; the last says whether Java writes numbers as keys without quotes there.
BODIES: dict[str, tuple[Kind, bytes, bool]] = {
    "513, a mapping": (TopicQueueMappingDetail, DETAIL, True),
    "103 and 105, what a broker leads": (TopicQueueMappingInfo, INFO, True),
    "351, with a mapping": (
        TopicConfigAndQueueMapping,
        b'{"attributes":{},"mappingDetail":' + DETAIL + b"," + CONFIG,
        True,
    ),
    "351, without one": (TopicConfigAndQueueMapping, b'{"attributes":{},' + CONFIG, True),
    "202, how far queues reach": (TopicStatsTable, STATS, True),
    "the file of mappings": (
        TopicQueueMappingTable,
        b'{"dataVersion":' + VERSION + b',"topicQueueMappingInfoMap":{"T":' + DETAIL + b"}}",
        True,
    ),
    "413, what a broker holds": (LogicalQueues, b'{"0":[' + SEGMENT + b"]}", False),
    "413, of a topic that is not mapped": (LogicalQueues, b"null", False),
    "414 to 416, a segment": (LogicalQueueSegment, SEGMENT, False),
    "411": (UpdateLogicalQueueMapping, b'{"logicalQueueIdx":2,"queueId":1,"topic":"T"}', False),
    "414": (SealLogicalQueue, b'{"logicalQueueIndex":2,"queueId":1,"topic":"T"}', False),
    "415": (
        ReuseLogicalQueue,
        b'{"logicalQueueIndex":1,"messageQueueRouteState":"WriteOnly","queueId":1,"topic":"T"}',
        False,
    ),
    "416": (
        CreateLogicalQueue,
        b'{"logicalQueueIndex":1,"messageQueueStatus":"WriteOnly","topic":"T"}',
        False,
    ),
    "417 to 419": (
        MigrateLogicalQueue,
        b'{"fromQueueRouteData":' + SEGMENT + b',"toQueueRouteData":' + SEGMENT + b"}",
        False,
    ),
    "a redirect": (LogicalQueueSegments, b"[" + SEGMENT + b"," + SEGMENT + b"]", False),
    "103, own segments": (
        TopicConfigTable,
        b'{"dataVersion":'
        + VERSION
        + b',"logicalQueuesInfoMap":{"T":{"0":['
        + SEGMENT
        + b']}},"topicConfigTable":{}}',
        False,
    ),
    "103, static topics": (
        TopicConfigTable,
        b'{"dataVersion":'
        + VERSION
        + b',"mappingDataVersion":'
        + VERSION
        + b',"topicConfigTable":{},"topicQueueMappingDetailMap":{},"topicQueueMappingInfoMap":{"T":'
        + INFO
        + b"}}",
        True,
    ),
    "105, static topics": (
        TopicRouteData,
        b'{"brokerDatas":[],"filterServerTable":{},"queueDatas":[],"topicQueueMappingByBroker":{"broker-a":'
        + INFO
        + b"}}",
        True,
    ),
    "105, logical queues in order": (
        TopicRouteData,
        b'{"brokerDatas":[],"filterServerTable":{},"logicalQueuesInfo":{"0":['
        + SEGMENT
        + b']},"queueDatas":[]}',
        False,
    ),
    "105, as the name server of 5.0.0-PREVIEW says them": (
        TopicRouteData,
        b'{"brokerDatas":[],"filterServerTable":{},"logicalQueuesInfoUnordered":'
        b'{0:{{"brokerName":"b1","offsetDelta":0,"queueId":0}:' + SEGMENT + b'}},"queueDatas":[]}',
        True,
    ),
}
bodies = pytest.mark.parametrize(("kind", "body", "is_bare"), BODIES.values(), ids=BODIES)


@bodies
def test_what_java_writes_is_read_and_written_again(kind: Kind, body: bytes, is_bare: bool) -> None:
    message = kind.decode(body)
    assert getattr(message, "unknown", {}) == {}
    assert message.encode(bare_keys=is_bare) == body


@pytest.mark.parametrize(("kind", "body"), [each[:2] for each in BODIES.values()], ids=BODIES)
def test_keys_may_be_quoted_or_not(kind: Kind, body: bytes) -> None:
    message = kind.decode(body)
    assert kind.decode(message.encode()) == kind.decode(message.encode(bare_keys=True)) == message


def test_keys_of_a_segment_are_read_where_somebody_asks() -> None:
    _, body, _ = BODIES["105, as the name server of 5.0.0-PREVIEW says them"]
    (table,) = (TopicRouteData.decode(body).logical_queues_info_unordered or {}).values()
    ((key, segment),) = (table.segments or {}).items()
    told = LogicalQueueSegmentKey.decode(key.encode())
    assert (told.broker_name, told.queue_id, told.offset_delta) == ("b1", 0, segment.offset_delta)


def test_a_question_for_logical_queues_says_so_in_its_header() -> None:
    asked = GetRouteInfoRequest.from_ext_fields(
        {"topic": "T", "sysFlag": "64", "logicalQueueIdsFilter": "[0, 3]"}
    )
    assert asked.sys_flag == RouteFlag.LOGICAL_QUEUE
    assert asked.logical_queue_ids_filter == "[0, 3]"
    assert asked.unknown == {}


def test_a_registration_keeps_what_it_says_of_queues() -> None:
    _, table, _ = BODIES["103, static topics"]
    body = b'{"filterServerList":[],"topicConfigSerializeWrapper":' + table + b"}"
    assert RegisterBrokerBody.decode(body).encode(bare_keys=True) == body


def test_a_static_topic_may_have_no_queue_at_a_broker() -> None:
    asked = UpdateStaticTopicRequest(
        "T", "TBW102", 0, 0, 6, "SINGLE_TAG", topic_sys_flag=0, order=False, force=False
    )
    fields = asked.to_ext_fields()
    assert fields["force"] == "false"
    assert UpdateStaticTopicRequest.from_ext_fields(fields) == asked
