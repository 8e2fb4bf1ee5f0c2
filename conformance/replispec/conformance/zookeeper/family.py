"""ZooKeeper's client protocol as the suite asks for it: metastores by the port of their clients."""

from __future__ import annotations

import random
from collections.abc import Mapping

from replispec.conformance.family import Family, SubjectKind
from replispec.conformance.model import Sent
from replispec.conformance.received import SubjectReader
from replispec.conformance.vocabulary import Release
from replispec.conformance.zookeeper.frames import SUCCESS, UNKNOWN, SubjectReplyReader, ZookeeperEncoder
from replispec.conformance.zookeeper.names import VOCABULARY
from replispec.wire.zookeeper.connection import ConnectRequest
from replispec.wire.zookeeper.constants import PASSWORD_BYTES

CLIENTS = "clients"
PROBE_MS = 10_000
# Nearly as much as one request may hold by default, with room for what stands around it.
LARGE_BYTES = 1_000_000


def reader(_protocol: str, _release: Release) -> SubjectReader:
    """A reader of what a subject writes."""
    return SubjectReplyReader()


def fresh(randomness: random.Random, now_ms: int) -> Mapping[str, object]:
    """Paths of three nodes that nobody has, data of some size, and a session that nobody has."""
    word = f"{randomness.getrandbits(40):010x}"
    found: dict[str, object] = {"now": now_ms}
    found |= {name: f"/{name}-{word}" for name in ("node", "other", "third")}
    found["large"] = "x" * LARGE_BYTES
    found["nobody"] = randomness.randrange(1 << 40, 1 << 62)
    found["no_password"] = bytes(PASSWORD_BYTES)
    found["wrong_password"] = bytes((1,)) * PASSWORD_BYTES
    return found


def _connect(_: Release) -> Sent:
    return Sent(
        message=ConnectRequest.__name__,
        fields={"timeout": PROBE_MS, "password": bytes(PASSWORD_BYTES), "read_only": False},
    )


FAMILY = Family(
    name="zookeeper",
    vocabulary=VOCABULARY,
    kinds=(
        SubjectKind(
            "metastore",
            CLIENTS,
            "ZooKeeper's client protocol",
            ("core", "admin"),
            _connect,
            unknown_command=UNKNOWN,
            success=SUCCESS,
        ),
    ),
    companion=CLIENTS,
    reader=reader,
    encoder=ZookeeperEncoder,
    fresh=fresh,
    spoken=(CLIENTS,),
    default_releases="3.5.9..",
)
