"""Which messages were lost, as one short text a loss: equal where they lay at the same places of the log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b

import numpy as np

from replispec.replay.judges.sends import LossRow
from replispec.replay.report.model import LostSend

_DIGEST_BYTES = 8


def with_places(losses: Sequence[LossRow], lost: Iterable[LostSend]) -> list[LossRow]:
    """The losses, each with a digest of where its messages begin in the commit log."""
    found: dict[tuple[str, str, int | None], list[int]] = defaultdict(list)
    for send in lost:
        found[send.place[0], send.group, send.epoch].append(send.offset)
    return [
        replace(each, places=_digest(found[each.file, each.group, each.epoch]))
        if (each.file, each.group, each.epoch) in found
        else each
        for each in losses
    ]


def _digest(offsets: Sequence[int]) -> str:
    ordered = np.sort(np.array(offsets, "<i8"))
    return blake2b(ordered.tobytes(), digest_size=_DIGEST_BYTES).hexdigest()
