"""Reads a topic from a broker as a consumer does, queue by queue, and gives the bodies."""

from __future__ import annotations

from lab.rocketmq.peer import Peer
from replispec.runtime.rocketmq.framing import FrameBuffer
from replispec.wire.rocketmq.broker import PullMessageRequest, PullMessageResponse
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.store import LogRecord
from replispec.wire.rocketmq.streams import COMMIT_LOG

GROUP = "replispec-lab"
MESSAGES_AT_ONCE = 64


def read_topic(address: str, topic: str, queues: int) -> set[bytes]:
    """All bodies that consumers of this topic are given by the broker at this address."""
    host, _, port = address.rpartition(":")
    with Peer(host, int(port)) as peer:
        return {body for queue in range(queues) for body in _read_queue(peer, topic, queue)}


def _read_queue(peer: Peer, topic: str, queue: int) -> list[bytes]:
    bodies: list[bytes] = []
    offset = 0
    while True:
        header = PullMessageRequest(
            consumer_group=GROUP,
            topic=topic,
            queue_id=queue,
            queue_offset=offset,
            max_msg_nums=MESSAGES_AT_ONCE,
            sys_flag=0,
            commit_offset=0,
            suspend_timeout_millis=0,
            sub_version=0,
        )
        answer = peer.ask(RequestCode.PULL_MESSAGE, header)
        if answer.header.code != ResponseCode.SUCCESS:
            return bodies
        records = FrameBuffer(COMMIT_LOG).receive(answer.body)
        bodies += [LogRecord.decode(record).body for record in records]
        received = PullMessageResponse.from_ext_fields(answer.header.ext_fields or {})
        offset = received.next_begin_offset or 0
