"""Under which masterEpoch a master told a producer that a message is stored.

The answer does not say. A broker that was master once answered then; of one that came back, the place in
the log tells as a rule: nothing of an epoch lies before its start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from replispec.replay.events.observation import Observation
from replispec.runtime.primitives.unknown import UNKNOWN

APART_NS: Final = 10 * 10**9
"""Connections of a capture may be this late against each other; what lies further apart came in that
order."""


@dataclass(slots=True)
class Tenure:
    """One master in one epoch: its name, its main address, and when the capture first told it.

    `named_by`: how a controller named it, as in the facts; None when only the master's own words tell its
    address.
    """

    master: str
    address: str | None
    order: int
    time_ns: int
    named_by: str | None = None

    def name(self, named_by: str | None) -> Any:
        """The master as a controller names it in this way; UNKNOWN when none was heard to: an id and an
        address of one broker are not the same text."""
        return self.master if named_by is not None and named_by == self.named_by else UNKNOWN


def epoch_of(row: Observation, tenures: Mapping[int, Tenure], starts: Mapping[int, int]) -> Any:
    """The epoch of an acknowledged message; None when no fact names the broker master, UNKNOWN when it may
    have been told in one of several epochs.

    `starts`: where epochs start in the log, as far as that is known.
    """
    own = [epoch for epoch, tenure in tenures.items() if tenure.address == row.address]
    possible = [epoch for epoch in own if starts.get(epoch, 0) <= (row.offset or 0)] or own
    if len(possible) < 2:
        return possible[0] if possible else None
    later = sorted(possible)[1:]
    if any(abs(tenures[epoch].time_ns - row.time_ns) < APART_NS for epoch in later):
        return UNKNOWN
    return max((epoch for epoch in later if tenures[epoch].order <= row.order), default=min(possible))
