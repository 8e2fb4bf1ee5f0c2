"""Requests as jRaft's controllers decide them, one after the other: broker sets, and who was alive when.

Source: apache/rocketmq rocketmq-all-5.4.0, JRaftControllerStateMachine, ReplicasInfoManager,
RaftReplicasInfoManager, DefaultElectPolicy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from replispec.controller.rocketmq.apache.kept import FolderUnread
from replispec.controller.rocketmq.apache.sets import KeptSets, Replicas, SyncState
from replispec.runtime.primitives.hessian import read_hessian
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.codes import ControllerEventType, RequestCode
from replispec.wire.rocketmq.controller import (
    AlterSyncStateSetRequest,
    ApplyBrokerIdRequest,
    CleanBrokerDataRequest,
    ElectMasterRequest,
    RegisterBrokerToControllerRequest,
    SyncStateSet,
)
from replispec.wire.rocketmq.controller_store import (
    ControllerLogEvent,
    HeldIdentity,
    HeldLife,
    HeldSets,
    HeldState,
    JraftHeartbeat,
    JraftHungUp,
    JraftLooked,
)

Key = tuple[str | None, str | None, int | None]
"""Cluster, broker set and id of a broker."""


@dataclass(slots=True)
class _Life:
    """What a broker's heartbeats said; the end of its log never falls."""

    broker_id: int
    last_ms: int
    timeout_ms: int
    epoch: int
    max_offset: int
    election_priority: int

    def heard(self, other: _Life) -> None:
        """Take a heartbeat."""
        self.last_ms, self.timeout_ms = other.last_ms, other.timeout_ms
        self.election_priority = other.election_priority
        if (other.epoch, other.max_offset) > (self.epoch, self.max_offset):
            self.epoch, self.max_offset = other.epoch, other.max_offset


class KeptRequests:
    """What requests have made; `unclean` is the setting enableElectUncleanMaster."""

    def __init__(self, *, unclean: bool) -> None:
        self.sets = KeptSets()
        self._unclean = unclean
        self._lives: dict[Key, _Life] = {}
        self._now_ms = 0

    def restore(self, state: HeldState) -> None:
        """Go on from a snapshot. Raises RemoteProtocolError and FolderUnread."""
        self.sets.restore(HeldSets.decode(state.sets))
        for each in state.living:
            who = HeldIdentity.from_json(read_hessian(each.identity))
            life = HeldLife.from_json(read_hessian(each.life))
            self._lives[who.cluster_name, who.broker_name, who.broker_id] = _life(who.broker_id, life)

    def apply(self, command: Command) -> None:
        """Decide one. Raises RemoteProtocolError and FolderUnread."""
        code, fields = command.header.code, command.header.ext_fields or {}
        if code in DECIDED:
            DECIDED[code](self, fields, command.body)
        elif code == constants.JRAFT_HEARTBEAT:
            self._heard(JraftHeartbeat.from_json(fields))
        elif code == constants.JRAFT_CLOSE_CHANNEL:
            gone = JraftHungUp.from_json(fields)
            self._lives.pop((gone.cluster_name, gone.broker_name, gone.broker_id), None)
        elif code == constants.JRAFT_CHECK_LIVING:
            self._looked(JraftLooked.from_json(fields).check_time_millis or 0)

    def _heard(self, said: JraftHeartbeat) -> None:
        broker = said.broker_id_identity_info
        key = (said.cluster_name_identity_info, said.broker_name_identity_info, broker)
        life = _life(broker, said)
        self._lives.setdefault(key, life).heard(life)

    def _looked(self, now_ms: int) -> None:
        for key, life in list(self._lives.items()):
            if now_ms - life.last_ms > life.timeout_ms:
                del self._lives[key]

    def _is_alive(self, name: str, replicas: Replicas, broker: int, now_ms: int | None) -> bool:
        self._now_ms = self._now_ms if now_ms is None else now_ms
        life = self._lives.get((replicas.cluster, name, broker))
        return life is not None and life.last_ms + life.timeout_ms >= self._now_ms

    def alter(self, fields: Mapping[str, str | None], body: bytes) -> None:
        """1001."""
        said, wanted = AlterSyncStateSetRequest.from_ext_fields(fields), SyncStateSet.decode(body)
        name = said.broker_name or ""
        known, members = self.sets.known(name), frozenset(wanted.broker_ids or ())
        if known is None:
            return
        replicas, sync = known
        is_current = (said.master_broker_id, said.master_epoch, wanted.sync_state_set_epoch) == (
            sync.master,
            sync.master_epoch,
            sync.set_epoch,
        )
        if (
            is_current
            and members != sync.members
            and sync.master in members
            and members <= replicas.brokers.keys()
            and all(self._is_alive(name, replicas, each, said.invoke_time) for each in members)
        ):
            sync.alter(members)

    def elect(self, fields: Mapping[str, str | None], _body: bytes) -> None:
        """1002."""
        said = ElectMasterRequest.from_ext_fields(fields)
        name = said.broker_name or ""
        known = self.sets.known(name)
        if known is None:
            return
        replicas, sync = known
        asked = None if said.broker_id in (None, -1) else said.broker_id
        chosen = asked if sync.master_epoch == 0 else None
        if chosen is None:
            chosen = self._chosen(name, replicas, sync, said, asked)
        if chosen is not None and chosen != sync.master:
            sync.elect(chosen)
        elif chosen is None and asked is None:
            sync.elect(None)

    def _chosen(
        self,
        name: str,
        replicas: Replicas,
        sync: SyncState,
        said: ElectMasterRequest,
        asked: int | None,
    ) -> int | None:
        everyone = frozenset(replicas.brokers)
        alive = [
            self._lives[replicas.cluster, name, broker]
            for broker in sorted(everyone)
            if self._is_alive(name, replicas, broker, said.invoke_time)
        ]
        preferred = asked if said.designate_elect else None
        if preferred is None and sync.master not in {each.broker_id for each in alive}:
            _check_decided([each for each in alive if each.broker_id in sync.members or self._unclean])
        return rules.elect(sync.members, everyone, alive, sync.master, preferred, unclean=self._unclean)

    def apply_id(self, fields: Mapping[str, str | None], _body: bytes) -> None:
        """1013."""
        said = ApplyBrokerIdRequest.from_ext_fields(fields)
        name, broker, code = said.broker_name or "", said.applied_broker_id, said.register_check_code or ""
        replicas = self.sets.replicas.get(name)
        if broker is None or (replicas is None and broker != 1):
            return
        held = None if replicas is None else replicas.brokers.get(broker)
        if held is None or held[1] == code:
            event = ControllerLogEvent(
                broker_name=name,
                cluster_name=said.cluster_name,
                new_broker_id=broker,
                broker_address=rules.address_of(code),
                register_check_code=code,
            )
            self.sets.apply(ControllerEventType.APPLY_BROKER_ID, event)

    def register(self, fields: Mapping[str, str | None], _body: bytes) -> None:
        """1003."""
        said = RegisterBrokerToControllerRequest.from_ext_fields(fields)
        if self.sets.known(said.broker_name or "") is not None:
            event = ControllerLogEvent(
                broker_name=said.broker_name, broker_id=said.broker_id, broker_address=said.broker_address
            )
            self.sets.apply(ControllerEventType.UPDATE_BROKER_ADDRESS, event)

    def clean(self, fields: Mapping[str, str | None], _body: bytes) -> None:
        """1011."""
        said = CleanBrokerDataRequest.from_ext_fields(fields)
        name = said.broker_name or ""
        known, text = self.sets.known(name), (said.broker_controller_ids_to_clean or "").strip()
        if known is None:
            return
        replicas, sync = known
        brokers: list[int] = []
        if not said.is_clean_living_broker:
            if not text and sync.master is not None:
                return
            try:
                brokers = [int(each) for each in text.split(";")] if text else []
            except ValueError:
                return
            if any(self._is_alive(name, replicas, each, said.invoke_time) for each in brokers):
                return
        event = ControllerLogEvent(broker_name=name, broker_id_set_to_clean=brokers or None)
        self.sets.apply(ControllerEventType.CLEAN_BROKER_DATA, event)


Decide = Callable[[KeptRequests, Mapping[str, str | None], bytes], None]
DECIDED: Final[Mapping[int, Decide]] = {
    RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET: KeptRequests.alter,
    RequestCode.CONTROLLER_ELECT_MASTER: KeptRequests.elect,
    RequestCode.CONTROLLER_APPLY_BROKER_ID: KeptRequests.apply_id,
    RequestCode.CONTROLLER_REGISTER_BROKER: KeptRequests.register,
    RequestCode.CLEAN_BROKER_DATA: KeptRequests.clean,
}
"""The requests that change what is on record."""


def _life(broker: int | None, said: HeldLife | JraftHeartbeat) -> _Life:
    return _Life(
        broker or 0,
        said.last_update_timestamp or 0,
        said.heartbeat_timeout_millis or 0,
        said.epoch or 0,
        said.max_offset or 0,
        constants.NO_PRIORITY if said.election_priority is None else said.election_priority,
    )


def _check_decided(alive: Sequence[_Life]) -> None:
    """Whether Java elects the one that the rule says. Raises FolderUnread."""
    if who := rules.untold(alive):
        raise FolderUnread(
            f"nobody knows which of {sorted(who)} was elected: equals, or their logs end too far apart"
        )
