"""The names of RocketMQ, out of the tables that are generated for it, and what differs by release."""

from __future__ import annotations

from replispec.conformance.vocabulary import Release, Vocabulary
from replispec.runtime.primitives.streams import Stream
from replispec.wire.rocketmq import ha
from replispec.wire.rocketmq.codes import (
    RELEASE_NAMES,
    REQUEST_CODE_NAMES,
    RESPONSE_CODE_NAMES,
    LanguageCode,
    ResponseCode,
    SerializeType,
)
from replispec.wire.rocketmq.commands import (
    REQUEST_BODIES,
    REQUEST_HEADERS,
    REQUEST_SENDERS,
    RESPONSE_BODIES,
    RESPONSE_HEADERS,
)
from replispec.wire.rocketmq.remoting import RemotingFrameFixed
from replispec.wire.rocketmq.streams import HA_MASTER, HA_MASTER_5_0_0, HA_REPLICA

# The stream of the older form is named by the newest release that writes it.
_PADDED_UNTIL: Release = tuple(map(int, HA_MASTER_5_0_0.name.removeprefix(f"{HA_MASTER.name}_").split("_")))
_HA_MESSAGES = {form.message for stream in (HA_REPLICA, HA_MASTER, HA_MASTER_5_0_0) for form in stream.forms}

VOCABULARY = Vocabulary(
    implementation="apache",
    releases={tuple(map(int, each.name[1:].split("_"))): each.number for each in RELEASE_NAMES},
    requests=tuple(REQUEST_CODE_NAMES),
    responses=tuple(RESPONSE_CODE_NAMES),
    request_headers=REQUEST_HEADERS,
    response_headers=RESPONSE_HEADERS,
    request_bodies=REQUEST_BODIES,
    response_bodies=RESPONSE_BODIES,
    senders=REQUEST_SENDERS,
    messages={name: getattr(ha, name) for name in sorted(_HA_MESSAGES)},
    words={"encoding": SerializeType.__members__, "language": LanguageCode.__members__},
    fixed=RemotingFrameFixed.places(),
    landmarks=("header", "body", "next"),
)


def master_stream(release: Release) -> Stream:
    """How a master of this release writes."""
    return HA_MASTER_5_0_0 if release <= _PADDED_UNTIL else HA_MASTER


def by_address(release: Release) -> bool:
    """True when replicas of this release introduce themselves by address, and not by a broker id."""
    # Ids came together with the answer that refuses one.
    return VOCABULARY.response_code(ResponseCode.CONTROLLER_BROKER_ID_INVALID.name, release) is None
