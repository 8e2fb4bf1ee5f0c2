"""Requests and answers of connections: which answer belongs to which request.

The key is (connection, direction of the request, number): both sides of one connection may send requests,
each with its own counter. What the number is and what an answer, a family says (see `Correlation`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from replispec.replay.pairing.delivery import Delivered, Integers
from replispec.runtime.primitives.invariants import Evidence, Judge, Verdict

PAIRING = "pairing"
REQUEST, ONE_WAY, ANSWER = range(3)
_STREAM = {REQUEST: "request", ONE_WAY: "one_way", ANSWER: "answer"}
EVERYTHING = "*"
"""The group of findings that are about a whole capture."""


@dataclass(frozen=True, slots=True, eq=False)
class Correlation:
    """How a family tells which answer belongs to which request.

    `kinds`: the kinds of streams that it speaks of; `number`: the column with the number, of 32 bits, that an
    answer has from its request; `roles`: for each frame whether it is a REQUEST, a ONE_WAY request or an
    ANSWER; `judge`: a new judge of the stream `pairs`, which tells an observer what it finds.
    """

    kinds: frozenset[str]
    number: str
    roles: Callable[[Delivered], Integers]
    judge: Callable[[Callable[[Evidence], None]], Judge]


@dataclass(slots=True)
class PairEvent:
    """One event of the stream `pairs`; `row` is the position of its frame."""

    row: int
    connection: str
    requester: int
    opaque: int
    from_start: bool = False
    group: str = EVERYTHING


@dataclass(slots=True)
class Pairs:
    """`request_of[row]` is the row of the request that an answer answers, -1 for none or no answer.

    `counts` are evaluations by connection and verdict, `unanswered` requests without an answer.
    """

    request_of: Integers
    counts: dict[str, Counter[Verdict]] = field(default_factory=dict)
    unanswered: Counter[str] = field(default_factory=Counter)
    evidence: list[tuple[int, Evidence]] = field(default_factory=list)


def pair(
    frames: Delivered,
    correlation: Correlation,
    whole: Collection[tuple[str, int]] = (),
    cut_short: Collection[tuple[str, int]] = (),
) -> Pairs:
    """Pair the frames (all of streams that the correlation speaks of) and judge the pairs of each connection.

    `whole` names the directions (connection, direction) that were seen from their first byte, `cut_short`
    those in which bytes after the last frame were lost.
    """
    roles = correlation.roles(frames)
    found = _plainly(frames, roles, frames.integers(correlation.number))
    pairs = Pairs(found.request_of)
    borders = np.searchsorted(frames.connection, np.arange(len(frames.connections) + 1)).tolist()
    for number, connection in enumerate(frames.connections):
        if found.plain[number]:
            answers = int(found.answers[number])
            pairs.counts[connection] = Counter({Verdict.OK: answers} if answers else {})
            pairs.unanswered[connection] = int(found.requests[number]) - answers
        else:
            part = slice(borders[number], borders[number + 1])
            sides = _sides(frames, part, roles, correlation.number)
            _judge(connection, sides, correlation, pairs, whole, cut_short)
    return pairs


@dataclass(frozen=True, slots=True)
class _Plain:
    """Pairs of connections on which every answer answers one request, which it alone answers.

    `plain`, `requests` and `answers`: of each connection, whether it is one, and how many there are.
    """

    request_of: Integers
    plain: npt.NDArray[np.bool_]
    requests: Integers
    answers: Integers


def _plainly(frames: Delivered, roles: Integers, numbers: Integers) -> _Plain:
    """Pair by the number alone what no order is needed for: no number occurs twice.

    What it finds for a connection is what `_judge` would: every evaluation is ok.
    """
    count = len(frames.connections)
    is_answer = roles == ANSWER
    talk = 2 * frames.connection + (frames.direction ^ is_answer)
    key = (talk << 32) + (numbers & 0xFFFFFFFF)
    asking, answering = np.flatnonzero(~is_answer), np.flatnonzero(is_answer)
    doubtful = np.zeros(count, np.bool_)
    for rows in (asking, answering):
        ordered = rows[np.argsort(key[rows], kind="stable")]
        doubtful[frames.connection[ordered[1:][key[ordered[1:]] == key[ordered[:-1]]]]] = True
        if rows is asking:
            asking = ordered
    request_of = np.full(len(frames), -1, np.int64)
    requests = np.zeros(count, np.int64)
    waits = roles == REQUEST
    np.add.at(requests, frames.connection[waits], 1)
    answers = np.bincount(frames.connection[answering], minlength=count).astype(np.int64)
    if len(answering):
        at = np.searchsorted(key[asking], key[answering])
        known = at < len(asking)
        request = np.where(known, asking[np.minimum(at, len(asking) - 1)], -1) if len(asking) else at - 1
        sound = known & (key[request] == key[answering]) & waits[request]
        sound &= frames.index[request] < frames.received[answering]
        doubtful[frames.connection[answering[~sound]]] = True
        request_of[answering] = np.where(doubtful[frames.connection[answering]], -1, request)
    return _Plain(request_of, ~doubtful, requests, answers)


def _sides(frames: Delivered, part: slice, roles: Integers, number: str) -> tuple[list[_Frame], list[_Frame]]:
    """The frames of one connection by direction."""
    sides: tuple[list[_Frame], list[_Frame]] = ([], [])
    at = np.arange(part.start, part.stop)
    own = (
        frames.received[at],
        frames.integers(number, at),
        roles[at],
        frames.integers("from_start", at) != 0,
    )
    columns = (column.tolist() for column in own)
    for row, direction, *values in zip(at.tolist(), frames.direction[at].tolist(), *columns, strict=True):
        sides[direction].append(_Frame(row, *values))
    return sides


def _judge(
    connection: str,
    sides: tuple[list[_Frame], list[_Frame]],
    correlation: Correlation,
    pairs: Pairs,
    whole: Collection[tuple[str, int]],
    cut_short: Collection[tuple[str, int]],
) -> None:
    """Pair and judge the frames of one connection, one after the other."""
    judge = correlation.judge(_noter(connection, pairs))
    for requester in (0, 1):
        side = (connection, requester)
        talk = _Talk(judge, connection, requester, pairs)
        asking, answering = sides[requester], sides[1 - requester]
        talk.run(asking, answering, begun=side in whole, ended=side not in cut_short)


@dataclass(frozen=True, slots=True)
class _Frame:
    """A frame of a connection: its row, how many of the peer's its sender had received, number and role."""

    row: int
    received: int
    number: int
    role: int
    from_start: bool


class _Talk:
    """The requests of one end of a connection and the answers of the other, as that one saw them."""

    def __init__(self, judge: Judge, connection: str, requester: int, pairs: Pairs) -> None:
        self._judge = judge
        self._connection = connection
        self._requester = requester
        self._pairs = pairs
        self._waiting: dict[int, int] = {}

    def run(self, asking: list[_Frame], answering: list[_Frame], *, begun: bool, ended: bool) -> None:
        """Judge it; `begun`, `ended`: whether what was asked was seen from its first, to its last byte."""
        asked = 0
        latest = {frame.number: at for at, frame in enumerate(asking) if frame.role == REQUEST}
        for frame in answering:
            if frame.role == ANSWER:
                for request in asking[asked : frame.received]:
                    self._ask(request)
                asked = max(asked, frame.received)
                # Nothing that this may answer was lost: no hole is before the last request that had been
                # received, nor directly after it; and what had been received is true. A request that follows
                # tells that an acknowledgment, which alone says so, was damaged: nobody answers beforehand.
                before = asking[asked - 1].from_start if asked else begun
                after = asking[asked].from_start if asked < len(asking) else ended
                follows = latest.get(frame.number, -1) >= asked
                self._answer(frame, whole=before and after and not follows)
        for request in asking[asked:]:
            self._ask(request)
        self._pairs.unanswered[self._connection] += len(self._waiting)

    def _ask(self, frame: _Frame) -> None:
        if frame.role != ANSWER:
            if frame.role == REQUEST:
                self._waiting[frame.number] = frame.row
            self._feed(frame)

    def _answer(self, frame: _Frame, *, whole: bool) -> None:
        self._pairs.request_of[frame.row] = self._waiting.pop(frame.number, -1)
        self._feed(frame, whole=whole)

    def _feed(self, frame: _Frame, *, whole: bool = False) -> None:
        event = PairEvent(frame.row, self._connection, self._requester, frame.number, whole)
        self._judge.feed(_STREAM[frame.role], event)


def _noter(connection: str, pairs: Pairs) -> Callable[[Evidence], None]:
    counts = pairs.counts.setdefault(connection, Counter())

    def note(evidence: Evidence) -> None:
        counts[evidence.verdict] += 1
        if evidence.verdict is not Verdict.OK:
            pairs.evidence.append((evidence.event.row, evidence))

    return note
