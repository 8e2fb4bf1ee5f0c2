"""The first member of a new group of controllers: neutral, as `replispec.cli.<family>.founding` makes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class FoundingRefused(Exception):
    """No group is made of this; says why. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class FoundedGroup:
    """What is, or would be, written: the group as it is called for good, the store, what is on record, a line
    each, and what people are to know beside it."""

    name: str
    store: str
    lines: Sequence[str]
    notes: Sequence[str] = ()
