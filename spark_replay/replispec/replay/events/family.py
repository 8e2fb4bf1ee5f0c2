"""What the replay is told of the observations of a family, and which families there are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
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
    passes over the rows of other families. `shared`: how it observes connections in shares that it can.

    A family whose messages travel in streams of another one names their `codes`. It needs no other frames
    of a connection, and is given these of a share.
    """

    observers: Sequence[Callable[[pa.Table, pa.Table, pa.Table], Observed]]
    shared: Sequence[SharedObserver] = ()
    codes: Collection[int] = ()


@cache
def observed_families() -> tuple[ObservedFamily, ...]:
    """Every family whose frames the replay takes observations from."""
    return tuple(families.part(ROOM, name).FAMILY for name in families.with_part(ROOM))


def shared_observers() -> Sequence[SharedObserver]:
    """How connections are observed in shares, each by the family whose streams it is of."""
    return tuple(shared for each in observed_families() for shared in each.shared)


@cache
def codes_of_guests() -> tuple[int, ...]:
    """The codes of messages that travel in streams of another family."""
    return tuple(sorted(code for each in observed_families() for code in each.codes))


def observe_guests(frames: pa.Table, holes: pa.Table, streams: pa.Table) -> Iterator[Observed]:
    """What the families tell whose messages travel in streams of another one."""
    for family in observed_families():
        if family.codes:
            yield from (look(frames, holes, streams) for look in family.observers)
