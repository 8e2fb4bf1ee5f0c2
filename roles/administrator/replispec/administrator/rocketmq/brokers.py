"""What name servers and brokers are asked.

Source: apache/rocketmq rocketmq-all-5.4.0, MQClientAPIImpl, CommandUtil.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from replispec.administrator.rocketmq.plans import (
    Asking,
    BodyT,
    NotAsWantedError,
    Plan,
    SilentError,
    body_of,
    granted,
    header_of,
)
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import ClusterInfo, GetRouteInfoRequest, TopicRouteData
from replispec.wire.rocketmq.client import HaRuntimeInfo, RuntimeInfo
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.controller import EpochEntryCache

__all__ = [
    "Brokers",
    "clusters",
    "clusters_of_all",
    "epochs",
    "everywhere",
    "figures",
    "header_of",
    "old_files_deleted",
    "replication",
    "route",
]


@dataclass(frozen=True, slots=True)
class Brokers:
    """All brokers that a name server knows: addresses by route id (0: the master), by set, by cluster."""

    clusters: Mapping[str, Mapping[str, Mapping[int, str]]] = field(default_factory=dict)

    def cluster(self, name: str) -> Mapping[str, Mapping[int, str]]:
        """The sets of a cluster. Raises NotAsWantedError."""
        found = self.clusters.get(name)
        if found is None:
            raise NotAsWantedError(f"no cluster {name}: there are {_listed(self.clusters)}")
        return found

    def broker_set(self, name: str) -> Mapping[int, str]:
        """The members of a set. Raises NotAsWantedError."""
        for found in self.clusters.values():
            if name in found:
                return found[name]
        raise NotAsWantedError(f"no broker set {name}: there are {_listed(self.sets())}")

    def sets(self) -> Mapping[str, Mapping[int, str]]:
        """All sets."""
        return {name: members for found in self.clusters.values() for name, members in found.items()}

    def addresses(self, sets: Iterable[Mapping[int, str]]) -> list[str]:
        """Where all members of these sets are."""
        return [address for members in sets for address in members.values()]

    def masters(self, sets: Iterable[Mapping[int, str]]) -> list[str]:
        """Where the masters of these sets are, of those that have one."""
        return [members[constants.MASTER_ID] for members in sets if constants.MASTER_ID in members]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def clusters(name_servers: Sequence[str]) -> Plan[Brokers]:
    """All brokers, by the word of the first of these name servers that answers. Raises NotAsWantedError."""
    return _brokers_in((yield from _first(name_servers, RequestCode.GET_BROKER_CLUSTER_INFO, ClusterInfo)))


def clusters_of_all(name_servers: Sequence[str]) -> Plan[Brokers]:
    """All brokers that any of these name servers knows, each set by the word of the first that knows its
    master: what one does not know may be there. Raises NotAsWantedError where none answers."""
    told = yield from everywhere(name_servers, RequestCode.GET_BROKER_CLUSTER_INFO, ClusterInfo)
    found: dict[str, dict[str, Mapping[int, str]]] = {}
    heard = [_brokers_in(each) for each in told.values() if not isinstance(each, NotAsWantedError)]
    if not heard:
        return (yield from clusters(name_servers))
    for brokers in heard:
        for cluster, sets in brokers.clusters.items():
            known = found.setdefault(cluster, {})
            for name, members in sets.items():
                if name not in known or constants.MASTER_ID in members.keys() - known[name].keys():
                    known[name] = members
    return Brokers(found)


def _brokers_in(info: ClusterInfo) -> Brokers:
    table = info.broker_addr_table or {}
    return Brokers(
        {
            cluster: {
                name: dict(table[name].broker_addrs or {}) for name in names.names or () if name in table
            }
            for cluster, names in (info.cluster_addr_table or {}).items()
        }
    )


def route(name_servers: Sequence[str], topic: str, *, flag: int | None = None) -> Plan[TopicRouteData]:
    """Who holds a topic; `flag`: what whoever asks knows of. Raises NotAsWantedError."""
    header = GetRouteInfoRequest(topic=topic, sys_flag=flag)
    found = yield from _first(name_servers, RequestCode.GET_ROUTEINFO_BY_TOPIC, TopicRouteData, header)
    return found


def _first(
    addresses: Sequence[str],
    code: RequestCode,
    message: type[BodyT],
    header: GetRouteInfoRequest | None = None,
) -> Plan[BodyT]:
    failure: NotAsWantedError = SilentError("no name server is named: say one with -n")
    for address in addresses:
        (reply,) = yield [Asking(address, code, header)]
        try:
            return body_of(reply, message)
        except SilentError as error:
            failure = error
    raise failure


def everywhere(
    addresses: Sequence[str], code: RequestCode, message: type[BodyT]
) -> Plan[Mapping[str, BodyT | NotAsWantedError]]:
    """The word of each of these processes, or why there is none."""
    replies = yield [Asking(each, code) for each in addresses]
    found: dict[str, BodyT | NotAsWantedError] = {}
    for reply in replies:
        try:
            found[reply.question.address] = body_of(reply, message)
        except NotAsWantedError as error:
            found[reply.question.address] = error
    return found


def _all(addresses: Sequence[str], code: RequestCode, message: type[BodyT]) -> Plan[Mapping[str, BodyT]]:
    replies = yield [Asking(each, code) for each in addresses]
    return {each.question.address: body_of(each, message) for each in replies}


def epochs(addresses: Sequence[str]) -> Plan[Mapping[str, EpochEntryCache]]:
    """The epochs and ends of these brokers' logs. Raises NotAsWantedError."""
    return (yield from _all(addresses, RequestCode.GET_BROKER_EPOCH_CACHE, EpochEntryCache))


def replication(addresses: Sequence[str]) -> Plan[Mapping[str, HaRuntimeInfo]]:
    """How replication is, by the word of these brokers. Raises NotAsWantedError."""
    return (yield from _all(addresses, RequestCode.GET_BROKER_HA_STATUS, HaRuntimeInfo))


def figures(addresses: Sequence[str]) -> Plan[Mapping[str, RuntimeInfo]]:
    """The figures of these brokers. Raises NotAsWantedError."""
    return (yield from _all(addresses, RequestCode.GET_BROKER_RUNTIME_INFO, RuntimeInfo))


def old_files_deleted(name_servers: Sequence[str], *, cluster: str | None, broker: str | None) -> Plan[None]:
    """A broker, all members of a cluster, or all there are delete what is old. Raises NotAsWantedError."""
    addresses = [] if broker is None else [broker]
    if broker is None:
        known = yield from clusters_of_all(name_servers)
        sets = known.sets() if cluster is None else known.cluster(cluster)
        addresses = known.addresses(sets.values())
    for reply in (yield [Asking(each, RequestCode.DELETE_EXPIRED_COMMITLOG) for each in addresses]):
        granted(reply)
