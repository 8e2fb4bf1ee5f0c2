"""HA masters that do otherwise than Apache RocketMQ where the proposals leave it open.

None of them is wrong: each says which words allow what it does, or that no words forbid it. A suite that asks
for the proposals alone finds nothing here.
Source: RIP-44, RIP "persistent broker id".
"""

from __future__ import annotations

from typing import TypeVar

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.rocketmq.ha import HaHandshakeId, HaTransferHeader
from tests.conformance.subjects.ha_master import MASTER, GoodHaMaster, Link
from tests.conformance.subjects.records import Effect, Reply

A = TypeVar("A", bound=type[GoodHaMaster])
HA_ALTERNATIVES: dict[str, type[GoodHaMaster]] = {}


def alternative(subject: A) -> A:
    """Enter a subject in the table."""
    HA_ALTERNATIVES[subject.__name__] = subject
    return subject


@alternative
class SendsByteByByte(GoodHaMaster):
    """How a run is cut into segments and how long runs are is nowhere said: short runs, each in pieces."""

    batch_bytes = 64

    def sent(self, link: Link, messages: list[bytes]) -> list[Effect]:
        replies = super().sent(link, messages)
        halves: list[Effect] = []
        for each in replies:
            assert isinstance(each, Reply)
            halves += [Reply(each.data[:7]), Reply(each.data[7:])]
        return halves


@alternative
class SendsLongRuns(GoodHaMaster):
    """A run ends with its epoch or with the log, and with nothing else."""

    batch_bytes = 1 << 20


@alternative
class ExaminesMembersSlowly(GoodHaMaster):
    """ "Periodically checks": members that are gone are removed by the examination alone."""

    def closed(self, link: Link, waiting_bytes: int) -> list[Effect]:  # noqa: ARG002
        self.links.remove(link)
        return []


@alternative
class ExpandsAtItsExamination(GoodHaMaster):
    """Whoever has caught up is taken in when the master next examines its set, not with the report."""

    def expand(self, link: Link) -> None:
        pass

    def examine(self) -> None:
        super().examine()
        for link in self.links:
            if link.acknowledged >= 0 and link.phase is not None:
                super().expand(link)


@alternative
class WantsTheWholeLogOfANewMember(GoodHaMaster):
    """ "Caught up" is the end of the log, not only the confirmOffset: it is stricter and as safe."""

    def may_join(self, link: Link) -> bool:
        return super().may_join(link) and link.acknowledged >= len(self.log)


@alternative
class HeartbeatsOften(GoodHaMaster):
    """A heartbeat each second keeps the connection; its interval is an option."""

    heartbeat_s = 1.0


@alternative
class ClosesASecondHandshake(GoodHaMaster):
    """A handshake opens a connection; a second one on it is a fault of the replica, which connects again."""

    def take_handshake(self, link: Link, message: HaHandshakeId) -> list[bytes]:
        if link.answered:
            raise RemoteProtocolError("a second handshake")
        return super().take_handshake(link, message)


@alternative
class ConfirmMovesWithItsHeartbeats(GoodHaMaster):
    """confirmOffset is told with the next header: until then it may be what it was. It never runs ahead."""

    shown = 0

    def header(self, at: int, body: bytes) -> HaTransferHeader:
        good = super().header(at, body)
        if body:
            good.confirm_offset = min(good.confirm_offset, max(self.shown, at))
        self.shown = good.confirm_offset if not body else self.shown
        return good


@alternative
class KeepsOneConnectionOfAReplica(GoodHaMaster):
    """A replica that connects again has left its earlier connection, which no longer counts for it."""

    def take_handshake(self, link: Link, message: HaHandshakeId) -> list[bytes]:
        for other in self.links:
            if other is not link and other.broker_id == message.broker_id != MASTER:
                other.broker_id = 0
        return super().take_handshake(link, message)


@alternative
class WaitsLongerForWhoLags(GoodHaMaster):
    """haMaxTimeSlaveNotCatchup is an option; its default is not on the wire."""

    not_caught_up_s = 18.0
