"""Requests and answers of connections on which answers come in the order of their requests.

Each answer repeats the number of its request. Numbers may come again, once what had them is answered.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence

import numpy as np

from replispec.replay.pairing.delivery import Delivered, Integers
from replispec.replay.pairing.pairs import ANSWER, REQUEST


def pair_in_order(frames: Delivered, roles: Sequence[int], numbers: Sequence[int | None]) -> Integers:
    """For each frame the place among them of the request that it answers, -1 for none.

    `roles` are REQUEST, ONE_WAY and ANSWER. An answer belongs to the oldest request with its number that has
    none yet: where bytes were lost, others may stay without.
    """
    found = np.full(len(frames), -1, np.int64)
    waiting: dict[tuple[int, int, int | None], deque[int]] = defaultdict(deque)
    sides = zip(frames.connection.tolist(), frames.direction.tolist(), strict=True)
    for at, ((connection, direction), role, number) in enumerate(zip(sides, roles, numbers, strict=True)):
        if role == REQUEST:
            waiting[connection, direction, number].append(at)
        elif role == ANSWER and (open_ones := waiting.get((connection, 1 - direction, number))):
            found[at] = open_ones.popleft()
    return found
