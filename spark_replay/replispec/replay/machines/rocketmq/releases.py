"""Which release of Apache RocketMQ walks a machine, by the version in its headers."""

from __future__ import annotations

from typing import Any

from replispec.replay.machines.walks import Walk
from replispec.runtime.primitives.machines import Machine
from replispec.runtime.primitives.releases import Release
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq import codes

_RELEASES: dict[int, Release] = {
    each: ("apache", tuple(int(part) for part in each.name.removeprefix("V").split("_")))
    for each in codes.Release
}


def release_of(version: int | None) -> Release | None:
    """The release that a header's version names; None when it names none."""
    return None if version is None else _RELEASES.get(version)


def walk_of(machine: Machine[Any, Any], version: int | None = None) -> Walk:
    """A walk of a machine by the release that this version names."""
    return Walk(machine, release_of(version), rules)
