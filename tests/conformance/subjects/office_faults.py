"""Brokers that take a role wrongly: each overrides one choice of the good one."""

from __future__ import annotations

from collections.abc import Mapping

import trio

from tests.conformance.subjects.asking import Peer
from tests.conformance.subjects.office import GoodBroker
from tests.conformance.subjects.told import NOBODY, Link, Told
from tests.conformance.subjects.watched_faults import (
    ConfirmsAll,
    ConfirmsItsLog,
    KeepsConfirmed,
    LosesPatience,
    MournsInSilence,
    NotesOneEpoch,
    NotesRunsAlone,
    Restless,
    SkipsTheEarly,
    TakesImpossibleEpochs,
    WaitsForEver,
)


class AsksInAnybody(GoodBroker):
    """A replica that has nothing is asked in."""

    def may_join(self, link: Link) -> bool:
        return link.acknowledged >= 0


class AsksInNobody(GoodBroker):
    """No replica is ever asked in."""

    def may_join(self, link: Link) -> bool:  # noqa: ARG002
        return False


class StaysWithItsFirstSet(GoodBroker):
    """What it asks for builds on the epoch of the set with which it began."""

    def builds_on(self) -> int:
        return min(self.office.set_epoch, 1)


class StaysWithItsFirstEpoch(GoodBroker):
    """What it asks for is asked in its first masterEpoch."""

    def under(self) -> int:
        return min(self.office.epoch, 1)


class KeepsTheGone(GoodBroker):
    """Who is gone stays a member."""

    def awaited(self) -> bool:
        return True


class BuildsOnTheRefused(GoodBroker):
    """A set that was refused is taken for the set."""

    def after_a_refused_set(self, asked: frozenset[int]) -> None:
        self.office.members = asked


class AsksForTwoAtOnce(GoodBroker):
    """What is asked for waits for nothing that was asked before."""

    async def _request(self, asked: frozenset[int], epoch: int, set_epoch: int) -> None:
        self.office.proposed = NOBODY
        if asked != getattr(self, "before", NOBODY):
            self.before = asked
            self.nursery.start_soon(super()._request, asked, epoch, set_epoch)
            # It is ended with those that heartbeats go to.
            self.beats = [*self.beats, self.altering]
            self.altering = Peer(self.leader)


class MakesTheNextSetEarly(GoodBroker):
    """What a replica reports while a set is asked for is the next one, made of the set before."""

    async def _request(self, asked: frozenset[int], epoch: int, set_epoch: int) -> None:
        before = self.office.members
        await super()._request(asked, epoch, set_epoch)
        late = frozenset(link.broker_id for link in self.links if self.may_join(link)) - asked
        if late and self.office.members == asked:
            self.office.proposed = before | late


class WondersNot(GoodBroker):
    """Who was refused does not ask who is master."""

    def wonders(self) -> None:
        pass


class AsksAgainAtOnce(GoodBroker):
    """Who was refused asks again without a pause."""

    def after_a_refused_set(self, asked: frozenset[int]) -> None:
        super().after_a_refused_set(asked)
        self.office.refused_until_s = 0.0


class AsksNeverAgain(GoodBroker):
    """Who was refused once is asked in no more."""

    def after_a_refused_set(self, asked: frozenset[int]) -> None:
        super().after_a_refused_set(asked)
        self.office.refused_until_s = 1e9


class PausesAlike(GoodBroker):
    """However often it was refused, its pause is the first one."""

    def after_a_refused_set(self, asked: frozenset[int]) -> None:
        super().after_a_refused_set(asked)
        self.office.pause_s = 1.0


class GivesUpTheUnanswered(GoodBroker):
    """What had no answer is not asked for again."""

    def pause_when_open_s(self) -> float:
        return 1e9


class HurriesTheBusy(GoodBroker):
    """Who is busy is asked again at once."""

    def pause_when_open_s(self) -> float:
        return 0.0


class ForgetsTheOpen(GoodBroker):
    """What may still be decided holds up nothing."""

    def holds(self) -> bool:
        if self.office.doubtful:
            self.drops_proposal()
        return False


class DeafToSets(GoodBroker):
    """A set that is told within a masterEpoch is not heard."""

    def takes_set(self, told: Told) -> bool:  # noqa: ARG002
        return False


class TakesAnySet(GoodBroker):
    """Every set that is told is taken."""

    def takes_set(self, told: Told) -> bool:  # noqa: ARG002
        return True


class BeginsAtNothing(GoodBroker):
    """Each masterEpoch begins where the log does."""

    def begins_at(self) -> int:
        return 0


class KeepsEpochsQuiet(GoodBroker):
    """Replicas that are connected are not told of a new masterEpoch."""

    def announces_epochs(self) -> bool:
        return False


class KeepsItsWants(GoodBroker):
    """What it wanted in one masterEpoch it wants in the next."""

    def forgets_wants(self) -> None:
        pass


class WaitsForItsWants(GoodBroker):
    """What was open in one masterEpoch is waited for in the next."""

    def forgets_wants(self) -> None:
        self.office.held_until_s = 1e9 if self.office.proposed else 0.0


class KeepsItsOffice(GoodBroker):
    """Once master it takes messages for ever."""

    def serves(self) -> bool:
        self.served = super().serves() or getattr(self, "served", False)
        return self.served


class ResignsWhenForgotten(GoodBroker):
    """A master whose controllers know it no more is none."""

    def forgotten(self) -> None:
        self.office.master = 0


class GivesNothingWhenForgotten(GoodBroker):
    """A master whose controllers know it no more takes messages, and gives none."""

    def forgotten(self) -> None:
        self.alone = True

    def gives(self) -> bool:
        return super().gives() and not getattr(self, "alone", False)


class BeginsWhenForgotten(GoodBroker):
    """A master whose controllers know it no more makes itself one, of the next masterEpoch."""

    def forgotten(self) -> None:
        office = self.office
        self.take(Told(self.store.told, office.epoch + 1, office.members, office.set_epoch))


class KeepsFeeding(GoodBroker):
    """Once master it feeds replicas for ever."""

    def feeds(self) -> bool:
        self.served = self.serves() or getattr(self, "served", False)
        return self.served


class BelievesAnybody(GoodBroker):
    """What is told counts, however old it is."""

    def is_older(self, told: Told) -> bool:
        return told.epoch == self.office.epoch and not self.takes_set(told)

    def take(self, told: Told) -> None:
        if told.epoch < self.office.epoch:
            self.office.epoch = -1
        super().take(told)


class AsksNobody(GoodBroker):
    """Who is master it learns from notices alone."""

    def asks_regularly(self) -> bool:
        return False


class SlowToAsk(GoodBroker):
    """A notice is no reason to ask before it is time."""

    def believes_notices(self) -> bool:
        return False


class WantsNoElection(GoodBroker):
    """That there is no master is none of its business."""

    def wants_elections(self) -> bool:
        return False


class TakesNobody(GoodBroker):
    """An election that names nobody is one that named somebody."""

    def named_by(self, code: str, header: Mapping[str, object]) -> bool:  # noqa: ARG002
        return code == "SUCCESS"


class TakesARefusal(GoodBroker):
    """An election that is refused is the last one."""

    def named_by(self, code: str, header: Mapping[str, object]) -> bool:
        return code == "CONTROLLER_ELECT_MASTER_FAILED" or super().named_by(code, header)


class ShowsItselfEarly(GoodBroker):
    """Name servers hear of it before it has a role."""

    def knows_its_role(self) -> bool:
        return True

    async def registered(self) -> None:
        await self.announced(self.store.told or 1)
        await super().registered()


class RegistersAnywhere(GoodBroker):
    """Without a controller it goes on all the same."""

    def finds_leader(self) -> bool:
        return False

    async def live(self) -> None:
        await self.announced(1)
        await super().live()


class StaysMaster(GoodBroker):
    """Who finds an epoch in its log is master, whoever is named."""

    def serves(self) -> bool:
        return super().serves() or bool(self.store.epochs)


class AlwaysReplica(GoodBroker):
    """Name servers hear of it as a replica, whoever is master."""

    def route_id(self) -> int:
        return self.store.told


class AlwaysMaster(GoodBroker):
    """Name servers hear of it as master, whoever is."""

    def route_id(self) -> int:
        return 0


class LoyalToItsFirst(GoodBroker):
    """It stays with the controller that was active first."""

    def changes_leader(self) -> bool:
        return False


class TellsOne(GoodBroker):
    """Its heartbeats go to the first controller alone."""

    def beats_to(self) -> list[Peer]:
        return self.beats[:1]


class BeginsAnew(GoodBroker):
    """Each process begins the masterEpoch, whatever the log has."""

    def has_begun(self, epoch: int) -> bool:  # noqa: ARG002
        return False


class BeginsNever(GoodBroker):
    """A masterEpoch that the log has not is not begun by a process that finds a log."""

    def has_begun(self, epoch: int) -> bool:  # noqa: ARG002
        return bool(self.store.epochs)


class ForgetsWhatItAsked(GoodBroker):
    """A new process knows nothing of what was asked for."""

    def remembers_asking(self, told: Told) -> bool:  # noqa: ARG002
        return False


class UndoneByNotices(GoodBroker):
    """A notice before there is a controller is the last that it hears."""

    def moved(self) -> None:
        self.undone = not self.leader or getattr(self, "undone", False)
        super().moved()

    async def find_leader(self) -> bool:
        return not getattr(self, "undone", False) and await super().find_leader()


class HearsNothingWhileItAsks(GoodBroker):
    """While its election is open it hears no notices."""

    def moved(self) -> None:
        if self.office.master:
            super().moved()


class GivesUpAfterAFailure(GoodBroker):
    """Whose first question fails never asks again."""

    async def after_a_failure(self) -> None:
        await trio.sleep_forever()


class ForgetsItsId(GoodBroker):
    """Whose registration fails asks for another id."""

    def registers_again_with_its_id(self) -> None:
        ask = self.controller.ask
        self.nursery.start_soon(lambda: ask("CONTROLLER_GET_NEXT_BROKER_ID", **self.set_names))


class AnnouncesOnce(GoodBroker):
    """Name servers hear of it once."""

    log = ""

    async def announced(self, route_id: int) -> str:
        self.log = self.log or await super().announced(route_id)
        return self.log


class OfAnotherMind(
    KeepsEpochsQuiet,
    PausesAlike,
    ForgetsTheOpen,
    MournsInSilence,
    ForgetsWhatItAsked,
    WondersNot,
):
    """Does otherwise what the proposals leave open."""


R, H = "registering-broker", "ha-replica/watched"
CAUGHT_IN_OFFICE: Mapping[str, tuple[type[GoodBroker], ...]] = {
    f"{R}/alteration/RIP44-EXPAND-1/1": (AsksInNobody,),
    f"{R}/alteration/RIP44-EXPAND-1/2": (AsksInAnybody,),
    f"{R}/alteration/RIP44-ALTER-1/1": (StaysWithItsFirstSet,),
    f"{R}/alteration/RIP44-SHRINK-1/1": (KeepsTheGone, StaysWithItsFirstSet),
    f"{R}/alteration/RIP44-SHRINK-1/2": (KeepsTheGone,),
    f"{R}/alteration/RIP44-LOCALSET-1/1": (BuildsOnTheRefused,),
    f"{R}/alteration/RIP44-LOCALSET-1/2": (AsksForTwoAtOnce,),
    f"{R}/alteration/RIP44-LOCALSET-1/3": (MakesTheNextSetEarly,),
    f"{R}/alteration/RIP44-ALTER-2/1": (WondersNot,),
    f"{R}/alteration/RIP44-ALTER-2/2": (AsksAgainAtOnce,),
    f"{R}/alteration/RIP44-ALTER-2/3": (AsksNeverAgain,),
    f"{R}/alteration/RIP44-ALTER-2/4": (PausesAlike,),
    f"{R}/alteration/RIP44-ALTER-3/1": (GivesUpTheUnanswered,),
    f"{R}/alteration/RIP44-ALTER-3/2": (HurriesTheBusy,),
    f"{R}/alteration/RIP44-ALTER-3/3": (ForgetsTheOpen,),
    f"{R}/alteration/RIP44-SYNCSTATESET-2/1": (DeafToSets,),
    f"{R}/alteration/RIP44-SYNCSTATESET-2/2": (TakesAnySet,),
    f"{R}/alteration/RIP44-SYNCSTATESET-2/3": (DeafToSets,),
    f"{R}/alteration/RIP44-SHRINK-3/1": (KeepsTheGone,),
    f"{R}/office/RIP44-EPOCH-2/1": (BeginsAtNothing,),
    f"{R}/office/RIP44-EPOCH-1/1": (KeepsEpochsQuiet,),
    f"{R}/office/RIP44-EXPAND-1/1": (StaysWithItsFirstEpoch,),
    f"{R}/office/RIP44-EXPAND-1/2": (WaitsForItsWants,),
    f"{R}/office/RIP44-EXPAND-1/3": (KeepsItsWants,),
    f"{R}/office/RIP44-ROLE-4/1": (KeepsItsOffice,),
    f"{R}/office/RIP44-ROLE-4/2": (KeepsItsOffice,),
    f"{R}/office/RIP44-ROLE-4/3": (KeepsFeeding,),
    f"{R}/office/RIP44-ROLE-4/4": (BelievesAnybody,),
    f"{R}/office/RIP44-ROLE-4/5": (KeepsItsWants,),
    f"{R}/office/RIP44-REPLICAINFO-1/1": (AsksNobody,),
    f"{R}/office/RIP44-NOTIFY-1/1": (SlowToAsk,),
    f"{R}/office/RIP44-NOTIFY-1/2": (UndoneByNotices,),
    f"{R}/office/RIP44-NOTIFY-1/3": (HearsNothingWhileItAsks,),
    f"{R}/office/RIP44-REGISTER-1/1": (GivesUpAfterAFailure,),
    f"{R}/register/BID-REGISTER-3/4": (ForgetsItsId,),
    f"{H}/RIP44-ROLE-4/3": (AnnouncesOnce,),
    f"{R}/office/RIP44-ELECT-1/1": (WantsNoElection,),
    f"{R}/office/RIP44-ELECT-1/2": (TakesNobody,),
    f"{R}/office/RIP44-ELECT-1/3": (TakesARefusal,),
    f"{R}/office/RIP44-ONLINE-1/1": (ShowsItselfEarly,),
    f"{R}/office/RIP44-SWITCH-2/1": (AlwaysMaster,),
    f"{R}/office/RIP44-COMPAT-3/1": (RegistersAnywhere,),
    f"{R}/office/RIP44-METADATA-2/1": (LoyalToItsFirst,),
    f"{R}/office/RIP44-HEARTBEAT-1/1": (TellsOne,),
    f"{R}/office/RIP44-ROLE-4/6": (BeginsAnew,),
    f"{R}/office/RIP44-EPOCH-2/2": (BeginsAtNothing,),
    f"{R}/office/RIP44-EXPAND-1/4": (StaysWithItsFirstEpoch, StaysWithItsFirstSet),
    f"{R}/office/RIP44-ROLE-4/7": (StaysMaster,),
    f"{R}/office/RIP44-ROLE-4/8": (BelievesAnybody,),
    f"{R}/office/RIP44-ALTER-3/1": (ForgetsWhatItAsked,),
    f"{H}/RIP44-CONFIRM-2/1": (ConfirmsAll, ConfirmsItsLog),
    f"{H}/RIP44-CONFIRM-2/2": (KeepsConfirmed,),
    f"{H}/RIP44-EPOCH-1/1": (NotesOneEpoch,),
    f"{H}/RIP44-EPOCH-1/2": (NotesRunsAlone,),
    f"{H}/RIP44-EPOCH-1/3": (TakesImpossibleEpochs,),
    f"{H}/RIP44-EPOCH-1/4": (TakesImpossibleEpochs,),
    f"{H}/RIP44-HANDSHAKE-3/1": (SkipsTheEarly,),
    f"{H}/RIP44-HANDSHAKE-3/2": (SkipsTheEarly,),
    f"{H}/RIP44-TIMER-1/1": (WaitsForEver,),
    f"{H}/RIP44-TIMER-1/2": (WaitsForEver,),
    f"{H}/RIP44-TIMER-1/3": (LosesPatience,),
    f"{H}/RIP44-ELECT-16/1": (MournsInSilence,),
    f"{H}/RIP44-EPOCH-2/1": (BeginsAtNothing, AlwaysReplica),
    f"{H}/RIP44-ROLE-4/1": (BelievesAnybody,),
    f"{H}/RIP44-ROLE-4/2": (Restless,),
    f"{H}/RIP44-ELECT-1/1": (WantsNoElection,),
    f"{R}/office/BID-UPGRADE-2/1": (ResignsWhenForgotten, GivesNothingWhenForgotten, BeginsWhenForgotten),
}
