"""Only what somebody asked for: the groups that fit patterns, of all that a replay found."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import fields, replace
from typing import Any

from replispec.replay.engines.results import CaptureResult, Options
from replispec.replay.events.group_names import fits
from replispec.replay.pairing.pairs import EVERYTHING
from replispec.replay.report.asked import Asked


class NoGroupError(ValueError):
    """No group of any capture fits these patterns; `known` are those that there are."""

    def __init__(self, patterns: Collection[str], known: Sequence[str]) -> None:
        there = ", ".join(known) if known else "none"
        super().__init__(f"no group fits {' or '.join(patterns)}; there are: {there}")


def asked_by(options: Options) -> Asked:
    """What somebody who says this wants to be told."""
    groups = tuple(sorted(set(options.groups)))
    return Asked(groups, options.window.from_ns, options.window.until_ns)


def of_groups(results: Sequence[CaptureResult], asked: Asked) -> list[CaptureResult]:
    """The results with nothing in them that is about a group which was not asked for; what is about none is
    left out too, but nothing that may be of such a group, as no capture tells whose it is.

    What belongs to a whole capture (figures, latencies, answers) stays. Raises NoGroupError when a pattern
    fits nothing: whoever mistyped a name must not take what is told of others for an answer.
    """
    known = sorted({finding.group for result in results for finding in result.findings} - {EVERYTHING})
    vain = [each for each in asked.groups if not any(fits(group, [each]) for group in known)]
    if vain:
        raise NoGroupError(vain, known)
    return [_only(result, asked) for result in results]


def _only(result: CaptureResult, asked: Asked) -> CaptureResult:
    chosen: dict[str, Any] = {}
    for item in fields(result):
        value = getattr(result, item.name)
        if isinstance(value, list):
            chosen[item.name] = [each for each in value if _is_told(each, asked)]
    return replace(result, **chosen)


def _is_told(row: object, asked: Asked) -> bool:
    group = getattr(row, "group", None)
    return group is None or asked.of_group(group, idle=getattr(row, "idle", False))
