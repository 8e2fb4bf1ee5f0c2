"""Controllers that do otherwise than Apache RocketMQ where the proposals leave it open, first part.

None of them is wrong: each says which words allow what it does, or that no words forbid it. A suite that asks
for the proposals alone finds nothing here.
Source: RIP-44, RIP "persistent broker id".
"""

from __future__ import annotations

import math

from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import (
    AlterSyncStateSetResponse,
    BrokerHeartbeatRequest,
    ElectMasterRequest,
    ElectMasterResponseBody,
    GetReplicaInfoRequest,
    GetReplicaInfoResponse,
    RegisterBrokerToControllerRequest,
)
from tests.conformance.subjects.controller import LATER_S
from tests.conformance.subjects.controller_admin import GoodController
from tests.conformance.subjects.records import Alive, Answer, BrokerSet, Channel, Effect, Refused

ALTERNATIVES: dict[str, type[GoodController]] = {}
SCAN_S = 1.0
TERM_BEFORE, TERMS_A_CHANGE = 10, 3
ADMINISTRATION = (
    RequestCode.UPDATE_CONTROLLER_CONFIG,
    RequestCode.GET_CONTROLLER_CONFIG,
    RequestCode.CLEAN_BROKER_DATA,
)
ECHOING = (
    RequestCode.CONTROLLER_GET_NEXT_BROKER_ID,
    RequestCode.CONTROLLER_APPLY_BROKER_ID,
    RequestCode.CONTROLLER_REGISTER_BROKER,
)


def alternative(subject: type[GoodController]) -> type[GoodController]:
    """Enter a subject in the table."""
    ALTERNATIVES[subject.__name__] = subject
    return subject


@alternative
class LivenessByHeartbeatOnly(GoodController):
    """ "If a Broker's heartbeat times out" decides; the end of a connection alone says nothing."""

    def connection_ended(self, waiting_bytes: int, channel: Channel) -> list[Effect]:  # noqa: ARG002
        return []


@alternative
class FencesFirst(GoodController):
    """Master and epochs are compared before the set is: the proposal names the checks in no order."""

    def check_changed(self, broker_set: BrokerSet, members: list[int]) -> None:
        pass

    def check_master_stays(self, broker_set: BrokerSet, members: list[int]) -> None:
        super().check_master_stays(broker_set, members)
        super().check_changed(broker_set, members)


@alternative
class SameSetIsSuccess(GoodController):
    """A change to the recorded set succeeds and changes nothing: whoever lost the answer may ask again."""

    def check_changed(self, broker_set: BrokerSet, members: list[int]) -> None:
        pass

    def check_master_stays(self, broker_set: BrokerSet, members: list[int]) -> None:
        super().check_master_stays(broker_set, members)
        if set(members) == set(broker_set.in_sync):
            header = AlterSyncStateSetResponse(broker_set.in_sync_epoch)
            body = broker_set.sync_state_set().encode()
            raise Refused(ResponseCode.SUCCESS, "as it is", header=header, body=body)


@alternative
class KeepsLostMaster(GoodController):
    """Where nobody can follow a lost master the record stays: the proposal says nothing of it."""

    def lose_master(self, broker_set: BrokerSet) -> None:
        pass


@alternative
class AnyFreeId(GoodController):
    """ "If the BrokerId has already been allocated and is not assigned to the Broker" alone is refused."""

    def may_grant(self, name: str, broker: int) -> bool:
        return broker > 0 and (name not in self.sets or broker not in self.sets[name].members)


@alternative
class FirstMasterMustLive(GoodController):
    """The first master too must have sent a heartbeat: "select a surviving copy"."""

    def first_master(self, broker_set: BrokerSet, broker: int) -> int | None:
        return broker if broker in broker_set.members and self.is_alive(broker_set, broker) else None


@alternative
class DeadByScan(GoodController):
    """ "Will also regularly scan the timeout Broker": who is overdue is dead from the next scan on."""

    scan_s = SCAN_S

    def in_time(self, entry: Alive) -> bool:
        return self.now_s() <= self.scanned_s(entry)

    def deadline_s(self) -> float:
        ends = [self.scanned_s(entry) + LATER_S for entry in self.alive.values()]
        ends += [hearing.until_s for hearing in self.hearings.values()]
        return min((end for end in ends if end > self.now_s()), default=math.inf)

    def scanned_s(self, entry: Alive) -> float:
        """When the scan comes that finds this heartbeat overdue."""
        return math.ceil((entry.last_s + entry.timeout_s + LATER_S) / self.scan_s) * self.scan_s


@alternative
class NotifiesAgain(GoodController):
    """Whoever asks for an election while the master lives has everybody notified again."""

    def elect_master(self, request: Command) -> Answer:
        ask = ElectMasterRequest.from_ext_fields(request.header.ext_fields or {})
        broker_set = self.sets.get(ask.broker_name or "")
        if broker_set is not None and broker_set.master is not None:
            self.notify(broker_set)
        return super().elect_master(request)


@alternative
class NoEcho(GoodController):
    """Answers do not repeat the names that were asked with."""

    def answer_command(self, request: Command, answer: Answer) -> Command:
        command = super().answer_command(request, answer)
        if request.header.code in ECHOING and command.header.ext_fields:
            command.header.ext_fields.pop("clusterName", None)
            command.header.ext_fields.pop("brokerName", None)
        return command


@alternative
class OnePortWithNameServer(GoodController):
    """ "The upper layer will reuse this remotingServer": name server and controller answer on one port."""

    def unknown_code(self, request: Command) -> Answer:
        if request.header.code == RequestCode.GET_BROKER_CLUSTER_INFO:
            return Answer()
        return super().unknown_code(request)


@alternative
class TermAsEpoch(GoodController):
    """masterEpoch is "analogous to Term in Raft": it grows strictly, with gaps, over all sets."""

    term = TERM_BEFORE

    def become_master(self, broker_set: BrokerSet, broker: int) -> None:
        broker_set.master_epoch = self.next_term() - 1
        super().become_master(broker_set, broker)

    def lose_master(self, broker_set: BrokerSet) -> None:
        if broker_set.master is not None:
            broker_set.master_epoch = self.next_term() - 1
        super().lose_master(broker_set)

    def next_term(self) -> int:
        """A term that nobody had."""
        self.term += TERMS_A_CHANGE
        return self.term


@alternative
class TwoStepFailover(GoodController):
    """A lost master is recorded as none first, then another is elected: two epochs for one fail-over."""

    def replace_lost_master(self, broker_set: BrokerSet) -> None:
        chosen = self.choose(broker_set, None)
        self.lose_master(broker_set)
        if chosen is not None:
            self.become_master(broker_set, chosen)


@alternative
class NoUnsignedAdministration(GoodController):
    """What only administrators ask is refused without a signature."""

    def answer_to(self, request: Command) -> Answer:
        if request.header.code in ADMINISTRATION:
            return Answer(ResponseCode.NO_PERMISSION)
        return super().answer_to(request)


@alternative
class ShowsNoDeadMaster(GoodController):
    """A dead master is told to nobody: a replica could only fail to reach it."""

    def get_replica_info(self, request: Command) -> Answer:
        ask = GetReplicaInfoRequest.from_ext_fields(request.header.ext_fields or {})
        broker_set = self.sets.get(ask.broker_name or "")
        answer = super().get_replica_info(request)
        if broker_set and broker_set.master is not None and not self.is_alive(broker_set, broker_set.master):
            answer.header = GetReplicaInfoResponse(master_epoch=broker_set.master_epoch)
        return answer


@alternative
class RefusesStrangersHeartbeats(GoodController):
    """A heartbeat of a broker without identity is refused."""

    def heartbeat(self, request: Command) -> Answer:
        beat = BrokerHeartbeatRequest.from_ext_fields(request.header.ext_fields or {})
        broker_set = self.sets.get(beat.broker_name or "")
        if broker_set is None or beat.broker_id not in broker_set.members:
            raise Refused(ResponseCode.CONTROLLER_INVALID_REQUEST, "no such broker")
        return super().heartbeat(request)


@alternative
class InvalidRequestForMissingId(GoodController):
    """A registration without an id is an invalid request, as a heartbeat without one is."""

    def register_broker(self, request: Command) -> Answer:
        ask = RegisterBrokerToControllerRequest.from_ext_fields(request.header.ext_fields or {})
        if ask.broker_id is None:
            raise Refused(ResponseCode.CONTROLLER_INVALID_REQUEST, "no id")
        return super().register_broker(request)


@alternative
class NoMemberGroup(GoodController):
    """An election is answered without the members' addresses, which no broker reads."""

    def elected(self, broker_set: BrokerSet) -> Answer:
        body = ElectMasterResponseBody(sync_state_set=sorted(broker_set.in_sync))
        return Answer(header=self.elected_header(broker_set), body=body.encode())
