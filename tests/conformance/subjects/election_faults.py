"""Faults of a controller in elections, liveness, notifications and removals; entered in FAULTS too."""

from __future__ import annotations

from dataclasses import replace

from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import ResponseCode
from replispec.wire.rocketmq.controller import CleanBrokerDataRequest
from tests.conformance.subjects.controller_admin import GoodController
from tests.conformance.subjects.controller_faults import fault
from tests.conformance.subjects.records import Alive, Answer, BrokerSet, Effect, Refused, Tell

# Who is elected


@fault
class ElectsTheDead(GoodController):
    """A member of the SyncStateSet need not be alive to be elected."""

    def candidates(self, broker_set: BrokerSet) -> list[int]:
        others = [broker for broker in broker_set.in_sync if broker != broker_set.master]
        return super().candidates(broker_set) or others

    def rank(self, broker_set: BrokerSet, broker: int) -> tuple[int, ...]:
        return super().rank(broker_set, broker) if self.is_alive(broker_set, broker) else (broker,)


@fault
class ElectsOutsideTheSet(GoodController):
    """A living broker outside the SyncStateSet is elected when no member lives."""

    def candidates(self, broker_set: BrokerSet) -> list[int]:
        everybody = [broker for broker in broker_set.members if self.is_alive(broker_set, broker)]
        return super().candidates(broker_set) or everybody


@fault
class ElectsShorterLog(GoodController):
    """Among equals the shorter log wins."""

    def rank(self, broker_set: BrokerSet, broker: int) -> tuple[int, ...]:
        entry = self.alive[broker_set.name, broker]
        return -entry.epoch, entry.max_offset, entry.priority, broker


@fault
class ElectsEarlierEpoch(GoodController):
    """The later epoch does not count; the longer log does."""

    def rank(self, broker_set: BrokerSet, broker: int) -> tuple[int, ...]:
        return super().rank(broker_set, broker)[1:]


@fault
class ElectsGreaterPriority(GoodController):
    """Among equals the greater number of the election priority wins."""

    def rank(self, broker_set: BrokerSet, broker: int) -> tuple[int, ...]:
        entry = self.alive[broker_set.name, broker]
        return -entry.epoch, -entry.max_offset, -entry.priority, broker


@fault
class ComparesLogsAsInt32(GoodController):
    """Log ends are compared by their lower 32 bits with a sign (Apache up to 5.5.0, in effect)."""

    def rank(self, broker_set: BrokerSet, broker: int) -> tuple[int, ...]:
        epoch, _, *rest = super().rank(broker_set, broker)
        end = self.alive[broker_set.name, broker].max_offset & 0xFFFFFFFF
        return epoch, -(end - (end >> 31 << 32)), *rest


@fault
class RemembersGreatestLog(GoodController):
    """The greatest log end that was ever reported counts, not the newest one (Apache)."""

    def heartbeat(self, request: Command) -> Answer:
        before = dict(self.alive)
        answer = super().heartbeat(request)
        for key, entry in self.alive.items():
            if key in before and before[key].epoch == entry.epoch:
                entry.max_offset = max(entry.max_offset, before[key].max_offset)
        return answer


@fault
class ElectsUnregisteredFirst(GoodController):
    """In a set without history whoever asks is master, registered or not (Apache)."""

    def first_master(self, broker_set: BrokerSet, broker: int) -> int | None:  # noqa: ARG002
        return broker


@fault
class RefusesFirstMaster(GoodController):
    """In a set without history nobody is elected."""

    def first_master(self, broker_set: BrokerSet, broker: int) -> int | None:  # noqa: ARG002
        return None


@fault
class IgnoresDesignation(GoodController):
    """An administrator's choice does not count."""

    def choose(self, broker_set: BrokerSet, preferred: int | None) -> int | None:  # noqa: ARG002
        return super().choose(broker_set, None)


@fault
class DesignationFallsBack(GoodController):
    """When the designated broker cannot be master another one is elected."""

    def choose(self, broker_set: BrokerSet, preferred: int | None) -> int | None:
        chosen = super().choose(broker_set, preferred)
        return super().choose(broker_set, None) if chosen is None else chosen


@fault
class ElectsLivingMasterAgain(GoodController):
    """A living master is elected once more, in a new epoch, instead of being named."""

    def elect_master(self, request: Command) -> Answer:
        try:
            return super().elect_master(request)
        except Refused as refusal:
            name = (request.header.ext_fields or {}).get("brokerName") or ""
            if refusal.answer.code != ResponseCode.CONTROLLER_MASTER_STILL_EXIST:
                raise
            self.become_master(self.sets[name], self.sets[name].master or 0)
            return self.elected(self.sets[name])


# What an election changes


@fault
class ElectionKeepsEpoch(GoodController):
    """Another master serves in the epoch of the one before."""

    def become_master(self, broker_set: BrokerSet, broker: int) -> None:
        broker_set.master_epoch -= broker_set.master_epoch > 0
        super().become_master(broker_set, broker)


@fault
class ElectionEpochGrowsByTwo(GoodController):
    """An election counts the epoch twice."""

    def become_master(self, broker_set: BrokerSet, broker: int) -> None:
        broker_set.master_epoch += 1
        super().become_master(broker_set, broker)


@fault
class ElectionKeepsSetEpoch(GoodController):
    """An election changes the SyncStateSet under its old epoch."""

    def become_master(self, broker_set: BrokerSet, broker: int) -> None:
        broker_set.in_sync_epoch -= 1
        super().become_master(broker_set, broker)


@fault
class ElectionKeepsSet(GoodController):
    """An election leaves the SyncStateSet as it was."""

    def become_master(self, broker_set: BrokerSet, broker: int) -> None:
        before = broker_set.in_sync
        super().become_master(broker_set, broker)
        broker_set.in_sync = before or broker_set.in_sync


@fault
class ElectionIsForgotten(GoodController):
    """The answer names a new master; nothing is recorded."""

    def elect_master(self, request: Command) -> Answer:
        before = {name: replace(one) for name, one in self.sets.items()}
        answer = super().elect_master(request)
        self.sets = before
        return answer


@fault
class LostMasterStays(GoodController):
    """A dead master without a successor stays recorded, in his epoch."""

    def lose_master(self, broker_set: BrokerSet) -> None:
        pass


@fault
class LostMasterKeepsEpoch(GoodController):
    """A set loses its master without a new epoch."""

    def lose_master(self, broker_set: BrokerSet) -> None:
        broker_set.master = None


@fault
class LostMasterEmptiesSet(GoodController):
    """A set that loses its master loses its SyncStateSet."""

    def lose_master(self, broker_set: BrokerSet) -> None:
        super().lose_master(broker_set)
        broker_set.in_sync = []


# Who is alive


@fault
class TakesHeartbeatWithoutId(GoodController):
    """A heartbeat that names nobody is taken."""

    def heartbeat(self, request: Command) -> Answer:
        try:
            return super().heartbeat(request)
        except Refused:
            return Answer()


@fault
class IgnoresHeartbeats(GoodController):
    """A broker is alive for ever once it has sent a heartbeat."""

    def in_time(self, entry: Alive) -> bool:  # noqa: ARG002
        return True


@fault
class IgnoresHeartbeatTimeout(GoodController):
    """The timeout that a heartbeat carries does not count: ten seconds hold for everybody."""

    def heartbeat(self, request: Command) -> Answer:
        fields = dict(request.header.ext_fields or {})
        fields.pop("heartbeatTimeoutMills", None)
        return super().heartbeat(Command(replace(request.header, ext_fields=fields)))


@fault
class IgnoresLostConnections(GoodController):
    """A broker whose connection broke is alive until its heartbeats time out."""

    def connection_ended(self, waiting_bytes: int, channel: int) -> list[Effect]:  # noqa: ARG002
        return []


@fault
class KeepsFirstChannel(GoodController):
    """A broker belongs to the connection of its first heartbeat for ever (Apache)."""

    def heartbeat(self, request: Command) -> Answer:
        before = dict(self.alive)
        answer = super().heartbeat(request)
        for key, entry in self.alive.items():
            if key in before:
                entry.channel = before[key].channel
        return answer


@fault
class WaitsToBeAsked(GoodController):
    """A lost master is replaced only when somebody asks."""

    def replace_lost_master(self, broker_set: BrokerSet) -> None:
        pass


# 1008


@fault
class NotifiesNobody(GoodController):
    """No broker is told about an election."""

    def notify(self, broker_set: BrokerSet) -> None:
        pass


@fault
class NotifiesMasterOnly(GoodController):
    """Only the new master is told."""

    def notify(self, broker_set: BrokerSet) -> None:
        address = broker_set.address(broker_set.master) or ""
        self.pending.append(Tell(address, self.notification(broker_set).encode()))


@fault
class NotifiesOtherBrokersOnly(GoodController):
    """Everybody but the new master is told."""

    def notify(self, broker_set: BrokerSet) -> None:
        super().notify(broker_set)
        self.pending = [
            effect
            for effect in self.pending
            if not isinstance(effect, Tell) or effect.address != broker_set.address(broker_set.master)
        ]


@fault
class NotifiesWithoutBody(GoodController):
    """1008 carries no SyncStateSet: a broker of Apache's loses it."""

    def notification(self, broker_set: BrokerSet) -> Command:
        return Command(super().notification(broker_set).header)


@fault
class NotifiesOldEpoch(GoodController):
    """1008 names the epoch before the election: a broker takes it for an old one."""

    def notification(self, broker_set: BrokerSet) -> Command:
        return super().notification(replace(broker_set, master_epoch=broker_set.master_epoch - 1))


@fault
class NotifiesFirstAddress(GoodController):
    """1008 goes to the address of the check code, wherever the broker is now."""

    def notify(self, broker_set: BrokerSet) -> None:
        members = {
            broker: replace(member, address=member.check_code.split(";")[0])
            for broker, member in broker_set.members.items()
        }
        super().notify(replace(broker_set, members=members))


# 1011


@fault
class CleansLivingBroker(GoodController):
    """A living broker is removed without that having been asked for."""

    def check_cleanable(self, broker_set: BrokerSet, brokers: list[int] | None) -> None:
        if brokers is None:
            super().check_cleanable(broker_set, brokers)


@fault
class CleansSetWithMaster(GoodController):
    """A set with a master is removed without that having been asked for."""

    def check_cleanable(self, broker_set: BrokerSet, brokers: list[int] | None) -> None:
        if brokers is not None:
            super().check_cleanable(broker_set, brokers)


@fault
class CleanWipesAll(GoodController):
    """Removing one living broker removes its whole set (Apache)."""

    def clean_broker_data(self, request: Command) -> Answer:
        answer = super().clean_broker_data(request)
        ask = CleanBrokerDataRequest.from_ext_fields(request.header.ext_fields or {})
        if ask.is_clean_living_broker:
            self.sets.pop(ask.broker_name or "", None)
        return answer


@fault
class CleansNothing(GoodController):
    """1011 answers and removes nothing."""

    def remove_members(self, broker_set: BrokerSet, brokers: list[int]) -> None:
        pass


@fault
class CleanLeavesSyncStateSet(GoodController):
    """A removed broker stays in the SyncStateSet."""

    def remove_members(self, broker_set: BrokerSet, brokers: list[int]) -> None:
        before, epoch = broker_set.in_sync, broker_set.in_sync_epoch
        super().remove_members(broker_set, brokers)
        broker_set.in_sync, broker_set.in_sync_epoch = before, epoch


@fault
class CleanKeepsSetEpoch(GoodController):
    """A removal changes the SyncStateSet under its old epoch (Apache)."""

    def remove_members(self, broker_set: BrokerSet, brokers: list[int]) -> None:
        epoch = broker_set.in_sync_epoch
        super().remove_members(broker_set, brokers)
        broker_set.in_sync_epoch = epoch


@fault
class CleanForgetsGrantedIds(GoodController):
    """When a removal empties the SyncStateSet, ids are granted a second time (Apache)."""

    def remove_members(self, broker_set: BrokerSet, brokers: list[int]) -> None:
        super().remove_members(broker_set, brokers)
        if not broker_set.in_sync:
            self.granted.pop(broker_set.name, None)


@fault
class ToleratesBadIdList(GoodController):
    """What is no number in a list of ids is passed over."""

    def ids_to_clean(self, text: str | None) -> list[int] | None:
        parts = [part for part in (text or "").split(";") if part.isdigit()]
        return super().ids_to_clean(";".join(parts)) if text else None


@fault
class EmptySetStaysKnown(GoodController):
    """A set whose last id was removed is still known."""

    def remove_members(self, broker_set: BrokerSet, brokers: list[int]) -> None:
        super().remove_members(broker_set, brokers)
        self.sets.setdefault(broker_set.name, broker_set)
