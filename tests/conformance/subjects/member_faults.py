"""Faults of a controller that show with a member that does something once more, with sets that are lost
together, and with numbers that lie further apart than one; entered in FAULTS too."""

from __future__ import annotations

from dataclasses import replace

from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import ResponseCode
from replispec.wire.rocketmq.controller import (
    ApplyBrokerIdRequest,
    BrokerHeartbeatRequest,
    RegisterBrokerToControllerRequest,
)
from tests.conformance.subjects.controller_admin import GoodController
from tests.conformance.subjects.controller_faults import fault
from tests.conformance.subjects.records import Answer, BrokerSet, Effect, Refused

FAR = 2
BITS_47 = (1 << 47) - 1
FOUR = 4
THREE = 3


@fault
class ElectsAnyLivingThatIsNamed(GoodController):
    """In a set that lost its master, whoever an administrator names is elected, in sync or not."""

    def choose(self, broker_set: BrokerSet, preferred: int | None) -> int | None:
        named = preferred is not None and preferred in broker_set.members
        if named and broker_set.master is None and self.is_alive(broker_set, preferred or 0):
            return preferred
        return super().choose(broker_set, preferred)


@fault
class TakesMuchOlderSetEpochs(GoodController):
    """A syncStateSetEpoch that is older by two or more is not compared."""

    def check_set_epoch(self, broker_set: BrokerSet, epoch: int) -> None:
        if epoch > broker_set.in_sync_epoch - FAR:
            super().check_set_epoch(broker_set, epoch)


@fault
class TakesMuchOtherMasterEpochs(GoodController):
    """A masterEpoch that is another by two or more is not compared."""

    def check_master_epoch(self, broker_set: BrokerSet, epoch: int) -> None:
        if abs(epoch - broker_set.master_epoch) < FAR:
            super().check_master_epoch(broker_set, epoch)


@fault
class ReplacesOneMasterAtATime(GoodController):
    """Of several masters that are lost at once the first is replaced, and nobody looks for the others."""

    def lose(self, brokers: list[tuple[str, int]]) -> list[Effect]:
        led = [key for key in brokers if self._leads(*key)]
        for key in led[1:]:
            del self.alive[key]
        return super().lose([key for key in brokers if key not in led[1:]])

    def _leads(self, name: str, broker: int) -> bool:
        broker_set = self.sets.get(name)
        return broker_set is not None and broker_set.master == broker


class _AppliesAgain(GoodController):
    """Looks at applications that were granted before."""

    def apply_broker_id(self, request: Command) -> Answer:
        ask = ApplyBrokerIdRequest.from_ext_fields(request.header.ext_fields or {})
        known = self.sets.get(ask.broker_name or "")
        is_again = known is not None and ask.applied_broker_id in known.members
        answer = super().apply_broker_id(request)
        if known is not None and is_again:
            self.again(known, ask.applied_broker_id or 0)
        return answer

    def again(self, broker_set: BrokerSet, broker: int) -> None:
        """This broker was granted its id again."""
        raise NotImplementedError


@fault
class ApplyingAgainLeavesTheSet(_AppliesAgain):
    """A member that applies again is out of the SyncStateSet: its disk may be new."""

    def again(self, broker_set: BrokerSet, broker: int) -> None:
        if broker in broker_set.in_sync and broker != broker_set.master:
            self.change_in_sync(broker_set, [each for each in broker_set.in_sync if each != broker])


@fault
class ApplyingAgainPutsTheAddressBack(_AppliesAgain):
    """A member that applies again is reached where its check code was written."""

    def again(self, broker_set: BrokerSet, broker: int) -> None:
        held = broker_set.members[broker]
        held.address = held.check_code.split(";")[0]


@fault
class RefusesToDropTwo(GoodController):
    """A SyncStateSet shrinks by one member at a time."""

    def check_master_stays(self, broker_set: BrokerSet, members: list[int]) -> None:
        super().check_master_stays(broker_set, members)
        if len(broker_set.in_sync) - len(members) >= FAR:
            raise Refused(ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED, "too many at once")


@fault
class OneBrokerAtAnAddress(GoodController):
    """Who registers at the address of another member takes that one's identity away."""

    def register_broker(self, request: Command) -> Answer:
        answer = super().register_broker(request)
        ask = RegisterBrokerToControllerRequest.from_ext_fields(request.header.ext_fields or {})
        broker_set = self.sets[ask.broker_name or ""]
        for broker, member in list(broker_set.members.items()):
            if broker not in (ask.broker_id, broker_set.master) and member.address == ask.broker_address:
                del broker_set.members[broker]
        return answer


@fault
class NotifiesWithTheSetEpochBefore(GoodController):
    """The body of a notification has the syncStateSetEpoch from before the election; its header is right."""

    def notification(self, broker_set: BrokerSet) -> Command:
        told = super().notification(broker_set)
        body = replace(
            broker_set.sync_state_set(), sync_state_set_epoch=broker_set.in_sync_epoch - 1
        ).encode()
        return Command(told.header, body)


@fault
class HearsNoHeartbeatOfAnOlderEpoch(GoodController):
    """A heartbeat of a smaller epoch than the one before does not keep its sender alive."""

    def heartbeat(self, request: Command) -> Answer:
        beat = BrokerHeartbeatRequest.from_ext_fields(request.header.ext_fields or {})
        before = self.alive.get((beat.broker_name or "", beat.broker_id or 0))
        if before is not None and (beat.epoch or 0) < before.epoch:
            return Answer()
        return super().heartbeat(request)


@fault
class GrantsAgainInOneClusterAlone(GoodController):
    """An application is not known again when it names another cluster."""

    def apply_broker_id(self, request: Command) -> Answer:
        ask = ApplyBrokerIdRequest.from_ext_fields(request.header.ext_fields or {})
        known = self.sets.get(ask.broker_name or "")
        if known is not None and known.cluster != ask.cluster_name:
            raise Refused(ResponseCode.CONTROLLER_BROKER_ID_INVALID, "another cluster")
        return super().apply_broker_id(request)


@fault
class GrantsFourIds(GoodController):
    """A set has no more than four brokers."""

    def may_grant(self, name: str, broker: int) -> bool:
        return broker <= FOUR and super().may_grant(name, broker)


@fault
class RanksEpochsAsTexts(GoodController):
    """The epoch 9 is later than the epoch 10."""

    def rank(self, broker_set: BrokerSet, broker: int) -> tuple[int, ...]:
        _, *others = super().rank(broker_set, broker)
        return -ord(str(self.alive[broker_set.name, broker].epoch)[0]), *others


@fault
class RanksLogsByFortySevenBits(GoodController):
    """Of a log's end 47 bits are compared."""

    def rank(self, broker_set: BrokerSet, broker: int) -> tuple[int, ...]:
        epoch, log, *others = super().rank(broker_set, broker)
        return epoch, -(-log & BITS_47), *others


@fault
class RefusesFourInSync(GoodController):
    """A SyncStateSet has three members at most."""

    def check_master_stays(self, broker_set: BrokerSet, members: list[int]) -> None:
        super().check_master_stays(broker_set, members)
        if len(members) > THREE:
            raise Refused(ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED, "too many")


@fault
class TakesMuchNewerSetEpochs(GoodController):
    """A syncStateSetEpoch that is ahead by two or more is not compared."""

    def check_set_epoch(self, broker_set: BrokerSet, epoch: int) -> None:
        if epoch < broker_set.in_sync_epoch + FAR:
            super().check_set_epoch(broker_set, epoch)
