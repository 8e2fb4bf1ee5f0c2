"""Fair shares of a table that peers fill: when it is full, who holds most gives way to who holds little."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

EntryT = TypeVar("EntryT", bound=Hashable)

_Ordered = dict[EntryT, None]


class Shares(Generic[EntryT]):
    """Who holds how much of a table of `room`, by owners: hosts, as far as can be told.

    An owner takes more while there is room, and then as long as another one would still hold more than it.
    Of the one that holds most an entry goes: one that is loose, the oldest first; if it has none, the
    newest. So an owner that has its share, or less, loses nothing of what it keeps, whoever floods the table.
    One that holds most itself gives up a loose entry of its own, or is refused.

    A flood may come from as many hosts as it wants, so all that is loose counts as held by one more owner,
    the strangers: where they hold most, the oldest of it goes, and nothing that is kept. It goes for whoever
    holds nothing yet, too. No operation looks at entries, however many there are, nor at owners one by one.
    """

    def __init__(self, room: int) -> None:
        self.room = room
        self.held = 0
        self._owners: dict[EntryT, str] = {}
        self._loose: dict[str, _Ordered[EntryT]] = {}
        self._kept: dict[str, _Ordered[EntryT]] = {}
        self._strange: _Ordered[EntryT] = {}
        self._weights: dict[EntryT, int] = {}
        self._held: dict[str, int] = {}
        # Owners by how much they hold, and the most that one does.
        self._by_held: dict[int, dict[str, None]] = {}
        self._most = 0

    def __contains__(self, entry: EntryT) -> bool:
        """Whether it was taken and not dropped."""
        return entry in self._owners

    @property
    def is_full(self) -> bool:
        """Whether somebody has to give way before more is taken."""
        return self.held >= self.room

    def giving_way(self, owner: str) -> EntryT | None:
        """Which entry has to go before this owner takes more of a full table; None: it is refused."""
        held = self._held.get(owner, 0)
        if held + 1 < self._most:
            greediest = next(iter(self._by_held[self._most]))
            loose = self._loose.get(greediest)
            if loose:
                return next(iter(loose))
            if len(self._strange) <= self._most:
                return next(reversed(self._kept[greediest]))
        else:
            loose = self._loose.get(owner)
            if loose:
                return next(iter(loose))
        return next(iter(self._strange), None) if not held or held + 1 < len(self._strange) else None

    def take(self, owner: str, entry: EntryT, *, weight: int = 1, is_loose: bool = False) -> None:
        """This owner holds one more entry, which takes up so much."""
        self._owners[entry] = owner
        (self._loose if is_loose else self._kept).setdefault(owner, {})[entry] = None
        if is_loose:
            self._strange[entry] = None
        if weight > 1:
            self._weights[entry] = weight
        self._change(owner, weight)

    def keep(self, entry: EntryT) -> None:
        """A loose entry is so no more."""
        owner = self._owners[entry]
        self._drop_from(self._loose, owner, entry)
        del self._strange[entry]
        self._kept.setdefault(owner, {})[entry] = None

    def grow(self, entry: EntryT, by: int = 1) -> None:
        """An entry takes up more."""
        self._weights[entry] = self._weights.get(entry, 1) + by
        self._change(self._owners[entry], by)

    def drop(self, entry: EntryT) -> None:
        """An entry is gone, with all that it took up; one that nobody holds is passed over."""
        owner = self._owners.pop(entry, None)
        if owner is None:
            return
        for table in (self._loose, self._kept):
            if entry in table.get(owner, ()):
                self._drop_from(table, owner, entry)
        self._strange.pop(entry, None)
        self._change(owner, -self._weights.pop(entry, 1))

    def _drop_from(self, table: dict[str, _Ordered[EntryT]], owner: str, entry: EntryT) -> None:
        del table[owner][entry]
        if not table[owner]:
            del table[owner]

    def _change(self, owner: str, by: int) -> None:
        before = self._held.pop(owner, 0)
        after = before + by
        self.held += by
        if before:
            same = self._by_held[before]
            del same[owner]
            if not same:
                del self._by_held[before]
        if after:
            self._held[owner] = after
            self._by_held.setdefault(after, {})[owner] = None
        if after > self._most or self._most not in self._by_held:
            self._most = max(self._by_held, default=0)
