"""Requests and answers of connections: which answer belongs to which request.

The key is (connection, direction of the request, number): both sides of one connection may send requests,
each with its own counter. What the number is and what an answer, a family says (see `Correlation`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

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


@dataclass(frozen=True, slots=True, eq=False)
class Numbered:
    """Frames of connections, all of those that have certain numbers, in any order.

    `row`: what Pairs calls each; `connection`, `direction`, `index`, `received`, `sure` as in Delivered;
    `role` and `number` as the correlation says.
    """

    row: Integers
    connection: Integers
    direction: Integers
    index: Integers
    received: Integers
    sure: npt.NDArray[np.bool_]
    role: Integers
    number: Integers

    def __len__(self) -> int:
        return len(self.row)

    def take(self, at: Integers) -> Numbered:
        """Those at some places."""
        return Numbered(*(getattr(self, name)[at] for name in self.__slots__))

    @property
    def requester(self) -> Integers:
        """The direction in which each asks, or was asked."""
        requester: Integers = self.direction ^ (self.role == ANSWER)
        return requester

    @property
    def key(self) -> Integers:
        """One number for all frames that may be pairs: of one connection, requester and number."""
        talk = 2 * self.connection + self.requester
        key: Integers = (talk << 32) + (self.number & 0xFFFFFFFF)
        return key


Around = Callable[[Numbered], npt.NDArray[np.bool_]]
"""Of answers: whether nothing was lost that each may answer. No hole is before the last request that its
sender had received, nor directly after it."""


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
    rows = np.arange(len(frames))
    places = frames.connection, frames.direction, frames.index, frames.received, frames.sure
    numbers = frames.integers(correlation.number)
    numbered = Numbered(rows, *places, correlation.roles(frames), numbers)
    pairs = Pairs(np.full(len(frames), -1, np.int64))
    answers, requests = pair_numbers(
        numbered, frames.connections, correlation, _Around(frames, whole, cut_short), pairs
    )
    pairs.request_of[answers] = requests
    return pairs


def pair_numbers(
    frames: Numbered, connections: Sequence[str], correlation: Correlation, around: Around, pairs: Pairs
) -> tuple[Integers, Integers]:
    """Pair frames with certain numbers and judge them: the rows of answers, and of the requests they answer.

    What is counted of each connection, and evidence, is added to `pairs`. No number says anything of another:
    so only those are gone through that are no plain pair.
    """
    plain = _plainly(frames)
    count = len(connections)
    waits, answered = (
        np.bincount(frames.connection[at], minlength=count) for at in (plain.waits, plain.answers)
    )
    for name, requests, answers in zip(connections, waits.tolist(), answered.tolist(), strict=True):
        counts = pairs.counts.setdefault(name, Counter())
        if answers:
            counts[Verdict.OK] += answers
        pairs.unanswered[name] += requests - answers
    talks = _Talks(correlation, connections, around, pairs)
    for rows in _by_connection(frames, plain.doubtful):
        talks.run(frames.take(rows))
    found = np.array(talks.found, np.int64).reshape(-1, 2)
    return (
        np.concatenate([frames.row[plain.answers], found[:, 0]]),
        np.concatenate([frames.row[plain.requests], found[:, 1]]),
    )


@dataclass(frozen=True, slots=True)
class _Plain:
    """Which frames are plain: no number of theirs occurs twice, and an answer has a request to it.

    `waits`: requests that want an answer; `answers` and `requests`: those that belong together; `doubtful`:
    all frames with any other number.
    """

    waits: Integers
    answers: Integers
    requests: Integers
    doubtful: Integers


def _plainly(frames: Numbered) -> _Plain:
    """Pair by the number alone what no order is needed for. Every evaluation of it is ok."""
    key, is_answer = frames.key, frames.role == ANSWER
    asking, answering = np.flatnonzero(~is_answer), np.flatnonzero(is_answer)
    twice = []
    for rows in (asking, answering):
        ordered = rows[np.argsort(key[rows], kind="stable")]
        twice.append(key[ordered[1:][key[ordered[1:]] == key[ordered[:-1]]]])
        if rows is asking:
            asking = ordered
    request = np.zeros(0, np.int64)
    sound = np.zeros(len(answering), np.bool_)
    if len(answering) and len(asking):
        at = np.minimum(np.searchsorted(key[asking], key[answering]), len(asking) - 1)
        request = asking[at]
        sound = (key[request] == key[answering]) & (frames.role[request] == REQUEST)
        sound &= frames.index[request] < frames.received[answering]
    else:
        request = np.full(len(answering), -1, np.int64)
    doubts = np.unique(np.concatenate([*twice, key[answering[~sound]]]))
    waits = np.flatnonzero(frames.role == REQUEST)
    if not len(doubts):
        return _Plain(waits, answering, request, np.zeros(0, np.int64))
    doubtful = np.isin(key, doubts)
    clear = ~doubtful[answering]
    return _Plain(waits[~doubtful[waits]], answering[clear], request[clear], np.flatnonzero(doubtful))


def _by_connection(frames: Numbered, rows: Integers) -> Iterator[Integers]:
    """Some frames of each connection that has any, by their index."""
    ordered = rows[np.lexsort((frames.index[rows], frames.connection[rows]))]
    borders = np.flatnonzero(np.diff(frames.connection[ordered])) + 1
    yield from (each for each in np.split(ordered, borders) if len(each))


class _Around:
    """Tells of answers among frames at hand whether nothing was lost around what they may answer."""

    def __init__(
        self, frames: Delivered, whole: Collection[tuple[str, int]], cut_short: Collection[tuple[str, int]]
    ) -> None:
        self._frames = frames
        self._whole = whole
        self._cut_short = cut_short

    @cached_property
    def _sides(self) -> tuple[Integers, npt.NDArray[np.bool_]]:
        """Where the frames of each side begin in the order of indexes, and `from_start` in that order."""
        frames = self._frames
        order = np.lexsort((frames.index, frames.side))
        count = 2 * len(frames.connections)
        borders = np.searchsorted(frames.side[order], np.arange(count + 1))
        return borders.astype(np.int64), frames.integers("from_start", order) != 0

    def __call__(self, answers: Numbered) -> npt.NDArray[np.bool_]:
        borders, from_start = self._sides
        asked = 2 * answers.connection + (answers.direction ^ 1)
        sides, which = np.unique(asked, return_inverse=True)
        names = [self._frames.side_name(side) for side in sides.tolist()]
        begun = np.array([name in self._whole for name in names], np.bool_)[which]
        ended = np.array([name not in self._cut_short for name in names], np.bool_)[which]
        first, behind = borders[asked], borders[asked + 1]
        at = first + answers.received
        return lies_within(at, first, behind, lambda places: from_start[places], begun, ended)


def lies_within(
    at: Integers,
    first: Integers,
    behind: Integers,
    from_start: Callable[[Integers], npt.NDArray[np.bool_]],
    begun: npt.NDArray[np.bool_],
    ended: npt.NDArray[np.bool_],
) -> npt.NDArray[np.bool_]:
    """Whether no hole is before what was received up to a place of a direction, nor directly behind it.

    The direction has the places from `first` to `behind`, of which `from_start` is asked; `begun`, `ended`:
    whether it was seen from its first, to its last byte.
    """
    found = np.ones(len(at), np.bool_)
    for place, inside, beyond in ((at - 1, at > first, begun), (at, at < behind, ended)):
        told = beyond.copy()
        told[inside] = from_start(place[inside])
        found &= told
    return found


@dataclass(frozen=True, slots=True)
class _Frame:
    """A frame of a connection: its row, its index, how many of the peer's its sender had received, its number
    and role; of an answer whether nothing was lost around what it may answer."""

    row: int
    index: int
    received: int
    number: int
    role: int
    around: bool


class _Talks:
    """Judges frames of connections one after the other; `found`: rows of answers and of their requests."""

    def __init__(
        self, correlation: Correlation, connections: Sequence[str], around: Around, pairs: Pairs
    ) -> None:
        self.found: list[tuple[int, int]] = []
        self._correlation = correlation
        self._connections = connections
        self._around = around
        self._pairs = pairs

    def run(self, frames: Numbered) -> None:
        """Judge frames of one connection, which stand in the order of their indexes."""
        connection = self._connections[int(frames.connection[0])]
        judge = self._correlation.judge(_noter(connection, self._pairs))
        is_answer = frames.role == ANSWER
        around = np.zeros(len(frames), np.bool_)
        around[is_answer] = self._around(frames.take(np.flatnonzero(is_answer)))
        # Of whom no number tells what was received, nobody knows what it may answer.
        around &= frames.sure
        for requester in (0, 1):
            own = frames.requester == requester
            asking, answering = np.flatnonzero(own & ~is_answer), np.flatnonzero(own & is_answer)
            talk = _Talk(judge, connection, requester)
            waiting = frames.take(asking[frames.role[asking] == REQUEST])
            latest = dict(zip(waiting.number.tolist(), waiting.index.tolist(), strict=True))
            asked, answers = (_each(frames.take(at), around[at]) for at in (asking, answering))
            self.found += talk.run(asked, answers, latest)
            self._pairs.unanswered[connection] += talk.waiting


def _each(frames: Numbered, around: npt.NDArray[np.bool_]) -> Iterator[_Frame]:
    columns = frames.row, frames.index, frames.received, frames.number, frames.role, around
    return map(_Frame, *(column.tolist() for column in columns))


class _Talk:
    """The requests of one end of a connection and the answers of the other, as that one saw them."""

    def __init__(self, judge: Judge, connection: str, requester: int) -> None:
        self._judge = judge
        self._connection = connection
        self._requester = requester
        self._waiting: dict[int, int] = {}

    @property
    def waiting(self) -> int:
        """How many numbers wait for an answer."""
        return len(self._waiting)

    def run(
        self, asking: Iterator[_Frame], answering: Iterator[_Frame], latest: Mapping[int, int]
    ) -> Iterator[tuple[int, int]]:
        """Judge it, and give the row of each answer that has a request, with that one's.

        `latest`: by number the index of the last request that has it. Where one follows what had been
        received, an acknowledgment, which alone says so, was damaged: nobody answers beforehand.
        """
        following = next(asking, None)
        for frame in answering:
            while following is not None and following.index < frame.received:
                self._ask(following)
                following = next(asking, None)
            whole = frame.around and latest.get(frame.number, -1) < frame.received
            request = self._waiting.pop(frame.number, None)
            if request is not None:
                yield frame.row, request
            self._feed(frame, whole=whole)
        while following is not None:
            self._ask(following)
            following = next(asking, None)

    def _ask(self, frame: _Frame) -> None:
        if frame.role == REQUEST:
            self._waiting[frame.number] = frame.row
        self._feed(frame)

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
