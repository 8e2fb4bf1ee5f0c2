"""How long requests waited for their answers, and what they were answered, as observations.

A duration goes from the packet that completed the request to the packet that completed the answer, as the
point of capture saw them; ns. Long polls are answered late on purpose.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from replispec.replay.events.columns import named, repeated, table_of
from replispec.replay.events.observation import ObservationKind
from replispec.replay.events.tables import SCHEMAS
from replispec.replay.pairing.delivery import Delivered, Integers
from replispec.replay.pairing.pairs import Pairs
from replispec.wire.rocketmq.codes import RemotingFlag

# Durations in one observation: a busy connection has several of one code.
DURATIONS_MAXIMUM = 4096
# Of a remark, which a peer may make as long as it likes.
REMARK_CHARACTERS_MAXIMUM = 300
UNANSWERED = -1
"""The duration of what is no answer to a request that was seen."""


def durations(frames: Delivered, request_of: Integers) -> Integers:
    """For each frame how long its request waited, in ns, or UNANSWERED."""
    times = frames.integers("time_ns")
    waited = np.maximum(times - times[request_of], 0) if len(times) else times
    return np.where(request_of < 0, UNANSWERED, waited)


def latencies_of(frames: Delivered, pairs: Pairs) -> pa.Table:
    """One observation for each connection, requester and request code, of remoting frames (rows of FRAMES).

    More when there are more than DURATIONS_MAXIMUM answers; the first one counts the unanswered requests.
    """
    codes = frames.integers("code")
    asked = np.flatnonzero(is_asked(frames))
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
    unanswered = np.bincount(group[order], minlength=len(first)) - count
    places, number, sizes = _parts(frames, first, count)
    columns = {
        **places,
        "code": codes[np.repeat(first, observations_for(count))],
        "unanswered": np.where(number == 0, np.repeat(unanswered, observations_for(count)), 0),
        **_answers(frames, pairs, answers[np.argsort(of, kind="stable")], sizes),
    }
    return table_of(ObservationKind.LATENCY, columns, len(sizes))


def is_asked(frames: Delivered) -> npt.NDArray[np.bool_]:
    """Which frames are requests that want an answer."""
    found: npt.NDArray[np.bool_] = (
        frames.integers("flag") & (RemotingFlag.RESPONSE | RemotingFlag.ONEWAY)
    ) == 0
    return found


def observations_for(count: Integers) -> Integers:
    """In how many observations so many answers go."""
    return np.maximum(-(-count // DURATIONS_MAXIMUM), 1)


def _parts(frames: Delivered, first: Integers, count: Integers) -> tuple[dict[str, Any], Integers, Integers]:
    """Of the observations of groups with `count` answers each, which begin with the frame `first`: their
    places, the number of each in its group, and how many answers it has."""
    parts = observations_for(count)
    at = np.repeat(first, parts)
    number = np.arange(len(at)) - np.repeat(np.cumsum(parts) - parts, parts)
    sizes = np.clip(np.repeat(count, parts) - number * DURATIONS_MAXIMUM, 0, DURATIONS_MAXIMUM)
    side, nothing = frames.side[at], np.zeros(len(at), np.int64)
    places = {
        "capture": repeated(frames.capture, len(at)),
        "order": nothing,
        "time_ns": nothing,
        "connection": named(pa.array(frames.connections, pa.string()), frames.connection[at]),
        "direction": frames.direction[at],
        "sequence": nothing,
        "index": np.arange(len(at)) - np.searchsorted(side, side),
    }
    return places, number, sizes


def _answers(frames: Delivered, pairs: Pairs, answers: Integers, sizes: Integers) -> dict[str, Any]:
    """What the answers tell that stand one after the other, so many in each observation: durations, codes,
    and the remark of the first answer with each code, in the order of codes; empty for none."""
    codes, part = frames.integers("code", answers), np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((codes, part))
    begins = np.append(True, (np.diff(codes[order]) != 0) | (np.diff(part[order]) != 0))[: len(order)]
    firsts = order[begins]
    remarks = shown(pc.fill_null(frames.values("remark", answers[firsts]), "").combine_chunks())
    return {
        "durations_ns": lists(durations(frames, pairs.request_of)[answers], pa.int64(), sizes),
        "answer_codes": lists(codes, pa.int32(), sizes),
        "remarks": lists(remarks, pa.string(), np.bincount(part[firsts], minlength=len(sizes))),
    }


def shown(remarks: pa.Array) -> pa.Array:
    """What observations have of remarks."""
    return pc.utf8_slice_codeunits(remarks, 0, REMARK_CHARACTERS_MAXIMUM)


def lists(values: Any, kind: pa.DataType, sizes: Integers) -> pa.Array:
    """A column of lists of these sizes."""
    offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32())
    return pa.ListArray.from_arrays(
        offsets, values if isinstance(values, pa.Array) else pa.array(values, kind)
    )
