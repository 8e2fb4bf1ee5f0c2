"""What a master tells of its log to replicas that compare theirs, on the machine `log_digests`."""

from __future__ import annotations

from typing import Final, Protocol

from replispec.runtime.rocketmq.log import MessageStore
from replispec.runtime.rocketmq.remoting import host_of
from replispec.runtime.rocketmq.remoting.answering import Answering
from replispec.runtime.rocketmq.remoting.server import BROKER_RELEASE, Request
from replispec.wire.rocketmq.client import LogDigests
from replispec.wire.rocketmq.constants import (
    DIGEST_HOSTS_MAX,
    DIGEST_KEPT_MS,
    DIGEST_PIECE_BYTES,
    DIGEST_PIECES_MAX,
    DIGEST_READS_MAX,
    DIGEST_READS_MS,
)
from replispec.wire.rocketmq.machines import log_digests_wire as wire


class Master(Protocol):
    """What the broker says of its role."""

    @property
    def serves(self) -> bool:
        """Whether it is master."""
        ...

    @property
    def master_epoch(self) -> int:
        """The masterEpoch of its role."""
        ...


class DigestAnswers:
    """Answers from memory, but for the piece at the end: of these only so many bytes are read in a second for
    one host, whoever it is."""

    def __init__(self, store: MessageStore, broker: Master) -> None:
        self._store = store
        self._broker = broker
        self._host = ""
        self._second = 0
        self._reads: dict[str, int] = {}
        # Where the log of a replica of each host ended that asked, and when one asked last; the oldest first.
        self._ends: dict[str, tuple[int, int]] = {}
        self._now_ms = 0
        self._answering = Answering(wire.bound(self), {}, version=BROKER_RELEASE)
        self.table: Final = dict.fromkeys(wire.REQUESTS, self._asked)

    def _asked(self, request: Request) -> None:
        self._host, self._now_ms = host_of(request.peer), request.now_ms
        second = request.now_ms // DIGEST_READS_MS
        if second != self._second:
            self._second = second
            self._reads.clear()
        self._answering.asked(request)

    def wanted_from(self, now_ms: int) -> list[int]:
        """Where the logs end that were compared not long ago: from there on replicas are about to copy."""
        first = self._store.log.first
        ends = self._ends.values()
        return [end for end, asked_ms in ends if end >= first and now_ms < asked_ms + DIGEST_KEPT_MS]

    def _note_end(self, end: int) -> None:
        """Of several replicas of a host the one counts that is furthest behind."""
        before, asked_ms = self._ends.pop(self._host, (end, 0))
        if self._now_ms < asked_ms + DIGEST_KEPT_MS and before >= self._store.log.first:
            end = min(end, before)
        self._ends[self._host] = end, self._now_ms
        if len(self._ends) > DIGEST_HOSTS_MAX:
            del self._ends[next(iter(self._ends))]

    # What the machine asks

    @property
    def serves(self) -> bool:
        """Whether the broker is master."""
        return self._broker.serves

    @property
    def master_epoch(self) -> int:
        """The masterEpoch of its role."""
        return self._broker.master_epoch

    @property
    def file_size(self) -> int:
        """Bytes of a file of its commit log."""
        return self._store.log.file_bytes

    def has_some(self, start: int, end: int, /) -> bool:
        """Whether checksums are known, or may be read for the host that asks."""
        log = self._store.log
        is_empty = max(start, log.first) >= min(end, log.end)
        return is_empty or self._may_read or bool(log.sums(start, end, 1, may_read=False).sums)

    def digests(self, start: int, end: int, /) -> LogDigests:
        """Checksums of the log between two offsets, of as many pieces as are told at once."""
        log = self._store.log
        if log.first <= end <= log.end:
            self._note_end(end)
        found = log.sums(start, end, DIGEST_PIECES_MAX, may_read=self._may_read)
        if found.read_bytes:
            self._reads[self._host] = self._reads.get(self._host, 0) + found.read_bytes
        return LogDigests(start=max(start, log.first), sums=found.sums)

    @property
    def _may_read(self) -> bool:
        return self._reads.get(self._host, 0) < DIGEST_READS_MAX * DIGEST_PIECE_BYTES
