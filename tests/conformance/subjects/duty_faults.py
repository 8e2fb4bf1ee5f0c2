"""Brokers that neglect what is to be done again and again, or do it too often: each overrides one choice."""

from __future__ import annotations

from collections.abc import Mapping

import trio

from tests.conformance.subjects.office import GoodBroker
from tests.conformance.subjects.told import Told

ENOUGH = 3


class BeatsForAWhile(GoodBroker):
    """After a few heartbeats it sends none."""

    beats_sent = 0

    async def beat_now(self) -> None:
        self.beats_sent += 1
        if self.beats_sent <= ENOUGH:
            await super().beat_now()


class AsksForAWhile(GoodBroker):
    """Once it has a role it does not ask who is master."""

    def asks_regularly(self) -> bool:
        return not self.office.master


class FindsItsLeaderOnce(GoodBroker):
    """Who leads is asked until somebody is named, and never again."""

    async def find_leader(self) -> bool:
        return bool(self.leader) or await super().find_leader()


class AnnouncesItselfOnce(GoodBroker):
    """Name servers hear of it when its role changes, and only then."""

    async def _announce(self) -> None:
        await trio.sleep_forever()


class RegistersAgainAndAgain(GoodBroker):
    """Whenever it asks who leads it registers, too."""

    async def find_leader(self) -> bool:
        found = await super().find_leader()
        if self.office.master:
            await self.register()
        return found


class StaysWithWhomItAsked(GoodBroker):
    """It turns to no other controller."""

    def changes_leader(self) -> bool:
        return False


class WaitsForTheUsualTime(GoodBroker):
    """A question that failed is no reason to ask who leads."""

    def seeks_after_a_failure(self) -> bool:
        return False


class ThinksThatItWon(GoodBroker):
    """Whoever is named when it asks for a master: it takes itself for the one."""

    def take(self, told: Told) -> None:
        super().take(Told(self.store.told, told.epoch, told.members, told.set_epoch))


class InsistsOnAnElection(GoodBroker):
    """It asks for a master until that question is answered, whoever was named meanwhile."""

    def follows_whom_a_registration_names(self) -> bool:
        return False


R = "registering-broker"
MUST, SOON = (1, 3, 5, 7, 8), (2, 4, 6, 9)
CAUGHT_AT_DUTIES: Mapping[str, tuple[type[GoodBroker], ...]] = {
    **{f"{R}/duties/RIP44-HEARTBEAT-1/{n}": (BeatsForAWhile,) for n in (1, 2)},
    **{f"{R}/duties/RIP44-REPLICAINFO-1/{n}": (AsksForAWhile,) for n in (1, 2)},
    **{f"{R}/duties/RIP44-METADATA-2/{n}": (FindsItsLeaderOnce,) for n in (1, 2)},
    f"{R}/duties/RIP44-ONLINE-1/1": (AnnouncesItselfOnce,),
    **{f"{R}/duties/RIP44-REGISTER-1/{n}": (RegistersAgainAndAgain,) for n in (1, 2)},
    **{f"{R}/leaders/RIP44-METADATA-2/{n}": (StaysWithWhomItAsked,) for n in MUST},
    **{f"{R}/leaders/RIP44-METADATA-2/{n}": (WaitsForTheUsualTime,) for n in SOON},
    f"{R}/register/RIP44-ROLE-4/2": (ThinksThatItWon,),
    f"{R}/register/BID-REGISTER-3/6": (InsistsOnAnElection,),
}
