"""The first state of a group: what a store begins with that is to be the only member of a new one.

It is a snapshot of broker sets, of an entry that nobody has: others join and are sent it. Nothing here reads
or writes a disk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replispec.controller.consensus import LogDamaged
from replispec.controller.consensus.raft import ControllerGroup, MemberPlaces, joined_state, number_of
from replispec.controller.consensus.rocketmq import term_alone
from replispec.controller.consensus.rocketmq.formats import check_order, check_term, event_of, state_of
from replispec.controller.rocketmq.core.broker_sets import BrokerSets
from replispec.controller.rocketmq.log import SNAPSHOT_BYTES_MAX
from replispec.event.v1.event_pb2 import BrokerSetState, ControllerSnapshot
from replispec.runtime.documents.official_seam import decode, encode
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.immutable import immutable
from replispec.runtime.raft.members import GroupMembers
from replispec.runtime.raft.snapshots import MemberSnapshot
from replispec.runtime.storage import JournalReader, ReplaceRecords
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.controller import EpochEntryCache, ReplicaIdentity, ReplicasInfo
from replispec.wire.rocketmq.machines.broker_set import State


@immutable
class FirstState:
    """What a group begins with: what is on record, after how many records and of which term the last is."""

    sets: Sequence[BrokerSetState]
    index: int
    term: int


def founded(group: ControllerGroup, first: FirstState) -> ReplaceRecords:
    """What makes any store that of the only member of a new group, at once or not at all."""
    own, at = group.member, group.addresses[group.member]
    identity = ControllerGroup(group.name, own, {own: at}).founded
    # Who the group is stands there as a record would say it that was the last one.
    places = MemberPlaces({own: at}, index=first.index)
    data = ControllerSnapshot(
        format=constants.SNAPSHOT_GROUP_FORMAT,
        index=first.index,
        term=first.term,
        sets=first.sets,
        group_places=places.record(),
        group_places_index=first.index,
    )
    voters = GroupMembers(frozenset({number_of(own)}))
    whole = MemberSnapshot(first.index, first.term, voters, encode(data, limit_bytes=SNAPSHOT_BYTES_MAX))
    whole.check_size()
    state = joined_state(identity, own, {}, term=first.term)
    return ReplaceRecords(first.index, whole.encode(), (), state, is_all=True)


def lived_alone(journal: JournalReader) -> FirstState:
    """What a controller that was alone has on record. Raises StorageFailed, and LogDamaged for a store that
    is another one's, or of nobody."""
    state = journal.state()
    if state_of(state) is None:
        raise LogDamaged("there is no log of a controller")
    known, kept, records = term_alone(state), journal.snapshot(), journal.records()
    sets = BrokerSets(unclean=False)
    index = term = 0
    if kept is not None:
        index, term = kept[0], _restored(sets, *kept)
    events = [event_of(each, data) for each, data in records]
    places = [(each, event.term) for (each, _), event in zip(records, events, strict=True)]
    check_order(places, index, term)
    for event in events:
        sets.apply(event)
    index, term = places[-1] if places else (index, term)
    check_term(term, known)
    return FirstState(sets.states(), index, known)


def told_of(name: str, cluster: str, info: ReplicasInfo, next_id: int) -> BrokerSetState:
    """A broker set as the controller that has it on record tells of it (1006, 1012), whose ever that is. What
    it does not tell is left out: the check codes under which ids were granted, which nobody asks for any
    more. Raises RemoteProtocolError for what is no broker set with ids."""
    inside, outside = info.in_sync_replicas or [], info.not_in_sync_replicas or []
    addresses = {_id_of(name, each): each.broker_address or "" for each in (*inside, *outside)}
    in_sync = sorted(_id_of(name, each) for each in inside)
    # Before the first, and after one that found nobody, no master is told, or one that no id is.
    master = info.master_broker_id if (info.master_broker_id or 0) > 0 else None
    if not addresses or "" in addresses.values():
        raise RemoteProtocolError(f"no broker of {name} is told with its address")
    if master is not None and master not in in_sync:
        raise RemoteProtocolError(f"the master {master} of {name} is not in its SyncStateSet")
    if next_id <= max(addresses):
        raise RemoteProtocolError(f"{next_id} is to be granted next in {name}, and {max(addresses)} was")
    return BrokerSetState(
        broker_name=name,
        state=(State.LEADERLESS if master is None else State.LED).value,
        master=master,
        master_epoch=info.master_epoch or 0,
        sync_state_set=in_sync,
        sync_state_set_epoch=info.sync_state_set_epoch or 0,
        broker_ids=sorted(addresses),
        next_broker_id=next_id,
        cluster_name=cluster,
        addresses=addresses,
        check_codes=dict.fromkeys(addresses, ""),
    )


def told_by_brokers(
    name: str, answers: Mapping[str, EpochEntryCache], master_id: int | None
) -> BrokerSetState:
    """A broker set as its living brokers tell of it (1007, by address), all of which are asked. A master does
    not tell its own id: `master_id`. It is the only one of which it is known that it has everything: it is
    in sync alone, and is elected in the next masterEpoch. Raises RemoteProtocolError."""
    masters = sorted(address for address, each in answers.items() if not each.broker_id)
    if len(masters) != 1:
        who = " and ".join(masters) or "nobody"
        raise RemoteProtocolError(f"{who} of {name} says that it is master: one must be")
    addresses: dict[int, str] = {}
    for address, each in answers.items():
        broker = each.broker_id or master_id
        if broker is None:
            raise RemoteProtocolError(f"the id of {address}, the master of {name}, is not known")
        if broker in addresses:
            raise RemoteProtocolError(f"{addresses[broker]} and {address} of {name} have the id {broker}")
        addresses[broker] = address
    epochs = {address: _last_epoch(each) for address, each in answers.items()}
    master = masters[0]
    if later := sorted(address for address, epoch in epochs.items() if epoch > epochs[master]):
        raise RemoteProtocolError(f"{later[0]} of {name} knows a masterEpoch after that of {master}")
    assert master_id is not None, "the master has an id"
    return BrokerSetState(
        broker_name=name,
        state=State.LEADERLESS.value,
        master_epoch=epochs[master],
        sync_state_set=[master_id],
        sync_state_set_epoch=0,
        broker_ids=sorted(addresses),
        next_broker_id=max(addresses) + 1 + constants.IDS_PASSED_OVER,
        cluster_name=answers[master].cluster_name or "",
        addresses=addresses,
        check_codes=dict.fromkeys(addresses, ""),
    )


def _last_epoch(cache: EpochEntryCache) -> int:
    return max((each.epoch or 0 for each in cache.epoch_list or ()), default=0)


def _id_of(name: str, replica: ReplicaIdentity) -> int:
    if (replica.broker_id or 0) <= 0:
        raise RemoteProtocolError(f"a broker of {name} is told without an id, as before release 5.1.1")
    return replica.broker_id or 0


def check_empty(journal: JournalReader) -> None:
    """Whether a store holds nothing yet. Raises StorageFailed, and LogDamaged."""
    if journal.state() is not None or journal.snapshot() is not None or journal.records():
        raise LogDamaged("there is a log already")


def _restored(sets: BrokerSets, index: int, data: bytes) -> int:
    try:
        found = decode(ControllerSnapshot, data, unknown_allowed=False, limit_bytes=SNAPSHOT_BYTES_MAX)
        if (found.format, found.index) != (constants.SNAPSHOT_FORMAT, index):
            raise LogDamaged(f"the snapshot is of format {found.format} and of record {found.index}")
        sets.restore(sets.read(found.sets))
    except RemoteProtocolError as error:
        raise LogDamaged(f"the snapshot of the log: {error}") from error
    return found.term
