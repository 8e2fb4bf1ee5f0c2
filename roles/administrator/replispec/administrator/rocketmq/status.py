"""How a cluster is: what controllers say, what the leader has on record, what members say of themselves.

Source: RIP-44 "Interface Design/Change"; apache/rocketmq rocketmq-all-5.4.0, ControllerManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from replispec.administrator.rocketmq.brokers import Brokers, clusters, everywhere
from replispec.administrator.rocketmq.controllers import properties, question_of_sets
from replispec.administrator.rocketmq.plans import (
    Asking,
    NotAsWantedError,
    NotGrantedError,
    Plan,
    body_of,
    granted,
    header_of,
)
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.client import HaRuntimeInfo
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import (
    BrokerReplicasInfo,
    EpochEntryCache,
    GetMetadataResponse,
    ReplicaIdentity,
    ReplicasInfo,
)
from replispec.wire.rocketmq.parameters import CONTROLLER_ADDR


@dataclass(frozen=True, slots=True)
class ControllerView:
    """What one controller says: of its group, and of broker sets where it answers for them; or `why` not."""

    address: str
    metadata: GetMetadataResponse | None = None
    sets: Mapping[str, ReplicasInfo] | None = None
    why: str = ""

    @property
    def leads(self) -> bool:
        """Whether it says that it leads."""
        return self.metadata is not None and bool(self.metadata.is_leader)

    @property
    def leader(self) -> str:
        """Whom it takes for the leader, ADDRESS:PORT."""
        return (self.metadata.controller_leader_address or "") if self.metadata is not None else ""


@dataclass(frozen=True, slots=True)
class MemberStatus:
    """One broker or learner: as it is on record (alive, in sync; None: no record can be had), and what it
    says itself, or `why` not."""

    broker_id: int
    address: str
    alive: bool | None
    in_sync: bool | None
    epochs: EpochEntryCache | None = None
    replication: HaRuntimeInfo | None = None
    why: str = ""

    @property
    def calls_itself_master(self) -> bool:
        """Whether it says that it is master."""
        if self.replication is not None:
            return bool(self.replication.master)
        return self.epochs is not None and self.epochs.broker_id == constants.MASTER_ID

    @property
    def end(self) -> int | None:
        """Where its log ends."""
        return self.epochs.max_offset if self.epochs is not None else None

    @property
    def last_epoch(self) -> int | None:
        """The last masterEpoch of its log."""
        entries = (self.epochs.epoch_list if self.epochs is not None else None) or ()
        return max((each.epoch or 0 for each in entries), default=None)


@dataclass(frozen=True, slots=True)
class SetStatus:
    """One broker set as it is on record, its members, and whom the name server routes to as master. Where no
    record can be had, the members are those that name servers know, by the ids of their routes."""

    name: str
    record: ReplicasInfo
    members: Sequence[MemberStatus]
    cluster: str = ""
    routed: str | None = None
    is_on_record: bool = True

    @property
    def master(self) -> MemberStatus | None:
        """The master that is on record."""
        wanted = self.record.master_broker_id
        return next((each for each in self.members if wanted and each.broker_id == wanted), None)

    def lag(self, member: MemberStatus) -> int | None:
        """How many bytes a member is behind the master; None where one of them does not say."""
        master = self.master
        if master is None or master.end is None or member.end is None:
            return None
        return master.end - member.end


@dataclass(frozen=True, slots=True)
class Status:
    """All of it. `missing`: sets that were asked for by name and are on no record. `without_record`: why no
    record can be had."""

    views: Sequence[ControllerView]
    sets: Sequence[SetStatus]
    missing: Sequence[str] = field(default_factory=tuple)
    without_record: str = ""


@dataclass(frozen=True, slots=True)
class WhereToAsk:
    """Where to ask, and for which sets; none: for all that name servers or controllers tell of."""

    controllers: Sequence[str] = ()
    name_servers: Sequence[str] = ()
    names: Sequence[str] = ()


def status(asked: WhereToAsk) -> Plan[Status]:
    """How a cluster is. Raises NotAsWantedError when nobody can be asked."""
    known = Brokers()
    if asked.name_servers:
        known = yield from clusters(asked.name_servers)
    addresses = asked.controllers
    if not addresses:
        addresses = yield from controllers_of(known)
    names = list(asked.names) or sorted(known.sets())
    views = yield from seen(addresses, names)
    try:
        record = _record(views)
    except NotAsWantedError as error:
        if not known.clusters and all(each.metadata is None for each in views):
            raise
        by_themselves = yield from _by_themselves(known, names)
        return Status(views, by_themselves, without_record=error.reason)
    members = yield from _members(record)
    sets = [
        SetStatus(name, info, members[name], _cluster_of(known, name), _routed(known, name))
        for name, info in sorted(record.items())
    ]
    return Status(views, sets, [name for name in names if name not in record])


def controllers_of(known: Brokers) -> Plan[Sequence[str]]:
    """Where the controllers of these brokers are, as the brokers are configured. Raises NotAsWantedError."""
    found: dict[str, None] = {}
    for members in known.sets().values():
        replies = yield [Asking(each, RequestCode.GET_BROKER_CONFIG) for each in members.values()]
        for reply in replies:
            try:
                values = properties(granted(reply).body)
            except NotAsWantedError:
                continue
            told = values.get(CONTROLLER_ADDR.name) or ""
            found |= dict.fromkeys(each.strip() for each in told.split(";") if each.strip())
    if not found:
        raise NotAsWantedError("no broker says where its controllers are: name them")
    return list(found)


def seen(controllers: Sequence[str], names: Sequence[str]) -> Plan[Sequence[ControllerView]]:
    """What each of these controllers says. Who does not lead is not blamed for refusing sets."""
    asked = [Asking(each, RequestCode.CONTROLLER_GET_METADATA_INFO) for each in controllers]
    replies = yield [*asked, *(question_of_sets(each, names) for each in controllers)]
    heads, bodies = replies[: len(controllers)], replies[len(controllers) :]
    views = []
    for head, body in zip(heads, bodies, strict=True):
        address = head.question.address
        try:
            metadata = header_of(head, GetMetadataResponse)
        except NotAsWantedError as error:
            views.append(ControllerView(address, why=error.reason))
            continue
        try:
            table = dict(body_of(body, BrokerReplicasInfo).replicas_info_table or {})
            views.append(ControllerView(address, metadata, table))
        except NotGrantedError as error:
            why = "" if error.code == ResponseCode.CONTROLLER_NOT_LEADER else error.reason
            views.append(ControllerView(address, metadata, why=why))
        except NotAsWantedError as error:
            views.append(ControllerView(address, metadata, why=error.reason))
    return views


def _record(views: Sequence[ControllerView]) -> Mapping[str, ReplicasInfo]:
    """What the leader has on record: of who says that it leads, else of the first that answers."""
    ranked = sorted(views, key=lambda each: not each.leads)
    found = next((each.sets for each in ranked if each.sets is not None), None)
    if found is None:
        reasons = "; ".join(f"{each.address}: {each.why or 'it does not lead'}" for each in views)
        raise NotAsWantedError(f"no controller answers for broker sets: {reasons or 'none is named'}")
    return found


def _identities(info: ReplicasInfo) -> Iterator[tuple[bool, ReplicaIdentity]]:
    for in_sync, members in ((True, info.in_sync_replicas), (False, info.not_in_sync_replicas)):
        for each in members or ():
            yield in_sync, each


def _by_themselves(known: Brokers, names: Sequence[str]) -> Plan[Sequence[SetStatus]]:
    """What the brokers that name servers know say of themselves, while no controller has a record."""
    found = []
    for name in [each for each in names if each in known.sets()]:
        routed = known.sets()[name]
        epochs = yield from everywhere(
            list(routed.values()), RequestCode.GET_BROKER_EPOCH_CACHE, EpochEntryCache
        )
        members = []
        for number, at in sorted(routed.items()):
            told = epochs.get(at)
            says = told if isinstance(told, EpochEntryCache) else None
            why = told.reason if isinstance(told, NotAsWantedError) else ""
            members.append(MemberStatus(number, at, None, None, says, why=why))
        record = ReplicasInfo()
        found.append(
            SetStatus(
                name, record, members, _cluster_of(known, name), _routed(known, name), is_on_record=False
            )
        )
    return found


def _members(record: Mapping[str, ReplicasInfo]) -> Plan[Mapping[str, Sequence[MemberStatus]]]:
    addresses = _distinct(
        each.broker_address or "" for info in record.values() for _, each in _identities(info)
    )
    epochs = yield from everywhere(addresses, RequestCode.GET_BROKER_EPOCH_CACHE, EpochEntryCache)
    replication = yield from everywhere(addresses, RequestCode.GET_BROKER_HA_STATUS, HaRuntimeInfo)
    found = {}
    for name, info in record.items():
        members = []
        for in_sync, each in _identities(info):
            at = each.broker_address or ""
            told, copied = epochs.get(at), replication.get(at)
            members.append(
                MemberStatus(
                    each.broker_id or 0,
                    at,
                    bool(each.alive),
                    in_sync,
                    told if isinstance(told, EpochEntryCache) else None,
                    copied if isinstance(copied, HaRuntimeInfo) else None,
                    told.reason if isinstance(told, NotAsWantedError) else "",
                )
            )
        found[name] = sorted(members, key=lambda each: each.broker_id)
    return found


def _distinct(addresses: Iterable[str]) -> list[str]:
    return [each for each in dict.fromkeys(addresses) if each]


def _cluster_of(known: Brokers, name: str) -> str:
    return next((cluster for cluster, sets in known.clusters.items() if name in sets), "")


def _routed(known: Brokers, name: str) -> str | None:
    """Whom name servers call master of a set: None where none was asked, empty where they know of none."""
    if not known.clusters:
        return None
    return known.sets().get(name, {}).get(constants.MASTER_ID, "")
