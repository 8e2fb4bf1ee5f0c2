"""RocketMQ as the suite asks for it: controllers by their remoting port, masters by their HA port."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

from replispec.conformance.family import Family, Replication, SubjectKind
from replispec.conformance.model import Sent
from replispec.conformance.received import StreamReader, SubjectReader
from replispec.conformance.rocketmq.names import VOCABULARY, by_address, master_stream
from replispec.conformance.rocketmq.remoting import RemotingEncoder, SubjectRemotingReader
from replispec.conformance.rocketmq.replicated import COUNTS, account, is_handshake
from replispec.conformance.vocabulary import Release
from replispec.wire.rocketmq import streams
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.commands import REQUEST_SENDERS
from replispec.wire.rocketmq.controller import BrokerHeartbeatRequest, RegisterBrokerToControllerRequest
from replispec.wire.rocketmq.ha import HaHandshakeAddress, HaHandshakeId

REMOTING, HA, HA_REPLICA = "remoting", "ha", "ha-replica"
PROBE_ID = 4_000_000_001  # a broker id that no case uses
PROBE_ADDRESS = "127.0.0.1:1"
ADMINISTRATOR = REQUEST_SENDERS[RequestCode.GET_CONTROLLER_CONFIG]
_FIVE = range(1, 6)


def reader(protocol: str, release: Release) -> SubjectReader:
    """A reader of what a subject of this protocol writes."""
    if protocol == HA_REPLICA:
        return StreamReader(streams.HA_REPLICA, VOCABULARY)
    return StreamReader(master_stream(release), VOCABULARY) if protocol == HA else SubjectRemotingReader()


def fresh(randomness: random.Random, now_ms: int) -> Mapping[str, object]:
    """Names, addresses, check codes and ids of five brokers."""
    word = f"{randomness.getrandbits(40):010x}"
    found: dict[str, object] = {"now": now_ms}
    found |= {name: f"{name}-{word}" for name in ("set", "other_set", "cluster")}
    base = randomness.randrange(1_000_000_000, 4_000_000_000)
    for at in _FIVE:
        octets = (randomness.randrange(1, 255), randomness.randrange(256), randomness.randrange(1, 255))
        found[f"address{at}"] = f"127.{octets[0]}.{octets[1]}.{octets[2]}:{at}"
        found[f"check{at}"] = f"{found[f'address{at}']};{base + at}"
        found[f"replica{at}"] = base + at
    return found


def _durations() -> frozenset[str]:
    """The keys by which a broker says how long its heartbeats count."""
    asked = RegisterBrokerToControllerRequest(heartbeat_timeout_millis=1).to_ext_fields()
    return frozenset((*BrokerHeartbeatRequest(heartbeat_timeout_mills=1).to_ext_fields(), *asked))


def _frames() -> Iterator[dict[str, Any]]:
    from replispec.conformance.rocketmq.vector_frames import frames

    return frames()


def _metadata(_: Release) -> Sent:
    return Sent(command=RequestCode.CONTROLLER_GET_METADATA_INFO.name)


def _clusters(_: Release) -> Sent:
    return Sent(command=RequestCode.GET_BROKER_CLUSTER_INFO.name)


def _handshake(release: Release) -> Sent:
    if by_address(release):
        return Sent(message=HaHandshakeAddress.__name__, fields={"address": PROBE_ADDRESS})
    return Sent(message=HaHandshakeId.__name__, fields={"broker_id": PROBE_ID})


FAMILY = Family(
    name="rocketmq",
    vocabulary=VOCABULARY,
    kinds=(
        SubjectKind(
            "controller",
            REMOTING,
            "remoting",
            ("core", "admin"),
            _metadata,
            unknown_command=ResponseCode.REQUEST_CODE_NOT_SUPPORTED.name,
            success=ResponseCode.SUCCESS.name,
            forbidden=ResponseCode.NO_PERMISSION.name,
            administrator=ADMINISTRATOR,
            started=("controller",),
        ),
        SubjectKind(
            "controller-group",
            REMOTING,
            "remoting",
            ("core", "admin"),
            _metadata,
            unknown_command=ResponseCode.REQUEST_CODE_NOT_SUPPORTED.name,
            success=ResponseCode.SUCCESS.name,
            forbidden=ResponseCode.NO_PERMISSION.name,
            administrator=ADMINISTRATOR,
            elsewhere=ResponseCode.CONTROLLER_NOT_LEADER.name,
            started=("controller",),
            played=True,
        ),
        SubjectKind(
            "ha-replica",
            HA_REPLICA,
            "HA replication",
            ("ha",),
            _metadata,
            success=ResponseCode.SUCCESS.name,
            started=("broker",),
            played=True,
        ),
        SubjectKind(
            "learner",
            HA_REPLICA,
            "HA replication",
            ("ha",),
            _metadata,
            success=ResponseCode.SUCCESS.name,
            started=("async_learner",),
            played=True,
        ),
        SubjectKind(
            "registering-broker",
            REMOTING,
            "remoting",
            ("core", "ha"),
            _metadata,
            success=ResponseCode.SUCCESS.name,
            started=("broker",),
            played=True,
        ),
        *(
            SubjectKind(
                name,
                REMOTING,
                "remoting",
                ("core",),
                _metadata,
                unknown_command=ResponseCode.REQUEST_CODE_NOT_SUPPORTED.name,
                success=ResponseCode.SUCCESS.name,
                forbidden=ResponseCode.NO_PERMISSION.name,
                administrator=ADMINISTRATOR,
                started=("broker",),
                played=True,
            )
            for name in ("static-topic", "logical-queues")
        ),
        SubjectKind(
            "name-server",
            REMOTING,
            "remoting",
            ("core",),
            _clusters,
            unknown_command=ResponseCode.REQUEST_CODE_NOT_SUPPORTED.name,
            success=ResponseCode.SUCCESS.name,
            started=("name_server",),
        ),
        SubjectKind(
            "ha-master",
            HA,
            "HA replication",
            ("ha",),
            _handshake,
            success=ResponseCode.SUCCESS.name,
            started=("name_server", "controller", "broker"),
            listens="replication",
        ),
    ),
    companion=REMOTING,
    reader=reader,
    encoder=RemotingEncoder,
    fresh=fresh,
    busy=ResponseCode.SYSTEM_BUSY.name,
    addresses=("controller", "broker", "nameserver"),
    served=(REMOTING, HA_REPLICA),
    spoken=(REMOTING, HA),
    durations=_durations(),
    default_releases="5.1.1..",
    replication=Replication(COUNTS, is_handshake, account),
    frames=_frames,
)
