"""Faults of an HA master in what it makes of replicas and of time; entered in MASTER_FAULTS too."""

from __future__ import annotations

from dataclasses import replace

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.rocketmq.codes import HaConnectionState
from replispec.wire.rocketmq.ha import HaHandshakeId, HaReport, HaTransferHeader
from tests.conformance.subjects.ha_faults import STATE_BYTES, fault
from tests.conformance.subjects.ha_master import GoodHaMaster, HaReader, Link
from tests.conformance.subjects.records import Die, Effect, Flood, Hangup, Reply, Reset

ROUGH_MASTERS: dict[str, type[GoodHaMaster]] = {}
REPORT_BYTES, HANDSHAKE_BYTES = len(HaReport().encode()), len(HaHandshakeId().encode())
GARBAGE = bytes(range(255, 191, -1))

# Time


@fault
class KeepsSilentReplicas(GoodHaMaster):
    """A connection on which nothing comes stays open for ever."""

    housekeeping_s = 1e6


@fault
class ClosesEarly(GoodHaMaster):
    """A replica that reports every five seconds is too slow."""

    housekeeping_s = 4.0


@fault
class SendsNoHeartbeats(GoodHaMaster):
    """A master without bytes to send says nothing."""

    heartbeat_s = 1e6


@fault
class HeartbeatIsAtZero(GoodHaMaster):
    """A heartbeat's offset is 0."""

    def heartbeat(self, link: Link) -> HaTransferHeader:
        return replace(super().heartbeat(link), offset=0)


@fault
class HeartbeatHasBytes(GoodHaMaster):
    """A heartbeat repeats the last byte of the log."""

    def heartbeat(self, link: Link) -> HaTransferHeader:
        return self.header(link.next_offset - 1, bytes(self.log[link.next_offset - 1 : link.next_offset]))


# What a replica may say


@fault
class TakesReportWithoutHandshake(GoodHaMaster):
    """A replica that never said who it is gets the log (Apache)."""

    def check_answered(self, link: Link) -> None:
        pass


@fault
class BelievesReportBeyondLog(GoodHaMaster):
    """A replica that claims more than there is counts as caught up (Apache)."""

    def check_possible(self, end: int) -> None:
        super().check_possible(min(end, len(self.log)))


@fault
class FeedsFromBeyondLog(GoodHaMaster):
    """A report beyond the log is answered with bytes that nobody ever wrote."""

    def check_possible(self, end: int) -> None:
        super().check_possible(min(end, len(self.log)))

    def take_report(self, link: Link, end: int) -> list[bytes]:
        messages = super().take_report(link, end)
        return [self.header(end, b"\0" * 8).encode()] if end > len(self.log) else messages


@fault
class RefusesReportOfWholeLog(GoodHaMaster):
    """A replica that has everything is taken for one that has too much."""

    def check_possible(self, end: int) -> None:
        super().check_possible(end + 1)


class _RawReader(HaReader):
    """A reader that looks at the bytes first; a fault says what it makes of them."""

    def __init__(self) -> None:
        super().__init__()
        self.raw = b""

    def receive(self, data: bytes) -> list[HaHandshakeId | HaReport]:
        self.raw += data
        messages = super().receive(data)
        self.raw = self.raw[len(self.raw) - self.waiting_bytes :]
        return messages


def state_of(raw: bytes) -> int:
    """The first word of a message; -1 while it is not whole."""
    return int.from_bytes(raw[:STATE_BYTES], "big") if len(raw) >= STATE_BYTES else -1


@fault
class SkipsUnknownStates(GoodHaMaster):
    """What comes in a state that nobody knows is passed over."""

    class _Reader(HaReader):
        def receive(self, data: bytes) -> list[HaHandshakeId | HaReport]:
            try:
                return super().receive(data)
            except RemoteProtocolError:
                self.__init__()  # type: ignore[misc]
                return []

    def reader(self) -> HaReader:
        return self._Reader()


@fault
class TakesUnknownStatesForReports(GoodHaMaster):
    """A message in a state that nobody knows counts as a report of an empty log."""

    class _Reader(HaReader):
        def receive(self, data: bytes) -> list[HaHandshakeId | HaReport]:
            try:
                return super().receive(data)
            except RemoteProtocolError:
                self.__init__()  # type: ignore[misc]
                return [HaHandshakeId(), HaReport(0)]

    def reader(self) -> HaReader:
        return self._Reader()


@fault
class DiesOfUnknownStates(GoodHaMaster):
    """A message in a state that nobody knows ends the whole master."""

    class _Reader(_RawReader):
        def receive(self, data: bytes) -> list[HaHandshakeId | HaReport]:
            try:
                return super().receive(data)
            except RemoteProtocolError:
                if state_of(self.raw) in set(HaConnectionState):
                    raise
                self.deadly = True
                return [HaReport(0)]

        deadly = False

    def reader(self) -> HaReader:
        self.newest = self._Reader()
        return self.newest

    def receive(self, link: Link, message: HaHandshakeId | HaReport) -> list[Effect]:
        return [Die()] if self.newest.deadly else super().receive(link, message)


@fault
class ReadsSplitHandshakeShort(GoodHaMaster):
    """A handshake is taken when twelve of its bytes are there: then the id is 0 (Apache)."""

    class _Reader(_RawReader):
        skip = 0

        def receive(self, data: bytes) -> list[HaHandshakeId | HaReport]:
            skipped = min(self.skip, len(data))
            self.skip -= skipped
            messages = super().receive(data[skipped:])
            if state_of(self.raw) == HaConnectionState.HANDSHAKE and len(self.raw) >= REPORT_BYTES:
                messages.append(HaHandshakeId.decode(self.raw.ljust(HANDSHAKE_BYTES, b"\0")))
                rest = HANDSHAKE_BYTES - len(self.raw)
                self.__init__()  # type: ignore[misc]
                self.skip = rest
            return messages

    def reader(self) -> HaReader:
        return self._Reader()


@fault
class NeedsWholeMessages(GoodHaMaster):
    """A message that comes in two pieces ends the connection."""

    class _Reader(HaReader):
        def receive(self, data: bytes) -> list[HaHandshakeId | HaReport]:
            messages = super().receive(data)
            if self.waiting_bytes:
                raise RemoteProtocolError("half a message")
            return messages

    def reader(self) -> HaReader:
        return self._Reader()


@fault
class DiesOnCutHandshake(GoodHaMaster):
    """A connection that ends inside a message ends the whole master."""

    def closed(self, link: Link, waiting_bytes: int) -> list[Effect]:
        return [Die()] if waiting_bytes else super().closed(link, waiting_bytes)


@fault
class ServesOneReplica(GoodHaMaster):
    """Only the oldest connection is fed."""

    def batches(self, link: Link) -> list[bytes]:
        return super().batches(link) if self.links[0] is link else []


# The SyncStateSet


@fault
class CountsLearners(GoodHaMaster):
    """A learner joins the SyncStateSet."""

    def may_join(self, link: Link) -> bool:
        learner, link.learner = link.learner, False
        try:
            return super().may_join(link)
        finally:
            link.learner = learner


@fault
class TakesEverybodyIn(GoodHaMaster):
    """A replica joins the SyncStateSet however far behind it is, and stays in it while it is connected."""

    def may_join(self, link: Link) -> bool:
        return not link.learner

    def shrink(self, link: Link) -> None:
        if link not in self.links:
            super().shrink(link)


@fault
class TakesNobodyIn(GoodHaMaster):
    """A replica that has caught up stays outside the SyncStateSet."""

    def may_join(self, link: Link) -> bool:  # noqa: ARG002
        return False


@fault
class KeepsMembersThatNeverCame(GoodHaMaster):
    """A member of the set that never connected to this master stays in it."""

    def examine(self) -> None:
        pass


@fault
class KeepsLostMembers(GoodHaMaster):
    """A member without a connection stays in the SyncStateSet."""

    def examine(self) -> None:
        pass

    def shrink(self, link: Link) -> None:
        if link in self.links:
            super().shrink(link)


@fault
class ConfirmsAlone(GoodHaMaster):
    """The confirm offset is the end of the log whatever the members have."""

    def advance_confirm(self) -> None:
        self.confirm = len(self.log)


# Rough ones: what they do to a case must not harm the next one.


def rough(name: str, effects: list[Effect]) -> None:
    """Enter a master that does this to a replica that reports an empty log."""

    class Rough(GoodHaMaster):
        def receive(self, link: Link, message: HaHandshakeId | HaReport) -> list[Effect]:
            if isinstance(message, HaReport) and message.max_offset == 0:
                return effects
            return super().receive(link, message)

    ROUGH_MASTERS[name] = Rough


rough("hangs", [])
rough("resets", [Reset()])
rough("closes", [Hangup()])
rough("sends-garbage", [Reply(GARBAGE)])
rough("sends-half-a-header", [Reply(HaTransferHeader().encode()[:-2])])
rough("floods-with-heartbeats", [Flood(HaTransferHeader().encode() * 50)])
rough("floods-with-bytes", [Flood(GARBAGE * 1000)])
rough("dies", [Die()])


@fault
class KeepsWhoReportsAndLags(GoodHaMaster):
    """A member that reports and does not catch up stays for ever."""

    not_caught_up_s = 1e6


@fault
class ConfirmsNothingBesideAFreshConnection(GoodHaMaster):
    """The confirm offset is -1 while the new connection of a member has not reported."""

    def header(self, at: int, body: bytes) -> HaTransferHeader:
        members = self.broker_set.in_sync
        fresh = any(link.broker_id in members and link.acknowledged < 0 for link in self.links)
        good = super().header(at, body)
        return replace(good, confirm_offset=-1) if fresh else good
