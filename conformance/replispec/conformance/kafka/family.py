"""Kafka's replication as the suite asks for it: brokers, and controllers by the store beside them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Final

from replispec.conformance.family import Family, SubjectKind
from replispec.conformance.kafka.bodies import CONTROLLER_ID
from replispec.conformance.kafka.frames import BrokerAnswerReader, KafkaEncoder, PeerReader, StoreReader
from replispec.conformance.kafka.names import SUCCESS, VOCABULARY
from replispec.conformance.model import Sent
from replispec.conformance.received import SubjectReader
from replispec.conformance.vocabulary import Release
from replispec.wire.kafka.codes import ApiKey
from replispec.wire.zookeeper.connection import ConnectRequest
from replispec.wire.zookeeper.constants import PASSWORD_BYTES

METASTORE: Final = "metastore"
BROKER, PEER, STORE = "broker", "peer", "store"
PROBE_MS = 10_000
# Ids of the brokers that the suite is: beyond those that clusters give.
_IDS: Final = range(100_000, 2_000_000_000)
_READERS: Final[Mapping[str, Callable[[], SubjectReader]]] = {
    BROKER: BrokerAnswerReader,
    PEER: PeerReader,
    STORE: StoreReader,
}


def reader(protocol: str, _: Release) -> SubjectReader:
    """A reader of what a subject says as a broker, of what it asks one, or of what the store says."""
    return _READERS[protocol]()


def fresh(randomness: random.Random, now_ms: int) -> Mapping[str, object]:
    """Names of topics that nobody has, ids of brokers that nobody is, and what begins a session."""
    word = f"{randomness.getrandbits(40):010x}"
    found: dict[str, object] = {
        "now": now_ms,
        "controller": CONTROLLER_ID,
        "no_password": bytes(PASSWORD_BYTES),
    }
    found |= {name: f"{name}-{word}" for name in ("topic", "other_topic")}
    found |= dict(zip(("first", "second", "third", "fourth"), randomness.sample(_IDS, 4), strict=True))
    return found


def _versions(_: Release) -> Sent:
    return Sent(command=ApiKey.API_VERSIONS.name, version=0)


def _session(_: Release) -> Sent:
    fields = {"timeout": PROBE_MS, "password": bytes(PASSWORD_BYTES), "read_only": False}
    return Sent(message=ConnectRequest.__name__, fields=fields)


FAMILY = Family(
    name="kafka",
    vocabulary=VOCABULARY,
    kinds=(
        SubjectKind(
            "kafka-broker",
            BROKER,
            "Kafka's protocol",
            ("core", "following"),
            _versions,
            success=SUCCESS,
            beside=(METASTORE,),
        ),
        SubjectKind(
            "kafka-controller",
            STORE,
            "ZooKeeper's client protocol",
            ("core",),
            _session,
            success=SUCCESS,
        ),
    ),
    companion=PEER,
    reader=reader,
    encoder=KafkaEncoder,
    fresh=fresh,
    addresses=(METASTORE,),
    served=(PEER,),
    spoken=(BROKER, STORE),
    default_releases="2.8.2..",
)
