"""What controllers are asked: who leads, what is recorded, how they are configured; and what they are to do.

Source: apache/rocketmq rocketmq-all-5.4.0, MQClientAPIImpl.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from replispec.administrator.rocketmq.plans import (
    Asking,
    NotAsWantedError,
    Plan,
    SilentError,
    body_of,
    granted,
    header_of,
)
from replispec.runtime.primitives.parameters import ConfigurationError
from replispec.runtime.primitives.properties import read_properties
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.controller import (
    BrokerNames,
    BrokerReplicasInfo,
    CleanBrokerDataRequest,
    ElectMasterRequest,
    ElectMasterResponse,
    GetMetadataResponse,
    Properties,
    Property,
    ReplicasInfo,
)


def metadata(controllers: Sequence[str]) -> Plan[GetMetadataResponse]:
    """The word of the first of these controllers that answers. Raises NotAsWantedError."""
    failure: NotAsWantedError = SilentError("no controller is named")
    for address in controllers:
        (reply,) = yield [Asking(address, RequestCode.CONTROLLER_GET_METADATA_INFO)]
        try:
            return header_of(reply, GetMetadataResponse)
        except NotAsWantedError as error:
            failure = error
    raise failure


def leader(controllers: Sequence[str]) -> Plan[str]:
    """Where the leader is, by the word of the first of these that names one. Raises NotAsWantedError."""
    failure: NotAsWantedError = SilentError("no controller is named")
    for address in controllers:
        try:
            found = yield from metadata([address])
        except NotAsWantedError as error:
            failure = error
            continue
        if found.controller_leader_address:
            return found.controller_leader_address
        failure = NotAsWantedError(f"{address} knows no leader: of its group no majority is there")
    raise failure


def sets(controllers: Sequence[str], names: Sequence[str]) -> Plan[Mapping[str, ReplicasInfo]]:
    """What the leader has on record of broker sets. Raises NotAsWantedError."""
    address = yield from leader(controllers)
    (reply,) = yield [question_of_sets(address, names)]
    return dict(body_of(reply, BrokerReplicasInfo).replicas_info_table or {})


def question_of_sets(address: str, names: Sequence[str]) -> Asking:
    """Asks one controller for sets."""
    body = BrokerNames(names=list(names)).encode()
    return Asking(address, RequestCode.CONTROLLER_GET_SYNC_STATE_DATA, body=body)


def configurations(controllers: Sequence[str]) -> Plan[Mapping[str, Mapping[str, str]]]:
    """The configuration of each of these controllers. Raises NotAsWantedError."""
    replies = yield [Asking(each, RequestCode.GET_CONTROLLER_CONFIG) for each in controllers]
    return {each.question.address: properties(granted(each).body) for each in replies}


def properties(body: bytes) -> Mapping[str, str]:
    """A configuration that came as a text. Raises NotAsWantedError."""
    try:
        return dict(read_properties(body.decode())[0])
    except (ConfigurationError, UnicodeDecodeError) as error:
        raise NotAsWantedError(f"a configuration cannot be read: {error}") from error


def configure(controllers: Sequence[str], name: str, value: str) -> Plan[None]:
    """Have each of these controllers take a parameter. Raises NotAsWantedError."""
    body = Properties([Property(name, value)]).encode()
    replies = yield [Asking(each, RequestCode.UPDATE_CONTROLLER_CONFIG, body=body) for each in controllers]
    for each in replies:
        granted(each)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which broker of which set becomes master."""

    cluster: str
    broker: str
    broker_id: int


def elect(controllers: Sequence[str], wanted: Wanted) -> Plan[ElectMasterResponse]:
    """Have a broker become master. Raises NotAsWantedError."""
    address = yield from leader(controllers)
    header = ElectMasterRequest(
        cluster_name=wanted.cluster,
        broker_name=wanted.broker,
        broker_id=wanted.broker_id,
        designate_elect=True,
    )
    (reply,) = yield [Asking(address, RequestCode.CONTROLLER_ELECT_MASTER, header)]
    return header_of(reply, ElectMasterResponse)


@dataclass(frozen=True, slots=True)
class Cleaned:
    """Which members of a set leave the controller's records; no ids: the whole set. `living`: even those
    that live."""

    broker: str
    cluster: str | None = None
    ids: Sequence[int] = ()
    living: bool = False


def clean(controllers: Sequence[str], cleaned: Cleaned) -> Plan[None]:
    """Have members of a set forgotten. Raises NotAsWantedError."""
    address = yield from leader(controllers)
    header = CleanBrokerDataRequest(
        cluster_name=cleaned.cluster,
        broker_name=cleaned.broker,
        broker_controller_ids_to_clean=";".join(map(str, cleaned.ids)) or None,
        is_clean_living_broker=cleaned.living,
    )
    (reply,) = yield [Asking(address, RequestCode.CLEAN_BROKER_DATA, header)]
    granted(reply)
