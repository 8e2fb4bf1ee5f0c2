"""Faults of an HA master that only a case of their own tells from what is right; in MASTER_FAULTS too."""

from __future__ import annotations

from dataclasses import replace

from replispec.wire.rocketmq.ha import HaEpochEntry, HaHandshakeAnswer
from replispec.wire.rocketmq.store import LogRecord
from tests.conformance.subjects.ha_faults import fault
from tests.conformance.subjects.ha_master import MASTER, GoodHaMaster, Link
from tests.conformance.subjects.records import Effect

# What a record says beside its body


@fault
class CountsQueuesFromOne(GoodHaMaster):
    """A record says another place in its queue than its producer was told."""

    def append(self, message: LogRecord | None = None) -> int:
        at = super().append(message)
        record = LogRecord.decode(bytes(self.log[at:]))
        self.log[at:] = replace(record, queue_offset=record.queue_offset + 1).encode()
        return at


class _Changes(GoodHaMaster):
    """Stores something else than what a producer sent."""

    def changed(self, message: LogRecord) -> LogRecord:
        """What is stored of a message."""
        raise NotImplementedError

    def append(self, message: LogRecord | None = None) -> int:
        return super().append(self.changed(message) if message else None)


@fault
class ForgetsWhenAMessageWasBorn(_Changes):
    """A record has no time of birth."""

    def changed(self, message: LogRecord) -> LogRecord:
        return replace(message, born_timestamp=0)


@fault
class DropsProperties(_Changes):
    """A record lacks the properties of its message."""

    def changed(self, message: LogRecord) -> LogRecord:
        return replace(message, properties=b"")


@fault
class TurnsABitOfAFlag(_Changes):
    """A record's flag has a bit turned."""

    def changed(self, message: LogRecord) -> LogRecord:
        return replace(message, flag=message.flag ^ 1)


# The confirm offset


@fault
class ConfirmFallsWithAMember(GoodHaMaster):
    """The confirm offset follows a member that reports less than before."""

    def advance_confirm(self) -> None:
        self.confirm = 0
        super().advance_confirm()


@fault
class ConfirmsWhatMostMembersHave(GoodHaMaster):
    """The confirm offset is what more than half of the members have."""

    def advance_confirm(self) -> None:
        ends = {link.broker_id: link.acknowledged for link in self.links}
        ends[MASTER] = len(self.log)
        known = sorted((ends.get(broker, -1) for broker in self.broker_set.in_sync), reverse=True)
        self.confirm = max(self.confirm, known[len(known) // 2])


# Members


@fault
class RemovesIdleMembers(GoodHaMaster):
    """A member counts as lagging when nothing new was sent to it for a while."""

    def take_report(self, link: Link, end: int) -> list[bytes]:
        before, caught_up_s = link.acknowledged, link.caught_up_s
        messages = super().take_report(link, end)
        if end == before and caught_up_s is not None:
            link.caught_up_s = caught_up_s
        return messages

    def tick(self, link: Link) -> list[Effect]:
        caught_up_s = link.caught_up_s
        effects = super().tick(link)
        if caught_up_s is not None and self.now_s() >= caught_up_s + self.not_caught_up_s:
            self.shrink(link)
        link.caught_up_s = caught_up_s
        return effects


@fault
class RemovesWhoLagsAMoment(GoodHaMaster):
    """A member that has not everything leaves a second later."""

    not_caught_up_s = 1.0


@fault
class NeverTakesAMemberInTwice(GoodHaMaster):
    """A broker that left the SyncStateSet does not come back."""

    left: frozenset[int] = frozenset()

    def shrink(self, link: Link) -> None:
        before = set(self.broker_set.in_sync)
        super().shrink(link)
        self.left |= before - set(self.broker_set.in_sync)

    def may_join(self, link: Link) -> bool:
        return super().may_join(link) and link.broker_id not in self.left


# What is new


@fault
class LabelsWhatIsNewWithTheEpochBefore(GoodHaMaster):
    """What is stored after the start goes out under the epoch before the newest."""

    def label(self, at: int) -> HaEpochEntry:
        entry = super().label(at)
        return self.epochs[-2] if at >= self.began else entry

    @property
    def began(self) -> int:
        """Where the log ended when this master started."""
        if not hasattr(self, "_began"):
            self._began = len(self.log)
        return self._began

    def answer(self) -> HaHandshakeAnswer:
        assert self.began >= 0
        return super().answer()


@fault
class TellsTheEndOfItsStart(GoodHaMaster):
    """A handshake is answered with the end that the log had for the first one."""

    first = 0

    def answer(self) -> HaHandshakeAnswer:
        good = super().answer()
        self.first = self.first or good.max_offset
        return replace(good, max_offset=self.first)
