"""Named faults of an HA master: each is the good one with as little as possible overridden.

Here are those of what it sends; those of what it makes of its replicas are in ha_replica_faults. A docstring
says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.rocketmq.codes import HaConnectionState
from replispec.wire.rocketmq.ha import (
    HaEpochEntry,
    HaHandshakeAnswer,
    HaHandshakeAnswerPadded,
    HaHandshakeId,
    HaTransferHeader,
)
from tests.conformance.subjects.ha_master import TOPIC, GoodHaMaster, Link

F = TypeVar("F", bound=type[GoodHaMaster])
MASTER_FAULTS: dict[str, type[GoodHaMaster]] = {}
STATE_BYTES = 4
MIDDLE = 2
"""The number of the run in which a fault inside a stream shows."""


def fault(subject: F) -> F:
    """Enter a class under its name, in words with hyphens."""
    assert subject.__doc__, f"what is wrong with {subject.__name__}?"
    name = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in subject.__name__)
    MASTER_FAULTS[name.lstrip("-")] = subject
    return subject


# The answer to a handshake


@fault
class AnswersInAnotherState(GoodHaMaster):
    """The answer's first word says SUSPEND."""

    def take_handshake(self, link: Link, message: HaHandshakeId) -> list[bytes]:
        answer = super().take_handshake(link, message)[0]
        return [HaConnectionState.SUSPEND.to_bytes(STATE_BYTES, "big") + answer[STATE_BYTES:]]


@fault
class AnswersPadded(GoodHaMaster):
    """The answer has the 36 bytes of 5.0.0 before its entries."""

    def take_handshake(self, link: Link, message: HaHandshakeId) -> list[bytes]:
        super().take_handshake(link, message)
        good = self.answer()
        return [HaHandshakeAnswerPadded(good.max_offset, good.last_epoch, entries=good.entries).encode()]


@fault
class AnswersTwice(GoodHaMaster):
    """A handshake has two answers."""

    def take_handshake(self, link: Link, message: HaHandshakeId) -> list[bytes]:
        return super().take_handshake(link, message) * 2


@fault
class AnswersFirstHandshakeOnly(GoodHaMaster):
    """A second handshake on a connection is not answered."""

    def take_handshake(self, link: Link, message: HaHandshakeId) -> list[bytes]:
        return [] if link.answered else super().take_handshake(link, message)


@fault
class ClosesOnSecondHandshake(GoodHaMaster):
    """A second handshake ends the connection."""

    def take_handshake(self, link: Link, message: HaHandshakeId) -> list[bytes]:
        if link.answered:
            raise RemoteProtocolError("again")
        return super().take_handshake(link, message)


@fault
class CopiesOnAfterHandshake(GoodHaMaster):
    """A handshake on a connection that copies is answered, and does not stop the copying."""

    def take_handshake(self, link: Link, message: HaHandshakeId) -> list[bytes]:
        phase = link.phase
        answer = super().take_handshake(link, message)
        link.phase = phase
        return answer


def answers(name: str, says: str, change: Callable[[HaHandshakeAnswer], HaHandshakeAnswer]) -> None:
    """Enter a master whose answer is changed like this."""

    class Answers(GoodHaMaster):
        __doc__ = says

        def answer(self) -> HaHandshakeAnswer:
            return change(super().answer())

    MASTER_FAULTS[name] = Answers


def shifted(entry: HaEpochEntry) -> HaEpochEntry:
    """The entry with a start that is one too great."""
    return replace(entry, start_offset=entry.start_offset + 1)


def with_entries(
    change: Callable[[list[HaEpochEntry]], list[HaEpochEntry]],
) -> Callable[[HaHandshakeAnswer], HaHandshakeAnswer]:
    """The change of an answer that changes its entries like this."""
    return lambda good: replace(good, entries=change(good.entries))


answers(
    "max-offset-is-one-less",
    "The answer hides a byte.",
    lambda good: replace(good, max_offset=good.max_offset - 1),
)
answers(
    "max-offset-is-one-more",
    "The answer promises a byte.",
    lambda good: replace(good, max_offset=good.max_offset + 1),
)
answers("max-offset-is-zero", "The answer tells of no log.", lambda good: replace(good, max_offset=0))
answers(
    "last-epoch-is-one-more",
    "The answer names an epoch to come.",
    lambda good: replace(good, last_epoch=good.last_epoch + 1),
)
answers(
    "last-epoch-is-first",
    "The answer names the first epoch as the last.",
    lambda good: replace(good, last_epoch=1),
)
answers("lacks-newest-entry", "The newest epoch is left out.", with_entries(lambda good: good[:-1]))
answers("lacks-oldest-entry", "The oldest epoch is left out.", with_entries(lambda good: good[1:]))
answers(
    "lacks-middle-entry",
    "An epoch in the middle is left out.",
    with_entries(lambda good: good[:1] + good[2:]),
)
answers("has-no-entries", "No epochs are told.", with_entries(lambda _good: []))
answers("entries-run-backwards", "The newest epoch comes first.", with_entries(lambda good: good[::-1]))
answers("repeats-an-entry", "An epoch stands twice.", with_entries(lambda good: good[:1] + good))
answers(
    "entry-starts-one-late",
    "An epoch in the middle starts a byte late.",
    with_entries(lambda good: [good[0], shifted(good[1]), *good[2:]]),
)


# Where sending starts, and what is sent


@fault
class IgnoresReportedOffset(GoodHaMaster):
    """Sending starts at 0 whatever was reported."""

    def start(self, link: Link, end: int) -> int:  # noqa: ARG002
        return 0


@fault
class StartsBeyondReport(GoodHaMaster):
    """Sending starts a byte beyond the reported end."""

    def start(self, link: Link, end: int) -> int:
        return min(super().start(link, end) + 1, len(self.log))


@fault
class StartsBeforeReport(GoodHaMaster):
    """Sending starts a byte before the reported end."""

    def start(self, link: Link, end: int) -> int:
        return max(super().start(link, end) - 1, 0)


@fault
class EveryReportMovesSending(GoodHaMaster):
    """A later report moves the place from where is sent."""

    def take_report(self, link: Link, end: int) -> list[bytes]:
        if link.phase is HaConnectionState.TRANSFER and end < link.next_offset:
            link.next_offset = end
        return super().take_report(link, end)


@fault
class SendsUnasked(GoodHaMaster):
    """The log is sent after the answer, before a report says from where."""

    def take_handshake(self, link: Link, message: HaHandshakeId) -> list[bytes]:
        answer = super().take_handshake(link, message)
        link.phase, link.next_offset = HaConnectionState.TRANSFER, 0
        return [*answer, *self.batches(link)]


@fault
class LeavesGap(GoodHaMaster):
    """A byte is left out between two runs."""

    def batches(self, link: Link) -> list[bytes]:
        if link.next_offset == self.batch_bytes:
            link.next_offset += 1
        return super().batches(link)

    def run(self, link: Link) -> HaTransferHeader:
        run = super().run(link)
        if run.offset == self.batch_bytes:
            return self.header(run.offset + 1, run.body[1:])
        return run


@fault
class Overlaps(GoodHaMaster):
    """A run begins a byte before the end of the one before it."""

    def run(self, link: Link) -> HaTransferHeader:
        if link.next_offset == self.batch_bytes:
            link.next_offset -= 1
        return super().run(link)


@fault
class RepeatsRun(GoodHaMaster):
    """A run is sent twice."""

    def batches(self, link: Link) -> list[bytes]:
        messages = super().batches(link)
        return messages[:MIDDLE] + messages[MIDDLE - 1 :]


@fault
class SwapsRuns(GoodHaMaster):
    """Two runs are sent in the wrong order."""

    def batches(self, link: Link) -> list[bytes]:
        messages = super().batches(link)
        messages[:MIDDLE] = reversed(messages[:MIDDLE])
        return messages


@fault
class StopsEarly(GoodHaMaster):
    """The last bytes of the log are never sent."""

    def batches(self, link: Link) -> list[bytes]:
        messages = super().batches(link)
        return messages[:-1] if len(messages) > 1 else messages


@fault
class SendsPastTheEnd(GoodHaMaster):
    """The last run has bytes that are not in the log."""

    def run(self, link: Link) -> HaTransferHeader:
        run = super().run(link)
        at_end = run.offset + len(run.body) == len(self.log)
        return replace(run, body=run.body + b"\0") if at_end else run


@fault
class AnnouncesTooMuch(GoodHaMaster):
    """A header announces a byte more than follows, and so swallows the next header's first."""

    def encode_run(self, run: HaTransferHeader) -> bytes:
        encoded = bytearray(super().encode_run(run))
        encoded[STATE_BYTES : 2 * STATE_BYTES] = (len(run.body) + 1).to_bytes(STATE_BYTES, "big")
        return bytes(encoded)


@fault
class SendsEachReplicaOtherBytes(GoodHaMaster):
    """The replicas of one master copy different logs, each of them sound in its form."""

    def opened(self, wake: Callable[[], None]) -> Link:
        link = super().opened(wake)
        self.numbers = [*self.numbers, id(link)]
        return link

    numbers: list[int] = []  # noqa: RUF012  # replaced, never changed

    def run(self, link: Link) -> HaTransferHeader:
        run = super().run(link)
        topic = TOPIC[:-1] + str(self.numbers.index(id(link)) % 10)
        return replace(run, body=run.body.replace(TOPIC.encode(), topic.encode()))


@fault
class OffsetIsEndOfRun(GoodHaMaster):
    """A header's offset is the end of its run."""

    def encode_run(self, run: HaTransferHeader) -> bytes:
        return super().encode_run(replace(run, offset=run.offset + len(run.body)))


# Labels


@fault
class LabelsBorderWithNextEpoch(GoodHaMaster):
    """The run that ends an epoch carries the next one's number and start (Apache)."""

    def header(self, at: int, body: bytes) -> HaTransferHeader:
        good = super().header(at, body)
        entry = self.label(min(at + len(body), len(self.log)))
        return replace(good, epoch=entry.epoch, epoch_start_offset=entry.start_offset)


@fault
class LabelsWithLastEpoch(GoodHaMaster):
    """Every run carries the newest epoch."""

    def label(self, at: int) -> HaEpochEntry:  # noqa: ARG002
        return self.epochs[-1]


@fault
class LabelsWithAnotherStart(GoodHaMaster):
    """The epoch's start is that of the run."""

    def header(self, at: int, body: bytes) -> HaTransferHeader:
        return replace(super().header(at, body), epoch_start_offset=at)


@fault
class EpochIsOneTooGreat(GoodHaMaster):
    """Every header carries an epoch that is one too great, with the right start."""

    def header(self, at: int, body: bytes) -> HaTransferHeader:
        good = super().header(at, body)
        return replace(good, epoch=good.epoch + 1)


@fault
class RunsCrossEpochs(GoodHaMaster):
    """A run goes on beyond the end of its epoch."""

    def epoch_end(self, at: int) -> int:  # noqa: ARG002
        return len(self.log)


@fault
class ConfirmIsNegative(GoodHaMaster):
    """The confirm offset is -1."""

    def header(self, at: int, body: bytes) -> HaTransferHeader:
        return replace(super().header(at, body), confirm_offset=-1)


@fault
class ConfirmIsBeyondLog(GoodHaMaster):
    """The confirm offset lies after the end of the log."""

    def header(self, at: int, body: bytes) -> HaTransferHeader:
        good = super().header(at, body)
        return replace(good, confirm_offset=good.confirm_offset + 1)


@fault
class ConfirmDecreases(GoodHaMaster):
    """The confirm offset of a run is less than that of the one before."""

    def header(self, at: int, body: bytes) -> HaTransferHeader:
        good = super().header(at, body)
        return replace(good, confirm_offset=good.confirm_offset - at // self.batch_bytes)


@fault
class LearnerHoldsConfirm(GoodHaMaster):
    """The confirm offset waits for learners, and falls for them."""

    def advance_confirm(self) -> None:
        super().advance_confirm()
        ends = [link.acknowledged for link in self.links if link.learner and link.acknowledged >= 0]
        self.confirm = min([self.confirm, *ends])


# What the bytes say


@fault
class TurnsABitOfEveryRun(GoodHaMaster):
    """The last byte of every message body goes out with a bit turned."""

    def encode_run(self, run: HaTransferHeader) -> bytes:
        return super().encode_run(replace(run, body=run.body.replace(b"..", b"./")))
