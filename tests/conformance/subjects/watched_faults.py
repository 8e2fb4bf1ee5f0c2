"""Replicas that tell others wrongly what became of their log: each overrides one choice of the good one."""

from __future__ import annotations

import trio

from tests.conformance.subjects.following import Epochs
from tests.conformance.subjects.office import GoodBroker
from tests.conformance.subjects.told import Told


class ConfirmsAll(GoodBroker):
    """What its master says is confirmed, whatever of it has come."""

    def confirms(self, told: int) -> int:
        return told


class ConfirmsItsLog(GoodBroker):
    """All that has come is confirmed."""

    def confirms(self, told: int) -> int:  # noqa: ARG002
        return self.store.end


class KeepsConfirmed(GoodBroker):
    """What was confirmed stays so when it is cut."""

    def cut(self, at: int) -> None:
        confirmed = self.store.confirmed
        super().cut(at)
        self.store.confirmed = confirmed


class NotesOneEpoch(GoodBroker):
    """The first epoch that is named is the only one."""

    def notes(self, epoch: int, size: int) -> bool:
        return super().notes(epoch, size) and not self.store.epochs


class NotesRunsAlone(GoodBroker):
    """An epoch is noted when bytes of it come."""

    def notes(self, epoch: int, size: int) -> bool:
        return super().notes(epoch, size) and size > 0


class TakesImpossibleEpochs(GoodBroker):
    """Any number is an epoch."""

    def is_possible(self, epoch: int, start: int) -> bool:  # noqa: ARG002
        return True


class SkipsTheEarly(GoodBroker):
    """What comes before the answer is passed over."""

    def takes_early(self) -> bool:
        return True


class WaitsForEver(GoodBroker):
    """A master may be silent for as long as it likes."""

    def is_gone(self, silent_s: float) -> bool:  # noqa: ARG002
        return False


class LosesPatience(GoodBroker):
    """A connection lasts as long as the interval, whatever comes."""

    def common(self, entries: Epochs, end: int) -> int | None:
        self.began_s = trio.current_time()
        return super().common(entries, end)

    def follows(self, offset: int) -> bool:
        return super().follows(offset) and trio.current_time() < self.began_s + 20


class MournsInSilence(GoodBroker):
    """That its connection to the master ended is no reason for a heartbeat."""

    def beats_once_more(self) -> bool:
        return False


class Restless(GoodBroker):
    """It connects anew whenever it is told who is master."""

    def take(self, told: Told) -> None:
        self.copying.cancel()
        super().take(told)
