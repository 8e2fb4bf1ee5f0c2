"""Only what somebody asked for: the groups that fit patterns, of all that a replay found."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import fields, replace
from fnmatch import fnmatchcase
from typing import Any

from replispec.replay.engines.results import CaptureResult


class NoGroupError(ValueError):
    """No group of any capture fits; `known` are those that there are."""

    def __init__(self, patterns: Collection[str], known: Sequence[str]) -> None:
        there = ", ".join(known) if known else "none"
        super().__init__(f"no group fits {' or '.join(patterns)}; there are: {there}")


def of_groups(results: Sequence[CaptureResult], patterns: Collection[str]) -> list[CaptureResult]:
    """The results with nothing in them that is about another group; what is about none is left out too.

    A pattern fits "CONTROLLERGROUP/NAME" or the name alone; * stands for any characters. What belongs to a
    whole capture (figures, latencies, answers) stays. Raises NoGroupError.
    """
    known = sorted({finding.group for result in results for finding in result.findings} - {"*"})
    if not any(_fits(group, patterns) for group in known):
        raise NoGroupError(patterns, known)
    return [_only(result, patterns) for result in results]


def _only(result: CaptureResult, patterns: Collection[str]) -> CaptureResult:
    chosen: dict[str, Any] = {}
    for item in fields(result):
        value = getattr(result, item.name)
        if isinstance(value, list):
            kept = [each for each in value if not hasattr(each, "group") or _fits(each.group, patterns)]
            chosen[item.name] = kept
    return replace(result, **chosen)


def _fits(group: str, patterns: Collection[str]) -> bool:
    name = group.rpartition("/")[2]
    return any(fnmatchcase(each, pattern) for pattern in patterns for each in (group, name))
