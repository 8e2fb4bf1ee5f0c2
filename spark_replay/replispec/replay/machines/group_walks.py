"""Walks of machines that share no broker group: who has all of some groups walks them without the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from replispec.replay.machines.steps import Findings, MachineFinding


class GroupWalk(Protocol):
    """One machine over what was seen of one instance. It is made of the whole capture, and needs nothing else
    of it to be walked; it can be pickled."""

    @property
    def groups(self) -> Collection[str]:
        """The groups that it finds something about."""
        ...

    def walk(self, found: Findings) -> None:
        """Note what every step comes to."""
        ...


def walked(walks: Iterable[GroupWalk]) -> Mapping[tuple[str, str], MachineFinding]:
    """Findings by (group, id of the machine's finding). Those of one group are noted in the walks' order."""
    found: dict[tuple[str, str], MachineFinding] = defaultdict(MachineFinding)
    for each in walks:
        each.walk(found)
    return found


def together(walks: Iterable[GroupWalk]) -> Sequence[frozenset[str]]:
    """The groups that some walk joins, directly or over others; no two of these sets share one."""
    owner: dict[str, set[str]] = {}
    for each in walks:
        joined = set(each.groups).union(*(owner.get(group, ()) for group in each.groups))
        owner |= dict.fromkeys(joined, joined)
    return [*dict.fromkeys(frozenset(each) for each in owner.values())]
