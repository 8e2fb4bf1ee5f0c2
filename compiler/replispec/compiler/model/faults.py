"""All faults of a specification at once: what fails is noted, and the rest is read on.

Readers and checks put each part that can be refused alone into `attempt`. While nobody is `collecting`, the
first fault is raised as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from replispec.compiler.model.message import SpecificationError

SHOWN_MAX: Final = 50
"""Faults that are shown; of those beyond only the number is."""
_WORD: Final = re.compile(r"[A-Za-z0-9_]+(?:[-.][A-Za-z0-9_]+)*")
# Complaints that something is not there: they prove nothing while a file cannot be read.
_MISSING: Final = re.compile(
    r"^(?:no |nobody )|does not exist|is not defined|is not in enum|is no duration of"
)


class SpecificationErrors(SpecificationError):
    """Several faults, one a line, in the order of files and lines."""

    def __init__(self, faults: list[SpecificationError]) -> None:
        ordered = sorted(faults, key=lambda each: each.order)
        lines = [str(each) for each in ordered[:SHOWN_MAX]]
        if len(ordered) > SHOWN_MAX:
            lines.append(f"and {len(ordered) - SHOWN_MAX} more")
        Exception.__init__(self, "\n".join(lines))
        self.faults = tuple(ordered)
        self.place, self.fault = ordered[0].place, ordered[0].fault


class Incomplete(Exception):
    """Something is missing whose absence was reported already."""


@dataclass(slots=True)
class Faults:
    """What was found so far.

    `broken` are the names of what was refused, `has_gaps` is set after an unreadable file, `failures` counts
    the parts that failed, for whatever reason.
    """

    found: list[SpecificationError] = field(default_factory=list)
    failures: int = 0
    broken: set[str] = field(default_factory=set)
    has_gaps: bool = False

    def add(self, fault: SpecificationError) -> None:
        """Note a fault, unless it only says that something refused before is missing, or is known already."""
        names_broken = any(word in self.broken for word in _WORD.findall(fault.fault))
        follows = names_broken or (self.has_gaps and _MISSING.search(fault.fault) is not None)
        if not follows and str(fault) not in map(str, self.found):
            self.found.append(fault)

    def raise_all(self) -> None:
        """Raises SpecificationErrors when there are faults; a single one as it is."""
        if len(self.found) == 1:
            raise self.found[0]
        if self.found:
            raise SpecificationErrors(self.found)


_COLLECTED: ContextVar[Faults | None] = ContextVar("faults", default=None)


@contextmanager
def collecting() -> Iterator[Faults]:
    """Collect the faults of all attempts within."""
    faults = Faults()
    token = _COLLECTED.set(faults)
    try:
        yield faults
    finally:
        _COLLECTED.reset(token)


@contextmanager
def attempt(name: str = "", *, gap: bool = False) -> Iterator[None]:
    """One part that may be refused alone; `name` is what others call it, `gap` says that it held names.

    Faults are noted while somebody is collecting, else raised.
    """
    faults = _COLLECTED.get()
    try:
        yield
    except (SpecificationError, Incomplete) as fault:
        if faults is None:
            raise
        if isinstance(fault, SpecificationErrors):
            for each in fault.faults:
                faults.add(each)
        elif isinstance(fault, SpecificationError):
            faults.add(fault)
        faults.failures += 1
        faults.broken |= {name} - {""}
        faults.has_gaps = faults.has_gaps or gap


def failures() -> int:
    """How many parts failed so far, to see whether another one is whole."""
    faults = _COLLECTED.get()
    return 0 if faults is None else faults.failures


def whole_since(count: int) -> None:
    """Raises Incomplete when some part failed since `failures` gave this number."""
    if failures() != count:
        raise Incomplete
