"""Who is an async learner: its handshakes tell it for as long as its process runs, and no longer.

A broker may start again as another kind of replica, so handshakes of one kind make certain only what ran once
in the capture: what registered with a controller on one connection at most.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.tenures import Tenure
from replispec.runtime.primitives.unknown import UNKNOWN


@dataclass(slots=True)
class Learners:
    """Of one group, by the names that facts use: `given` are learners by the user's word."""

    given: set[str] = field(default_factory=set)
    _called: dict[str, set[bool]] = field(default_factory=lambda: defaultdict(set))
    _ran: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def hear(self, row: Observation) -> None:
        """A handshake, or a broker's own word to a controller."""
        if row.kind == ObservationKind.HANDSHAKE:
            name = str(row.broker_id) if row.text is None else row.text
            self._called[name].add(bool(row.async_learner))
        elif row.kind == ObservationKind.BROKER and row.controller is not None:
            for each in (str(row.broker_id), row.address):
                self._ran[each or ""].add(row.connection)

    def named(self) -> frozenset[str]:
        """All that were learners at any time."""
        return frozenset(self.given | {name for name, kinds in self._called.items() if True in kinds})

    def among(self, members: Collection[str] | None) -> Any:
        """Those that were nothing else in this capture; UNKNOWN where these members hold none of them, but
        one that was a learner at some time."""
        certain = self.certain()
        if members is None or not certain.isdisjoint(members) or self.named().isdisjoint(members):
            return certain
        return UNKNOWN

    def certain(self) -> frozenset[str]:
        """Those that were nothing else in this capture."""
        return frozenset(
            name
            for name in self.named()
            if name in self.given or (self._called[name] == {True} and len(self._ran[name]) < 2)
        )


def succeeded(tenures: Iterable[tuple[int, Tenure]]) -> Collection[str]:
    """The masters that followed another one: all but that of the first epoch that anybody named."""
    masters = [tenure.master for _, tenure in sorted(tenures, key=lambda each: each[0]) if tenure.master]
    return frozenset(masters) - frozenset(masters[:1])
