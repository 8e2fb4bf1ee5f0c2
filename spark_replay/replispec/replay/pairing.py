"""Requests and answers of remoting connections: which answer belongs to which request.

The key is (connection, direction of the request, opaque): both sides of one connection send requests,
each with its own counter. Source: RemotingCommand, NettyRemotingAbstract (apache/rocketmq
rocketmq-all-5.4.0).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import pyarrow as pa

from replispec.replay.delivery import Delivered, column
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
    those in which bytes behind the last frame were lost.
    """
    connections = column(frames.frames, "connection")
    pairs = Pairs([-1] * len(connections))
    start = 0
    for stop in range(1, len(connections) + 1):
        if stop == len(connections) or connections[stop] != connections[start]:
            sides = [(connections[start], direction) for direction in (0, 1)]
            begun, ended = [side in whole for side in sides], [side not in cut_short for side in sides]
            _pair_connection(frames.frames.slice(start, stop - start), start, begun, ended, pairs)
            start = stop
    return pairs


def _pair_connection(part: pa.Table, first: int, begun: list[bool], ended: list[bool], pairs: Pairs) -> None:
    connection: str = part.column("connection")[0].as_py()
    directions: list[int] = column(part, "direction")
    whole = _whole(directions, column(part, "from_start"), begun, ended)
    waiting: dict[tuple[int, int], int] = {}
    judge = Judge(INVARIANTS[PAIRING], rules, (EVERYTHING,), observer=_noter(connection, pairs))
    rows = zip(directions, column(part, "opaque"), column(part, "flag"), whole, strict=True)
    for row, (direction, opaque, flag, from_start) in enumerate(rows, first):
        if flag & RemotingFlag.RESPONSE:
            requester = 1 - direction
            pairs.request_of[row] = waiting.pop((requester, opaque), -1)
            judge.feed("answer", PairEvent(row, connection, requester, opaque, from_start))
        elif flag & RemotingFlag.ONEWAY:
            judge.feed("one_way", PairEvent(row, connection, direction, opaque))
        else:
            waiting[direction, opaque] = row
            judge.feed("request", PairEvent(row, connection, direction, opaque))
    pairs.unanswered[connection] = len(waiting)


def _whole(directions: list[int], from_start: list[bool], begun: list[bool], ended: list[bool]) -> list[bool]:
    """For each frame: was the other direction seen whole from its start to behind this moment?

    It was when both its last frame before and its first frame after are preceded by no hole.
    """
    count = len(directions)
    behind, before = [True] * count, [True] * count
    following = list(ended)
    for at in range(count - 1, -1, -1):
        behind[at] = following[1 - directions[at]]
        following[directions[at]] = from_start[at]
    last = list(begun)
    for at in range(count):
        before[at] = last[1 - directions[at]]
        last[directions[at]] = from_start[at]
    return [one and other for one, other in zip(before, behind, strict=True)]


def _noter(connection: str, pairs: Pairs) -> Callable[[Evidence], None]:
    counts = pairs.counts.setdefault(connection, Counter())

    def note(evidence: Evidence) -> None:
        counts[evidence.verdict] += 1
        if evidence.verdict is not Verdict.OK:
            pairs.evidence.append((evidence.event.row, evidence))

    return note
