from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ElectionCause(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ELECTION_CAUSE_UNSPECIFIED: _ClassVar[ElectionCause]
    ELECTION_CAUSE_BROKER_ASKED: _ClassVar[ElectionCause]
    ELECTION_CAUSE_OPERATOR_ASKED: _ClassVar[ElectionCause]
    ELECTION_CAUSE_MASTER_SILENT: _ClassVar[ElectionCause]
    ELECTION_CAUSE_MASTER_MISSED: _ClassVar[ElectionCause]
    ELECTION_CAUSE_ASKED_BY_ADDRESS: _ClassVar[ElectionCause]
ELECTION_CAUSE_UNSPECIFIED: ElectionCause
ELECTION_CAUSE_BROKER_ASKED: ElectionCause
ELECTION_CAUSE_OPERATOR_ASKED: ElectionCause
ELECTION_CAUSE_MASTER_SILENT: ElectionCause
ELECTION_CAUSE_MASTER_MISSED: ElectionCause
ELECTION_CAUSE_ASKED_BY_ADDRESS: ElectionCause

class ControllerEvent(_message.Message):
    __slots__ = ("format", "proposer", "proposal", "proposed_time_ns", "cluster_name", "broker_name", "term", "alter_sync_state_set", "apply_broker_id", "elect_master", "clean_broker_data", "update_broker_address", "group_places", "register_by_address", "alter_by_address")
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    PROPOSER_FIELD_NUMBER: _ClassVar[int]
    PROPOSAL_FIELD_NUMBER: _ClassVar[int]
    PROPOSED_TIME_NS_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_NAME_FIELD_NUMBER: _ClassVar[int]
    BROKER_NAME_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    ALTER_SYNC_STATE_SET_FIELD_NUMBER: _ClassVar[int]
    APPLY_BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    ELECT_MASTER_FIELD_NUMBER: _ClassVar[int]
    CLEAN_BROKER_DATA_FIELD_NUMBER: _ClassVar[int]
    UPDATE_BROKER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    GROUP_PLACES_FIELD_NUMBER: _ClassVar[int]
    REGISTER_BY_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    ALTER_BY_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    format: int
    proposer: int
    proposal: int
    proposed_time_ns: int
    cluster_name: str
    broker_name: str
    term: int
    alter_sync_state_set: AlterSyncStateSet
    apply_broker_id: ApplyBrokerId
    elect_master: ElectMaster
    clean_broker_data: CleanBrokerData
    update_broker_address: UpdateBrokerAddress
    group_places: GroupPlaces
    register_by_address: RegisterByAddress
    alter_by_address: AlterByAddress
    def __init__(self, format: _Optional[int] = ..., proposer: _Optional[int] = ..., proposal: _Optional[int] = ..., proposed_time_ns: _Optional[int] = ..., cluster_name: _Optional[str] = ..., broker_name: _Optional[str] = ..., term: _Optional[int] = ..., alter_sync_state_set: _Optional[_Union[AlterSyncStateSet, _Mapping]] = ..., apply_broker_id: _Optional[_Union[ApplyBrokerId, _Mapping]] = ..., elect_master: _Optional[_Union[ElectMaster, _Mapping]] = ..., clean_broker_data: _Optional[_Union[CleanBrokerData, _Mapping]] = ..., update_broker_address: _Optional[_Union[UpdateBrokerAddress, _Mapping]] = ..., group_places: _Optional[_Union[GroupPlaces, _Mapping]] = ..., register_by_address: _Optional[_Union[RegisterByAddress, _Mapping]] = ..., alter_by_address: _Optional[_Union[AlterByAddress, _Mapping]] = ...) -> None: ...

class GroupPlace(_message.Message):
    __slots__ = ("id", "address")
    ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    id: str
    address: str
    def __init__(self, id: _Optional[str] = ..., address: _Optional[str] = ...) -> None: ...

class GroupPlaces(_message.Message):
    __slots__ = ("members", "gone", "replaces")
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    REPLACES_FIELD_NUMBER: _ClassVar[int]
    members: _containers.RepeatedCompositeFieldContainer[GroupPlace]
    gone: _containers.RepeatedScalarFieldContainer[str]
    replaces: int
    def __init__(self, members: _Optional[_Iterable[_Union[GroupPlace, _Mapping]]] = ..., gone: _Optional[_Iterable[str]] = ..., replaces: _Optional[int] = ...) -> None: ...

class MemberState(_message.Message):
    __slots__ = ("format", "term", "voted_for", "group", "member", "told")
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    VOTED_FOR_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    TOLD_FIELD_NUMBER: _ClassVar[int]
    format: int
    term: int
    voted_for: int
    group: str
    member: str
    told: _containers.RepeatedCompositeFieldContainer[GroupPlace]
    def __init__(self, format: _Optional[int] = ..., term: _Optional[int] = ..., voted_for: _Optional[int] = ..., group: _Optional[str] = ..., member: _Optional[str] = ..., told: _Optional[_Iterable[_Union[GroupPlace, _Mapping]]] = ...) -> None: ...

class ControllerSnapshot(_message.Message):
    __slots__ = ("format", "index", "term", "sets", "group_places", "group_places_index")
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    SETS_FIELD_NUMBER: _ClassVar[int]
    GROUP_PLACES_FIELD_NUMBER: _ClassVar[int]
    GROUP_PLACES_INDEX_FIELD_NUMBER: _ClassVar[int]
    format: int
    index: int
    term: int
    sets: _containers.RepeatedCompositeFieldContainer[BrokerSetState]
    group_places: GroupPlaces
    group_places_index: int
    def __init__(self, format: _Optional[int] = ..., index: _Optional[int] = ..., term: _Optional[int] = ..., sets: _Optional[_Iterable[_Union[BrokerSetState, _Mapping]]] = ..., group_places: _Optional[_Union[GroupPlaces, _Mapping]] = ..., group_places_index: _Optional[int] = ...) -> None: ...

class BrokerSetState(_message.Message):
    __slots__ = ("broker_name", "state", "master", "master_epoch", "sync_state_set", "sync_state_set_epoch", "broker_ids", "next_broker_id", "emptied", "cluster_name", "addresses", "check_codes", "by_address")
    class AddressesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: str
        def __init__(self, key: _Optional[int] = ..., value: _Optional[str] = ...) -> None: ...
    class CheckCodesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: str
        def __init__(self, key: _Optional[int] = ..., value: _Optional[str] = ...) -> None: ...
    BROKER_NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    MASTER_FIELD_NUMBER: _ClassVar[int]
    MASTER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    SYNC_STATE_SET_FIELD_NUMBER: _ClassVar[int]
    SYNC_STATE_SET_EPOCH_FIELD_NUMBER: _ClassVar[int]
    BROKER_IDS_FIELD_NUMBER: _ClassVar[int]
    NEXT_BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    EMPTIED_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_NAME_FIELD_NUMBER: _ClassVar[int]
    ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    CHECK_CODES_FIELD_NUMBER: _ClassVar[int]
    BY_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    broker_name: str
    state: str
    master: int
    master_epoch: int
    sync_state_set: _containers.RepeatedScalarFieldContainer[int]
    sync_state_set_epoch: int
    broker_ids: _containers.RepeatedScalarFieldContainer[int]
    next_broker_id: int
    emptied: bool
    cluster_name: str
    addresses: _containers.ScalarMap[int, str]
    check_codes: _containers.ScalarMap[int, str]
    by_address: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, broker_name: _Optional[str] = ..., state: _Optional[str] = ..., master: _Optional[int] = ..., master_epoch: _Optional[int] = ..., sync_state_set: _Optional[_Iterable[int]] = ..., sync_state_set_epoch: _Optional[int] = ..., broker_ids: _Optional[_Iterable[int]] = ..., next_broker_id: _Optional[int] = ..., emptied: _Optional[bool] = ..., cluster_name: _Optional[str] = ..., addresses: _Optional[_Mapping[int, str]] = ..., check_codes: _Optional[_Mapping[int, str]] = ..., by_address: _Optional[_Iterable[int]] = ...) -> None: ...

class AlterSyncStateSet(_message.Message):
    __slots__ = ("master_broker_id", "master_epoch", "sync_state_set_epoch", "new_sync_state_set", "alive")
    MASTER_BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    MASTER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    SYNC_STATE_SET_EPOCH_FIELD_NUMBER: _ClassVar[int]
    NEW_SYNC_STATE_SET_FIELD_NUMBER: _ClassVar[int]
    ALIVE_FIELD_NUMBER: _ClassVar[int]
    master_broker_id: int
    master_epoch: int
    sync_state_set_epoch: int
    new_sync_state_set: _containers.RepeatedScalarFieldContainer[int]
    alive: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, master_broker_id: _Optional[int] = ..., master_epoch: _Optional[int] = ..., sync_state_set_epoch: _Optional[int] = ..., new_sync_state_set: _Optional[_Iterable[int]] = ..., alive: _Optional[_Iterable[int]] = ...) -> None: ...

class ApplyBrokerId(_message.Message):
    __slots__ = ("broker_id", "register_check_code", "broker_address", "accept_unused_ids")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    REGISTER_CHECK_CODE_FIELD_NUMBER: _ClassVar[int]
    BROKER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_UNUSED_IDS_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    register_check_code: str
    broker_address: str
    accept_unused_ids: bool
    def __init__(self, broker_id: _Optional[int] = ..., register_check_code: _Optional[str] = ..., broker_address: _Optional[str] = ..., accept_unused_ids: _Optional[bool] = ...) -> None: ...

class RegisterByAddress(_message.Message):
    __slots__ = ("broker_address", "unclean_allowed", "candidates", "alive")
    BROKER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    UNCLEAN_ALLOWED_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    ALIVE_FIELD_NUMBER: _ClassVar[int]
    broker_address: str
    unclean_allowed: bool
    candidates: _containers.RepeatedCompositeFieldContainer[Candidate]
    alive: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, broker_address: _Optional[str] = ..., unclean_allowed: _Optional[bool] = ..., candidates: _Optional[_Iterable[_Union[Candidate, _Mapping]]] = ..., alive: _Optional[_Iterable[int]] = ...) -> None: ...

class AlterByAddress(_message.Message):
    __slots__ = ("master_broker_id", "master_epoch", "sync_state_set_epoch", "new_sync_state_set", "alive")
    MASTER_BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    MASTER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    SYNC_STATE_SET_EPOCH_FIELD_NUMBER: _ClassVar[int]
    NEW_SYNC_STATE_SET_FIELD_NUMBER: _ClassVar[int]
    ALIVE_FIELD_NUMBER: _ClassVar[int]
    master_broker_id: int
    master_epoch: int
    sync_state_set_epoch: int
    new_sync_state_set: _containers.RepeatedScalarFieldContainer[int]
    alive: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, master_broker_id: _Optional[int] = ..., master_epoch: _Optional[int] = ..., sync_state_set_epoch: _Optional[int] = ..., new_sync_state_set: _Optional[_Iterable[int]] = ..., alive: _Optional[_Iterable[int]] = ...) -> None: ...

class ElectMaster(_message.Message):
    __slots__ = ("cause", "asking_broker_id", "designated_broker_id", "silent_broker_id", "unclean_allowed", "candidates")
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    ASKING_BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    DESIGNATED_BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    SILENT_BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    UNCLEAN_ALLOWED_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    cause: ElectionCause
    asking_broker_id: int
    designated_broker_id: int
    silent_broker_id: int
    unclean_allowed: bool
    candidates: _containers.RepeatedCompositeFieldContainer[Candidate]
    def __init__(self, cause: _Optional[_Union[ElectionCause, str]] = ..., asking_broker_id: _Optional[int] = ..., designated_broker_id: _Optional[int] = ..., silent_broker_id: _Optional[int] = ..., unclean_allowed: _Optional[bool] = ..., candidates: _Optional[_Iterable[_Union[Candidate, _Mapping]]] = ...) -> None: ...

class Candidate(_message.Message):
    __slots__ = ("broker_id", "epoch", "max_offset", "election_priority", "async_learner")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    MAX_OFFSET_FIELD_NUMBER: _ClassVar[int]
    ELECTION_PRIORITY_FIELD_NUMBER: _ClassVar[int]
    ASYNC_LEARNER_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    epoch: int
    max_offset: int
    election_priority: int
    async_learner: bool
    def __init__(self, broker_id: _Optional[int] = ..., epoch: _Optional[int] = ..., max_offset: _Optional[int] = ..., election_priority: _Optional[int] = ..., async_learner: _Optional[bool] = ...) -> None: ...

class CleanBrokerData(_message.Message):
    __slots__ = ("broker_ids", "alive_too", "alive")
    BROKER_IDS_FIELD_NUMBER: _ClassVar[int]
    ALIVE_TOO_FIELD_NUMBER: _ClassVar[int]
    ALIVE_FIELD_NUMBER: _ClassVar[int]
    broker_ids: _containers.RepeatedScalarFieldContainer[int]
    alive_too: bool
    alive: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, broker_ids: _Optional[_Iterable[int]] = ..., alive_too: _Optional[bool] = ..., alive: _Optional[_Iterable[int]] = ...) -> None: ...

class UpdateBrokerAddress(_message.Message):
    __slots__ = ("broker_id", "broker_address")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_address: str
    def __init__(self, broker_id: _Optional[int] = ..., broker_address: _Optional[str] = ...) -> None: ...

class JraftEntry(_message.Message):
    __slots__ = ("type", "term", "index", "peers", "old_peers", "data", "checksum", "learners", "old_learners")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    PEERS_FIELD_NUMBER: _ClassVar[int]
    OLD_PEERS_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    LEARNERS_FIELD_NUMBER: _ClassVar[int]
    OLD_LEARNERS_FIELD_NUMBER: _ClassVar[int]
    type: int
    term: int
    index: int
    peers: _containers.RepeatedScalarFieldContainer[bytes]
    old_peers: _containers.RepeatedScalarFieldContainer[bytes]
    data: bytes
    checksum: int
    learners: _containers.RepeatedScalarFieldContainer[bytes]
    old_learners: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, type: _Optional[int] = ..., term: _Optional[int] = ..., index: _Optional[int] = ..., peers: _Optional[_Iterable[bytes]] = ..., old_peers: _Optional[_Iterable[bytes]] = ..., data: _Optional[bytes] = ..., checksum: _Optional[int] = ..., learners: _Optional[_Iterable[bytes]] = ..., old_learners: _Optional[_Iterable[bytes]] = ...) -> None: ...

class JraftSnapshotEnd(_message.Message):
    __slots__ = ("last_included_index", "last_included_term", "peers", "old_peers", "learners", "old_learners")
    LAST_INCLUDED_INDEX_FIELD_NUMBER: _ClassVar[int]
    LAST_INCLUDED_TERM_FIELD_NUMBER: _ClassVar[int]
    PEERS_FIELD_NUMBER: _ClassVar[int]
    OLD_PEERS_FIELD_NUMBER: _ClassVar[int]
    LEARNERS_FIELD_NUMBER: _ClassVar[int]
    OLD_LEARNERS_FIELD_NUMBER: _ClassVar[int]
    last_included_index: int
    last_included_term: int
    peers: _containers.RepeatedScalarFieldContainer[bytes]
    old_peers: _containers.RepeatedScalarFieldContainer[bytes]
    learners: _containers.RepeatedScalarFieldContainer[bytes]
    old_learners: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, last_included_index: _Optional[int] = ..., last_included_term: _Optional[int] = ..., peers: _Optional[_Iterable[bytes]] = ..., old_peers: _Optional[_Iterable[bytes]] = ..., learners: _Optional[_Iterable[bytes]] = ..., old_learners: _Optional[_Iterable[bytes]] = ...) -> None: ...

class JraftSnapshotMeta(_message.Message):
    __slots__ = ("meta",)
    META_FIELD_NUMBER: _ClassVar[int]
    meta: JraftSnapshotEnd
    def __init__(self, meta: _Optional[_Union[JraftSnapshotEnd, _Mapping]] = ...) -> None: ...

class JraftMeta(_message.Message):
    __slots__ = ("term", "voted_for")
    TERM_FIELD_NUMBER: _ClassVar[int]
    VOTED_FOR_FIELD_NUMBER: _ClassVar[int]
    term: int
    voted_for: bytes
    def __init__(self, term: _Optional[int] = ..., voted_for: _Optional[bytes] = ...) -> None: ...
