"""What is different between two replays, from what their summary.json say.

What one of them was not asked for, or could not read, is no difference: it is said, and not compared. An
older summary is somebody's file: what it lacks, or says in another form, is an error that names it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from replispec.replay.report.asked import Asked
from replispec.replay.report.model import Comparison
from replispec.replay.report.wording import asked_groups, asked_time, counted, epoch_of

# More would not be read; the two files hold all.
LINES_MAXIMUM = 200
FILES_SHOWN = 5
Findings = dict[tuple[str, ...], str]


class NoSummaryError(ValueError):
    """What was given is no summary.json of a replay."""

    def __init__(self, missing: str = "") -> None:
        super().__init__("no summary.json of a replay" + (f": {missing}" if missing else ""))


@dataclass(slots=True)
class _Lost:
    """Lost messages of one group and epoch: how many, the first and the last place of each range, and what
    stands for all places of each, empty where an older summary does not say it."""

    count: int = 0
    ranges: set[tuple[int, int]] = field(default_factory=set)
    places: set[str] = field(default_factory=set)

    def as_far_as_told(self, other: _Lost) -> bool:
        """Whether number, first and last places are the same."""
        return (self.count, self.ranges) == (other.count, other.ranges)

    def is_told(self) -> bool:
        """Whether it is known which messages they are."""
        return bool(self.places) and "" not in self.places

    def within(self, other: _Lost) -> bool:
        """Whether all of them lie where others do."""
        return all(any(low <= a and b <= high for low, high in other.ranges) for a, b in self.ranges)

    def __str__(self) -> str:
        return " and ".join(f"{first} to {last}" for first, last in sorted(self.ranges))


Losses = dict[tuple[str, ...], _Lost]


@dataclass(frozen=True, slots=True)
class _Common:
    """What both replays were asked for and could read. `by_file`: rows are told apart by their captures."""

    asked: tuple[Asked, ...]
    files: frozenset[str] | None

    @property
    def by_file(self) -> bool:
        return self.files is not None

    def holds(self, row: Mapping[str, Any], *, idle: bool = False) -> bool:
        """Whether both could tell of what a row is about."""
        group = str(row.get("group"))
        both = all(each.of_group(group, idle=idle) for each in self.asked)
        return both and (self.files is None or str(row.get("file")) in self.files)

    def key(self, row: Mapping[str, Any], *names: str) -> tuple[str, ...]:
        return tuple(str(row.get(name)) for name in (*names, *(("file",) if self.by_file else ())))


def compare(old: object, new: Mapping[str, Any]) -> Comparison:
    """How a replay (the content of its summary.json) differs from an older one. Raises NoSummaryError.

    Two replays of one capture each are compared whatever their files are called.
    """
    before = _document(old)
    asked = _asked(before), _asked(new)
    common = _Common(tuple(each for each in asked if each is not None), _common_files(before, new))
    losses = _lost(before, common), _lost(new, common)
    lines = [
        *_losses(*losses),
        *_findings(_verdicts(before, common), _verdicts(new, common)),
    ]
    notes = (
        *_specifications(before, new),
        *_requests(*asked),
        *_only_in_one(before, new),
        *_perhaps_others(*losses),
    )
    return Comparison(tuple(lines[:LINES_MAXIMUM]), max(len(lines) - LINES_MAXIMUM, 0), notes)


def _document(old: object) -> Mapping[str, Any]:
    parts = ("captures", "losses", "findings")
    if not isinstance(old, dict) or not all(_rows(old.get(part)) for part in parts):
        raise NoSummaryError
    return old


def _rows(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _asked(document: Mapping[str, Any]) -> Asked | None:
    """What a replay was asked for; None where its summary is too old to say so."""
    said = document.get("asked")
    if said is None:
        return None
    if not isinstance(said, dict) or not isinstance(groups := said.get("groups"), list | tuple):
        raise NoSummaryError("what it was asked for has no groups")
    moments = said.get("from_ns"), said.get("until_ns")
    if not all(each is None or isinstance(each, int) for each in moments):
        raise NoSummaryError("a moment that is no number")
    return Asked(tuple(map(str, groups)), *moments)


def _names(document: Mapping[str, Any], *, read: bool = False) -> frozenset[str]:
    """The captures; `read`: those that could be."""
    rows = document["captures"]
    return frozenset(str(each.get("file")) for each in rows if not (read and each.get("error")))


def _common_files(before: Mapping[str, Any], after: Mapping[str, Any]) -> frozenset[str] | None:
    """The captures of both that both could read; None: one each, which are compared by whatever name."""
    if all(len(_names(each)) == len(_names(each, read=True)) == 1 for each in (before, after)):
        return None
    if len(_names(before)) == len(_names(after)) == 1:
        return frozenset()
    return _names(before, read=True) & _names(after, read=True)


def _lost(document: Mapping[str, Any], common: _Common) -> Losses:
    found: Losses = {}
    for loss in document["losses"]:
        numbers = [loss.get(name) for name in ("acknowledged", "from_offset", "to_offset")]
        if not all(isinstance(each, int) for each in numbers):
            raise NoSummaryError("a loss without a number")
        if common.holds(loss):
            count, first, last = numbers
            lost = found.setdefault(common.key(loss, "group", "epoch"), _Lost())
            lost.count += count
            lost.ranges.add((first, last))
            lost.places.add(str(loss.get("places") or ""))
    return found


def _losses(before: Losses, after: Losses) -> Iterator[str]:
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key, _Lost()), after.get(key, _Lost())
        both_told = old.is_told() and new.is_told()
        if not old.as_far_as_told(new) or (both_told and old.places != new.places):
            yield f"{_changed(old, new)}: {_where(key)}: {_numbers(old, new)}"


def _changed(old: _Lost, new: _Lost) -> str:
    if old.count == new.count:
        return f"Other messages lost, {new.count:,} as before"
    difference, worse = abs(new.count - old.count), "more" if new.count > old.count else "fewer"
    return f"{difference:,} {worse} message{'' if difference == 1 else 's'} lost"


def _numbers(old: _Lost, new: _Lost) -> str:
    said = f"{old.count:,} before, {new.count:,} now"
    if old.count and new.count and old.ranges != new.ranges:
        said += ", others among them" if new.count < old.count and not new.within(old) else ""
        said += f"; commit-log offsets {old} before, {new} now"
    elif old.as_far_as_told(new):
        said += "; others between the same first and last one"
    return said


def _where(key: tuple[str, ...]) -> str:
    epoch = epoch_of(None) if key[1] == str(None) else f"masterEpoch {key[1]}"
    return f"{key[0]}, {epoch}{_in_file(key, 2)}"


def _verdicts(document: Mapping[str, Any], common: _Common) -> Findings:
    return {
        common.key(finding, "group", "invariant"): str(finding.get("verdict"))
        for finding in document["findings"]
        if common.holds(finding, idle=finding.get("evaluated") == 0)
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


def _specifications(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Whether the rules themselves are others: then a difference may lie in them."""
    old, new = (each.get("provenance") for each in (before, after))
    if isinstance(old, dict) and isinstance(new, dict) and old.get("specification") != new["specification"]:
        names = f"{old.get('specification')} before, {new['specification']} now"
        yield f"The specification was another one: {names}"


def _requests(old: Asked | None, new: Asked | None) -> Iterator[str]:
    """Whether the two were asked for other things."""
    if old is None or new is None:
        yield "The older replay does not say which groups and which time it was asked for: maybe not all"
        return
    if old.groups != new.groups:
        names = f"{asked_groups(old)} before, {asked_groups(new)} now"
        yield f"The replays were asked for other groups ({names}): those of both are compared"
    if (old.from_ns, old.until_ns) != (new.from_ns, new.until_ns):
        times = f"{asked_time(old)} before, {asked_time(new)} now"
        yield f"The replays were asked for other times ({times}): what differs may lie in that"


def _perhaps_others(before: Losses, after: Losses) -> Iterator[str]:
    """Whether messages may be others, as an older summary tells no more than where the first and last are."""
    alike = [(before[key], after[key]) for key in before.keys() & after.keys()]
    if any(old.as_far_as_told(new) and not (old.is_told() and new.is_told()) for old, new in alike):
        yield (
            "The older replay does not say which messages were lost, only how many, the first and the last "
            "one: others between them are not told"
        )


def _only_in_one(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Captures that one replay did not have, or could not read."""
    for document, when in ((before, "before"), (after, "now")):
        if unread := _names(document) - _names(document, read=True):
            yield f"Not compared, as it could not be read {when}: {_listed(unread)}"
    if len(_names(before)) == len(_names(after)) == 1:
        return
    for own, other, when in ((before, after, "before"), (after, before, "now")):
        if alone := _names(own) - _names(other):
            yield f"Not compared, as it was replayed only {when}: {_listed(alone)}"


def _listed(names: Collection[str]) -> str:
    more = len(names) - FILES_SHOWN
    shown = ", ".join(sorted(names)[:FILES_SHOWN])
    return f"{shown} and {counted(more, 'other file')}" if more > 0 else shown
