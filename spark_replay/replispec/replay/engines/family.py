"""What the engines are told of a family: how the events of a capture are judged, and which there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from replispec.replay.engines.results import CaptureResult, Options
from replispec.replay.engines.spread import Spread
from replispec.replay.events.observation import ObservationKind
from replispec.replay.events.tables import Events
from replispec.replay.report.summary import CaptureRow
from replispec.runtime import families

ROOM = "replay.engines"


@dataclass(frozen=True, slots=True, eq=False)
class JudgedFamily:
    """How one family is judged; lies in `replispec.replay.engines.<family>.family` as `FAMILY`.

    `judge` is given the figures of a capture and all its events, and tells what these come to. `spread`: how
    it tells the same from parts, if it can; a family that cannot is judged as a whole by what is rare, where
    another one is spread.
    """

    judge: Callable[[CaptureRow, Events, Options], CaptureResult]
    spread: Spread | None = None


@cache
def judged_families() -> tuple[JudgedFamily, ...]:
    """Every family that is judged."""
    return tuple(families.part(ROOM, name).FAMILY for name in families.with_part(ROOM))


def spread_of_all() -> Spread | None:
    """How judging is spread, where one family alone has something to spread."""
    every = [each.spread for each in judged_families() if each.spread is not None]
    return every[0] if len(every) == 1 else None


def judged_beside(capture: CaptureRow, rare: Events, options: Options) -> CaptureResult:
    """What the families that are not spread tell of a capture by what is rare there."""
    result = CaptureResult(capture)
    for family in judged_families():
        if family.spread is None:
            result.add(family.judge(capture, rare, options))
    return result


def judged(capture: CaptureRow, events: Events, options: Options) -> CaptureResult:
    """Judge the events of one capture (all of them) and tell its story."""
    capture = replace(capture, commands_unread=events[ObservationKind.UNDECODABLE].num_rows)
    result = CaptureResult(capture)
    for family in sorted(judged_families(), key=lambda each: each.spread is None):
        result.add(family.judge(capture, events, options))
    return result
