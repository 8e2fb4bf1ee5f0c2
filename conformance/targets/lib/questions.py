"""What is asked of RocketMQ to know that it serves, and the messages that give a log some length."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from functools import partial

from replispec.wire.rocketmq.broker import ClusterInfo, SendMessageV2Request
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import EpochEntryCache, GetReplicaInfoRequest
from targets.lib.ports import LOOPBACK
from targets.lib.remoting import Peer, until

MESSAGE_BYTES = 400
TOPIC, PRODUCER = "ReplispecHistory", "replispec"
# The topic after whose form a broker makes unknown ones.
TEMPLATE_TOPIC = "TBW102"
QUEUES = 4
CONNECT_S = 1.0


def controller_serves(port: int) -> bool | None:
    """A controller that does not lead refuses this question; one that leads does not know the set."""
    with Peer(LOOPBACK, port) as peer:
        question = GetReplicaInfoRequest(broker_name="nobody")
        answer = peer.ask(RequestCode.CONTROLLER_GET_REPLICA_INFO, question)
    return answer.header.code == ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST or None


def master_serves(*, nameserver: int, broker: int, ha: int) -> bool | None:
    """The name server routes to a broker that is master and has its epoch; replicas can reach it."""
    with Peer(LOOPBACK, nameserver) as peer:
        answer = peer.ask(RequestCode.GET_BROKER_CLUSTER_INFO)
    routed = ClusterInfo.decode(answer.body).broker_addr_table or {}
    if not any(f"{LOOPBACK}:{broker}" in (data.broker_addrs or {}).values() for data in routed.values()):
        return None
    with socket.create_connection((LOOPBACK, ha), timeout=CONNECT_S):
        return bool(epochs(broker).epoch_list) or None


def epochs(broker: int) -> EpochEntryCache:
    """Names, epochs and end of the log of the broker at this port. Raises OSError, RemoteProtocolError."""
    with Peer(LOOPBACK, broker) as peer:
        return EpochEntryCache.decode(peer.ask(RequestCode.GET_BROKER_EPOCH_CACHE).body)


def send_messages(broker: int, count: int, *, patience_s: float, check: Callable[[], None]) -> None:
    """Send messages; each is tried until the broker takes it. `patience_s` and `check` as in `until`."""
    with Peer(LOOPBACK, broker) as peer:
        for number in range(count):
            until(
                partial(_send, peer, number),
                patience_s=patience_s,
                waiting_for="a master that takes messages",
                check=check,
            )


def _send(peer: Peer, number: int) -> bool | None:
    header = SendMessageV2Request(
        producer_group=PRODUCER,
        topic=TOPIC,
        default_topic=TEMPLATE_TOPIC,
        default_topic_queue_nums=QUEUES,
        queue_id=number % QUEUES,
        born_timestamp=time.time_ns() // 1_000_000,
        sys_flag=0,
        flag=0,
    )
    body = f"{number:08d}".encode().ljust(MESSAGE_BYTES, b".")
    answer = peer.ask(RequestCode.SEND_MESSAGE_V2, header, body)
    return answer.header.code == ResponseCode.SUCCESS or None
