"""The first member of a new group of controllers: neutral, as `replispec.cli.<family>.founding` makes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


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


@dataclass(frozen=True, slots=True)
class FoundingSource:
    """What a group begins with, where it is not the store of a controller that was alone: what a controller
    tells of these broker sets of a cluster, the folder of a controller of other make, or what living brokers
    tell. `beyond`: whether what may not be committed in that folder is to "take" or to "leave"; empty:
    refused. `master_ids`: those of masters, by broker set, which they do not tell."""

    controller: str = ""
    cluster: str = ""
    broker_sets: Sequence[str] = ()
    folder: str = ""
    beyond: str = ""
    brokers: Sequence[str] = ()
    master_ids: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_other(self) -> bool:
        """Whether there is any."""
        return bool(self.controller or self.folder or self.brokers)
