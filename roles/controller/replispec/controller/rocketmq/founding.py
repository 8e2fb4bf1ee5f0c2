"""The first state of a group: what a store begins with that is to be the only member of a new one.

It is a snapshot of broker sets, of an entry that nobody has: others join and are sent it. Nothing here reads
or writes a disk.
"""

from __future__ import annotations

from collections.abc import Sequence

from replispec.controller.consensus import LogDamaged
from replispec.controller.consensus.raft import ControllerGroup, MemberPlaces, joined_state, number_of
from replispec.controller.consensus.rocketmq import term_alone
from replispec.controller.consensus.rocketmq.formats import check_order, check_term, event_of, state_of
from replispec.controller.rocketmq.core.broker_sets import BrokerSets
from replispec.event.v1.event_pb2 import BrokerSetState, ControllerSnapshot
from replispec.runtime.documents.official_seam import decode, encode
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.immutable import immutable
from replispec.runtime.raft.members import GroupMembers
from replispec.runtime.raft.snapshots import MemberSnapshot
from replispec.runtime.storage import JournalReader, ReplaceRecords
from replispec.wire.rocketmq import constants

SNAPSHOT_BYTES_MAX = 1 << 31


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


def _restored(sets: BrokerSets, index: int, data: bytes) -> int:
    try:
        found = decode(ControllerSnapshot, data, unknown_allowed=False, limit_bytes=SNAPSHOT_BYTES_MAX)
        if (found.format, found.index) != (constants.SNAPSHOT_FORMAT, index):
            raise LogDamaged(f"the snapshot is of format {found.format} and of record {found.index}")
        sets.restore(sets.read(found.sets))
    except RemoteProtocolError as error:
        raise LogDamaged(f"the snapshot of the log: {error}") from error
    return found.term
