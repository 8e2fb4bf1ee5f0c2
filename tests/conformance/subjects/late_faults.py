"""Brokers that take what comes late, or early, for what it is not: each overrides one choice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import trio

from tests.conformance.subjects.office import GoodBroker
from tests.conformance.subjects.office_faults import DeafToSets, GivesUpTheUnanswered
from tests.conformance.subjects.told import Told


class TakesItsOfficeBack(GoodBroker):
    """What became of a request of its old office makes it master again."""

    def came_late(self) -> None:
        self.office.master = self.store.told
        self.changed.set()
        self.copying.cancel()


class AsksOnWithoutOffice(GoodBroker):
    """What it asked for as a master it asks for as a replica, too."""

    def asks_for_sets(self) -> bool:
        return bool(self.office.proposed) or self.serves()

    def forgets_wants(self) -> None:
        """Nothing is forgotten."""


class DoubtsForEver(GoodBroker):
    """What was refused in doubt is never settled."""

    def doubt_is_over(self) -> None:
        """It is not."""


class DeafInDoubt(GoodBroker):
    """While it doubts no set that it is told is another one."""

    def takes_set(self, told: Told) -> bool:
        return not self.office.doubtful and super().takes_set(told)

    def doubt_is_over(self) -> None:
        self.office.doubtful, self.office.proposed = False, frozenset()


class AsksInWhoLeft(GoodBroker):
    """It asks again for a set with a replica that is gone."""

    def asks_in_who_left(self) -> bool:
        return True


class TakesAnyGrant(GoodBroker):
    """Whatever set is granted is the one that counts."""

    def takes_grant(self, told: Told) -> bool:  # noqa: ARG002
        return True


class EndsByANotice(GoodBroker):
    """Who is notified before it has a role never gets one."""

    was_notified = False

    def moved(self) -> None:
        self.was_notified = True

    async def elect(self) -> None:
        if self.was_notified:
            await trio.sleep_forever()
        await super().elect()


class TakesNoElectionAfterANotice(GoodBroker):
    """Whoever is elected after it was notified is nobody."""

    was_notified = False

    def moved(self) -> None:
        self.was_notified = True

    def named_by(self, code: str, header: Mapping[str, object]) -> bool:
        return not self.was_notified and super().named_by(code, header)


class RemembersNoQuestion(GoodBroker):
    """What it was not answered before it was ended it does not ask again."""

    async def live(self) -> None:
        if self.nth > 1:
            await trio.sleep_forever()
        await super().live()


class ElectsOnce(GoodBroker):
    """It asks for a master once, and takes nobody who is named once it has a role."""

    wanted_one = False

    async def elect(self) -> None:
        if not self.office.master:
            await super().elect()
            return
        if not self.wanted_one:
            self.wanted_one = True
            own = {**self.set_names, "brokerId": self.store.told, "designateElect": "false"}
            await self.controller.ask("CONTROLLER_ELECT_MASTER", **own)


class CopiesFromTheMissed(GoodBroker):
    """That a master is missed is nothing to it."""

    def lets_go(self) -> bool:
        return False


class LetsGoForGood(GoodBroker):
    """From whom it let go it copies no more, nor from anybody else."""

    def take(self, told: Told) -> None:
        super().take(replace(told, missed=True) if self.office.let_go else told)


class TakesAnyElectionForItsOwn(GoodBroker):
    """Whatever comes of a question for a master, it is master."""

    async def elect(self) -> None:
        await super().elect()
        self.office.master = self.store.told
        self.changed.set()
        self.copying.cancel()


R = "registering-broker"
CAUGHT_LATE: Mapping[str, tuple[type[GoodBroker], ...]] = {
    **{f"{R}/late/RIP44-ROLE-4/{n}": (TakesItsOfficeBack,) for n in (1, 2)},
    f"{R}/late/RIP44-ROLE-4/3": (AsksOnWithoutOffice,),
    f"{R}/late/RIP44-ALTER-3/1": (DeafToSets,),
    f"{R}/late/RIP44-ALTER-3/2": (DoubtsForEver,),
    f"{R}/late/RIP44-ALTER-3/3": (DeafInDoubt,),
    f"{R}/late/RIP44-EXPAND-1/1": (AsksInWhoLeft,),
    f"{R}/late/RIP44-SYNCSTATESET-2/1": (TakesAnyGrant,),
    f"{R}/late/RIP44-METADATA-2/1": (GivesUpTheUnanswered,),
    f"{R}/late/RIP44-NOTIFY-1/1": (EndsByANotice,),
    f"{R}/late/RIP44-REPLICAINFO-1/1": (TakesNoElectionAfterANotice,),
    f"{R}/late/BID-REGISTER-1/1": (RemembersNoQuestion,),
    f"{R}/missed/RIP44-ELECT-17/1": (CopiesFromTheMissed, LetsGoForGood),
    f"{R}/missed/RIP44-ELECT-17/2": (LetsGoForGood,),
    f"{R}/missed/RIP44-ELECT-17/3": (CopiesFromTheMissed, LetsGoForGood),
    **{f"{R}/late/RIP44-ELECT-1/{n}": (ElectsOnce,) for n in (1, 3)},
    f"{R}/late/RIP44-ELECT-1/2": (TakesAnyElectionForItsOwn,),
}
