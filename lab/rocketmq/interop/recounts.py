"""Controllers of Java that applied a record of their log more than once.

A member of a DLedger group that lacks several records applies those that it has each time that one more
comes, from the first on: `StateMachineCaller` goes back to where it began when a record of its run is not
there yet, and says so. Each election among them then counts masterEpoch up again, in that member's memory
alone. When it leads, it tells more than the log says; started again, it goes back, and every broker, Java's
too, refuses the older masterEpoch. Who said that it did is started again, so that its memory is what its
log says, and that is told.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from lab.cluster import Cluster

SAID = "StateMachineCaller Apply task exception"


@dataclass(slots=True)
class Recounts:
    """How often each controller had said so when it was named."""

    cluster: Cluster
    known: dict[str, int] = field(default_factory=dict)

    def found(self, controllers: Iterable[str]) -> str | None:
        """One that has said so since it was named here; None when nobody has."""
        for name in controllers:
            count = self._said(name)
            if count > self.known.get(name, 0):
                self.known[name] = count
                return name
        return None

    def _said(self, name: str) -> int:
        log = self.cluster.part("log") / f"{name}.log"
        return log.read_text(errors="replace").count(SAID) if log.exists() else 0
