"""Reads a topic from a broker as a consumer does, queue by queue, and gives positions and bodies."""

from __future__ import annotations

from lab.rocketmq.peer import Peer
from replispec.runtime.rocketmq.framing import FrameBuffer
from replispec.wire.rocketmq.broker import PullMessageRequest, PullMessageResponse
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.store import LogRecord
from replispec.wire.rocketmq.streams import COMMIT_LOG

GROUP = "replispec-lab"
MESSAGES_AT_ONCE = 64
Messages = list[tuple[int, bytes]]
"""Positions in a queue with their bodies, in the order in which the broker gives them."""


def read_topic(address: str, topic: str, queues: int) -> set[bytes]:
    """All bodies that consumers of this topic are given by the broker at this address."""
    return {body for read in read_queues(address, topic, queues).values() for _, body in read}


def read_queues(address: str, topic: str, queues: int) -> dict[int, Messages]:
    """All messages that consumers of this topic are given by the broker at this address, by queue."""
    host, _, port = address.rpartition(":")
    with Peer(host, int(port)) as peer:
        return {queue: read_on(peer, topic, queue, 0)[0] for queue in range(queues)}


def read_on(peer: Peer, topic: str, queue: int, offset: int) -> tuple[Messages, int]:
    """What the broker gives of a queue from a position on, and the position to go on at."""
    messages: Messages = []
    while True:
        answer = peer.ask(RequestCode.PULL_MESSAGE, _question(topic, queue, offset))
        if answer.header.code != ResponseCode.SUCCESS:
            return messages, offset
        records = map(LogRecord.decode, FrameBuffer(COMMIT_LOG).receive(answer.body))
        messages += [(record.queue_offset, record.body) for record in records]
        received = PullMessageResponse.from_ext_fields(answer.header.ext_fields or {})
        offset = received.next_begin_offset or 0


def _question(topic: str, queue: int, offset: int) -> PullMessageRequest:
    return PullMessageRequest(
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
