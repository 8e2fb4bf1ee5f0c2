"""What parts of a capture bring together because rules compare connections, and what these rules say.

Transfers and messages of one masterEpoch meet in blocks of its log. What surely holds or was not seen is told
block by block. Where a body differs, or a log was cut, the whole epoch has a say: which epochs that is of is
told, and bodies of these are compared once more, those of an epoch with one that differs all together.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from replispec.replay.engines.rocketmq.known import Known
from replispec.replay.events.capture_events import CaptureEvents, Columns
from replispec.replay.events.event_tables import Flags, Rows, split
from replispec.replay.events.observation import ObservationKind
from replispec.replay.events.rocketmq.cut_logs import (
    Edge,
    joined_ranges,
    messages_by_block,
    ranges_in_block,
    runs_by_block,
)
from replispec.replay.events.rocketmq.ranges import Epoch, ranges
from replispec.replay.events.rocketmq.stored import Ends, differ, least_of
from replispec.replay.events.rocketmq.stream_events import Judged, confirms_table
from replispec.replay.events.rocketmq.stream_tables import FRAMES, RUNS, with_groups
from replispec.replay.events.rocketmq.telling import (
    Tables,
    from_short,
    gathered,
    handed_on,
    in_short,
    numbers_of,
)
from replispec.replay.judges.parts import PartFindings, add_up
from replispec.replay.judges.rocketmq.judge import stream_judges

_LOGS, _BLOCKS, _BODIES, _EPOCHS, _CONFIRMS = "logs", "blocks", "bodies", "epochs", "confirms"
_NOTHING: Final = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Brought:
    """What a part brings to a meeting: some frames, of messages what they are compared by, and from where on
    nothing is compared; `epoch` and `block`: of one epoch, and one block of its log."""

    rule: str
    frames: Tables
    messages: pa.Table | None = None
    cuts: Ends = field(default_factory=dict)
    epoch: Epoch | None = None
    block: int = 0


@dataclass(frozen=True, slots=True)
class Met:
    """What a meeting says; of one `epoch` also what is open at the borders of its block, with the frames that
    ranges open there begin with, what bodies come to, and whether one differs."""

    judged: PartFindings
    epoch: Epoch | None = None
    edges: Sequence[Edge] = ()
    tables: Tables = field(default_factory=dict)
    bodies: PartFindings = field(default_factory=dict)
    differs: bool = False


# ---- what parts bring ------------------------------------------------------------------------------


def by_epoch(known: Known, joined: Judged, cuts: Ends) -> Iterator[tuple[str, Brought]]:
    """Transfers, and messages that they may hold, by group and masterEpoch, and by blocks of its log."""
    frames, sends = joined.frames, joined.sends
    keys = "group", "epoch"
    cut = [key for key, extent in known.extents.items() if extent.is_cut]
    is_cut = [_of_epochs(events, cut) for events in (frames, sends)]
    held = sends.told_alike(sends.alike(*keys), lambda row: (row.group, row.epoch) in known.replicated)
    runs = dict(_by(frames, frames.are(ObservationKind.BATCH) & ~is_cut[0], known.parts, *keys))
    messages = dict(_by(sends, held.where(True) & ~is_cut[1], known.parts, *keys))
    for at in runs.keys() | messages.keys():
        carried, sent = (each.get(at, _NOTHING) for each in (runs, messages))
        yield f"{_LOGS} {at}", Brought(_LOGS, handed_on(frames, carried), in_short(sends, sent), cuts)
    yield from _in_blocks(known, joined, cut, _BLOCKS)


def again_by_block(known: Known, joined: Judged) -> Iterator[tuple[str, Brought]]:
    """The same of epochs of which only now is known from where on nothing is compared."""
    yield from _in_blocks(known, joined, known.recut, _BODIES)


def again_by_epoch(known: Known, joined: Judged) -> Iterator[tuple[str, Brought]]:
    """The same of epochs in which a body differs, as a whole."""
    for epoch in sorted(known.differing):
        runs, messages = _rows_of(joined, epoch)
        if len(runs) or len(messages):
            frames, sends = handed_on(joined.frames, runs), in_short(joined.sends, messages)
            yield f"{_EPOCHS} {epoch}", Brought(_EPOCHS, frames, sends, epoch=epoch)


def by_group(known: Known, joined: Judged) -> Iterator[tuple[str, Brought]]:
    """Headers and reports by group."""
    frames = joined.frames
    for at, rows in _by(frames, frames.are(ObservationKind.REPORT, *RUNS), known.parts, "group"):
        yield f"{_CONFIRMS} {at}", Brought(_CONFIRMS, handed_on(frames, rows))


def _in_blocks(
    known: Known, joined: Judged, epochs: Collection[Epoch], rule: str
) -> Iterator[tuple[str, Brought]]:
    for epoch in sorted(epochs):
        runs, messages = _rows_of(joined, epoch)
        carried = dict(runs_by_block(joined.frames, runs, known.block))
        sent = dict(messages_by_block(joined.sends, messages, known.extents[epoch], known.block))
        for number in sorted(carried.keys() | sent.keys()):
            frames = handed_on(joined.frames, carried.get(number, _NOTHING))
            told = in_short(joined.sends, sent.get(number, _NOTHING))
            yield f"{rule} {epoch} {number}", Brought(rule, frames, told, epoch=epoch, block=number)


def _rows_of(joined: Judged, epoch: Epoch) -> tuple[Rows, Rows]:
    """The transfers with log bytes, and the messages, of an epoch."""
    frames, sends = joined.frames, joined.sends
    runs = frames.are(ObservationKind.BATCH) & _of_epochs(frames, [epoch])
    return np.flatnonzero(runs), np.flatnonzero(_of_epochs(sends, [epoch]))


def _of_epochs(events: Columns, epochs: Collection[Epoch]) -> Flags:
    group, epoch = events.coded("group"), events.coded("epoch")
    found = np.zeros(len(events), np.bool_)
    for name, number in epochs:
        found |= group.where(name) & epoch.where(number)
    return found


def _by(events: Columns, wanted: Flags, parts: int, *names: str) -> Iterator[tuple[int, Rows]]:
    """The wanted ones of some events by what they have in common."""
    rows = np.flatnonzero(wanted)
    columns = [events.coded(name) for name in names]
    found: dict[int, list[Rows]] = defaultdict(list)
    for _, own in split(events.alike(*names)[rows]):
        common = " ".join(str(each.values[each.codes[rows[own[0]]]]) for each in columns)
        found[zlib.crc32(common.encode()) % parts].append(rows[own])
    for at, every in found.items():
        yield at, np.sort(np.concatenate(every))


# ---- what meetings say -----------------------------------------------------------------------------


def meet(known: Known, brought: Sequence[Brought]) -> Met:
    """What rules say that compare connections."""
    assert known.given is not None
    frames = _frames(known, gathered(each.frames for each in brought))
    streams = stream_judges(known.given.listed)

    def judged(*tables: Any) -> PartFindings:
        return add_up(streams.of(table) for table in tables if len(table))

    rule, epoch, number = brought[0].rule, brought[0].epoch, brought[0].block
    if rule == _CONFIRMS:
        return Met(judged(confirms_table(known.rows, frames)))
    sends = from_short([each.messages for each in brought if each.messages is not None])
    due = least_of([known.given.due, known.cuts, *(each.cuts for each in brought)])
    bodies = known.given.bodies(frames, sends, due, known.written_again)
    if epoch is None:
        return Met(judged(ranges(frames), bodies))
    is_unsure = rule != _EPOCHS and differ(bodies)
    compared = {} if is_unsure else judged(bodies)
    if rule != _BLOCKS:
        return Met({}, epoch, bodies=compared, differs=is_unsure)
    numbers = numbers_of(frames)
    own, edges = ranges_in_block(frames, epoch, number, known.extents[epoch].order, known.block, numbers)
    open_there = np.isin(numbers, [edge.tail.row for edge in edges if edge.tail is not None])
    begun = handed_on(frames, np.flatnonzero(open_there))
    return Met(judged(own), epoch, edges, begun, compared, is_unsure)


def between_blocks(known: Known, met: Sequence[Met]) -> PartFindings:
    """What is said of ranges that end in another block of the log than they start in."""
    assert known.given is not None
    frames = _frames(known, gathered(each.tables for each in met))
    edges = [edge for each in met for edge in each.edges]
    table = joined_ranges(edges, frames, numbers_of(frames))
    return stream_judges(known.given.listed).of(table) if len(table) else {}


def _frames(known: Known, tables: Tables) -> Columns:
    return with_groups(CaptureEvents(tables).columns(*FRAMES), known.groups)
