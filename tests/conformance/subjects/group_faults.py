"""Groups of controllers that do it wrong: each overrides one choice of the good one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import RequestCode
from tests.conformance.subjects.controller_admin import GoodController
from tests.conformance.subjects.group import GoodGroup, Member, before
from tests.conformance.subjects.records import BrokerSet


class EachNamesItself(GoodGroup):
    """Every member takes itself for the active one."""

    def names_active(self, member: Member) -> str | None:
        return member.address

    def says_active(self, member: Member) -> bool:  # noqa: ARG002
        return True


class AllSayActive(GoodGroup):
    """All name the same one, and say of themselves that they are active."""

    def says_active(self, member: Member) -> bool:  # noqa: ARG002
        return True


class NamesTheLost(GoodGroup):
    """Whoever was active first is named for ever."""

    def names_active(self, member: Member) -> str | None:  # noqa: ARG002
        return self.addresses[0]


class NeedsEverybody(GoodGroup):
    """Nobody is active unless all three live."""

    def elects(self, able: Sequence[Member]) -> Member | None:
        return able[0] if len(able) == len(self.addresses) else None


class NeedsNobody(GoodGroup):
    """A member that is left alone stays active."""

    def elects(self, able: Sequence[Member]) -> Member | None:
        return able[0] if able else None


class ComesBackActive(GoodGroup):
    """Who is started takes the lead from whoever has it."""

    def says_active(self, member: Member) -> bool:
        return list(self.running.values())[-1].member is member


class FollowersRead(GoodGroup):
    """Who is not active answers who is master all the same."""

    def refuses(self, member: Member, code: int) -> bool:
        return code != RequestCode.CONTROLLER_GET_REPLICA_INFO and super().refuses(member, code)


class FollowersWrite(GoodGroup):
    """Who is not active does what it is asked."""

    def refuses(self, member: Member, code: int) -> bool:  # noqa: ARG002
        return False


class RefusesAndDoes(GoodGroup):
    """Who is not active says that it refuses, and does what it was asked."""

    def refused(self, member: Member, request: Command) -> None:
        GoodController.answer_to(member, request)


class ElectsNoMore(GoodGroup):
    """Only the first active controller looks for brokers that are lost."""

    first: Member | None = None

    def changes(self, member: Member) -> None:
        self.first = self.first or member
        super().changes(member)

    def acts(self, member: Member) -> bool:
        return member is self.first


class ForgetsCodes(GoodGroup):
    """Whose an id is, is known to the one that granted it alone."""

    def changes(self, member: Member) -> None:
        for broker_set in self.sets.values():
            for each in broker_set.members.values():
                each.check_code = ""
        super().changes(member)


class HalfRecords(GoodGroup):
    """That an id was granted survives, and to whom does not."""

    def changes(self, member: Member) -> None:
        for broker_set in self.sets.values():
            broker_set.members.clear()
        super().changes(member)


class StopsAtAnId(GoodGroup):
    """A registration without an id is the last request that is answered."""

    stopped = False

    def answers(self, member: Member, request: Command) -> bool:  # noqa: ARG002
        fields = request.header.ext_fields or {}
        registers = request.header.code == RequestCode.CONTROLLER_REGISTER_BROKER
        self.stopped |= registers and "brokerId" not in fields
        return not self.stopped


class FollowersElect(GoodGroup):
    """Who is not active replaces a master that is lost for it alone."""

    def acts(self, member: Member) -> bool:  # noqa: ARG002
        return True


class StandsStillAndGoesOn(GoodGroup):
    """A member that stood still as the active one goes on as such, on what it knew."""

    stood: Member | None = None

    def stops_still(self, member: Member) -> None:
        self.stood = member
        member.sets, member.granted = before(self)

    def refuses(self, member: Member, code: int) -> bool:
        return member is not self.stood and super().refuses(member, code)


class ForgetsIds(GoodGroup):
    """Ids that were granted are not known to who follows."""

    def changes(self, member: Member) -> None:
        self.granted.clear()
        for broker_set in self.sets.values():
            broker_set.members.clear()
        super().changes(member)


class RemembersWithoutStores(GoodGroup):
    """What a group knew is known to those that begin on empty stores in its place."""

    def all_forgotten(self) -> None:
        """Nothing is."""


class GrantsOnWithoutStores(GoodGroup):
    """Those that begin on empty stores know of no broker, and go on with the ids."""

    def all_forgotten(self) -> None:
        self.sets.clear()


class ForgetsTheSet(GoodGroup):
    """The last SyncStateSet is not known to who follows."""

    def changes(self, member: Member) -> None:
        for broker_set in self.sets.values():
            broker_set.in_sync = [each for each in broker_set.in_sync if each == broker_set.master]
        super().changes(member)


class CountsSetsAgain(GoodGroup):
    """The epoch of the SyncStateSet begins anew with each active controller."""

    def changes(self, member: Member) -> None:
        for broker_set in self.sets.values():
            broker_set.in_sync_epoch = 1
        super().changes(member)


class CountsMastersAgain(GoodGroup):
    """masterEpoch begins anew with each active controller."""

    def changes(self, member: Member) -> None:
        for broker_set in self.sets.values():
            broker_set.master_epoch = 0
        super().changes(member)


class TrustsNobody(GoodGroup):
    """Who becomes active takes every broker that it knows for lost."""

    def changes(self, member: Member) -> None:
        member.pending += member.lose(list(member.alive))


class WaitsForEver(GoodGroup):
    """A master that the new active controller never heard is never missed."""

    def changes(self, member: Member) -> None:
        """Nothing begins."""


class ElectsAnybody(GoodGroup):
    """After a change of the active controller whoever lives may become master."""

    changed = 0

    def changes(self, member: Member) -> None:
        self.changed += 1
        super().changes(member)

    def candidates(self, member: Member, broker_set: BrokerSet, found: list[int]) -> list[int]:
        if self.changed < 2:
            return found
        alive = [each for each in broker_set.members if member.is_alive(broker_set, each)]
        return sorted(alive, reverse=True)[:1]


class ForgetsAll(GoodGroup):
    """What the members know is in memory alone."""

    def all_gone(self) -> None:
        self.sets.clear()
        self.granted.clear()


class ForgetsIdsAtStart(GoodGroup):
    """Which ids were granted is in memory alone."""

    def all_gone(self) -> None:
        self.granted.clear()
        for broker_set in self.sets.values():
            broker_set.members.clear()


CAUGHT: Mapping[type[GoodGroup], Sequence[str]] = {
    EachNamesItself: ["metadata/RIP44-METADATA-1/1"],
    AllSayActive: ["metadata/RIP44-METADATA-1/2"],
    NamesTheLost: ["metadata/RIP44-METADATA-1/3", "metadata/RIP44-METADATA-1/4"],
    NeedsEverybody: [
        "metadata/RIP44-METADATA-1/6",
        "restart/RIP44-STATE-3/3",
        "restart/RIP44-GROUP-1/3",
    ],
    RefusesAndDoes: ["follower/RIP44-GROUP-2/7"],
    ElectsNoMore: ["survive/RIP44-ELECT-1/1"],
    ForgetsCodes: ["survive/BID-APPLY-2/1"],
    HalfRecords: ["survive/BID-APPLY-2/2"],
    StopsAtAnId: ["survive/BID-COMPAT-2/1"],
    NeedsNobody: ["restart/RIP44-GROUP-1/2", "restart/BID-NEXT-2/1"],
    ComesBackActive: ["metadata/RIP44-METADATA-1/5"],
    FollowersRead: ["follower/RIP44-GROUP-2/4"],
    FollowersWrite: [f"follower/RIP44-GROUP-2/{number}" for number in (1, 2, 3, 5, 6, 8)],
    FollowersElect: ["follower/RIP44-GROUP-3/1"],
    StandsStillAndGoesOn: ["follower/RIP44-GROUP-2/9", "follower/RIP44-GROUP-2/10"],
    ForgetsIds: ["survive/BID-APPLY-4/1", "survive/BID-APPLY-4/2", "restart/RIP44-GROUP-1/1"],
    ForgetsTheSet: ["survive/RIP44-GROUP-1/1"],
    CountsSetsAgain: ["survive/RIP44-GROUP-1/2", "survive/RIP44-GROUP-1/3"],
    CountsMastersAgain: ["survive/RIP44-ELECT-9/1"],
    TrustsNobody: ["survive/RIP44-GROUP-1/4"],
    WaitsForEver: ["survive/RIP44-ELECT-1/3"],
    ElectsAnybody: ["survive/RIP44-ELECT-1/2"],
    ForgetsAll: ["restart/RIP44-STATE-3/1", "restart/RIP44-STATE-3/2"],
    ForgetsIdsAtStart: ["restart/BID-APPLY-4/1"],
    RemembersWithoutStores: ["restart/BID-UPGRADE-1/1"],
    GrantsOnWithoutStores: ["restart/BID-UPGRADE-1/1"],
}
"""Which cases fail each, of those that must."""
