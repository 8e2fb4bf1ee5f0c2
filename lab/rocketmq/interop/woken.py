"""Masters of Java that were stopped and go on after another one was elected: what is known of them.

From 5.4.0 on `AutoSwitchHAService.removeConnection` takes a replica out of the set that its master waits
for when the connection ends, and not when a controller has agreed. A master that wakes finds the
connections of its replicas closed, is alone in its set for some milliseconds, and confirms and acknowledges
what nobody else has. No controller can prevent that. It is told from everything else by who did it, in
which epoch, and when: after it went on, when a member of the SyncStateSet had been elected, and before the
set was whole again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.interop.measured import LOST, MISSED

# The first release whose masters may be alone so; 5.1.0 waits for the union of both sets.
ALONE_SINCE = (5, 4, 0)
REASON = "a Java master that had been stopped woke, and counted its replicas as gone before it was told"
OF_LOSSES = "acknowledged-send-survives"
BROKEN = (OF_LOSSES, "confirmed-bytes-survive")
EPOCH = re.compile(r"by the master of epoch (\d+)|^the master of epoch (\d+)")
ELECTED, CHANGED = "master elected", "sync state set changed"


@dataclass(slots=True)
class Woken:
    """A master that was stopped, and goes on. `places`: its addresses, for everybody and of replication."""

    places: tuple[str, ...]
    epoch: int
    resumed_ms: int
    whole_ms: int = 0

    def excuse(self, rule: str, row: Mapping[str, Any]) -> str | None:
        """Why this was to be expected; None when it was somebody else, in another epoch, or at another time.
        See lab.interop.measured.Excuse."""
        if rule == MISSED:
            own = row["stored"] in self.places
            return REASON if own and self._holds(row["at_ms"]) else None
        if rule == LOST:
            own = row.get("epoch") == self.epoch and row["broker"] in self.places
            return REASON if own and self._holds(row["acknowledged_ns"] / 1e6) else None
        if rule not in BROKEN or (said := EPOCH.search(row["text"])) is None:
            return None
        own = int(said[1] or said[2]) == self.epoch and bool(_ends(row["connection"]) & {*self.places})
        return REASON if own and self._holds(row["time_ns"] / 1e6) else None

    def _holds(self, moment_ms: float) -> bool:
        return self.resumed_ms <= moment_ms <= self.whole_ms


def may_be_alone(release: str) -> bool:
    """Whether masters of this release may be."""
    return tuple(map(int, release.split("."))) >= ALONE_SINCE


def rightly_elected(logs: Iterable[Path], after_epoch: int) -> bool:
    """Whether the next master after an epoch was in the SyncStateSet before, by what controllers wrote."""
    told = sorted(_told(logs), key=lambda each: int(each["sync_state_set_epoch"]))
    elected = [each for each in told if each["what"] == ELECTED and each["master_epoch"] > after_epoch]
    if not elected:
        return False
    before = [each for each in told if each["sync_state_set_epoch"] < elected[0]["sync_state_set_epoch"]]
    return bool(before) and elected[0]["master"] in before[-1]["sync_state_set"]


def _told(logs: Iterable[Path]) -> Iterable[dict[str, Any]]:
    for log in logs:
        for line in log.read_text(errors="replace").splitlines():
            if any(f'"{what}"' in line for what in (ELECTED, CHANGED)):
                yield json.loads(line)


def _ends(connection: str) -> set[str]:
    """Both ends of a connection as the replay names it."""
    return set(connection.partition("#")[0].split("<->"))
