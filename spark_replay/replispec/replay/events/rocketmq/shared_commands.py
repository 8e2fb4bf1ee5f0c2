"""The commands of one connection, observed in shares: what each frame says is read where the frame is.

Nearly all of them are messages and what producers were told of them. What is rare is read by one share, as
names are told once.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from replispec.replay.events.columns import Observed
from replispec.replay.events.directions import ends_cut_short, of_kinds, seen_whole, unseen
from replispec.replay.events.observation import ObservationKind
from replispec.replay.events.rocketmq.closings import closings
from replispec.replay.events.rocketmq.commands import interesting, pairings, read_commands
from replispec.replay.events.rocketmq.durations import latencies_of
from replispec.replay.events.shares import Laid, Share, SharedObserver
from replispec.replay.pairing.pairs import pair
from replispec.replay.pairing.rocketmq.family import CORRELATION

_COLUMNS: Final = (
    *("capture", "connection", "direction", "sequence", "index", "time_ns", "record_offset", "acknowledged"),
    *("protocol", "size", "from_start", "code", "flag", "opaque", "remark"),
)
_NOTHING: Final = np.zeros(0, np.int64)


def _lay(frames: pa.Table, holes: pa.Table, streams: pa.Table, together: int) -> Laid:
    own = of_kinds(frames, streams, CORRELATION.kinds)
    pairs = pair(own, CORRELATION, seen_whole(streams), ends_cut_short(own, holes, streams))
    told = [*pairings(own, pairs), *unseen(own, holes, streams, CORRELATION.kinds)]
    single, answers = interesting(own, pairs.request_of)
    # An answer comes with its request.
    parts = np.split(answers, np.arange(1, -(-2 * len(answers) // together)) * max(together // 2, 1))
    shares = [
        Share.of(own, pairs.request_of, single, single=True),
        *(Share.of(own, pairs.request_of, part, single=False) for part in parts if len(part)),
    ]
    return Laid((told, [(ObservationKind.LATENCY, latencies_of(own, pairs))]), shares)


def _look(frames: pa.Table, streams: pa.Table, share: Share) -> Observed:
    single, answers = (share.read, _NOTHING) if share.single else (_NOTHING, share.read)
    told, stored = read_commands(share.delivered(frames), share.request_of, single, answers)
    return [*told, *closings(told, streams)], [(ObservationKind.ACKNOWLEDGED, stored)]


SHARED: Final = SharedObserver(CORRELATION.kinds, _COLUMNS, _lay, _look)
