"""Which releases a change of a version range adds or takes away."""

from __future__ import annotations

from dataclasses import dataclass

from replispec.compiler.model.message import VersionRange

EVERY_RELEASE = "every release"


@dataclass(frozen=True, slots=True)
class Moved:
    """The releases that only the old range holds, and those that only the new one holds, in words."""

    lost: tuple[str, ...]
    gained: tuple[str, ...]


def text_of(versions: VersionRange | None) -> str:
    """The range in words; None means every release."""
    return EVERY_RELEASE if versions is None else str(versions)


def common(one: VersionRange | None, other: VersionRange | None) -> VersionRange | None:
    """What both ranges hold; `other` when they are ranges of two implementations or do not meet."""
    if one is None or other is None:
        return one or other
    if not one.overlaps(other):
        return other
    lasts = [each.last for each in (one, other) if each.last is not None]
    last = min(lasts) if lasts else None
    firsts = [each.first for each in (one, other) if each.first is not None]
    return VersionRange(one.implementation, max(firsts) if firsts else None, last)


def moved(old: VersionRange | None, new: VersionRange | None) -> Moved:
    """What parts two ranges."""
    return Moved(_without(old, new), _without(new, old))


def _without(one: VersionRange | None, other: VersionRange | None) -> tuple[str, ...]:
    """The releases of `one` that `other` does not hold."""
    if other is None or one == other:
        return ()
    if one is None:
        one = VersionRange(other.implementation, None, None)
    if not one.overlaps(other):
        return (str(one),)
    found = []
    if other.first is not None and (one.first is None or one.first < other.first):
        start = f"{_number(one.first)} to " if one.first else ""
        found.append(f"{one.implementation} {start}before {_number(other.first)}")
    if other.last is not None and (one.last is None or one.last > other.last):
        end = f" to {_number(one.last)}" if one.last else ""
        found.append(f"{one.implementation} after {_number(other.last)}{end}")
    return tuple(found)


def _number(release: tuple[int, ...] | None) -> str:
    return ".".join(map(str, release or ()))
