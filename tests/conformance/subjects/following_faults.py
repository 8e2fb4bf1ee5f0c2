"""Brokers and learners that do it wrong: each overrides one choice of the good one."""

from __future__ import annotations

from collections.abc import Mapping

import trio

from tests.conformance.subjects.following import IN_TRANSFER, REPORT, Epochs, GoodFollower


class ReportsAtOnce(GoodFollower):
    """It reports before its handshake is answered."""

    def before_the_answer(self) -> bytes:
        return REPORT.pack(IN_TRANSFER, self.store.end)


class NamesNoId(GoodFollower):
    """Its handshake has the id 0."""

    def handshake(self) -> bytes:
        return super().handshake()[:8] + bytes(8)


class CountsWhatComes(GoodFollower):
    """Bytes of a transfer are reported as they come."""

    def partly(self, size: int) -> int | None:
        return self.store.end + size if size > 0 else None


class KeepsTheTorn(GoodFollower):
    """What came of a transfer that was torn stays, and nobody is told."""

    left = 0

    def torn(self, size: int) -> None:
        self.left += size
        self.store.end += size

    def common(self, entries: Epochs, end: int) -> int | None:
        return 0 if self.left else super().common(entries, end)

    def cut(self, at: int) -> None:
        if not self.left:
            super().cut(at)

    def first_report(self, end: int) -> int:
        return super().first_report(end) - self.left


class TakesGaps(GoodFollower):
    """A transfer is taken wherever it starts."""

    def follows(self, offset: int) -> bool:  # noqa: ARG002
        return True


class TakesOneTransfer(GoodFollower):
    """On a connection it takes what follows the end that it had first."""

    def first_report(self, end: int) -> int:
        self.began = super().first_report(end)
        return self.began

    def follows(self, offset: int) -> bool:
        return offset == self.began or not self.began


class TakesASecondAnswer(GoodFollower):
    """A second answer to one handshake is left alone."""

    def takes_a_second_answer(self) -> bool:
        return True


class NeverCuts(GoodFollower):
    """It goes on with the log that it has."""

    def cut(self, at: int) -> None:
        pass


class GoesByNumbers(GoodFollower):
    """An epoch with another start is the same epoch."""

    def is_common(self, epoch: tuple[int, int], entries: Epochs) -> bool:
        return epoch[0] in [number for number, _ in entries]


class GoesByTheEnd(GoodFollower):
    """Only what lies beyond the end of the master's log is cut."""

    def common(self, entries: Epochs, end: int) -> int | None:  # noqa: ARG002
        return min(self.store.end, end)


class RepairsItself(GoodFollower):
    """With nothing in common it throws its log away."""

    def common(self, entries: Epochs, end: int) -> int | None:
        return super().common(entries, end) or 0


class KeepsEpochs(GoodFollower):
    """Epochs that were cut off stay noted."""

    def cut(self, at: int) -> None:
        self.store.end = at


class BelievesTheMaster(GoodFollower):
    """It reports the master's end first."""

    def first_report(self, end: int) -> int:
        return max(end, self.store.end) if self.store.end else 0


class ReportsOnce(GoodFollower):
    """It has nothing to say while nothing comes."""

    def reports(self, times: int) -> bool:  # noqa: ARG002
        return False


class ReportsNoGrowth(GoodFollower):
    """What it takes is never reported."""

    def reports_growth(self) -> bool:
        return False

    def reports(self, times: int) -> bool:  # noqa: ARG002
        return False


class DeafToOffices(GoodFollower):
    """It does not listen when it is told who is master."""

    def hears_of_masters(self) -> bool:
        return False


class SaysReplica(GoodFollower):
    """A learner that says that it is a replica."""

    def says_learner(self) -> bool:
        return False


class AsksOnce(GoodFollower):
    """Who is not answered at once is never answered."""

    def asks_again(self) -> bool:
        return False


class AppliesForMore(GoodFollower):
    """It applies for another id than it was told."""

    def applies_for(self, told: int) -> int:
        return told + 1


class NewCodes(GoodFollower):
    """Each process has a check code of its own."""

    def kept_code(self) -> str:
        return f"code {self.nth}"


class OldAddress(GoodFollower):
    """It registers the address that it had first."""

    def own_address(self) -> str:
        return self.store.address or self.address


class GivesUp(GoodFollower):
    """A question that failed is not asked again."""

    async def after_a_failure(self) -> None:
        await trio.sleep_forever()


class HurriesOnFailure(GoodFollower):
    """A question that failed is asked again at once."""

    async def after_a_failure(self) -> None:
        await trio.sleep(0.05)


class InsistsOnItsId(GoodFollower):
    """Who was refused applies for the same again."""

    def after_a_refusal(self) -> None:
        pass


class TakesTheRefused(GoodFollower):
    """Who was refused goes on as if it had not been."""

    def after_a_refusal(self) -> None:
        self.store.granted = True


class Hurries(GoodFollower):
    """It never waits, however often it was refused."""

    def waits_after(self, refusals: int) -> float:  # noqa: ARG002
        return 0.0


class WantsNoMaster(GoodFollower):
    """When nobody is named it waits for what may come."""

    def asks_for_a_master(self) -> bool:
        return False


class HearsSuccessAlone(GoodFollower):
    """A master that is there already is not heard of."""

    def named_by(self, code: str, header: Mapping[str, object]) -> bool:
        return code == "SUCCESS" and super().named_by(code, header)


class StaysUnknown(GoodFollower):
    """Whom a controller does not know does not register again."""

    def registers_again(self, times: int, code: str) -> bool:  # noqa: ARG002
        return False


class RegistersAgainOnce(GoodFollower):
    """It registers again a single time."""

    def registers_again(self, times: int, code: str) -> bool:
        self.times = getattr(self, "times", 0) + 1
        return self.times == 1 and super().registers_again(times, code)


class CopiesThoughMaster(GoodFollower):
    """A learner that is named master copies from whom a name server names."""

    def stands_still(self) -> bool:
        return False


class DialsOnce(GoodFollower):
    """It looks for its master's log once."""

    async def copy(self, log: str) -> None:
        await super().copy(log)
        await trio.sleep_forever()


CAUGHT: Mapping[str, tuple[type[GoodFollower], ...]] = {
    "ha-replica/handshake/RIP44-HANDSHAKE-1/1": (NamesNoId,),
    "ha-replica/handshake/RIP44-HANDSHAKE-4/1": (ReportsAtOnce,),
    "ha-replica/report/RIP44-REPORT-1/1": (ReportsNoGrowth,),
    "ha-replica/report/RIP44-REPORT-1/3": (BelievesTheMaster,),
    "ha-replica/report/RIP44-REPORT-2/1": (ReportsOnce,),
    "ha-replica/report/RIP44-REPORT-3/2": (CountsWhatComes,),
    "ha-replica/report/RIP44-CHAIN-1/1": (TakesOneTransfer,),
    "ha-replica/report/RIP44-TRANSFER-2/1": (TakesGaps,),
    "ha-replica/report/RIP44-TRUNC-6/1": (KeepsTheTorn,),
    "ha-replica/report/RIP44-HANDSHAKE-3/1": (TakesASecondAnswer,),
    "ha-replica/role/RIP44-ROLE-4/1": (DeafToOffices,),
    "ha-replica/truncation/RIP44-TRUNC-1/1": (NeverCuts, GoesByTheEnd),
    "ha-replica/truncation/RIP44-TRUNC-1/7": (GoesByNumbers,),
    "ha-replica/truncation/RIP44-TRUNC-3/1": (KeepsEpochs,),
    "ha-replica/truncation/RIP44-TRUNC-3/2": (KeepsEpochs,),
    "ha-replica/truncation/RIP44-TRUNC-5/1": (RepairsItself,),
    "ha-replica/watched/RIP44-ROLE-4/4": (DialsOnce,),
    "ha-replica/watched/RIP44-TRANSFER-2/1": (TakesGaps,),
    "learner/copy/RIP44-LEARNER-1/1": (SaysReplica,),
    "learner/copy/RIP44-LEARNER-2/1": (CopiesThoughMaster,),
    "learner/copy/RIP44-METADATA-2/1": (AsksOnce,),
    "learner/copy/RIP44-REPORT-1/1": (ReportsNoGrowth,),
    "learner/copy/RIP44-REPORT-3/1": (BelievesTheMaster,),
    "learner/copy/RIP44-TRUNC-1/1": (NeverCuts, GoesByTheEnd),
    "registering-broker/register/BID-APPLY-1/1": (AppliesForMore,),
    "registering-broker/register/BID-APPLY-3/1": (InsistsOnItsId, TakesTheRefused),
    "registering-broker/register/BID-APPLY-3/2": (TakesTheRefused,),
    "registering-broker/register/BID-APPLY-3/3": (Hurries,),
    "registering-broker/register/BID-APPLY-3/4": (InsistsOnItsId, TakesTheRefused),
    "registering-broker/register/BID-NEXT-1/2": (GivesUp,),
    "registering-broker/register/BID-NEXT-1/3": (GivesUp,),
    "registering-broker/register/BID-REGISTER-2/1": (GivesUp,),
    "registering-broker/register/BID-REGISTER-2/2": (GivesUp, HurriesOnFailure),
    "registering-broker/register/BID-REGISTER-3/5": (GivesUp, HurriesOnFailure),
    "registering-broker/register/BID-REGISTER-3/1": (StaysUnknown,),
    "registering-broker/register/BID-REGISTER-3/2": (StaysUnknown,),
    "registering-broker/register/BID-REGISTER-3/3": (RegistersAgainOnce,),
    "registering-broker/register/RIP44-ELECT-1/1": (WantsNoMaster,),
    "registering-broker/register/RIP44-ROLE-4/1": (HearsSuccessAlone,),
    "registering-broker/crash/BID-STATE-2/1": (NewCodes,),
    "registering-broker/crash/BID-KEY-1/1": (OldAddress,),
}
