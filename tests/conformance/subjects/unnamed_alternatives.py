"""Controllers that the proposals allow, third part: they differ in what no proposal names, which is removing
brokers, electing who is named, sets that nobody registered in, what an answer holds beside its header, how
long the dead count as alive, and whether a registration is a sign of life.

Source: RIP-44, RIP "persistent broker id".
"""

from __future__ import annotations

from dataclasses import replace

from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import ResponseCode
from replispec.wire.rocketmq.controller import (
    BrokerHeartbeatRequest,
    CleanBrokerDataRequest,
    ElectMasterRequest,
    GetReplicaInfoRequest,
    GetReplicaInfoResponse,
    RegisterBrokerToControllerRequest,
    SyncStateSet,
)
from tests.conformance.subjects.alternatives import DeadByScan, alternative
from tests.conformance.subjects.controller import LAST_PRIORITY
from tests.conformance.subjects.controller_admin import GoodController
from tests.conformance.subjects.records import (
    Alive,
    Answer,
    BrokerSet,
    Channel,
    Effect,
    Member,
    Refused,
)

GRACE_S = 10.0


@alternative
class UnknownSetIsEmpty(GoodController):
    """A set that nobody is in has no master and no members: no refusal is named for it."""

    def get_replica_info(self, request: Command) -> Answer:
        ask = GetReplicaInfoRequest.from_ext_fields(request.header.ext_fields or {})
        if ask.broker_name and ask.broker_name not in self.sets:
            nobody = SyncStateSet(broker_ids=[], sync_state_set_epoch=0)
            return Answer(header=GetReplicaInfoResponse(master_epoch=0), body=nobody.encode())
        return super().get_replica_info(request)


@alternative
class RemovesNoMemberInSync(GoodController):
    """Only the master takes a member out of the SyncStateSet."""

    def check_cleanable(self, broker_set: BrokerSet, brokers: list[int] | None) -> None:
        super().check_cleanable(broker_set, brokers)
        if any(each in broker_set.in_sync for each in brokers or ()):
            raise Refused(ResponseCode.CONTROLLER_INVALID_CLEAN_BROKER_METADATA, "it is in sync")


@alternative
class RemovalLeavesTheSyncStateSet(GoodController):
    """Changes of the SyncStateSet are "primarily initiated by the Master Broker"."""

    def remove_members(self, broker_set: BrokerSet, brokers: list[int]) -> None:
        for each in brokers:
            broker_set.members.pop(each, None)
        if broker_set.master in brokers:
            self.lose_master(broker_set)
        if not broker_set.members:
            self.forget(broker_set)


@alternative
class RemovesWhoeverIsNamed(GoodController):
    """An administrator named it: living or not, it goes."""

    def check_cleanable(self, broker_set: BrokerSet, brokers: list[int] | None) -> None:
        """Whoever it is."""


@alternative
class RemovingNobodyIsASuccess(GoodController):
    """What is not there is removed already."""

    def clean_broker_data(self, request: Command) -> Answer:
        ask = CleanBrokerDataRequest.from_ext_fields(request.header.ext_fields or {})
        if ask.broker_name not in self.sets:
            return Answer()
        return super().clean_broker_data(request)


@alternative
class RegistersWhoHasAnId(GoodController):
    """A broker comes with an id that its controller has lost: it is recorded as it says, if nobody has it."""

    def register_broker(self, request: Command) -> Answer:
        ask = RegisterBrokerToControllerRequest.from_ext_fields(request.header.ext_fields or {})
        if ask.broker_name and ask.broker_id and ask.broker_address:
            self._record(ask.broker_name, ask.cluster_name or "", ask.broker_id, ask.broker_address)
        return super().register_broker(request)

    def _record(self, name: str, cluster: str, broker: int, address: str) -> None:
        known = self.sets.get(name)
        if known is None:
            known = self.sets[name] = self.emptied.pop(name, BrokerSet(name, cluster))
        if broker not in known.members:
            known.members[broker] = Member(address, "")
            self.note_granted(name, broker)


@alternative
class LivingMasterStays(GoodController):
    """An election is for a master that is "offline or inaccessible": one that lives is named, and stays."""

    def elect_master(self, request: Command) -> Answer:
        ask = ElectMasterRequest.from_ext_fields(request.header.ext_fields or {})
        broker_set = self.known(ask.broker_name, ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED)
        if broker_set.master is not None and self.is_alive(broker_set, broker_set.master):
            return self.elected(broker_set)
        return super().elect_master(request)


@alternative
class ElectionTellsItsHeaderAlone(GoodController):
    """The answer to an election is an ElectMasterResponseHeader."""

    def elected(self, broker_set: BrokerSet) -> Answer:
        return Answer(header=self.elected_header(broker_set))


@alternative
class ChangeTellsItsHeaderAlone(GoodController):
    """The answer to a change of the SyncStateSet is an AlterSyncStateSetResponseHeader."""

    def alter_sync_state_set(self, request: Command) -> Answer:
        return replace(super().alter_sync_state_set(request), body=b"")


@alternative
class NotificationIsItsHeaderAlone(GoodController):
    """Brokers are notified "of the result": of nothing beside who is master are words there."""

    def notification(self, broker_set: BrokerSet) -> Command:
        return Command(super().notification(broker_set).header)


@alternative
class TakesASetEpochAhead(GoodController):
    """ "Compared to SyncStateSet epoch, it may be stale": one that is ahead of the record is not."""

    def check_set_epoch(self, broker_set: BrokerSet, epoch: int) -> None:
        if epoch < broker_set.in_sync_epoch:
            super().check_set_epoch(broker_set, epoch)


@alternative
class RegistrationIsASignOfLife(GoodController):
    """Whoever registers counts as alive for a while, as release 5.0.0 has it."""

    def register_broker(self, request: Command) -> Answer:
        answer = super().register_broker(request)
        ask = RegisterBrokerToControllerRequest.from_ext_fields(request.header.ext_fields or {})
        key = ask.broker_name or "", ask.broker_id or 0
        self.alive.setdefault(key, Alive(self.channel, self.now_s(), GRACE_S, -1, -1, LAST_PRIORITY))
        return answer


@alternative
class ShowsNoEpochWithoutAMaster(GoodController):
    """While there is no master, there is no epoch of one to tell."""

    def get_replica_info(self, request: Command) -> Answer:
        answer = super().get_replica_info(request)
        header = answer.header
        if isinstance(header, GetReplicaInfoResponse) and header.master_broker_id is None:
            header.master_epoch = None
        return answer


@alternative
class SlowAnswers(GoodController):
    """How soon an answer has to come is nowhere said: each takes 2.5 s."""

    answers_after_s = 2.5


class _HeartbeatsAlone(DeadByScan):
    def connection_ended(self, waiting_bytes: int, channel: Channel) -> list[Effect]:  # noqa: ARG002
        return []


@alternative
class ScansEveryEightSeconds(_HeartbeatsAlone):
    """Heartbeats alone count, and are looked at every 8 s."""

    scan_s = 8.0


@alternative
class ScansEveryTwentySeconds(_HeartbeatsAlone):
    """Heartbeats alone count, and are looked at every 20 s."""

    scan_s = 20.0


@alternative
class NobodyIsDeadBeforeTenSeconds(GoodController):
    """How long heartbeats may be late is the controller's own: 10 s at least."""

    def connection_ended(self, waiting_bytes: int, channel: Channel) -> list[Effect]:  # noqa: ARG002
        return []

    def heartbeat(self, request: Command) -> Answer:
        answer = super().heartbeat(request)
        beat = BrokerHeartbeatRequest.from_ext_fields(request.header.ext_fields or {})
        entry = self.alive[beat.broker_name or "", beat.broker_id or 0]
        entry.timeout_s = max(entry.timeout_s, GRACE_S)
        return answer
