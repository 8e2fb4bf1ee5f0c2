"""What the replay is told of the observations of a family, and which families there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import pyarrow as pa

from replispec.replay.events.columns import Observed
from replispec.replay.events.shares import SharedObserver
from replispec.runtime import families

ROOM = "replay.events"


@dataclass(frozen=True, slots=True, eq=False)
class ObservedFamily:
    """How the frames of a family become observations; lies in `replispec.replay.events.<family>.family` as
    `FAMILY`. Each of `observers` is given FRAMES, HOLES and STREAMS of whole connections of one capture, and
    passes over the rows of other families. `shared`: how it observes connections in shares that it can."""

    observers: Sequence[Callable[[pa.Table, pa.Table, pa.Table], Observed]]
    shared: Sequence[SharedObserver] = ()


@cache
def observed_families() -> tuple[ObservedFamily, ...]:
    """Every family whose frames the replay takes observations from."""
    return tuple(families.part(ROOM, name).FAMILY for name in families.with_part(ROOM))


def shared_observers() -> Sequence[SharedObserver]:
    """How connections are observed in shares, where one family alone is observed."""
    every = observed_families()
    return every[0].shared if len(every) == 1 else ()
