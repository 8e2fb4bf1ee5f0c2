"""What is asked of running processes, ours and Java's alike, over the wire."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lab.ports import LOOPBACK
from lab.rocketmq.peer import Peer
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.broker import (
    ClusterInfo,
    SendMessageResponse,
    SendMessageV2Request,
)
from replispec.wire.rocketmq.client import ConsumerOffsetTable, GetMaxOffsetRequest, GetMaxOffsetResponse
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import TEMPLATE_TOPIC
from replispec.wire.rocketmq.controller import (
    BrokerNames,
    BrokerReplicasInfo,
    EpochEntryCache,
    GetMetadataResponse,
    GetReplicaInfoRequest,
    GetReplicaInfoResponse,
    ReplicasInfo,
)
from replispec.wire.rocketmq.remoting import RemotingHeader

# The topic after whose form a broker makes unknown ones.
QUEUES = 4
CONNECT_S = 1.0
NO_SUCH_BROKER = "nobody"
Ask = Callable[[], int]


@dataclass(frozen=True, slots=True)
class NamedMaster:
    """Who a controller says is master, in which masterEpoch; id 0 for nobody."""

    broker_id: int
    address: str
    epoch: int


def controller_serves(port: int, host: str = LOOPBACK) -> bool | None:
    """A controller that does not lead refuses this question; one that leads does not know the set."""
    with Peer(host, port) as peer:
        answer = peer.ask(RequestCode.CONTROLLER_GET_REPLICA_INFO, question(NO_SUCH_BROKER))
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


def epochs(broker: int, host: str = LOOPBACK) -> EpochEntryCache:
    """Names, epochs and end of the log of the broker at this port. Raises OSError, RemoteProtocolError."""
    with Peer(host, broker) as peer:
        return EpochEntryCache.decode(peer.ask(RequestCode.GET_BROKER_EPOCH_CACHE).body)


def master(controller: int, broker_name: str, host: str = LOOPBACK) -> NamedMaster | None:
    """The master by the account of the controller at this port; None when it refuses the question."""
    with Peer(host, controller) as peer:
        answer = peer.ask(RequestCode.CONTROLLER_GET_REPLICA_INFO, question(broker_name))
    if answer.header.code != ResponseCode.SUCCESS:
        return None
    received = GetReplicaInfoResponse.from_ext_fields(answer.header.ext_fields or {})
    return NamedMaster(
        received.master_broker_id or 0, received.master_address or "", received.master_epoch or 0
    )


def leader(controller: int, host: str = LOOPBACK) -> str:
    """Where the leader of the controllers is, by the account of the one at this port; empty for nowhere."""
    with Peer(host, controller) as peer:
        answer = peer.ask(RequestCode.CONTROLLER_GET_METADATA_INFO)
    received = GetMetadataResponse.from_ext_fields(answer.header.ext_fields or {})
    return received.controller_leader_address or ""


def positions(broker: int) -> ConsumerOffsetTable:
    """How far all groups have read, by the account of the broker at this port."""
    with Peer(LOOPBACK, broker) as peer:
        return ConsumerOffsetTable.decode(peer.ask(RequestCode.GET_ALL_CONSUMER_OFFSET).body)


def ends(broker: int, topic: str) -> dict[int, int] | None:
    """Where the next message of each queue of a topic goes; None while the broker does not say."""
    found = {}
    with Peer(LOOPBACK, broker) as peer:
        for queue in range(QUEUES):
            answer = peer.ask(RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequest(topic, queue))
            if answer.header.code != ResponseCode.SUCCESS:
                return None
            received = GetMaxOffsetResponse.from_ext_fields(answer.header.ext_fields or {})
            found[queue] = received.offset or 0
    return found


def question(broker_name: str) -> GetReplicaInfoRequest:
    """The question who is master."""
    return GetReplicaInfoRequest(broker_name=broker_name)


def epoch_of(controller: Peer, asked: GetReplicaInfoRequest) -> int:
    """The masterEpoch of the present master, asked on an open connection; -1 while there is none."""
    answer = controller.ask(RequestCode.CONTROLLER_GET_REPLICA_INFO, asked)
    received = GetReplicaInfoResponse.from_ext_fields(answer.header.ext_fields or {})
    return (received.master_epoch or -1) if received.master_broker_id else -1


def last_epoch(broker: Peer) -> int:
    """The newest epoch of a broker's log, asked on an open connection; -1 for none."""
    cache = EpochEntryCache.decode(broker.ask(RequestCode.GET_BROKER_EPOCH_CACHE).body)
    return max((entry.epoch or -1 for entry in cache.epoch_list or ()), default=-1)


def replicas(
    controller: int, broker_name: str, host: str = LOOPBACK, *, seal: ssl.SSLContext | None = None
) -> ReplicasInfo | None:
    """What the controller knows of the set's replicas."""
    with Peer(host, controller, seal=seal) as peer:
        body = BrokerNames(names=[broker_name]).encode()
        answer = peer.ask(RequestCode.CONTROLLER_GET_SYNC_STATE_DATA, body=body)
    return (BrokerReplicasInfo.decode(answer.body).replicas_info_table or {}).get(broker_name)


def in_sync(controller: int, broker_name: str, host: str = LOOPBACK) -> list[int]:
    """The ids of the SyncStateSet, ascending."""
    found = replicas(controller, broker_name, host)
    members = (found.in_sync_replicas if found is not None else None) or []
    return sorted(each.broker_id or 0 for each in members)


def routed(nameserver: int, broker_name: str) -> dict[int, str]:
    """Addresses by route id (0 is the master) that the name server gives for a broker set."""
    with Peer(LOOPBACK, nameserver) as peer:
        answer = peer.ask(RequestCode.GET_BROKER_CLUSTER_INFO)
    data = (ClusterInfo.decode(answer.body).broker_addr_table or {}).get(broker_name)
    return dict(data.broker_addrs or {}) if data is not None else {}


class Sender:
    """Sends messages to one broker, each when the one before is answered."""

    def __init__(self, peer: Peer, topic: str) -> None:
        self._peer = peer
        self._topic = topic

    def send(self, body: bytes, *, queue: int = 0, now_ms: int = 0) -> tuple[int, SendMessageResponse | None]:
        """The response code, and the answer when the code is SUCCESS."""
        answer = self._peer.ask(RequestCode.SEND_MESSAGE_V2, _header(self._topic, queue, now_ms), body)
        if answer.header.code != ResponseCode.SUCCESS:
            return answer.header.code, None
        return answer.header.code, SendMessageResponse.from_ext_fields(answer.header.ext_fields or {})


def send_and_run(broker: int, topic: str, bodies: Sequence[bytes]) -> socket.socket:
    """Send messages without hearing of them; they are on their way as long as the socket is open."""
    frames = bytearray()
    for number, body in enumerate(bodies):
        fields = _header(topic, number % QUEUES, 0).to_ext_fields()
        header = RemotingHeader(code=RequestCode.SEND_MESSAGE_V2, opaque=number, ext_fields=fields)
        frames += Command(header, body).encode()
    connection = socket.create_connection((LOOPBACK, broker))
    connection.sendall(frames)
    return connection


def _header(topic: str, queue: int, now_ms: int) -> SendMessageV2Request:
    return SendMessageV2Request(
        producer_group="replispec-lab",
        topic=topic,
        default_topic=TEMPLATE_TOPIC,
        default_topic_queue_nums=QUEUES,
        queue_id=queue,
        born_timestamp=now_ms,
        sys_flag=0,
        flag=0,
    )


def same(values: Sequence[object]) -> bool:
    """Whether all of them are equal."""
    return all(value == values[0] for value in values)
