"""Controllers that the proposals allow, second part: written from their words alone.

Source: RIP-44, RIP "persistent broker id".
"""

from __future__ import annotations

from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import (
    BrokerHeartbeatRequest,
    RegisterBrokerToControllerRequest,
)
from tests.conformance.subjects.alternatives import ADMINISTRATION, DeadByScan, alternative
from tests.conformance.subjects.controller_admin import GoodController
from tests.conformance.subjects.records import Answer, BrokerSet, Refused, Tell

REVISIONS_A_CHANGE = 4


@alternative
class ElectsTheHighestId(GoodController):
    """ "We only need to select a surviving copy from the SyncStateSet": any of them will do."""

    def rank(self, broker_set: BrokerSet, broker: int) -> tuple[int, ...]:  # noqa: ARG002
        return (-broker,)


@alternative
class SetEpochStaysAtAnElection(GoodController):
    """An ElectMaster event changes "masterEpoch = masterEpoch+1", master and set; no other epoch is named."""

    def become_master(self, broker_set: BrokerSet, broker: int) -> None:
        before = broker_set.in_sync_epoch
        super().become_master(broker_set, broker)
        broker_set.in_sync_epoch = before
        self.pending = [each for each in self.pending if not isinstance(each, Tell)]
        self.notify(broker_set)


@alternative
class SetEpochIsARevision(GoodController):
    """syncStateSetEpoch is compared, never said to be counted: it is a place in the controller's log."""

    def change_in_sync(self, broker_set: BrokerSet, members: list[int]) -> None:
        super().change_in_sync(broker_set, members)
        broker_set.in_sync_epoch += REVISIONS_A_CHANGE


@alternative
class RegistrationElectsTheFirst(GoodController):
    """ "There is no master. At this time, the first called broker will try to become the master." """

    def register_broker(self, request: Command) -> Answer:
        ask = RegisterBrokerToControllerRequest.from_ext_fields(request.header.ext_fields or {})
        broker_set = self.sets.get(ask.broker_name or "")
        if broker_set is not None and broker_set.never_led and ask.broker_id in broker_set.members:
            assert ask.broker_id is not None
            self.note_address(broker_set.members[ask.broker_id], ask.broker_address or "")
            self.become_master(broker_set, ask.broker_id)
        return super().register_broker(request)


@alternative
class NotifiesTwice(GoodController):
    """ "To prevent notification loss" every notification is sent twice."""

    def notify(self, broker_set: BrokerSet) -> None:
        super().notify(broker_set)
        super().notify(broker_set)


@alternative
class NotifiesTheDeadToo(GoodController):
    """ "Notify the corresponding Broker replica group": all of it, whoever is heard of."""

    def notify(self, broker_set: BrokerSet) -> None:
        for member in broker_set.members.values():
            self.pending.append(Tell(member.address, self.notification(broker_set).encode()))


@alternative
class OneCodeForEveryRefusal(GoodController):
    """The proposals number requests and no answers: every refusal has the same code."""

    def answer_to(self, request: Command) -> Answer:
        answer = super().answer_to(request)
        if answer.code not in (ResponseCode.SUCCESS, ResponseCode.REQUEST_CODE_NOT_SUPPORTED):
            answer.code = ResponseCode.SYSTEM_ERROR
        return answer


@alternative
class LivingMasterIsSuccess(GoodController):
    """Asked for an election while the master lives it names the master and changes nothing, successfully."""

    def answer_to(self, request: Command) -> Answer:
        answer = super().answer_to(request)
        if answer.code == ResponseCode.CONTROLLER_MASTER_STILL_EXIST:
            answer.code = ResponseCode.SUCCESS
        return answer


@alternative
class ElectsWhoComesBack(GoodController):
    """ "This event is initiated by the Controller itself": a member that is heard of again ends a vacancy."""

    def heartbeat(self, request: Command) -> Answer:
        answer = super().heartbeat(request)
        beat = BrokerHeartbeatRequest.from_ext_fields(request.header.ext_fields or {})
        broker_set = self.sets.get(beat.broker_name or "")
        if broker_set is not None and broker_set.master is None and broker_set.master_epoch > 0:
            self.replace_lost_master(broker_set)
        return answer


@alternative
class NamesADeadMasterToWhoRegisters(GoodController):
    """ "The Controller can return the master-slave information of the Broker-set": what is recorded."""

    def shows_master(self, broker_set: BrokerSet, master: int) -> bool:  # noqa: ARG002
        return True


@alternative
class NoAdministrators(GoodController):
    """What only administrators ask is not served: no broker needs it."""

    def answer_to(self, request: Command) -> Answer:
        if request.header.code in (*ADMINISTRATION, RequestCode.CONTROLLER_GET_SYNC_STATE_DATA):
            return self.unknown_code(request)
        return super().answer_to(request)


@alternative
class DeadByASlowScan(DeadByScan):
    """The scan for overdue brokers comes every five seconds."""

    scan_s = 5.0


@alternative
class GivesFreedIdsAgain(GoodController):
    """An id that was removed is free: nothing says that a number is never given again."""

    def next_id(self, name: str) -> int:
        taken = self.sets[name].members if name in self.sets else {}
        return next(broker for broker in range(1, len(taken) + 2) if broker not in taken)

    def may_grant(self, name: str, broker: int) -> bool:
        if broker < 1:
            raise Refused(ResponseCode.CONTROLLER_BROKER_ID_INVALID, "ids start from 1")
        return broker == self.next_id(name)
