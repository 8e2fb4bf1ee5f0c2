"""How long requests waited for their answers, as observations.

A duration goes from the packet that completed the request to the packet that completed the answer, as the
point of capture saw them; ns. Long polls are answered late on purpose.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from replispec.replay.events.columns import named, repeated, table_of
from replispec.replay.events.observation import ObservationKind
from replispec.replay.events.tables import SCHEMAS
from replispec.replay.pairing.delivery import Delivered, Integers
from replispec.replay.pairing.pairs import Pairs
from replispec.wire.rocketmq.codes import RemotingFlag

# Durations in one observation: a busy connection has several of one code.
DURATIONS_MAXIMUM = 4096
UNANSWERED = -1
"""The duration of what is no answer to a request that was seen."""


def durations(frames: Delivered, pairs: Pairs) -> Integers:
    """For each frame how long its request waited, in ns, or UNANSWERED."""
    times = frames.integers("time_ns")
    waited = np.maximum(times - times[pairs.request_of], 0) if len(times) else times
    return np.where(pairs.request_of < 0, UNANSWERED, waited)


def latencies_of(frames: Delivered, pairs: Pairs) -> pa.Table:
    """One observation for each connection, requester and request code, of remoting frames (rows of FRAMES).

    More when there are more than DURATIONS_MAXIMUM answers; the first one counts the unanswered requests.
    """
    flags, codes = frames.integers("flag"), frames.integers("code")
    asked = np.flatnonzero((flags & (RemotingFlag.RESPONSE | RemotingFlag.ONEWAY)) == 0)
    if not len(asked):
        return SCHEMAS[ObservationKind.LATENCY].empty_table()
    side = frames.side
    order = asked[np.lexsort((codes[asked], side[asked]))]
    begins = np.concatenate([[True], (side[order][1:] != side[order][:-1]) | (np.diff(codes[order]) != 0)])
    group = np.zeros(len(frames), np.int64)
    group[order] = np.cumsum(begins) - 1
    first = order[begins]
    answers = np.flatnonzero(pairs.request_of >= 0)
    of = group[pairs.request_of[answers]]
    count = np.bincount(of, minlength=len(first))
    waited = durations(frames, pairs)[answers[np.argsort(of, kind="stable")]]
    unanswered = np.bincount(group[order], minlength=len(first)) - count
    return _in_parts(frames, first, count, waited, unanswered, codes)


def _in_parts(
    frames: Delivered,
    first: Integers,
    count: Integers,
    waited: Integers,
    unanswered: Integers,
    codes: Integers,
) -> pa.Table:
    """The table of groups with `count` durations each, which stand one after the other in `waited`."""
    parts = np.maximum(-(-count // DURATIONS_MAXIMUM), 1)
    group = np.repeat(np.arange(len(first)), parts)
    number = np.arange(len(group)) - np.repeat(np.cumsum(parts) - parts, parts)
    sizes = np.clip(count[group] - number * DURATIONS_MAXIMUM, 0, DURATIONS_MAXIMUM)
    at = first[group]
    side = frames.side[at]
    index = np.arange(len(at)) - np.searchsorted(side, side)
    nothing = np.zeros(len(at), np.int64)
    offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32())
    columns = {
        "capture": repeated(frames.capture, len(at)),
        "order": nothing,
        "time_ns": nothing,
        "connection": named(pa.array(frames.connections, pa.string()), frames.connection[at]),
        "direction": frames.direction[at],
        "sequence": nothing,
        "index": index,
        "code": codes[at],
        "durations_ns": pa.ListArray.from_arrays(offsets, pa.array(waited, pa.int64())),
        "unanswered": np.where(number == 0, unanswered[group], 0),
    }
    return table_of(ObservationKind.LATENCY, columns, len(at))
