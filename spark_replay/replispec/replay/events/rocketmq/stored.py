"""Bodies of acknowledged messages beside what log bytes on their way to replicas hold at their places.

A message is looked for in the runs of the masterEpoch under which it was acknowledged, on every replication
connection of its group. Behind an end to which the log fell in that epoch, and where a later epoch starts,
other bytes may be due than those of the message: nothing is compared there, nor where a place was given
again. Whether such an end may have gone unseen, same_logs.py tells.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow.compute as pc

from replispec.replay.events.capture_events import Columns
from replispec.replay.events.event_tables import INT64_MAX, Coded, Counted, EventTable, Numbers, Rows, split
from replispec.replay.events.observation import ObservationKind
from replispec.replay.events.rocketmq.ranges import WITHIN, Epoch
from replispec.replay.events.rocketmq.same_logs import OneLog, begins_of, of_one_log
from replispec.runtime.primitives.unknown import UNKNOWN

STORED: Final = "stored"
_SEEN, _UNSEEN = 0, 2
Starts = Mapping[str, Mapping[int, int]]
Ends = Mapping[tuple[Any, Any], int]


class _Found(NamedTuple):
    """Messages with what shows them: the row of a run, that of the message, and the CRC-32 of the body in the
    run; `absent` where its bytes are missing; `same`: the run is surely of the log that holds the message."""

    runs: Rows
    messages: Rows
    crcs: Numbers
    absent: Numbers
    same: Numbers


def stored(
    frames: Columns,
    sends: Columns,
    ends: Ends,
    begun_again: Collection[Epoch],
    one: OneLog,
) -> EventTable:
    """The events of the stream `bodies`. `frames` are those of replication, `sends` acknowledged messages,
    both with their groups; `ends`: from where on nothing is compared; `begun_again`: epochs of groups in
    which the master started again, or a place was written again; `one`: what tells that two connections saw
    one log."""
    runs = frames.take(np.flatnonzero(frames.are(ObservationKind.BATCH)))
    found = _joined([*_found(runs, sends, ends, one.begins)], sends.numbers("offset").numbers)
    known = {name: runs.coded(name).take(found.runs) for name in ("group", "epoch", "connection")}
    known["begun_again"] = _in_any(known["group"], known["epoch"], begun_again)
    watched = _in_any(known["group"], known["epoch"], one.watched)
    known["same_log"] = Coded(found.same | watched.codes, [False, True])
    known["other"] = sends.coded("connection").take(found.messages)
    offset = sends.numbers("offset").take(found.messages)
    numbers = {
        "offset": offset,
        WITHIN: offset,
        "crc": Counted(found.crcs, found.absent),
        "sent_crc": sends.numbers("body_crc").take(found.messages),
    }
    names = Coded(np.zeros(len(found.runs), np.int64), [STORED])
    return EventTable("bodies", names, known, numbers, found.runs, runs.row)


def written_again(sends: Columns) -> Iterator[Epoch]:
    """The epochs of groups in which different messages were acknowledged at one place: a log was cut."""
    places, crcs = sends.numbers("offset").numbers, sends.numbers("body_crc")
    for (group, epoch), rows in _by_epoch(sends, np.flatnonzero(crcs.absent == 0)):
        order = rows[np.lexsort((crcs.numbers[rows], places[rows]))]
        alike, differ = np.diff(places[order]) == 0, np.diff(crcs.numbers[order]) != 0
        if group is not None and epoch is not None and bool((alike & differ).any()):
            yield group, epoch


def _in_any(group: Coded, epoch: Coded, wanted: Collection[Epoch]) -> Coded:
    """Whether each event is of one of these epochs of groups."""
    found = np.zeros(len(group.codes), np.int64)
    for name, number in wanted:
        if name in group.values and number in epoch.values:
            is_group = group.codes == group.values.index(name)
            found |= is_group & (epoch.codes == epoch.values.index(number))
    return Coded(found, [False, True])


def _joined(parts: list[_Found], places: Numbers) -> _Found:
    """All of them in the order of the capture, those of one run by their places in the log."""
    nothing = np.zeros(0, np.int64)
    none = _Found(nothing, nothing, nothing, nothing, nothing)
    every = [np.concatenate(column) for column in zip(none, *parts, strict=True)]
    order = np.lexsort((places[every[1]], every[0]))
    return _Found(*(column[order] for column in every))


def ends_of(falls: Iterable[Any], starts: Starts) -> Ends:
    """By group and epoch the least place where other bytes may be due: the end of a log that fell (as the
    events `falls` tell), or the start of a later epoch."""
    found: dict[tuple[Any, Any], int] = defaultdict(lambda: INT64_MAX)
    for group, own in starts.items():
        for epoch in own:
            found[group, epoch] = min((start for at, start in own.items() if at > epoch), default=INT64_MAX)
    for event in falls:
        before = event.before
        if event.fell_from is not None or before is UNKNOWN or (before is not None and event.end < before):
            found[event.group, event.epoch] = min(found[event.group, event.epoch], event.end)
    return dict(found)


def cuts_of(sends: Columns, cut_to: Coded) -> Ends:
    """The same of logs that were cut; `cut_to`: where the log of each message ended."""
    is_cut = np.array([value is not None for value in cut_to.values], np.bool_)[cut_to.codes]
    # Where the end is not known it lies at the message, or before.
    known = [value if isinstance(value, int) else INT64_MAX for value in cut_to.values]
    places = np.minimum(sends.numbers("offset").numbers, np.array(known, np.int64)[cut_to.codes])
    return {key: int(places[rows].min()) for key, rows in _by_epoch(sends, np.flatnonzero(is_cut))}


def least_of(told: Iterable[Ends]) -> Ends:
    """The least of what is told of each group and epoch."""
    found: dict[tuple[Any, Any], int] = {}
    for each in told:
        for key, end in each.items():
            found[key] = min(end, found.get(key, end))
    return found


def _found(runs: Columns, sends: Columns, ends: Ends, begins: Mapping[str, int]) -> Iterator[_Found]:
    """Group by group, and in each epoch by epoch."""
    own = dict(_by_epoch(runs, np.arange(len(runs))))
    for (group, epoch), rows in _by_epoch(sends, np.arange(len(sends))):
        if group is None or epoch is None or (group, epoch) not in own:
            continue
        messages = _one_a_place(sends, rows, ends.get((group, epoch), INT64_MAX))
        places = sends.numbers("offset").numbers[messages]
        whole = _whole(runs, own[group, epoch], messages, places)
        yield whole._replace(same=_same(runs, sends, whole, begins))
        left = ~np.isin(messages, whole.messages)
        yield _missing(runs, own[group, epoch], messages[left], places[left])


def _by_epoch(events: Columns, rows: Rows) -> Iterator[tuple[tuple[Any, Any], Rows]]:
    group, epoch = events.coded("group"), events.coded("epoch")
    for _, part in split(events.alike("group", "epoch")[rows]):
        own = rows[part]
        yield (group.values[group.codes[own[0]]], epoch.values[epoch.codes[own[0]]]), own


def _one_a_place(sends: Columns, rows: Rows, until: int) -> Rows:
    """The messages, by their places, that lie alone at theirs and before `until`, and whose body is known."""
    places = sends.numbers("offset").numbers[rows]
    values, first, counts = np.unique(places, return_index=True, return_counts=True)
    is_known = sends.numbers("body_crc").absent[rows[first]] == 0
    kept: Rows = first[(counts == 1) & (values < until) & is_known]
    return rows[kept]


def _whole(runs: Columns, rows: Rows, messages: Rows, places: Numbers) -> _Found:
    """Messages whose records lie whole in some runs; `places` are theirs, ascending."""
    column = runs.table.column("records").combine_chunks().take(rows)
    held = column.flatten()
    sizes = np.asarray(pc.fill_null(pc.list_value_length(column), 0)).astype(np.int64)
    offsets, crcs = (np.asarray(held.field(name)) for name in ("offset", "crc"))
    at = np.minimum(np.searchsorted(places, offsets), len(places) - 1)
    found = np.flatnonzero(places[at] == offsets) if len(places) else np.zeros(0, np.int64)
    run = np.repeat(rows, sizes)[found]
    nothing = np.zeros(len(found), np.int64)
    return _Found(run, messages[at[found]], crcs[found], nothing + _SEEN, nothing)


def _same(runs: Columns, sends: Columns, found: _Found, begins: Mapping[str, int]) -> Numbers:
    """Which of these records of one epoch are surely of the log that holds the message."""
    carried, sent = runs.coded("connection").take(found.runs), sends.coded("connection").take(found.messages)
    crcs = sends.numbers("body_crc").numbers[found.messages]
    each, first = np.unique(found.messages, return_index=True)
    values, counts = np.unique(crcs[first], return_counts=True)
    is_known = (crcs == found.crcs) & (counts[np.searchsorted(values, crcs)] == 1) if len(each) else crcs > 0
    places = sends.numbers("offset").numbers[found.messages]
    begun = begins_of(carried.codes, carried.values, begins)
    return of_one_log(carried.codes, sent.codes, places, begun, is_known).astype(np.int64)


def differ(bodies: EventTable) -> bool:
    """Whether any body is another one than was sent: then alone it matters which log a run is of."""
    told, sent = (bodies.numbers[name] for name in ("crc", "sent_crc"))
    return bool(((told.absent == _SEEN) & (told.numbers != sent.numbers)).any())


def _missing(runs: Columns, rows: Rows, messages: Rows, places: Numbers) -> _Found:
    """Messages that begin in a run of which bytes are missing, each once."""
    gaps = rows[runs.numbers("body_digest").absent[rows] != 0]
    begins = runs.numbers("offset").numbers[gaps]
    order = np.argsort(begins, kind="stable")
    gaps, begins = gaps[order], begins[order]
    ends = np.append(begins + runs.numbers("body_size").numbers[gaps], -1)
    # The run that reaches furthest of those that begin no later; the last one stands for none.
    furthest = np.maximum.accumulate(ends[:-1]) if len(gaps) else ends[:0]
    reaches = np.maximum.accumulate(np.where(ends[:-1] == furthest, np.arange(len(gaps)), 0))
    before = np.searchsorted(begins, places, "right") - 1
    run = np.append(reaches, len(gaps))[before]
    inside = np.flatnonzero((before >= 0) & (ends[run] > places))
    nothing = np.zeros(len(inside), np.int64)
    return _Found(gaps[run[inside]], messages[inside], nothing, nothing + _UNSEEN, nothing)
