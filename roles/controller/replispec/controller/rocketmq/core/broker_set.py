"""One broker set: the machine `broker_set`, and beside it the addresses and check codes of its brokers.

The state and the variables change by the machine's edges alone. What an edge says is to be done is a method
here; the code of an answer stands with the machine. Source: RIP-44, persistent broker id; apache/rocketmq
rocketmq-all-5.4.0, ReplicasInfoManager.
"""

from __future__ import annotations

from typing import Final

from replispec.controller.rocketmq.core.acts import Act, Answer, ExtFields, Notify, Recorded
from replispec.controller.rocketmq.core.heartbeats import Heartbeats
from replispec.runtime.primitives.machines import edge_of, step
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.remoting import Prepared
from replispec.wire.rocketmq.controller import (
    AlterSyncStateSetResponse,
    ApplyBrokerIdResponse,
    BrokerMemberGroup,
    ElectMasterResponse,
    ElectMasterResponseBody,
    GetNextBrokerIdResponse,
    GetReplicaInfoResponse,
    RegisterBrokerToControllerResponse,
    ReplicaIdentity,
    ReplicasInfo,
    SyncStateSet,
)
from replispec.wire.rocketmq.machines.broker_set import (
    ANSWERS,
    MACHINE,
    AlterationAsked,
    CleaningAsked,
    Effects,
    ElectionAsked,
    Event,
    IdApplied,
    InfoAsked,
    MasterLost,
    MasterMissed,
    NextIdAsked,
    Registered,
)

Acts = tuple[Act, ...]
_RECORDS: Final = frozenset(
    name
    for edges in MACHINE.transitions.values()
    for edge in edges
    for name in edge.do
    if name not in ANSWERS
)
"""What edges do that is remembered, or follows from what is."""
_READS: Final = frozenset(
    kind
    for kind in MACHINE.events
    if not any(
        _RECORDS.intersection(edge.do)
        for (_, event), edges in MACHINE.transitions.items()
        if event is kind
        for edge in edges
    )
)
"""Events that no edge records anything of."""


class BrokerSet:
    """All that is recorded about one broker set; `heartbeats` tell who of it is alive."""

    def __init__(self, name: str, heartbeats: Heartbeats) -> None:
        self.name = name
        self.cluster = ""
        self.state = MACHINE.initial
        self.variables = MACHINE.variables
        self.addresses: dict[int, str] = {}
        self.check_codes: dict[int, str] = {}
        self._heartbeats = heartbeats
        self._effects: Effects[Act] = self
        self._asked_cluster = ""
        self._told: Prepared | None = None

    def decides(self, event: Event) -> bool:
        """Whether anything on record would change; what changes nothing is answered without the log."""
        if type(event) in _READS:
            return False
        edge = edge_of(MACHINE, self.state, self.variables, event, rules)
        return not _RECORDS.isdisjoint(edge.do)

    def receive(self, event: Event, cluster_name: str) -> Acts:
        """Take an event by the machine's edge for it, and return what comes of it, in order.

        `cluster_name` is the cluster as whoever asks calls it, and is told back.
        """
        self._asked_cluster = cluster_name
        taken = step(MACHINE, self.state, self.variables, event, rules)
        if taken.variables is not self.variables:
            self._told = None
        self.state, self.variables = taken.state, taken.variables
        found: list[Act] = []
        for name in taken.effects:
            found.extend(getattr(self._effects, name)(event))
        return tuple(found)

    def address_of(self, broker_id: int | None) -> str | None:
        """Where a broker is reached; None for nobody."""
        return None if broker_id is None else self.addresses.get(broker_id)

    def living_addresses(self) -> list[str]:
        """Where the brokers are reached that are alive, the master first."""
        living = [each for each in sorted(self.variables.broker_ids) if self._is_alive(each)]
        living.sort(key=lambda broker: broker != self.variables.master)
        return [self.addresses[each] for each in living]

    def sync_state_set(self) -> SyncStateSet:
        """The SyncStateSet with its epoch."""
        return SyncStateSet(
            broker_ids=sorted(self.variables.sync_state_set),
            sync_state_set_epoch=self.variables.sync_state_set_epoch,
        )

    def replicas_info(self) -> ReplicasInfo:
        """What an administrator is shown."""
        known = self.variables
        shown = {
            broker: ReplicaIdentity(
                alive=self._is_alive(broker),
                broker_address=self.addresses[broker],
                broker_id=broker,
                broker_name=self.name,
            )
            for broker in sorted(known.broker_ids)
        }
        return ReplicasInfo(
            [each for broker, each in shown.items() if broker in known.sync_state_set],
            [each for broker, each in shown.items() if broker not in known.sync_state_set],
            master_address=self.address_of(known.master),
            master_broker_id=known.master,
            master_epoch=known.master_epoch,
            sync_state_set_epoch=known.sync_state_set_epoch,
        )

    # What edges record

    def record_identity(self, event: IdApplied) -> Acts:
        """Remember a broker by its check code, whose first part is its address."""
        self.check_codes[event.broker_id] = event.check_code
        self.addresses[event.broker_id] = event.check_code.partition(";")[0]
        return (Recorded("broker id granted"),)

    def record_address(self, event: Registered) -> Acts:
        """Remember where a broker is reached from now on."""
        if self.addresses[event.broker_id] == event.address:
            return ()
        self.addresses[event.broker_id] = event.address
        self._told = None
        return (Recorded("broker address changed"),)

    def record_election(self, _event: ElectionAsked | MasterLost | MasterMissed) -> Acts:
        """The variables say it all."""
        return (Recorded("master elected"),)

    def record_no_master(self, _event: MasterLost) -> Acts:
        """The variables say it all."""
        return (Recorded("master lost, nobody can follow"),)

    def record_set(self, _event: AlterationAsked) -> Acts:
        """The variables say it all."""
        return (Recorded("sync state set changed"),)

    def record_cleaning(self, _event: CleaningAsked) -> Acts:
        """Forget the addresses and check codes of those who have no identity any more."""
        for broker in [each for each in self.addresses if each not in self.variables.broker_ids]:
            del self.addresses[broker], self.check_codes[broker]
        return (Recorded("brokers removed"),)

    def notify_brokers(self, _event: ElectionAsked | MasterLost | MasterMissed) -> Acts:
        """Tell all living brokers."""
        return (Notify(),)

    # What edges answer

    def answer_next_id(self, _event: NextIdAsked) -> Acts:
        """1012."""
        header = GetNextBrokerIdResponse(self._asked_cluster, self.name, self.variables.next_broker_id)
        return (Answer(ANSWERS["answer_next_id"], header.to_ext_fields()),)

    def answer_granted(self, _event: IdApplied) -> Acts:
        """1013."""
        header = ApplyBrokerIdResponse(self._asked_cluster, self.name)
        return (Answer(ANSWERS["answer_granted"], header.to_ext_fields()),)

    def refuse_id(self, event: IdApplied) -> Acts:
        """1013: the refusal says which id would be granted."""
        header = ApplyBrokerIdResponse(self._asked_cluster, self.name, self.variables.next_broker_id)
        remark = f"{event.broker_id} is not granted: {self.variables.next_broker_id} is next"
        return (Answer(ANSWERS["refuse_id"], header.to_ext_fields(), remark=remark),)

    def answer_registered(self, _event: Registered) -> Acts:
        """1003: the master is named while it lives."""
        known, header = self.variables, RegisterBrokerToControllerResponse(self._asked_cluster, self.name)
        if known.master is not None and self._is_alive(known.master):
            header.master_broker_id, header.master_address = known.master, self.address_of(known.master)
            header.master_epoch = known.master_epoch
            header.sync_state_set_epoch = known.sync_state_set_epoch
        body = self.sync_state_set().encode()
        return (Answer(ANSWERS["answer_registered"], header.to_ext_fields(), body),)

    def refuse_unregistered(self, event: Registered | ElectionAsked) -> Acts:
        """1003 and 1002."""
        return self._refusal(
            "refuse_unregistered", f"broker {event.broker_id} of {self.name} has no identity"
        )

    def answer_info(self, _event: InfoAsked) -> Acts:
        """1004: the recorded master, alive or not."""
        if self._told is None:
            known = self.variables
            header = GetReplicaInfoResponse(
                master_broker_id=known.master,
                master_address=self.address_of(known.master),
                master_epoch=known.master_epoch,
            )
            body = self.sync_state_set().encode()
            self._told = Prepared(ANSWERS["answer_info"], ext_fields=header.to_ext_fields(), body=body)
        return (self._told,)

    def refuse_no_metadata(self, _event: InfoAsked) -> Acts:
        """1004."""
        return self._refusal("refuse_no_metadata", f"broker set {self.name} is not known")

    def answer_elected(self, _event: ElectionAsked) -> Acts:
        """1002: the new master, the members of the set, the new SyncStateSet."""
        body = ElectMasterResponseBody(
            BrokerMemberGroup(self.cluster, self.name, dict(sorted(self.addresses.items()))),
            sorted(self.variables.sync_state_set),
        )
        return (Answer(ANSWERS["answer_elected"], self._election(), body.encode()),)

    def answer_master_exists(self, _event: ElectionAsked) -> Acts:
        """1002: who is master already."""
        body = ElectMasterResponseBody(sync_state_set=sorted(self.variables.sync_state_set)).encode()
        remark = f"broker {self.variables.master} is master and alive"
        return (Answer(ANSWERS["answer_master_exists"], self._election(), body, remark),)

    def refuse_election(self, event: ElectionAsked) -> Acts:
        """1002."""
        who = "nobody" if event.preferred is None else f"not broker {event.preferred}"
        return self._refusal("refuse_election", f"of the living of {self.name} {who} may become master")

    def answer_set(self, _event: AlterationAsked) -> Acts:
        """1001: the new SyncStateSet and its epoch."""
        header = AlterSyncStateSetResponse(self.variables.sync_state_set_epoch).to_ext_fields()
        return (Answer(ANSWERS["answer_set"], header, self.sync_state_set().encode()),)

    def refuse_alteration(self, _event: AlterationAsked) -> Acts:
        """1001: an unknown broker set, the set that is recorded, or one without the master."""
        return self._refusal(
            "refuse_alteration", f"this is no new SyncStateSet of {self.name} with its master"
        )

    def refuse_not_master(self, event: AlterationAsked) -> Acts:
        """1001."""
        return self._refusal("refuse_not_master", f"{event.master} is not master: {self.variables.master} is")

    def refuse_fenced_master_epoch(self, _event: AlterationAsked) -> Acts:
        """1001."""
        return self._refusal(
            "refuse_fenced_master_epoch", f"the masterEpoch is {self.variables.master_epoch}"
        )

    def refuse_fenced_set_epoch(self, _event: AlterationAsked) -> Acts:
        """1001."""
        remark = f"the epoch of the SyncStateSet is {self.variables.sync_state_set_epoch}"
        return self._refusal("refuse_fenced_set_epoch", remark)

    def refuse_unknown_member(self, event: AlterationAsked) -> Acts:
        """1001."""
        strangers = sorted(event.members - self.variables.broker_ids)
        return self._refusal("refuse_unknown_member", f"{_listed(strangers)} have no identity here")

    def refuse_dead_member(self, event: AlterationAsked) -> Acts:
        """1001."""
        return self._refusal(
            "refuse_dead_member", f"{_listed(sorted(event.members - event.living))} are not alive"
        )

    def answer_cleaned(self, _event: CleaningAsked) -> Acts:
        """1011."""
        return (Answer(ANSWERS["answer_cleaned"]),)

    def refuse_cleaning(self, event: CleaningAsked) -> Acts:
        """1011."""
        named = self.variables.broker_ids if event.broker_ids is None else event.broker_ids
        living = _listed(sorted(named & event.living))
        why = f"{living} are alive" if living else f"{self.name} is not known, or has a master"
        return self._refusal("refuse_cleaning", why)

    def _refusal(self, effect: str, remark: str) -> Acts:
        return (Answer(ANSWERS[effect], remark=remark),)

    def _is_alive(self, broker_id: int) -> bool:
        return self._heartbeats.is_alive(self.name, broker_id)

    def _election(self) -> ExtFields:
        known = self.variables
        header = ElectMasterResponse(
            master_broker_id=known.master,
            master_address=self.address_of(known.master),
            master_epoch=known.master_epoch,
            sync_state_set_epoch=known.sync_state_set_epoch,
        )
        return header.to_ext_fields()


def _listed(brokers: list[int]) -> str:
    """The first few of these ids."""
    return ", ".join(map(str, brokers[:10])) + (", ..." if len(brokers) > 10 else "")
