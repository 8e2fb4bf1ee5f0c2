"""Faults of a controller that only a case of their own tells from what is right; entered in FAULTS too.

What the audits and the known defects of releases name, and what two edges, guards or names of the
specification that look alike invite. A docstring says what is wrong.
"""

from __future__ import annotations

from dataclasses import replace

from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import RemotingFlag, ResponseCode
from replispec.wire.rocketmq.controller import (
    AlterSyncStateSetResponse,
    BrokerHeartbeatRequest,
    ElectMasterResponse,
    GetMetadataResponse,
    SyncStateSet,
)
from replispec.wire.rocketmq.remoting import RemotingHeader
from tests.conformance.subjects.controller_admin import GoodController
from tests.conformance.subjects.controller_faults import fault
from tests.conformance.subjects.records import Answer, BrokerSet, Effect, Member, Refused

NAME_LETTERS = 32
NOBODY = "127.0.0.1:1"


# What it says of itself, and how


@fault
class NamesALeaderElsewhere(GoodController):
    """Asked for the active controller it names an address where nobody listens."""

    def get_metadata(self, request: Command) -> Answer:
        answer = super().get_metadata(request)
        assert isinstance(answer.header, GetMetadataResponse)
        answer.header.controller_leader_address = NOBODY
        return answer


@fault
class NamesNoPeers(GoodController):
    """The members of its group are an empty text."""

    def get_metadata(self, request: Command) -> Answer:
        answer = super().get_metadata(request)
        assert isinstance(answer.header, GetMetadataResponse)
        answer.header.peers = ""
        return answer


@fault
class MarksAnswersOneway(GoodController):
    """Every answer has the bit of one-way commands, too."""

    def answer_command(self, request: Command, answer: Answer) -> Command:
        command = super().answer_command(request, answer)
        command.header.flag |= RemotingFlag.ONEWAY
        return command


@fault
class WantsAnswersToNotifications(GoodController):
    """A notification is a request that is to be answered."""

    def notification(self, broker_set: BrokerSet) -> Command:
        command = super().notification(broker_set)
        return Command(replace(command.header, flag=RemotingFlag.REQUEST), command.body)


@fault
class UncleanOptionDoesNothing(GoodController):
    """The unclean option is taken and told, and elects nobody."""

    def candidates(self, broker_set: BrokerSet) -> list[int]:
        return [each for each in super().candidates(broker_set) if each in broker_set.in_sync]


@fault
class UncleanOptionPutsOutsidersLevel(GoodController):
    """With the unclean option brokers outside the SyncStateSet stand beside its members."""

    def candidates(self, broker_set: BrokerSet) -> list[int]:
        if self.properties["enableElectUncleanMaster"] != "true":
            return super().candidates(broker_set)
        return [broker for broker in broker_set.members if self.is_alive(broker_set, broker)]


@fault
class NotifyOptionDoesNothing(GoodController):
    """Notifications are sent though they were switched off."""

    def notify(self, broker_set: BrokerSet) -> None:
        told = self.properties["notifyBrokerRoleChanged"]
        self.properties["notifyBrokerRoleChanged"] = "true"
        super().notify(broker_set)
        self.properties["notifyBrokerRoleChanged"] = told


# Names, numbers and sets that are taken for others


class _Renames(GoodController):
    """Knows broker sets by another text than their name."""

    def named(self, name: str) -> str:
        """The name by which a set is kept."""
        raise NotImplementedError

    def answer_to(self, request: Command) -> Answer:
        fields = dict(request.header.ext_fields or {})
        if fields.get("brokerName"):
            fields["brokerName"] = self.named(fields["brokerName"] or "")
        header: RemotingHeader = replace(request.header, ext_fields=fields or None)
        return super().answer_to(Command(header, request.body))


@fault
class MixesUpLongNames(_Renames):
    """Of a set's name the first letters count."""

    def named(self, name: str) -> str:
        return name[:NAME_LETTERS]


@fault
class MixesUpCapitals(_Renames):
    """Capitals in a set's name do not count."""

    def named(self, name: str) -> str:
        return name.lower()


@fault
class ComparesLogsAsFloats(GoodController):
    """Ends of logs are compared as floating numbers."""

    def rank(self, broker_set: BrokerSet, broker: int) -> tuple[int, ...]:
        epoch, log, *others = super().rank(broker_set, broker)
        return epoch, int(float(log)), *others


@fault
class AcceptsMembersOfOtherSets(GoodController):
    """Whoever is registered and alive in any set may become a member."""

    def check_registered(self, broker_set: BrokerSet, broker: int) -> None:
        if not any(broker in each.members for each in self.sets.values()):
            super().check_registered(broker_set, broker)

    def check_member_alive(self, broker_set: BrokerSet, broker: int) -> None:
        if not any(known == broker for _, known in self.alive):
            super().check_member_alive(broker_set, broker)


@fault
class BelievesEpochsOfHeartbeats(GoodController):
    """A heartbeat that names a later epoch moves the set's masterEpoch."""

    def heartbeat(self, request: Command) -> Answer:
        answer = super().heartbeat(request)
        beat = BrokerHeartbeatRequest.from_ext_fields(request.header.ext_fields or {})
        broker_set = self.sets.get(beat.broker_name or "")
        if broker_set is not None and broker_set.master is not None:
            broker_set.master_epoch = max(broker_set.master_epoch, beat.epoch or 0)
        return answer


@fault
class FailsOverEverySet(GoodController):
    """When a master is lost every set has an election."""

    def replace_lost_master(self, broker_set: BrokerSet) -> None:
        super().replace_lost_master(broker_set)
        for other in self.sets.values():
            if other is not broker_set and other.master is not None:
                self.become_master(other, other.master)


# Elections


@fault
class ElectsAtTheLossWithoutHearing(GoodController):
    """A lost master is replaced by what was said before the loss."""

    def master_lost(self, broker_set: BrokerSet) -> None:
        self.replace_lost_master(broker_set)


@fault
class WaitsForWhoIsNotHeard(GoodController):
    """Until each member was heard once more nobody is elected, however long that takes."""

    def master_lost(self, broker_set: BrokerSet) -> None:
        super().master_lost(broker_set)
        hearing = self.hearings.get(broker_set.name)
        if hearing is not None:
            hearing.until_s += 1e9


@fault
class ElectsWhileMembersCopy(GoodController):
    """Whoever still copies from a lost master is waited for, and not told to let go of it."""

    def let_go(self, name: str) -> None:
        self.end_hearing(name)


@fault
class KeepsAMissedMasterToItself(GoodController):
    """Members are notified that something is new, and asked nothing of a missed master."""

    def missed(self, name: str) -> bool:  # noqa: ARG002
        return False


@fault
class ElectsByLogsBeforeTheyLetGo(GoodController):
    """What members say once they have let go of a lost master does not count."""

    def heartbeat(self, request: Command) -> Answer:
        fields = request.header.ext_fields or {}
        name = fields.get("brokerName") or ""
        before = self.alive.get((name, int(fields.get("brokerId") or 0)))
        if self.missed(name) and before is not None:
            fields = {**fields, "maxOffset": str(before.max_offset)}
        return super().heartbeat(Command(replace(request.header, ext_fields=fields), request.body))


@fault
class MissesAMasterThatIsBack(GoodController):
    """A master that is heard again while it is let go of is replaced all the same."""

    def end_hearing(self, name: str) -> None:
        letting_go, broker_set = self.missed(name), self.sets[name]
        super().end_hearing(name)
        if letting_go and broker_set.master is not None and self.is_alive(broker_set, broker_set.master):
            self.become_master(broker_set, broker_set.master)


@fault
class BeginsEpochsAgainInAnEmptiedSet(GoodController):
    """A set that was removed begins its epochs at 0 when its name is used again."""

    def forget(self, broker_set: BrokerSet) -> None:
        super().forget(broker_set)
        del self.emptied[broker_set.name]


@fault
class ReelectsWhenAFollowerDies(GoodController):
    """The loss of any broker of a set is an election, which the living master wins in a new epoch."""

    def lose(self, brokers: list[tuple[str, int]]) -> list[Effect]:
        lost = [self.sets[name] for name, broker in brokers if name in self.sets]
        followers = [each for each in lost if each.master is not None and self.is_alive(each, each.master)]
        told = super().lose(brokers)
        for broker_set in followers:
            if broker_set.master is not None:
                self.become_master(broker_set, broker_set.master)
        pending, self.pending = self.pending, []
        return [*told, *pending]


@fault
class GivesAReturningMasterItsRoleBack(GoodController):
    """Whoever led a set first leads it again as soon as it is heard."""

    def heartbeat(self, request: Command) -> Answer:
        answer = super().heartbeat(request)
        beat = BrokerHeartbeatRequest.from_ext_fields(request.header.ext_fields or {})
        broker_set = self.sets.get(beat.broker_name or "")
        if broker_set is not None and not broker_set.never_led and beat.broker_id == 1 != broker_set.master:
            self.become_master(broker_set, 1)
        return answer


@fault
class DesignatesOutsideTheSet(GoodController):
    """An administrator may make any living broker master."""

    def choose(self, broker_set: BrokerSet, preferred: int | None) -> int | None:
        if preferred is not None and preferred in broker_set.members and self.is_alive(broker_set, preferred):
            return preferred
        return super().choose(broker_set, preferred)


@fault
class TellsTheElectedTheEpochBefore(GoodController):
    """The answer to an election names the masterEpoch of before."""

    def elected(self, broker_set: BrokerSet) -> Answer:
        answer = super().elected(broker_set)
        assert isinstance(answer.header, ElectMasterResponse)
        answer.header.master_epoch = broker_set.master_epoch - 1
        return answer


@fault
class KeepsTheEpochOfARemovedMaster(GoodController):
    """Who follows a removed master has its masterEpoch."""

    def remove_members(self, broker_set: BrokerSet, brokers: list[int]) -> None:
        before = broker_set.master, broker_set.master_epoch
        super().remove_members(broker_set, brokers)
        if before[0] is not None and broker_set.master is None:
            broker_set.master_epoch = before[1] - 1


# Identities and the SyncStateSet


@fault
class TakesAChangeWithoutItsEpoch(GoodController):
    """A change that does not say on which set it builds is taken."""

    def alter_sync_state_set(self, request: Command) -> Answer:
        new = SyncStateSet.decode(request.body)
        if new.sync_state_set_epoch is None:
            name = (request.header.ext_fields or {}).get("brokerName") or ""
            new.sync_state_set_epoch = self.sets[name].in_sync_epoch if name in self.sets else 0
            request = Command(request.header, new.encode())
        return super().alter_sync_state_set(request)


@fault
class AlterTellsTheEpochBefore(GoodController):
    """The answer to a change names the syncStateSetEpoch of before, its body the new one."""

    def alter_sync_state_set(self, request: Command) -> Answer:
        answer = super().alter_sync_state_set(request)
        assert isinstance(answer.header, AlterSyncStateSetResponse)
        answer.header.new_sync_state_set_epoch = (answer.header.new_sync_state_set_epoch or 0) - 1
        return answer


@fault
class RecordsMembersTwice(GoodController):
    """A member that is named twice stands in the set twice."""

    def change_in_sync(self, broker_set: BrokerSet, members: list[int]) -> None:
        super().change_in_sync(broker_set, members)
        broker_set.in_sync = list(members)


@fault
class CleansTheFirstIdOnly(GoodController):
    """Of a list of ids the first is removed."""

    def ids_to_clean(self, text: str | None) -> list[int] | None:
        brokers = super().ids_to_clean(text)
        return brokers[:1] if brokers else brokers


@fault
class RefusesTheAnswerOfWhoAsksTwice(GoodController):
    """A broker that registers again is refused: its answer had been lost."""

    def register_broker(self, request: Command) -> Answer:
        fields = request.header.ext_fields or {}
        key = fields.get("brokerName"), fields.get("brokerId"), fields.get("brokerAddress")
        if key in self.seen:
            raise Refused(ResponseCode.CONTROLLER_INVALID_REQUEST, "you are registered")
        answer = super().register_broker(request)
        self.seen = {*self.seen, key}
        return answer

    seen: set[tuple[str | None, ...]] = set()  # noqa: RUF012  # replaced, never changed


@fault
class NamesTheRemoved(GoodController):
    """Who was removed is still named by elections."""

    def elected(self, broker_set: BrokerSet) -> Answer:
        there = dict(broker_set.members)
        broker_set.members |= self.removed.get(broker_set.name, {})
        answer = super().elected(broker_set)
        broker_set.members = there
        return answer

    def remove_members(self, broker_set: BrokerSet, brokers: list[int]) -> None:
        gone = {each: broker_set.members[each] for each in brokers if each in broker_set.members}
        self.removed = {**self.removed, broker_set.name: gone}
        super().remove_members(broker_set, brokers)

    removed: dict[str, dict[int, Member]] = {}  # noqa: RUF012  # replaced, never changed


@fault
class KeepsTheSetOfTheEmptied(GoodController):
    """A set of which everybody was removed begins with the members that it had."""

    def forget(self, broker_set: BrokerSet) -> None:
        super().forget(broker_set)
        self.emptied[broker_set.name].in_sync = list(broker_set.in_sync)


@fault
class CountsNoRemovalWithoutMaster(GoodController):
    """Removing a member of a set without a master leaves the epoch of its SyncStateSet."""

    def remove_members(self, broker_set: BrokerSet, brokers: list[int]) -> None:
        led, epoch = broker_set.master is not None, broker_set.in_sync_epoch
        super().remove_members(broker_set, brokers)
        if not led:
            broker_set.in_sync_epoch = epoch


@fault
class TakesWhoAppliesTwiceForLed(GoodController):
    """A set whose first broker applied twice is taken for one that had a master."""

    def apply_broker_id(self, request: Command) -> Answer:
        name = (request.header.ext_fields or {}).get("brokerName") or ""
        known = name in self.sets and self.sets[name].never_led
        answer = super().apply_broker_id(request)
        if known and len(self.sets[name].members) == 1:
            self.sets[name].began_epoch = -1
        return answer
