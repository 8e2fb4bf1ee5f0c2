"""A replica reports once its log was compared with its master's; a master tells checksums within bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.log import MessageStore
from replispec.runtime.rocketmq.remoting.answering import Requests
from replispec.runtime.rocketmq.remoting.calls import Failure, Outcome
from replispec.runtime.rocketmq.replication import DigestAnswers, DigestCheck, log_digests
from replispec.runtime.world import Note, Outbox
from replispec.wire.rocketmq.client import GetLogDigestsRequest, LogDigests
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode, SerializeType
from replispec.wire.rocketmq.constants import (
    DIGEST_HOSTS_MAX,
    DIGEST_KEPT_MS,
    DIGEST_PIECES_MAX,
    DIGEST_READS_MAX,
)
from replispec.wire.rocketmq.options import ComparisonOptions
from replispec.wire.rocketmq.remoting import RemotingHeader
from tests.runtime.log.sample_logs import FILE_BYTES, disk, message, store_on
from tests.steps import steps_of

MASTER = "10.0.0.1:10911"


def filled(messages: int = 60) -> MessageStore:
    """A store of several files."""
    store = store_on(disk())
    for number in range(messages):
        store.put(message(f"message {number}" + "." * 100))
    store.flush()
    return store


@dataclass
class Asker:
    """A replica that compares, and what it asked and was told. It is also what `Calls` is to it."""

    store: MessageStore
    options: ComparisonOptions = field(default_factory=ComparisonOptions)
    master_address: str | None = MASTER
    master_epoch: int = 3
    asked: list[GetLogDigestsRequest] = field(default_factory=list)
    agreed: list[int] = field(default_factory=list)
    differed: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.outbox = Outbox()
        self._then: Callable[[Outcome, int], None] | None = None
        calls: Any = self
        self.check = DigestCheck(self.outbox, calls, self.store, self.options, self, self.differed.append)

    def ask(self, address: str, code: int, then: Callable[[Outcome, int], None], **more: Any) -> None:
        """Take a question."""
        assert (address, code) == (MASTER, RequestCode.GET_LOG_DIGESTS)
        self.asked.append(GetLogDigestsRequest.from_ext_fields(more["ext_fields"]))
        self._then = then

    def begin(self, now_ms: int = 0) -> bool:
        """A connection is about to be reported on."""
        return self.check.begin(now_ms, self.agreed.append)

    def told(self, outcome: Outcome | LogDigests, now_ms: int = 1) -> None:
        """The master answers the question."""
        then, self._then = self._then, None
        assert then is not None, "nothing was asked"
        then(answer(0, outcome.encode()) if isinstance(outcome, LogDigests) else outcome, now_ms)

    def lines(self) -> list[str]:
        """What was said since this was last asked."""
        return [str(effect.what) for effect in self.outbox.take() if isinstance(effect, Note)]


def answer(code: int, body: bytes = b"", remark: str | None = None) -> Command:
    said = RemotingHeader(code=code, language="JAVA", version=493, opaque=1, flag=1, remark=remark)
    return Command(said, body, SerializeType.JSON)


def digests(store: MessageStore, asked: GetLogDigestsRequest, at_most: int = 256) -> LogDigests:
    start, end = asked.start, asked.end
    assert start is not None
    assert end is not None
    return LogDigests(start=max(start, store.log.first), sums=store.log.sums(start, end, at_most).sums)


def sums_of(told: LogDigests) -> list[int]:
    assert told.sums is not None
    return told.sums


def test_a_log_is_reported_when_all_of_it_was_compared_in_pieces() -> None:
    one = Asker(filled())
    end = one.store.log.end
    assert end > 2 * FILE_BYTES
    assert one.begin() is False
    while not one.agreed:
        asked = one.asked[-1]
        assert (asked.epoch, asked.end, asked.file_size) == (3, end, FILE_BYTES)
        one.told(digests(one.store, asked, at_most=1))
    assert [asked.start for asked in one.asked] == list(range(0, end, FILE_BYTES))
    assert one.begin() is True
    assert (one.lines(), one.differed) == ([], [])


def test_an_empty_log_and_one_that_nobody_wants_compared_need_no_question() -> None:
    empty = Asker(store_on(disk()))
    empty.begin()
    assert (len(empty.agreed), empty.asked) == (1, [])
    unwanted = Asker(filled(), ComparisonOptions(compare_log_with_master=False))
    assert (unwanted.begin(), unwanted.asked) == (True, [])


def test_of_a_piece_that_differs_it_is_said_where_it_lies_and_nothing_is_reported() -> None:
    one = Asker(filled())
    one.begin()
    told = digests(one.store, one.asked[0])
    sums_of(told)[1] ^= 1
    one.told(told)
    assert (one.differed, one.agreed) == ([1], [])
    (note,) = [effect for effect in one.outbox.take() if isinstance(effect, Note)]
    assert note.what == "not counted: the log is not the master's, and nothing is copied"
    values = dict(note.values)
    assert "replispec admin repair" in str(values["way_out"])
    assert (values["differs_from"], values["to"]) == (FILE_BYTES, 2 * FILE_BYTES)


def test_a_master_that_does_not_know_the_question_is_believed_and_that_is_one_line() -> None:
    one = Asker(filled())
    for _ in range(2):
        one.begin()
        one.told(answer(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark="request type 30001 not supported"))
        one.check.end(2)
    assert len(one.agreed) == 2
    assert one.lines() == ["the log was not compared: the master tells no checksums"]


@pytest.mark.parametrize(
    "told",
    [
        Failure("connection reset by peer", sent=True),
        answer(ResponseCode.SERVICE_NOT_AVAILABLE, remark="this broker is not master in that epoch"),
        answer(0, b"{"),
        answer(0, b'{"start":0,"sums":"x"}'),
        LogDigests(start=-1, sums=[1, 2, 3]),
        LogDigests(start=0, sums=[]),
    ],
    ids=lambda told: type(told).__name__,
)
def test_what_tells_nothing_is_asked_again_after_pauses_that_grow(told: Outcome | LogDigests) -> None:
    one = Asker(filled())
    one.begin()
    now_ms, pauses = 0, []
    for number in range(1, 12):
        one.told(told, now_ms)
        due_ms = one.check.deadline_ms()
        assert due_ms is not None
        assert len(one.asked) == number
        pauses.append(due_ms - now_ms)
        now_ms = due_ms
        one.check.ticked(now_ms)
    assert pauses == sorted(pauses)
    assert pauses[-1] == 8_000
    assert one.lines() == ["not counted yet: the master tells no checksums of its log"]
    one.told(digests(one.store, one.asked[-1]), now_ms)
    assert one.agreed == [now_ms]


def test_the_pauses_go_on_over_connections_that_end_and_begin_anew_with_another_master() -> None:
    one = Asker(filled())
    one.begin()
    now_ms, asked_ms = 0, [0]
    while now_ms < 100_000:
        # Each connection ends soon after it began, whatever is asked on it.
        if one._then is not None:
            one.told(Failure("reset", sent=True), now_ms)
        one.check.end(now_ms)
        now_ms += 50
        before = len(one.asked)
        one.check.ticked(now_ms)
        one.check.begin(now_ms, one.agreed.append)
        asked_ms += [now_ms] * (len(one.asked) - before)
    pauses = [later - earlier for earlier, later in pairwise(asked_ms)]
    assert len(pauses) < 20
    assert pauses[:3] == [100, 200, 400]
    assert min(pauses[8:]) >= 8_000
    one.check.end(now_ms)
    one.master_epoch = 4
    before = len(one.asked)
    one.check.begin(now_ms + 1, one.agreed.append)
    assert len(one.asked) == before + 1
    one.told(Failure("reset", sent=True), now_ms + 1)
    assert one.check.deadline_ms() == now_ms + 101


def test_what_either_side_deletes_meanwhile_is_compared_with_nothing() -> None:
    one = Asker(filled())
    one.begin()
    one.store.log.delete_before(FILE_BYTES)
    one.told(LogDigests(start=0, sums=[1, 2]))
    assert one.asked[-1].start == FILE_BYTES
    one.told(LogDigests(start=1 << 40, sums=[]))
    assert (one.agreed, one.differed) == ([1], [])


def test_an_answer_to_a_connection_before_counts_for_nothing() -> None:
    one = Asker(filled())
    one.begin()
    late = one._then
    one.check.end(1)
    assert late is not None
    late(answer(ResponseCode.REQUEST_CODE_NOT_SUPPORTED), 2)
    assert one.agreed == []
    one.begin()
    assert len(one.asked) == 2


# The master


@dataclass
class Question:
    """A request, and its answer."""

    header: GetLogDigestsRequest
    peer: str
    now_ms: int
    answered: bool = False
    told: int = -1
    digests: LogDigests = field(default_factory=LogDigests)

    @property
    def code(self) -> int:
        """Which request it is."""
        return RequestCode.GET_LOG_DIGESTS

    @property
    def command(self) -> Command:
        """The request as it came."""
        said = answer(self.code)
        said.header.ext_fields = self.header.to_ext_fields()
        return said

    def answer(self, code: int, *, body: bytes = b"", **_more: Any) -> None:
        """Take the answer."""
        self.answered, self.told = True, code
        if body:
            self.digests = LogDigests.decode(body)


class Telling:
    """A master."""

    master_epoch = 3

    def __init__(self, store: MessageStore) -> None:
        self.store = store
        self.serves = True
        self._requests = Requests()
        self.answers = DigestAnswers(store, self)
        self._requests.serve(self.answers.table)

    def asked(
        self,
        start: int = 0,
        end: int = 1 << 40,
        *,
        epoch: int = 3,
        size: int = FILE_BYTES,
        peer: str = "10.0.0.7:1",
        now_ms: int = 0,
    ) -> Question:
        """Ask, as it should be asked unless the test says otherwise."""
        question: Any = Question(GetLogDigestsRequest(epoch, start, end, size), peer, now_ms)
        self._requests.take(question)
        found: Question = question
        return found


def test_a_master_tells_checksums_of_what_it_has() -> None:
    one = Telling(filled())
    log = one.store.log
    found = one.asked()
    assert found.told == ResponseCode.SUCCESS
    assert found.digests == LogDigests(start=0, sums=log.sums(0, log.end, 256).sums)
    assert len(sums_of(found.digests)) == -(-log.end // FILE_BYTES)
    log.delete_before(FILE_BYTES)
    assert one.asked().digests.start == FILE_BYTES
    for start, end in [(-5, -1), (1 << 40, 1 << 41), (9, 3), (-(1 << 63), (1 << 63) - 1)]:
        assert one.asked(start, end).told == ResponseCode.SUCCESS


def test_only_a_master_of_that_epoch_with_files_of_that_size_tells_any() -> None:
    one = Telling(filled())
    assert one.asked(epoch=2).told == ResponseCode.SERVICE_NOT_AVAILABLE
    assert one.asked(size=FILE_BYTES + 1).told == ResponseCode.INVALID_PARAMETER
    one.serves = False
    assert one.asked().told == ResponseCode.SERVICE_NOT_AVAILABLE


def test_one_host_has_only_so_much_read_in_a_second_and_others_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The bytes of so many pieces: of one byte each here.
    monkeypatch.setattr(log_digests, "DIGEST_PIECE_BYTES", 1)
    one = Telling(filled())
    told = [one.asked(1, 2).told for _ in range(DIGEST_READS_MAX + 2)]
    assert told == [ResponseCode.SUCCESS] * DIGEST_READS_MAX + [ResponseCode.SYSTEM_BUSY] * 2
    # What need not be read is told all the same, without the piece that would have to be.
    assert one.asked(0, FILE_BYTES + 1).digests.sums == one.asked(0, FILE_BYTES).digests.sums != []
    assert one.asked(1, 2, peer="10.0.0.8:1").told == ResponseCode.SUCCESS
    assert one.asked(1, 2, now_ms=1_000).told == ResponseCode.SUCCESS


def test_however_long_a_log_is_one_answer_is_so_much_work() -> None:
    one = Telling(filled(20_000 // 2))
    assert one.store.log.end > 2 * DIGEST_PIECES_MAX * FILE_BYTES
    assert len(sums_of(one.asked().digests)) == DIGEST_PIECES_MAX
    assert steps_of(one.asked) < 1_200


def test_a_master_remembers_for_a_while_where_logs_end_that_were_compared() -> None:
    one = Telling(filled())
    end = one.store.log.end
    one.asked(0, 700, now_ms=5)
    one.asked(0, 900, now_ms=6)
    one.asked(0, 900, peer="10.0.0.8:1", now_ms=7)
    one.asked(0, 1 << 40, peer="10.0.0.9:1", now_ms=7)
    assert sorted(one.answers.wanted_from(8)) == [700, 900]
    assert one.answers.wanted_from(6 + DIGEST_KEPT_MS) == [900]
    assert one.answers.wanted_from(7 + DIGEST_KEPT_MS) == []
    # The oldest host is forgotten, however many there are.
    for number in range(DIGEST_HOSTS_MAX):
        one.asked(0, end, peer=f"10.1.{number >> 8}.{number & 255}:1", now_ms=8)
    assert one.answers.wanted_from(9) == [end] * DIGEST_HOSTS_MAX
