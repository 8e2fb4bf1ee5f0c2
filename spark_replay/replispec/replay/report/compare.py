"""What is different between two replays, from what their summary.json say.

An older summary is somebody's file: what it lacks, or says in another form, is an error that names it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# More would not be read; the two files hold all.
LINES_MAXIMUM = 200
Findings = dict[tuple[str, ...], str]
Losses = dict[tuple[str, ...], int]


class NoSummaryError(ValueError):
    """What was given is no summary.json of a replay."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Sentences, worse ones first; `left_out` counts those behind LINES_MAXIMUM."""

    lines: tuple[str, ...]
    left_out: int = 0


def compare(old: object, new: Mapping[str, Any]) -> Comparison:
    """How a replay (the content of its summary.json) differs from an older one. Raises NoSummaryError.

    Two replays of one capture each are compared whatever their files are called.
    """
    before = _document(old)
    by_file = not len(_files(before)) == len(_files(new)) == 1
    lines = [*_losses(_lost(before, by_file=by_file), _lost(new, by_file=by_file))]
    lines += _findings(_verdicts(before, by_file=by_file), _verdicts(new, by_file=by_file))
    lines += _inputs(before, new)
    return Comparison(tuple(lines[:LINES_MAXIMUM]), max(len(lines) - LINES_MAXIMUM, 0))


def _document(old: object) -> Mapping[str, Any]:
    parts = ("captures", "losses", "findings")
    if not isinstance(old, dict) or not all(_rows(old.get(part)) for part in parts):
        raise NoSummaryError("no summary.json of a replay")
    return old


def _rows(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _files(document: Mapping[str, Any]) -> set[str]:
    return {str(each.get("file")) for each in document["captures"]}


def _key(row: Mapping[str, Any], *names: str, by_file: bool) -> tuple[str, ...]:
    return tuple(str(row.get(name)) for name in (*names, *(("file",) if by_file else ())))


def _lost(document: Mapping[str, Any], *, by_file: bool) -> Losses:
    found: Losses = {}
    for loss in document["losses"]:
        key = _key(loss, "group", "epoch", by_file=by_file)
        count = loss.get("acknowledged")
        if not isinstance(count, int):
            raise NoSummaryError("no summary.json of a replay: a loss without a number")
        found[key] = found.get(key, 0) + count
    return found


def _losses(before: Losses, after: Losses) -> Iterator[str]:
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key, 0), after.get(key, 0)
        if old != new:
            worse = "more" if new > old else "fewer"
            where = f"{key[0]}, masterEpoch {key[1]}{_in_file(key, 2)}"
            yield f"{abs(new - old):,} {worse} messages lost: {where}: {old:,} before, {new:,} now"


def _verdicts(document: Mapping[str, Any], *, by_file: bool) -> Findings:
    return {
        _key(finding, "group", "invariant", by_file=by_file): str(finding.get("verdict"))
        for finding in document["findings"]
    }


_HEAVIEST_FIRST = ("violated", "unknown", "diverged", "ok")


def _findings(before: Findings, after: Findings) -> list[str]:
    changed = []
    for key in before.keys() | after.keys():
        old, new = before.get(key), after.get(key)
        if old != new:
            worst = _HEAVIEST_FIRST.index(new) if new in _HEAVIEST_FIRST else len(_HEAVIEST_FIRST)
            said = f"{key[1]} of {key[0]}{_in_file(key, 2)}"
            changed.append((worst, key, f"{said}: {old or 'not there'} before, {new or 'not there'} now"))
    return [line for _, _, line in sorted(changed)]


def _in_file(key: tuple[str, ...], at: int) -> str:
    return f" ({key[at]})" if len(key) > at else ""


def _inputs(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Whether the rules themselves are others: then a difference may lie in them."""
    old, new = (each.get("provenance") for each in (before, after))
    if isinstance(old, dict) and isinstance(new, dict) and old.get("specification") != new["specification"]:
        names = f"{old.get('specification')} before, {new['specification']} now"
        yield f"The specification was another one: {names}"
