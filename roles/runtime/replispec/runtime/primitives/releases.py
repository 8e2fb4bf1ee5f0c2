"""Releases of an implementation, and numbers whose meaning depends on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Releases(NamedTuple):
    """Releases `first..last` of one implementation, both included; None leaves a side open."""

    implementation: str
    first: tuple[int, ...] | None
    last: tuple[int, ...] | None

    def holds(self, implementation: str, release: tuple[int, ...]) -> bool:
        """True when this release of this implementation lies in the range."""
        if implementation != self.implementation:
            return False
        return (self.first is None or self.first <= release) and (self.last is None or release <= self.last)

    def __str__(self) -> str:
        first, last = (".".join(map(str, version or ())) for version in (self.first, self.last))
        return f"{self.implementation}@{first}..{last}"


Release = tuple[str, tuple[int, ...]]
"""One release: the name of an implementation, and the numbers of the release."""


def spoken_in(releases: Releases, release: Release | None) -> bool:
    """Whether a peer of this release speaks as in these; of no known release, as in those without an end."""
    return releases.last is None if release is None else releases.holds(*release)


def of_release(choices: Iterable[tuple[Releases, T]], release: Release | None) -> T | None:
    """The choice for a peer of this release; None when there is none."""
    return next((chosen for releases, chosen in choices if spoken_in(releases, release)), None)


class NamedNumber(NamedTuple):
    """A number on the wire, its name, and the releases in which it has this meaning (None: all)."""

    number: int
    name: str
    releases: Releases | None


def named_numbers(
    kind: type[IntEnum], special: Mapping[str, tuple[str, Releases | None]] | None = None
) -> tuple[NamedNumber, ...]:
    """The numbers of an enum with their names; `special` gives, for some members, name and releases."""
    return tuple(
        NamedNumber(int(member), *(special or {}).get(name, (name, None)))
        for name, member in kind.__members__.items()
    )
