"""A replica's log compared with its master's before it is reported, on the machine `digest_check`.

Both sides keep the checksums of what they read and wrote: nothing is read again but the piece at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.log import MessageStore
from replispec.runtime.rocketmq.membership import MachineRunner, Nothing
from replispec.runtime.rocketmq.remoting.calls import Calls, Failure, Outcome
from replispec.runtime.world import Level, Outbox
from replispec.wire.rocketmq.constants import ANSWER_TIMEOUT_MS, DIGEST_PIECES_MAX
from replispec.wire.rocketmq.machines import digest_check as machine
from replispec.wire.rocketmq.machines import digest_check_wire as wire
from replispec.wire.rocketmq.options import ComparisonOptions

AgreedListener = Callable[[int], None]
"""Called with the milliseconds when a log may be reported."""


class Followed(Protocol):
    """Whom a replica copies from, by the account of controllers."""

    @property
    def master_address(self) -> str | None:
        """Where the master takes requests, as ADDRESS:PORT."""
        ...

    @property
    def master_epoch(self) -> int:
        """The masterEpoch in which it is master."""
        ...


class DigestCheck:
    """Compares anew for each replication connection: a master may be another one, or another process.

    `begin` says what is to be compared, and `agreed` is called once; where the logs differ `differs` is
    instead. `ticked` is to be called when `deadline_ms` has come.
    """

    def __init__(
        self,
        outbox: Outbox,
        calls: Calls,
        store: MessageStore,
        options: ComparisonOptions,
        followed: Followed,
        differs: Callable[[int], None],
    ) -> None:
        self._outbox = outbox
        self._calls = calls
        self._store = store
        self._followed = followed
        self._differs = differs
        self._is_wanted = options.compare_log_with_master
        self._runner = MachineRunner(machine.MACHINE, self, options)
        self._agreed: AgreedListener = lambda _now_ms: None
        self._address = ""
        # Answers to questions of a connection before count for nothing.
        self._asked = 0
        self._reason = self._told_reason = ""
        self._told_unknown: set[str] = set()

    def begin(self, now_ms: int, agreed: AgreedListener) -> bool:
        """A log is to be reported for the first time on a connection: whether it may be, without comparing.
        To be called again until it may."""
        if not self._is_wanted or self._runner.state is machine.State.AGREED:
            return True
        if self._runner.state is machine.State.IDLE:
            self._agreed, self._address = agreed, self._followed.master_address or ""
            log = self._store.log
            self._take(machine.Begun(log.first, log.end, self._address, self.master_epoch), now_ms)
        return False

    def end(self, now_ms: int) -> None:
        """The connection is gone."""
        self._asked += 1
        if self._runner.state is not machine.State.IDLE:
            self._take(machine.Ended(), now_ms)

    def ticked(self, now_ms: int) -> None:
        """Do what is due."""
        self._runner.ticked(now_ms)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        return self._runner.deadline_ms()

    # What the machine asks

    @property
    def master_epoch(self) -> int:
        """The masterEpoch of the master that is followed."""
        return self._followed.master_epoch

    @property
    def file_size(self) -> int:
        """Bytes of a file of the commit log."""
        return self._store.log.file_bytes

    # Effects of the machine

    def ask(self, _event: object) -> Nothing:
        """Ask for checksums of what was not compared yet."""
        call = wire.ask(self._runner.variables, self)
        self._asked += 1
        asked = self._asked

        def answered(outcome: Outcome, now_ms: int) -> None:
            if asked == self._asked:
                self._take(self._told(call.code, outcome), now_ms)

        self._calls.ask(
            self._address,
            call.code,
            answered,
            now_ms=self._runner.now_ms,
            timeout_ms=ANSWER_TIMEOUT_MS,
            ext_fields=call.header.to_ext_fields(),
        )
        return ()

    def _told(self, code: int, outcome: Outcome) -> machine.Event:
        """The event that an answer is."""
        if isinstance(outcome, Failure):
            self._reason = outcome.reason
            return machine.Failed()
        header = outcome.header
        self._reason = header.remark or f"answered {header.code}"
        try:
            event = wire.outcome_of(code, header.code, header.ext_fields or {}, outcome.body)
        except RemoteProtocolError as error:
            self._reason, event = str(error), None
        return event or machine.Failed()

    def compare(self, event: machine.Told) -> Nothing:
        """Compare what the master told with what is here."""
        log, known = self._store.log, self._runner.variables
        start, until = event.start, known.until
        if log.first > known.at or start >= until:
            # What either side has deleted meanwhile is compared with nothing.
            self._runner.take(machine.Same(min(max(log.first, start), until)))
            return ()
        if start < known.at or not event.sums:
            self._reason = f"told no checksums of the log from {known.at} on"
            self._runner.take(machine.Failed())
            return ()
        ours = log.sums(start, until, min(len(event.sums), DIGEST_PIECES_MAX))
        pairs = zip(ours.sums, event.sums, strict=False)
        different = next((number for number, (our, told) in enumerate(pairs) if our != told), None)
        if different is None:
            self._runner.take(machine.Same(ours.end))
        else:
            self._runner.take(machine.Differs(*log.piece(different, start, until)))
        return ()

    def report(self, _event: object) -> Nothing:
        """Let the log be reported."""
        self._told_reason = ""
        self._agreed(self._runner.now_ms)
        return ()

    def note_difference(self, event: machine.Differs) -> Nothing:
        """Say where the logs differ, and what to do."""
        self._outbox.note(
            Level.ERROR,
            "not counted: the log is not the master's, and nothing is copied",
            master=self._address,
            differs_from=event.start,
            to=event.end,
            way_out="replispec admin repair, where the master's is right",
        )
        return ()

    def give_up(self, _event: machine.Differs) -> Nothing:
        """Copy nothing more."""
        self._differs(self._runner.now_ms)
        return ()

    def note_cut_off(self, _event: machine.Ended) -> Nothing:
        """Say how far it came."""
        known = self._runner.variables
        self._outbox.note(
            Level.INFO,
            "the connection ended before the log was compared: the next one goes on",
            master=self._address,
            compared_to=known.at,
            of=known.until,
        )
        return ()

    def note_unknown(self, _event: machine.Unknown) -> Nothing:
        """Say once of each master that it was believed."""
        if self._address not in self._told_unknown:
            self._told_unknown = {self._address}
            self._outbox.note(
                Level.INFO, "the log was not compared: the master tells no checksums", master=self._address
            )
        return ()

    def note_failure(self, _event: machine.Failed) -> Nothing:
        """Say what is waited for, once for each reason."""
        if self._reason != self._told_reason:
            self._told_reason = self._reason
            self._outbox.note(
                Level.WARNING,
                "not counted yet: the master tells no checksums of its log",
                master=self._address,
                reason=self._reason,
            )
        return ()

    def _take(self, event: machine.Event, now_ms: int) -> None:
        self._runner.take(event, now_ms)
