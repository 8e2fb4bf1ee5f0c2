"""Which addresses are one broker's: a broker that starts again at another address keeps its id.

Only what a broker says of itself counts, to controllers: its address and its id, in one command.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from itertools import chain

from replispec.replay.events.observation import Observation, ObservationKind

_OWN_WORD = (ObservationKind.BROKER, ObservationKind.ALIVE)
_Ids = Mapping[str, set[int]]


class Identities:
    """The ids that were told at each address of a group, and the addresses at which each id was."""

    def __init__(self, rows: Iterable[Observation] = ()) -> None:
        """`rows`: in the order of the capture, each with its group."""
        self._ids: dict[str, dict[str, set[int]]] = defaultdict(partial(defaultdict, set))
        self._addresses: dict[tuple[str, int], dict[str, None]] = defaultdict(dict)
        for row in rows:
            if row.kind in _OWN_WORD and row.group and row.address and row.broker_id is not None:
                self._ids[row.group][row.address].add(row.broker_id)
                self._addresses[row.group, row.broker_id][row.address] = None

    def broker(self, group: str | None, address: str) -> str:
        """The first address of the broker that has this one, of those where it alone was; else this one."""
        ids = self._told(group).get(address, set())
        if len(ids) != 1:
            return address
        every = self._addresses[str(group), min(ids)]
        return next(each for each in every if len(self._ids[str(group)][each]) == 1)

    def perhaps(self, group: str, address: str | None) -> set[str | None]:
        """The addresses of all brokers that were ever at this one."""
        ids = self._told(group).get(address or "", set())
        return {address, *chain.from_iterable(self._addresses[group, each] for each in ids)}

    def with_id(self, group: str, broker_id: int | None) -> Collection[str]:
        """The addresses of the broker with an id."""
        return self._addresses.get((group, broker_id if broker_id is not None else -1), {}).keys()

    def _told(self, group: str | None) -> _Ids:
        return self._ids.get(group or "", {})
