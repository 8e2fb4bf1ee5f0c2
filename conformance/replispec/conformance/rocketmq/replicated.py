"""What a replica does and sees while it takes a master's log: what a `replicate` step is judged by."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields

from replispec.conformance.encoding import Encoded
from replispec.conformance.rocketmq.records import LogRecords, shown_record
from replispec.wire.rocketmq.ha import (
    HaEpochEntry,
    HaHandshakeAnswer,
    HaHandshakeAnswerPadded,
    HaReport,
    HaTransferHeader,
)


@dataclass(slots=True)
class Counts:
    """Counts over the transfers of one connection, in bytes of the log.

    `first` and `end`: the run of bytes that came. `gaps` and `overlaps`: runs that start after or before
    the end of the one before. `crosses_epoch`: runs with the start of an epoch strictly inside.
    `mislabelled`: runs whose header names another epoch, or another start of it, than the entry of the
    handshake that covers their first byte. `confirm_decreased`, `confirm_beyond_log`, `confirm_negative`:
    headers whose confirmOffset fell, lies after the end of what came, or is below 0. `strays`: other
    messages between. `ended`: the master ended the connection. `digest`: SHA-256 of the bytes.
    `record`: the last whole record of the log, by its fields.
    """

    first: int = -1
    end: int = -1
    bytes: int = 0
    frames: int = 0
    heartbeats: int = 0
    largest: int = 0
    gaps: int = 0
    overlaps: int = 0
    crosses_epoch: int = 0
    mislabelled: int = 0
    confirm_decreased: int = 0
    confirm_beyond_log: int = 0
    confirm_negative: int = 0
    strays: int = 0
    ended: bool = False
    last_epoch: int = -1
    epochs: list[int] = field(default_factory=list)
    digest: str = ""
    record: Mapping[str, object] = field(default_factory=dict)


COUNTS = frozenset(each.name for each in fields(Counts))


class LogAccount:
    """Takes a log up to its byte `last` and adds transfer after transfer to its counts.

    `report` says which transfers are acknowledged: each, last or none. `entries` and `log_end` are what
    the master's handshake said.
    """

    def __init__(
        self,
        entries: Sequence[HaEpochEntry],
        log_end: int,
        *,
        first: int = 0,
        last: int = 0,
        report: str = "none",
    ) -> None:
        self.seen = Counts()
        self._first = first
        self._last = last
        self._report = report
        self._entries = sorted(entries, key=lambda entry: entry.start_offset)
        self._log_end = log_end
        self._confirmed: int | None = None
        self._hash = hashlib.sha256()
        self._records = LogRecords({0, *(entry.start_offset for entry in entries)})

    @property
    def done(self) -> bool:
        """True when the last byte that was wanted has come."""
        return self.seen.end >= self._last

    def opening(self) -> list[Encoded]:
        """The report of where this replica stands, unless it reports nothing."""
        return [] if self._report == "none" else [_report(self._first)]

    def take(self, message: object) -> list[Encoded]:
        """Count a transfer and report it; anything else is a stray."""
        if not isinstance(message, HaTransferHeader):
            self.seen.strays += 1
            return []
        self.add(message)
        wanted = self._report == "each" or (self._report == "last" and self.done)
        return [_report(self.seen.end)] if message.body and wanted else []

    def ended(self) -> None:
        """The master ended the connection."""
        self.seen.ended = True

    @property
    def fault(self) -> str:
        """What is wrong with the records themselves; empty when nothing is."""
        return self._records.fault

    def counts(self) -> Mapping[str, object]:
        """The counts by name."""
        last = self._records.last
        return {**asdict(self.seen), "record": shown_record(last) if last else {}}

    def add(self, header: HaTransferHeader) -> None:
        """Count one header with its body."""
        seen = self.seen
        self._confirm(header)
        if header.epoch not in seen.epochs:
            seen.epochs.append(header.epoch)
        seen.last_epoch = header.epoch
        if not header.body:
            seen.heartbeats += 1
            return
        seen.frames += 1
        seen.bytes += len(header.body)
        seen.largest = max(seen.largest, len(header.body))
        if seen.first < 0:
            seen.first = header.offset
        elif header.offset != seen.end:
            seen.gaps += header.offset > seen.end
            seen.overlaps += header.offset < seen.end
        seen.end = header.offset + len(header.body)
        self._log_end = max(self._log_end, seen.end)
        self._hash.update(header.body)
        self._records.add(header.offset, header.body)
        seen.digest = self._hash.hexdigest()
        self._epoch(header)

    def _confirm(self, header: HaTransferHeader) -> None:
        value, seen = header.confirm_offset, self.seen
        seen.confirm_negative += value < 0
        seen.confirm_beyond_log += value > max(self._log_end, header.offset + len(header.body))
        seen.confirm_decreased += self._confirmed is not None and value < self._confirmed
        self._confirmed = value

    def _epoch(self, header: HaTransferHeader) -> None:
        end = header.offset + len(header.body)
        self.seen.crosses_epoch += any(header.offset < each.start_offset < end for each in self._entries)
        covering = [each for each in self._entries if each.start_offset <= header.offset]
        if covering and (covering[-1].epoch, covering[-1].start_offset) != (
            header.epoch,
            header.epoch_start_offset,
        ):
            self.seen.mislabelled += 1


def _report(offset: int) -> Encoded:
    return Encoded(HaReport(max_offset=offset).encode(), (), f"HaReport {offset}")


def is_handshake(message: object) -> bool:
    """Whether a message is a master's handshake, which has the epochs of its log."""
    return isinstance(message, HaHandshakeAnswer | HaHandshakeAnswerPadded)


def account(handshake: object, first: int, last: int, report: str) -> LogAccount:
    """An account of a log as the handshake tells it; without one, of an empty log."""
    if isinstance(handshake, HaHandshakeAnswer | HaHandshakeAnswerPadded):
        return LogAccount(handshake.entries, handshake.max_offset, first=first, last=last, report=report)
    return LogAccount((), 0, first=first, last=last, report=report)
