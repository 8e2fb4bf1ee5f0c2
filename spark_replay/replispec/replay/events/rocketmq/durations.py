"""How long requests waited for their answers, and what they were answered, as observations.

A duration goes from the packet that completed the request to the packet that completed the answer, as the
point of capture saw them; ns. Long polls are answered late on purpose.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from replispec.replay.events.observation import Latency
from replispec.replay.pairing.delivery import Delivered, column
from replispec.replay.pairing.pairs import Pairs
from replispec.wire.rocketmq.codes import RemotingFlag

# Durations in one observation: a busy connection has several of one code.
DURATIONS_MAXIMUM = 4096
# Of a remark, which a peer may make as long as it likes.
REMARK_CHARACTERS_MAXIMUM = 300
_Key = tuple[str, int, int]  # connection, direction of the request, code


class _Answer(NamedTuple):
    """One answer: its row, its code, and how long its request had waited."""

    row: int
    code: int
    waited_ns: int


def observe_latencies(frames: Delivered, pairs: Pairs) -> Iterator[Latency]:
    """One observation for each connection, requester and request code, of remoting frames (rows of FRAMES).

    More when there are more than DURATIONS_MAXIMUM answers; the first one counts the unanswered requests.
    """
    if not pairs.request_of:
        return
    capture: str = frames.frames.column("capture")[0].as_py()
    answered, unanswered = _by_code(frames, pairs)
    numbers: Counter[tuple[str, int]] = Counter()
    for key in sorted(answered.keys() | unanswered.keys()):
        connection, direction, code = key
        answers = answered.get(key, [])
        for start in range(0, max(len(answers), 1), DURATIONS_MAXIMUM):
            part = answers[start : start + DURATIONS_MAXIMUM]
            yield Latency(
                capture,
                0,
                0,
                connection,
                direction,
                0,
                numbers[connection, direction],
                code=code,
                durations_ns=[answer.waited_ns for answer in part],
                answer_codes=[answer.code for answer in part],
                remarks=_remarks(frames, part),
                unanswered=0 if start else unanswered[key],
            )
            numbers[connection, direction] += 1


def durations(frames: Delivered, pairs: Pairs) -> list[int | None]:
    """For each frame how long its request waited; None for what is no answer to a request that was seen."""
    times = np.asarray(frames.frames.column("time_ns"), np.int64)
    requests = np.array(pairs.request_of, np.int64)
    waited = np.maximum(times - times[requests], 0).tolist() if len(times) else []
    return [
        None if request < 0 else duration for request, duration in zip(pairs.request_of, waited, strict=True)
    ]


def _remarks(frames: Delivered, answers: Sequence[_Answer]) -> list[str]:
    """The remark of the first answer with each code, in the order of codes; empty for none."""
    first: dict[int, int] = {}
    for answer in answers:
        first.setdefault(answer.code, answer.row)
    column_of_remarks = frames.frames.column("remark")
    found = (column_of_remarks[first[code]].as_py() or "" for code in sorted(first))
    return [remark[:REMARK_CHARACTERS_MAXIMUM] for remark in found]


def _by_code(frames: Delivered, pairs: Pairs) -> tuple[dict[_Key, list[_Answer]], Counter[_Key]]:
    """The answers to the requests of each code in their order, and the number of unanswered requests."""
    names = ("connection", "direction", "code", "flag")
    columns = [column(frames.frames, name) for name in names]
    keys: list[_Key] = list(zip(*columns[:3], strict=True))
    answered: dict[_Key, list[_Answer]] = defaultdict(list)
    waiting = {
        row for row, flag in enumerate(columns[3]) if not flag & (RemotingFlag.RESPONSE | RemotingFlag.ONEWAY)
    }
    for row, (request, duration) in enumerate(zip(pairs.request_of, durations(frames, pairs), strict=True)):
        if duration is not None:
            answered[keys[request]].append(_Answer(row, keys[row][2], duration))
            waiting.discard(request)
    return answered, Counter(keys[row] for row in waiting)
