"""All subjects by name."""

from __future__ import annotations

from lab import families
from lab.errors import UsageError
from lab.subjects.subject import Subject


def subjects() -> dict[str, Subject]:
    """Every subject of every family by its name, in order."""
    every = [each for name in families.names() for each in families.in_the_lab(name).subjects()]
    return {each.name: each for each in sorted(every, key=lambda each: each.name)}


def subject(name: str) -> Subject:
    """The subject of this name. Raises UsageError, with the names that there are."""
    every = subjects()
    if name not in every:
        raise UsageError(f"no subject {name!r}: there are {', '.join(every)}")
    return every[name]
