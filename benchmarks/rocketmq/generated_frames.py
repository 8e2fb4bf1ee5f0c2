"""The frames of a generated capture that there are many of: sends, their answers, records of the log."""

from __future__ import annotations

from replispec.wire.rocketmq.broker import SendMessageResponse, SendMessageV2Request
from replispec.wire.rocketmq.codes import LogMagic, RemotingFlag, RequestCode, ResponseCode, SerializeType
from replispec.wire.rocketmq.remoting import RemotingFrame, RemotingHeader
from replispec.wire.rocketmq.store import LogRecord
from tests.replay.pcap_writer import START_NS

NANOSECONDS_PER_MILLISECOND = 10**6
VERSION_5_4_0 = 493
TOPIC, PRODUCERS, REGION = "TopicTest", "producer-group", "DefaultRegion"
STORE_PORT = 10_911
STORE_IP, BORN_IP = bytes((10, 0, 1, 1)), bytes((10, 128, 0, 1))


def request(opaque: int, body: bytes) -> bytes:
    """A client sends a message."""
    header = SendMessageV2Request(
        producer_group=PRODUCERS,
        topic=TOPIC,
        default_topic="TBW102",
        default_topic_queue_nums=8,
        queue_id=opaque & 3,
        sys_flag=0,
        born_timestamp=START_NS // NANOSECONDS_PER_MILLISECOND,
        flag=0,
        properties="KEYS\x01abc\x02UNIQ_KEY\x017F000001",
        reconsume_times=0,
        unit_mode=False,
        batch=False,
    )
    command = RemotingHeader(
        code=RequestCode.SEND_MESSAGE_V2,
        version=VERSION_5_4_0,
        opaque=opaque,
        ext_fields=header.to_ext_fields(),
        serialize_type_current_rpc=SerializeType.JSON.name,
    )
    return RemotingFrame(SerializeType.JSON, command.encode_json(), body).encode()


def answer(opaque: int, message_id: str) -> bytes:
    """The master acknowledges it, and says where it lies."""
    header = SendMessageResponse(
        msg_id=message_id,
        queue_id=opaque & 3,
        queue_offset=opaque,
        trace_on="true",
        msg_region=REGION,
    )
    command = RemotingHeader(
        code=ResponseCode.SUCCESS,
        version=VERSION_5_4_0,
        opaque=opaque,
        flag=RemotingFlag.RESPONSE,
        ext_fields=header.to_ext_fields(),
        serialize_type_current_rpc=SerializeType.JSON.name,
    )
    return RemotingFrame(SerializeType.JSON, command.encode_json()).encode()


def record(offset: int, body: bytes) -> bytes:
    """The record of a message at this offset of the log; its size depends on that of the body alone."""
    return LogRecord(
        magic=LogMagic.MESSAGE_V1,
        queue_offset=offset // 1000,
        physical_offset=offset,
        born_timestamp=START_NS // NANOSECONDS_PER_MILLISECOND,
        born_ip=BORN_IP,
        born_port=40_000,
        store_timestamp=START_NS // NANOSECONDS_PER_MILLISECOND,
        store_ip=STORE_IP,
        store_port=STORE_PORT,
        body=body,
        topic=TOPIC,
        properties=b"KEYS\x01abc",
    ).encode()
