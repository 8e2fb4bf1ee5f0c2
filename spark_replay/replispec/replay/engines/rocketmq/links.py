"""One replication connection of which several parts of a capture have stretches, judged stretch by stretch.

Rules and machines walk over all of a connection, in its order: one task does it, and holds one stretch at a
time. What is rare on it (where it was opened, handshakes, answers, lost bytes) is known of the whole capture.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from replispec.replay.engines.rocketmq.known import Known
from replispec.replay.engines.spread import Read
from replispec.replay.events.capture_events import MANY, CaptureEvents, Columns
from replispec.replay.events.event_tables import INT64_MAX
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.recounts import Ahead, Around, Before, LinkEnds, Recounts
from replispec.replay.events.rocketmq.stream_tables import FRAMES, ToldOn, with_groups
from replispec.replay.events.tables import Events
from replispec.replay.judges.machines import of_connections
from replispec.replay.judges.parts import PartFindings, add_up
from replispec.replay.judges.rocketmq.judge import stream_judges
from replispec.replay.judges.streams import Carried
from replispec.replay.machines.rocketmq.replication_walks import StretchWalk, are_mixed, sides_taken

_FREQUENT: Final = tuple(kind for kind in FRAMES if kind in MANY)
_RARE: Final = tuple(kind for kind in FRAMES if kind not in MANY)
_BEGINNING: Final = -INT64_MAX


def links_of(parts: Sequence[Mapping[str, LinkEnds]]) -> dict[str, list[tuple[int, LinkEnds]]]:
    """Of each connection that several parts have frames of those that have stretches of it, in their order.

    What is rare may lie in another part than its stretch."""
    found: dict[str, list[tuple[int, LinkEnds]]] = {}
    for number, told in enumerate(parts):
        for name, ends in told.items():
            found.setdefault(name, []).append((number, ends))
    return {
        name: sorted((each for each in own if each[1].order is not None), key=_order) or own[:1]
        for name, own in found.items()
        if len(own) > 1
    }


def _order(stretch: tuple[int, LinkEnds]) -> int:
    return _BEGINNING if stretch[1].order is None else stretch[1].order


def rare_on(links: Collection[str], rare: Events) -> Events:
    """Of all rare events those of replication on such connections."""
    names = pa.array(sorted(links), pa.string())
    return {kind: rare[kind].filter(pc.field("connection").isin(names)) for kind in _RARE}


def judged_link(known: Known, name: str, read: Read) -> tuple[PartFindings, PartFindings]:
    """What invariants say of one connection, and what machines."""
    assert known.given is not None
    link = _Link(known, name, read)
    ahead, is_mixed = link.looked_through()
    streams, carried = stream_judges(known.given.listed), Carried()
    walk = StretchWalk(known.given.groups, link.first_handshake(), is_mixed=is_mixed)
    before, earlier = Before(), {name: ToldOn()}
    judged: PartFindings = {}
    for at, frames in enumerate(link.stretches()):
        recounts = Recounts(frames, known.given.replicas, {name: Around(before, ahead[at])})
        table = known.given.replication(frames, recounts, earlier)
        judged = add_up([judged, streams.of(table, carried)])
        walk.add(table)
        before = recounts.before(name)
    return judged, add_up(of_connections(walk.walked()))


class _Link:
    """The frames of one connection, a stretch at a time."""

    def __init__(self, known: Known, name: str, read: Read) -> None:
        self._known = known
        self._name = name
        self._read = read
        self._parts = known.links[name]
        self._rare = {kind: self._own(known.rare_on_links[kind]) for kind in _RARE}

    def stretches(self, *, backwards: bool = False) -> Iterator[Columns]:
        """The frames of each stretch, with their groups."""
        begins = [_BEGINNING, *(_order(each) for each in self._parts[1:]), INT64_MAX]
        spans = list(zip(self._parts, pairwise(begins), strict=True))
        for (number, _), (first, behind) in reversed(spans) if backwards else spans:
            part = self._read(number)
            own: dict[ObservationKind, pa.Table] = {kind: self._own(part[kind]) for kind in _FREQUENT}
            for kind, table in self._rare.items():
                own[kind] = table.filter((pc.field("order") >= first) & (pc.field("order") < behind))
            yield with_groups(CaptureEvents(own).columns(*FRAMES), self._known.groups)

    def looked_through(self) -> tuple[list[Ahead], bool]:
        """What stands behind each stretch, and whether one direction was taken for what the other one is."""
        assert self._known.given is not None
        ahead = [Ahead()]
        taken: set[tuple[bool, int]] = set()
        for frames in self.stretches(backwards=True):
            recounts = Recounts(frames, self._known.given.replicas, {self._name: Around(ahead=ahead[-1])})
            ahead.append(recounts.ahead(self._name))
            taken |= sides_taken(frames.kinds, frames.coded("direction"))
        return ahead[-2::-1], are_mixed(taken)

    def first_handshake(self) -> Observation | None:
        """What the replica began with."""
        kind = ObservationKind.HANDSHAKE
        rows = CaptureEvents({kind: self._rare[kind]}).rows((kind,))
        return rows[0] if rows else None

    def _own(self, table: pa.Table) -> pa.Table:
        return table.filter(pc.field("connection") == self._name)
