"""Faults of a controller that look right until two of them are told apart; entered in FAULTS too."""

from __future__ import annotations

from collections.abc import Callable

from replispec.runtime.primitives import jsons
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import (
    AlterSyncStateSetRequest,
    AlterSyncStateSetResponse,
    ApplyBrokerIdRequest,
    ApplyBrokerIdResponse,
    BrokerHeartbeatRequest,
    SyncStateSet,
)
from tests.conformance.subjects.controller_admin import GoodController
from tests.conformance.subjects.controller_faults import fault
from tests.conformance.subjects.records import Answer, BrokerSet, Channel, Die, Effect, Refused, Tell

AT_ONCE_S = 0.05
FOR_EVER_S = 1e9
NUMBERS = ("brokerId", "masterBrokerId", "masterEpoch", "appliedBrokerId", "maxOffset", "epoch")


class _Races(GoodController):
    """Remembers who was granted something last, and when: what comes at once elsewhere races with it."""

    def __init__(self, now_s: Callable[[], float], address: str) -> None:
        super().__init__(now_s, address)
        self.granted_to: dict[object, tuple[Channel, float]] = {}

    def races(self, key: object) -> bool:
        """Whether somebody else was granted this a moment ago."""
        channel, at_s = self.granted_to.get(key, (self.channel, 0.0))
        return channel != self.channel and self.now_s() - at_s < AT_ONCE_S


@fault
class GrantsOneIdToTwoAtOnce(_Races):
    """Of two that apply for one id at once both are told that they have it; the first is recorded."""

    def apply_broker_id(self, request: Command) -> Answer:
        ask = ApplyBrokerIdRequest.from_ext_fields(request.header.ext_fields or {})
        key = ask.broker_name, ask.applied_broker_id
        try:
            answer = super().apply_broker_id(request)
        except Refused:
            if self.races(key):
                return Answer(header=ApplyBrokerIdResponse(ask.cluster_name, ask.broker_name))
            raise
        self.granted_to.setdefault(key, (self.channel, self.now_s()))
        return answer


@fault
class AnswersTwoChangesAtOnce(_Races):
    """Of two changes of one SyncStateSet at once both are told done; the first is recorded."""

    def alter_sync_state_set(self, request: Command) -> Answer:
        ask = AlterSyncStateSetRequest.from_ext_fields(request.header.ext_fields or {})
        try:
            answer = super().alter_sync_state_set(request)
        except Refused as refusal:
            fenced = refusal.answer.code == ResponseCode.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH
            if not fenced or not self.races(ask.broker_name):
                raise
            new = SyncStateSet.decode(request.body)
            new.sync_state_set_epoch = (new.sync_state_set_epoch or 0) + 1
            return Answer(header=AlterSyncStateSetResponse(new.sync_state_set_epoch), body=new.encode())
        self.granted_to[ask.broker_name] = self.channel, self.now_s()
        return answer


@fault
class DiesOfAGarbledBody(GoodController):
    """A body that is no JSON ends the controller."""

    def receive(self, request: Command, channel: Channel) -> list[Effect]:
        if request.header.code == RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET:
            try:
                jsons.loads(request.body)
            except (RemoteProtocolError, ValueError):
                return [Die()]
        return super().receive(request, channel)


@fault
class DiesOfAWordForANumber(GoodController):
    """A word where a number belongs ends the controller."""

    def receive(self, request: Command, channel: Channel) -> list[Effect]:
        fields = request.header.ext_fields or {}
        numbers = [fields.get(name) for name in NUMBERS]
        if any(each and not each.lstrip("-").isdecimal() for each in numbers):
            return [Die()]
        return super().receive(request, channel)


@fault
class OffersNothingWithARefusal(GoodController):
    """A refused application is not told the next id."""

    def apply_broker_id(self, request: Command) -> Answer:
        try:
            return super().apply_broker_id(request)
        except Refused as refusal:
            raise Refused(ResponseCode(refusal.answer.code), "not free") from None


@fault
class ElectsTheOverdue(GoodController):
    """Whoever's connection is open may be elected, however long ago it was heard."""

    def candidates(self, broker_set: BrokerSet) -> list[int]:
        return [broker for broker in broker_set.in_sync if (broker_set.name, broker) in self.alive]

    def become_master(self, broker_set: BrokerSet, broker: int) -> None:
        super().become_master(broker_set, broker)
        if not self.is_alive(broker_set, broker):
            self.spared = {*self.spared, (broker_set.name, broker)}

    spared: set[tuple[str, int]] = set()  # noqa: RUF012  # replaced, never changed

    def lose(self, brokers: list[tuple[str, int]]) -> list[Effect]:
        led = {(name, each.master) for name, each in self.sets.items()}
        masters = [key for key in brokers if key in led and key not in self.spared]
        return super().lose([key for key in brokers if key in masters or self.in_time(self.alive[key])])


@fault
class ForgetsToTellTheNewMaster(GoodController):
    """After a fail-over everybody is notified but the elected broker."""

    def replace_lost_master(self, broker_set: BrokerSet) -> None:
        super().replace_lost_master(broker_set)
        master = broker_set.address(broker_set.master)
        self.pending = [each for each in self.pending if not isinstance(each, Tell) or each.address != master]


@fault
class CountsAHeartbeatWithoutTimeForEver(GoodController):
    """A heartbeat that names no time is never overdue."""

    def heartbeat(self, request: Command) -> Answer:
        answer = super().heartbeat(request)
        beat = BrokerHeartbeatRequest.from_ext_fields(request.header.ext_fields or {})
        if beat.heartbeat_timeout_mills is None:
            self.alive[beat.broker_name or "", beat.broker_id or 0].timeout_s = FOR_EVER_S
        return answer


@fault
class PutsTheUnnamedPriorityFirst(GoodController):
    """A broker that names no election priority counts as the first."""

    def heartbeat(self, request: Command) -> Answer:
        answer = super().heartbeat(request)
        beat = BrokerHeartbeatRequest.from_ext_fields(request.header.ext_fields or {})
        if beat.election_priority is None:
            self.alive[beat.broker_name or "", beat.broker_id or 0].priority = 0
        return answer


@fault
class KeepsARemovedMaster(GoodController):
    """A master that is removed by its id stays master."""

    def remove_members(self, broker_set: BrokerSet, brokers: list[int]) -> None:
        master, epoch = broker_set.master, broker_set.master_epoch
        super().remove_members(broker_set, brokers)
        broker_set.master, broker_set.master_epoch = master, epoch


@fault
class ElectsAnybodyInAnEmptySet(GoodController):
    """Once the last member was removed any living broker may become master."""

    def candidates(self, broker_set: BrokerSet) -> list[int]:
        if broker_set.in_sync:
            return super().candidates(broker_set)
        return [broker for broker in broker_set.members if self.is_alive(broker_set, broker)]


@fault
class RemembersTheBestOfEarlierLives(GoodController):
    """A broker that came back counts with the longest log that it ever told."""

    def __init__(self, now_s: Callable[[], float], address: str) -> None:
        super().__init__(now_s, address)
        self.best: dict[tuple[str, int], int] = {}
        self.gone: set[tuple[str, int]] = set()

    def heartbeat(self, request: Command) -> Answer:
        answer = super().heartbeat(request)
        beat = BrokerHeartbeatRequest.from_ext_fields(request.header.ext_fields or {})
        key = beat.broker_name or "", beat.broker_id or 0
        self.best[key] = max(self.best.get(key, -1), self.alive[key].max_offset)
        if key in self.gone:
            self.alive[key].max_offset = self.best[key]
        return answer

    def lose(self, brokers: list[tuple[str, int]]) -> list[Effect]:
        self.gone.update(brokers)
        return super().lose(brokers)
