"""Requests and answers of remoting connections: which answer belongs to which request.

The key is (connection, direction of the request, opaque): both sides of one connection send requests,
each with its own counter. Source: RemotingCommand, NettyRemotingAbstract (apache/rocketmq
rocketmq-all-5.4.0).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from replispec.replay.pairing.delivery import Delivered, column
from replispec.runtime.primitives.invariants import Evidence, Judge, Verdict
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq.codes import RemotingFlag
from replispec.wire.rocketmq.invariants import INVARIANTS

PAIRING = "pairing"
EVERYTHING = "*"
"""The group of findings that are about a whole capture."""


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

    request_of: list[int]
    counts: dict[str, Counter[Verdict]] = field(default_factory=dict)
    unanswered: Counter[str] = field(default_factory=Counter)
    evidence: list[tuple[int, Evidence]] = field(default_factory=list)


def pair(
    frames: Delivered, whole: Collection[tuple[str, int]] = (), cut_short: Collection[tuple[str, int]] = ()
) -> Pairs:
    """Pair the remoting frames (all rows are remoting) and judge the pairs of each connection.

    `whole` names the directions (connection, direction) that were seen from their first byte, `cut_short`
    those in which bytes after the last frame were lost.
    """
    names = ("connection", "direction", "opaque", "flag", "from_start")
    headers = list(zip(*(column(frames.frames, name) for name in names), strict=True))
    received: list[int] = frames.received.tolist()
    pairs = Pairs([-1] * len(headers))
    sides: dict[str, tuple[list[_Frame], list[_Frame]]] = {}
    for row, (connection, direction, *values) in enumerate(headers):
        frame = _Frame(row, received[row], *values)
        sides.setdefault(connection, ([], []))[direction].append(frame)
    for connection, pair_of_sides in sides.items():
        judge = Judge(INVARIANTS[PAIRING], rules, (EVERYTHING,), observer=_noter(connection, pairs))
        for requester in (0, 1):
            side = (connection, requester)
            talk = _Talk(judge, connection, requester, pairs)
            asking, answering = pair_of_sides[requester], pair_of_sides[1 - requester]
            talk.run(asking, answering, begun=side in whole, ended=side not in cut_short)
    return pairs


@dataclass(frozen=True, slots=True)
class _Frame:
    """A frame of a connection: its row, how many of the peer's its sender had received, and its header."""

    row: int
    received: int
    opaque: int
    flag: int
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
        for frame in answering:
            if frame.flag & RemotingFlag.RESPONSE:
                for request in asking[asked : frame.received]:
                    self._ask(request)
                asked = max(asked, frame.received)
                # Nothing that this may answer was lost: no hole is before the last request that had been
                # received, nor directly after it.
                before = asking[asked - 1].from_start if asked else begun
                after = asking[asked].from_start if asked < len(asking) else ended
                self._answer(frame, whole=before and after)
        for request in asking[asked:]:
            self._ask(request)
        self._pairs.unanswered[self._connection] += len(self._waiting)

    def _ask(self, frame: _Frame) -> None:
        if frame.flag & RemotingFlag.RESPONSE:
            return
        if frame.flag & RemotingFlag.ONEWAY:
            self._feed("one_way", frame)
        else:
            self._waiting[frame.opaque] = frame.row
            self._feed("request", frame)

    def _answer(self, frame: _Frame, *, whole: bool) -> None:
        self._pairs.request_of[frame.row] = self._waiting.pop(frame.opaque, -1)
        self._feed("answer", frame, whole=whole)

    def _feed(self, stream: str, frame: _Frame, *, whole: bool = False) -> None:
        event = PairEvent(frame.row, self._connection, self._requester, frame.opaque, whole)
        self._judge.feed(stream, event)


def _noter(connection: str, pairs: Pairs) -> Callable[[Evidence], None]:
    counts = pairs.counts.setdefault(connection, Counter())

    def note(evidence: Evidence) -> None:
        counts[evidence.verdict] += 1
        if evidence.verdict is not Verdict.OK:
            pairs.evidence.append((evidence.event.row, evidence))

    return note
