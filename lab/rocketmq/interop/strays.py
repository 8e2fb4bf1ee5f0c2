"""Replicas of Java that copy from a broker that is not master any more, and do not leave it.

A Java replica takes its master's address of replication from the answer of the name server to its own
registration. When it registers before the new master does, that is the earlier master's. Thirty seconds
later it is told the right one, and `AutoSwitchHAClient.updateHaMasterAddress` notes it, and leaves the open
connection as it is: the earlier master, a replica by now, still answers there. It stays outside the
SyncStateSet until that connection ends. Who does so by the account of the kernel and by its own log is
started again, and that is told.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection
from dataclasses import dataclass, field

from lab.cluster import Cluster
from lab.sockets import connected_ports

TOLD = re.compile(r"update master ha address, OLD: \S+ NEW: (\S+)")
# More than haHousekeepingInterval (20 s), after which a silent connection of replication ends.
STRAY_S = 25.0
LOOK_S = 1.0


@dataclass(slots=True)
class Strays:
    """Which replicas have strayed, and since when."""

    cluster: Cluster
    brokers: Collection[str]
    since_s: dict[str, float] = field(default_factory=dict)
    looked_s: float = 0.0

    def found(self, master: str, outside: Collection[str]) -> list[tuple[str, str]]:
        """Replicas outside the SyncStateSet that have copied from somebody else for too long, each with whom,
        though they were told who is master."""
        now_s = time.monotonic()
        if now_s - self.looked_s < LOOK_S:
            return []
        self.looked_s = now_s
        whom = {name: self._follows(name, master) for name in outside if name in self.cluster.processes}
        strayed = {name: other for name, other in whom.items() if other is not None}
        self.since_s = {name: self.since_s.get(name, now_s) for name in strayed}
        return [(name, other) for name, other in strayed.items() if now_s - self.since_s[name] > STRAY_S]

    def _follows(self, name: str, master: str) -> str | None:
        """From whom a broker copies instead of the master that it was told of."""
        ports = connected_ports(self.cluster.processes[name])
        if self.cluster.ha_port(master) in ports or self._told(name) != self.cluster.ha_port(master):
            return None
        others = (each for each in self.brokers if each not in (name, master))
        return next((each for each in others if self.cluster.ha_port(each) in ports), None)

    def _told(self, name: str) -> int | None:
        """The port of replication that it was told last, by its own log."""
        log = self.cluster.part("log") / f"{name}.log"
        told = TOLD.findall(log.read_text(errors="replace")) if log.exists() else []
        port = told[-1].rpartition(":")[2] if told else ""
        return int(port) if port.isdigit() else None
