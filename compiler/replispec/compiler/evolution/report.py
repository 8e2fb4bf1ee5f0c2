"""A comparison as a whole: every change with what it touches, for programs and for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from replispec.compiler.evolution.changelog import named_breaks
from replispec.compiler.evolution.compare import ADDED, REMOVED, Difference
from replispec.compiler.evolution.judge import ORDER, Change, changes
from replispec.compiler.evolution.revisions import Side, read_side
from replispec.compiler.evolution.touched import Touched
from replispec.compiler.evolution.verdict import Reach
from replispec.compiler.evolution.walk import SpecNode

_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class ReportEntry:
    """One change with its family and what it touches; `is_named`: a new line of the changelog names it."""

    family: str
    change: Change
    touched: Touched
    is_named: bool


@dataclass(frozen=True, slots=True)
class Report:
    """All changes between two sides, the worst first."""

    old: str
    new: str
    entries: tuple[ReportEntry, ...]

    def breaks(self) -> tuple[ReportEntry, ...]:
        """The changes that break the wire."""
        return tuple(entry for entry in self.entries if entry.change.kind is Reach.WIRE)

    def unnamed(self) -> tuple[ReportEntry, ...]:
        """The breaks that no new line of the changelog names."""
        return tuple(entry for entry in self.breaks() if not entry.is_named)

    def counts(self) -> dict[str, int]:
        """How many changes there are of each kind."""
        found = Counter(entry.change.kind for entry in self.entries)
        return {kind.value: found[kind] for kind in ORDER}


def compare_sides(old: str, new: str, *, repository: Path) -> Report:
    """Compare two folders or revisions. Raises Unreadable for a side that cannot be read."""
    ours = read_side(old, repository=repository, is_past=True)
    theirs = read_side(new, repository=repository, is_past=False)
    named = named_breaks(theirs.changelog, ours.changelog)
    entries = [
        ReportEntry(
            family,
            _placed(change, ours, theirs),
            _touched(change, family, ours, theirs),
            change.kind is Reach.WIRE and _ids(change) <= named,
        )
        for family, change in _changes(ours, theirs)
    ]
    return Report(old, new, tuple(sorted(entries, key=lambda entry: ORDER.index(entry.change.kind))))


def _ids(change: Change) -> frozenset[str]:
    return frozenset((change.id, *change.others))


def _changes(old: Side, new: Side) -> Iterator[tuple[str, Change]]:
    for family in sorted({*old.families, *new.families}):
        before, after = old.families.get(family), new.families.get(family)
        if before is not None and after is not None:
            yield from ((family, change) for change in changes(before, after))
        elif before is not None:
            yield family, _whole(family, before, REMOVED)
        elif after is not None:
            yield family, _whole(family, after, ADDED)


def _whole(family: str, node: SpecNode, operation: str) -> Change:
    """A family that came or went."""
    is_gone = operation == REMOVED
    says = "nothing of it is read or written any longer" if is_gone else "no other family changes"
    kind = Reach.WIRE if is_gone else Reach.COMPATIBLE
    difference = Difference(operation, node if is_gone else None, None if is_gone else node)
    place = f"proto/replispec/{family}"
    return Change(family, "family", operation, "", "", kind, says, "every release", place, difference)


def _placed(change: Change, old: Side, new: Side) -> Change:
    """The change with its place relative to the side's folder, where that holds spec/."""
    side = new if change.difference.new is not None else old
    return replace(change, place=side.prefix + change.place)


def _touched(change: Change, family: str, old: Side, new: Side) -> Touched:
    side = new if change.difference.new is not None else old
    return side.project.touched(change, family)


def to_plain(report: Report) -> dict[str, Any]:
    """The report as plain values, for JSON. Keys are those of docs/evolution.md."""
    return {
        "old": report.old,
        "new": report.new,
        "counts": report.counts(),
        "changes": [_plain(entry) for entry in report.entries],
    }


def _plain(entry: ReportEntry) -> dict[str, Any]:
    change = entry.change
    return {
        "id": change.id,
        "also": list(change.others),
        "object": change.object,
        "what": change.what,
        "before": change.before,
        "after": change.after,
        "kind": change.kind.value,
        "says": change.says,
        "releases": change.releases,
        "place": change.place,
        "named_in_changelog": entry.is_named,
        **{name: list(values) for name, values in asdict(entry.touched).items()},
    }


def to_lines(report: Report, *, everything: bool = False) -> Iterator[str]:
    """The report for a reader; long lists are cut unless `everything` is asked for."""
    for entry in report.entries:
        yield from _lines(entry, everything=everything)
    counts = ", ".join(f"{count} {kind}" for kind, count in report.counts().items() if count)
    total = len(report.entries)
    yield f"{report.old} to {report.new}: {counts or 'no change'}" + (f"; {total} in all" if total else "")


def _lines(entry: ReportEntry, *, everything: bool) -> Iterator[str]:
    change = entry.change
    named = "; named in the changelog" if entry.is_named else ""
    yield f"{change.kind.value}: {change.id}  ({change.releases}{named})"
    values = f": {change.before} -> {change.after}" if change.before or change.after else ""
    yield f"    {change.object} {change.what}{values}"
    yield f"    {change.says}"
    yield f"    {change.place}"
    if change.others:
        yield f"    also      {_cut(change.others, everything=everything)}"
    for name, values_ in asdict(entry.touched).items():
        if values_:
            yield f"    {name:<9} {_cut(values_, everything=everything)}"


def _cut(names: Sequence[str], *, everything: bool) -> str:
    if everything or len(names) <= _SHOWN:
        return ", ".join(names)
    return f"{', '.join(names[:_SHOWN])}, and {len(names) - _SHOWN} more"
