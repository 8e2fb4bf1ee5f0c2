"""Broker sets as the events of Apache RocketMQ make them: two tables by name, as its controllers hold them.

Source: apache/rocketmq rocketmq-all-5.4.0, ReplicasInfoManager.applyEvent, BrokerReplicaInfo, SyncStateInfo.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from replispec.controller.rocketmq.apache.kept import FolderUnread
from replispec.event.v1.event_pb2 import BrokerSetState
from replispec.runtime.primitives.hessian import read_hessian
from replispec.wire.rocketmq.codes import ControllerEventType
from replispec.wire.rocketmq.controller_store import (
    ControllerLogEvent,
    HeldReplicas,
    HeldSets,
    HeldSyncState,
)
from replispec.wire.rocketmq.machines.broker_set import State


@dataclass(slots=True)
class Replicas:
    """The brokers of a set, by id: where each is reached, and the check code of its id."""

    cluster: str
    next_id: int = 1
    brokers: dict[int, tuple[str, str]] = field(default_factory=dict)

    def add(self, broker: int, address: str, check_code: str) -> None:
        """An id is granted."""
        self.brokers[broker] = (address, check_code)
        self.next_id += 1


@dataclass(slots=True)
class SyncState:
    """Master and SyncStateSet of a set."""

    master: int | None = None
    master_epoch: int = 0
    set_epoch: int = 0
    members: frozenset[int] = frozenset()

    def alter(self, members: frozenset[int]) -> None:
        """Another SyncStateSet."""
        self.members = members
        self.set_epoch += 1

    def elect(self, master: int | None) -> None:
        """Another master, or nobody; whoever is elected is in sync alone."""
        self.master = master
        self.master_epoch += 1
        if master is not None:
            self.alter(frozenset({master}))


class KeptSets:
    """Both tables. A set that is in one alone is unknown to Apache RocketMQ."""

    def __init__(self) -> None:
        self.replicas: dict[str, Replicas] = {}
        self.sync: dict[str, SyncState] = {}

    def known(self, name: str) -> tuple[Replicas, SyncState] | None:
        """Both halves of a set."""
        replicas, sync = self.replicas.get(name), self.sync.get(name)
        return None if replicas is None or sync is None else (replicas, sync)

    def restore(self, held: HeldSets) -> None:
        """Go on from a snapshot. Raises RemoteProtocolError and FolderUnread."""
        for each in held.replicas:
            found = HeldReplicas.from_json(read_hessian(each.value))
            brokers = {
                broker: (kept.object1 or "", kept.object2 or "")
                for broker, kept in (found.broker_id_info or {}).items()
            }
            next_id = found.next_assign_broker_id.value if found.next_assign_broker_id else None
            if next_id is None:
                raise FolderUnread(f"the snapshot does not say which id is granted next in {each.name}")
            self.replicas[each.name] = Replicas(found.cluster_name or "", next_id, brokers)
        for each in held.sync_state:
            state = HeldSyncState.from_json(read_hessian(each.value))
            epochs = [
                epoch.value if epoch is not None else None
                for epoch in (state.master_epoch, state.sync_state_set_epoch)
            ]
            if None in epochs:
                raise FolderUnread(f"the snapshot does not say the epochs of {each.name}")
            members = frozenset(state.sync_state_set or ())
            self.sync[each.name] = SyncState(state.master_broker_id, epochs[0] or 0, epochs[1] or 0, members)

    def apply(self, kind: int, event: ControllerLogEvent) -> None:
        """What has happened. Raises FolderUnread for what no release since 5.1.1 has written."""
        name = event.broker_name
        if name is None:
            raise FolderUnread("an event names no broker set")
        if kind == ControllerEventType.APPLY_BROKER_ID:
            self._apply_id(name, event)
        elif kind == ControllerEventType.CLEAN_BROKER_DATA:
            self._clean(name, event.broker_id_set_to_clean)
        elif kind == ControllerEventType.UPDATE_BROKER_ADDRESS:
            self._update(name, event)
        elif known := self.known(name):
            self._decided(kind, known[1], event)

    def _decided(self, kind: int, sync: SyncState, event: ControllerLogEvent) -> None:
        if kind == ControllerEventType.ELECT_MASTER:
            is_elected, master = event.new_master_elected, event.new_master_broker_id
            if is_elected is None or (is_elected and master is None):
                raise FolderUnread(f"an election in {event.broker_name} names no id, as before release 5.1.1")
            sync.elect(master if is_elected else None)
        elif kind == ControllerEventType.ALTER_SYNC_STATE_SET:
            if event.new_sync_state_set is None:
                raise FolderUnread(f"a SyncStateSet of {event.broker_name} names no ids")
            sync.alter(frozenset(event.new_sync_state_set))
        elif kind != ControllerEventType.READ:
            raise FolderUnread(f"an event of the type {kind}")

    def _apply_id(self, name: str, event: ControllerLogEvent) -> None:
        broker, address = event.new_broker_id, event.broker_address
        if broker is None or address is None:
            raise FolderUnread(f"an id of {name} is granted without an id, as before release 5.1.1")
        if self.known(name) is None:
            self.replicas[name], self.sync[name] = Replicas(event.cluster_name or ""), SyncState()
        if broker not in self.replicas[name].brokers:
            self.replicas[name].add(broker, address, event.register_check_code or "")

    def _update(self, name: str, event: ControllerLogEvent) -> None:
        replicas, broker = self.replicas.get(name), event.broker_id
        if replicas is not None and broker in replicas.brokers:
            replicas.brokers[broker] = (event.broker_address or "", replicas.brokers[broker][1])

    def _clean(self, name: str, brokers: Sequence[int] | None) -> None:
        known = self.known(name)
        if not brokers:
            self.replicas.pop(name, None)
            self.sync.pop(name, None)
        elif known is not None:
            replicas, sync = known
            for each in brokers:
                replicas.brokers.pop(each, None)
            sync.members -= frozenset(brokers)
            if not replicas.brokers:
                del self.replicas[name]
            if not sync.members:
                del self.sync[name]

    def states(self) -> list[BrokerSetState]:
        """All sets that are known whole, as ours has them on record. Raises FolderUnread."""
        names = sorted(self.replicas.keys() & self.sync.keys())
        return [_state(name, self.replicas[name], self.sync[name]) for name in names]

    def notes(self) -> Iterator[str]:
        """What people are to know: what is not carried over as it was."""
        for name in sorted(self.replicas.keys() ^ self.sync.keys()):
            yield f"{name} is left out: it was cleaned in part, and nobody knows it any more"
        for name in sorted(self.replicas.keys() & self.sync.keys()):
            master = self.sync[name].master
            if master is not None and master not in self.sync[name].members:
                yield f"{name} begins without a master: {master} was cleaned"


def _state(name: str, replicas: Replicas, sync: SyncState) -> BrokerSetState:
    if strangers := sorted(sync.members - replicas.brokers.keys()):
        raise FolderUnread(f"{name} has {', '.join(map(str, strangers))} in sync, and no such brokers")
    if lost := sorted(broker for broker, (address, _) in replicas.brokers.items() if not address):
        raise FolderUnread(f"nobody says where {', '.join(map(str, lost))} of {name} is reached")
    master = sync.master if sync.master in sync.members else None
    return BrokerSetState(
        broker_name=name,
        state=(State.LEADERLESS if master is None else State.LED).value,
        master=master,
        master_epoch=sync.master_epoch,
        sync_state_set=sorted(sync.members),
        sync_state_set_epoch=sync.set_epoch,
        broker_ids=sorted(replicas.brokers),
        # An id that nobody was granted yet may have been applied for out of turn.
        next_broker_id=max(replicas.next_id, max(replicas.brokers) + 1),
        cluster_name=replicas.cluster,
        addresses={broker: address for broker, (address, _) in replicas.brokers.items()},
        check_codes={broker: code for broker, (_, code) in replicas.brokers.items()},
    )
