"""Captures of many places of one cluster, merged into one file, and what was done to them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from replispec.replay.capture.files import Capture, open_capture
from replispec.replay.capture.records import Integers
from replispec.replay.hosts.clocks import Clock, clocks_of, on_one_clock
from replispec.replay.hosts.copies import Story, story_of
from replispec.replay.hosts.halves import Halves, find_halves
from replispec.replay.hosts.sightings import Sightings, sightings
from replispec.replay.hosts.told import HostClock, Merged, Renaming
from replispec.replay.hosts.written import Renamed, ends_of, kept_rows, write_story
from replispec.replay.tcp.flows import Endpoint, address_text, endpoint_text
from replispec.replay.tcp.layers import Flags

# Every search reads all captures; more listeners than these are called as their openers saw them.
MENTIONS_MAXIMUM = 64


def merge(paths: Sequence[Path], out: Path) -> Merged:
    """Merge captures into the pcapng file `out`. Raises CaptureError, OSError; ValueError where `out` is one
    of them."""
    if any(os.path.realpath(path) == os.path.realpath(out) for path in paths):
        raise ValueError(f"{out} is one of the captures to be merged")
    with ExitStack() as stack:
        captures = [stack.enter_context(open_capture(path)) for path in paths]
        rows, instances, seen = sightings(captures)
        halves = find_halves(rows, instances, _Mentions(captures))
        story = story_of(rows, instances, halves.shapes)
        clocks = clocks_of(rows, story, len(paths))
        times = [on_one_clock(clocks, file, each.records.time_ns) for file, each in enumerate(seen)]
        shown = np.concatenate([times[file][rows.record[rows.file == file]] for file in range(len(paths))])
        kept = kept_rows(rows, story, shown)
        # A record goes only when all that it holds is copied elsewhere.
        left_out = [_left_out(rows, kept, file) for file in range(len(paths))]
        write_story(out, seen, left_out, times, _renamed(rows, story, halves, kept, len(paths)))
        odd = [warning for capture in captures for warning in capture.warnings]
    names = [path.name for path in paths]
    return Merged(
        tuple(paths),
        tuple(_clock(clock, names) for clock in clocks),
        tuple(
            Renaming(names[each.file], endpoint_text(each.seen), endpoint_text(each.shown), each.connections)
            for each in halves.translations
        ),
        sum(map(len, left_out)),
        halves.doubtful,
        (*map(str, odd), *_said(clocks, names, halves)),
        tuple(str(warning) for warning in odd if warning.unread),
    )


class _Mentions:
    """Whether some capture holds ADDRESS:PORT as text. Only so many endpoints are looked for."""

    def __init__(self, captures: Sequence[Capture]) -> None:
        self._captures = captures
        self._known: dict[Endpoint, bool] = {}

    def __call__(self, endpoint: Endpoint) -> bool:
        if endpoint not in self._known:
            if len(self._known) == MENTIONS_MAXIMUM:
                return False
            text = _in_any_form(endpoint)
            self._known[endpoint] = any(text.search(each.data) is not None for each in self._captures)
        return self._known[endpoint]


def _in_any_form(endpoint: Endpoint) -> re.Pattern[bytes]:
    """ADDRESS:PORT as programs write it: IPv6 with brackets or without, all groups or fewer, a zone."""
    address = address_text(*endpoint[:2])
    if ":" not in address:
        return re.compile(rb"(?<![0-9.])" + re.escape(f"{address}:{endpoint[2]}".encode()) + rb"(?![0-9])")
    groups = ":".join(f"{half >> at & 0xFFFF:x}" for half in endpoint[:2] for at in (48, 32, 16, 0))
    text = rf"(?<![0-9a-f:.])\[?(?:{address}|{groups})(?:%[0-9a-z._-]{{1,16}})?\]?:{endpoint[2]}(?![0-9])"
    return re.compile(text.encode(), re.IGNORECASE)


def _left_out(rows: Sightings, kept: Flags, file: int) -> Integers:
    mine = rows.file == file
    found: Integers = np.setdiff1d(rows.record[mine & ~kept], rows.record[mine & kept])
    return found


def _renamed(
    rows: Sightings, story: Story, halves: Halves, kept: Flags, files: int
) -> list[dict[int, Renamed]]:
    """For each file by record: the packets that are written with other names."""
    found: list[dict[int, Renamed]] = [{} for _ in range(files)]
    other = np.isin(rows.instance, np.array(sorted(halves.shapes), np.int64))
    for row in np.flatnonzero(other & kept).tolist():
        key = halves.shapes[int(rows.instance[row])].key
        numbers = int(story.sequence[row]), int(story.acknowledgment[row])
        own = Renamed(int(rows.packet[row]), *ends_of(key, int(story.side[row])), *numbers)
        found[int(rows.file[row])][int(rows.record[row])] = own
    return found


def _clock(clock: Clock, names: Sequence[str]) -> HostClock:
    if clock.reference is None:
        return HostClock(names[clock.file])
    return HostClock(
        names[clock.file],
        names[clock.reference],
        clock.offset_ns,
        clock.uncertainty_ns,
        None if clock.drift is None else clock.drift * 10**6,
        clock.copies,
        clock.both_ways,
    )


def _said(clocks: Sequence[Clock], names: Sequence[str], halves: Halves) -> Iterator[str]:
    """What must be known before the merged capture is believed."""
    for clock in clocks[1:]:
        if clock.reference is None:
            yield (
                f"{names[clock.file]}: no packet of it is in another capture, so its clock is not compared:"
                " its moments may be wrong beside others"
            )
    if halves.doubtful:
        yield (
            f"{halves.doubtful} pairs of connections may be one behind a translation of addresses; too little"
            " vouches for it, so each counts by itself"
        )
