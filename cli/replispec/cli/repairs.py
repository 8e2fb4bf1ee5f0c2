"""A member of a broker set that is repaired: neutral, as `replispec.cli.<family>.repair` tells of it."""

from __future__ import annotations

from dataclasses import dataclass


class RepairRefused(Exception):
    """This member cannot be repaired in this way; says why, and what else to do."""


@dataclass(frozen=True, slots=True)
class RepairFinding:
    """Whether a member `may` give up what it has, whether it `waits` for that, and `why`; from whom it will
    copy, ADDRESS:PORT."""

    may: bool
    waits: bool
    why: str
    source: str = ""
