"""Under which masterEpoch a master told a producer that a message is stored.

The answer does not say. What is known of it is what was told before and behind it: nothing of an epoch lies
before its start, and who spoke of the present epoch says that no later one had begun. A broker may also have
been master in an epoch of which nobody names the master, or in one that the capture does not show at all:
its answer has an epoch only where what was told on both sides leaves no other one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any, Final

import numpy as np

from replispec.replay.events.event_tables import Numbers
from replispec.replay.events.observation import Observation
from replispec.runtime.primitives.unknown import UNKNOWN

NO_EPOCH: Final = -1
NEVER: Final = 2**63 - 1


@dataclass(slots=True)
class Tenure:
    """One master in one epoch: its name, its main address, and when the capture first told it.

    `time_ns` is shown, and judges nothing; `named_by`: how a controller named it, as in the facts; None when
    only the master's own words tell its address.
    """

    master: str
    address: str | None
    order: int
    time_ns: int
    named_by: str | None = None

    def name(self, named_by: str | None) -> Any:
        """The master as a controller names it in this way; UNKNOWN when none was heard to: an id and an
        address of one broker are not the same text."""
        return self.master if named_by is not None and named_by == self.named_by else UNKNOWN


@dataclass(frozen=True, slots=True)
class Present:
    """Somebody spoke of the present masterEpoch of a group: where, and which one.

    `speaker`: the main address of the broker that says it of itself, None where it holds for all.
    `log_end`: how long the log of this master was by then, where it says so.
    """

    order: int
    epoch: int
    speaker: str | None = None
    log_end: int | None = None


class _Line:
    """Epochs that were told at places of a line: the largest up to a place, the least from one on."""

    def __init__(self, told: Iterable[tuple[int, int]]) -> None:
        every = sorted(told)
        self._places = [place for place, _ in every]
        epochs = [epoch for _, epoch in every]
        self._before = [NO_EPOCH, *accumulate(epochs, max)]
        self._behind = [*accumulate(reversed(epochs), min, initial=NEVER)][::-1]

    def before(self, place: int) -> int:
        return self._before[bisect_left(self._places, place)]

    def behind(self, place: int) -> int:
        return self._behind[bisect_right(self._places, place)]

    def borders(self) -> list[int]:
        """The places at which an answer may change."""
        each = enumerate(zip(pairwise(self._before), pairwise(self._behind), strict=True))
        return [self._places[at] for at, changes in each if any(one != other for one, other in changes)]


@dataclass(frozen=True, slots=True)
class _Said:
    """What was told that bears on the brokers that were at one address.

    `addresses`: all of theirs; by places in the capture, and by epoch how long their logs were at least;
    `unnamed`: the first and the last epoch of each stretch that may have been theirs, as nobody is known to
    have had them, and before where they cannot start; `places`: of all messages that they acknowledged,
    ascending, None where some of that was not seen.
    """

    addresses: Collection[str | None]
    by_order: _Line
    log_ends: Mapping[int, int]
    unnamed: Sequence[tuple[int, int, int]]
    places: Numbers | None


@dataclass(slots=True)
class Offices:
    """What a capture tells of the masters of one group.

    `tenures`: who was master of which epoch; `claims`: by epoch the main address of the broker that calls it
    its own, beside them; `starts`: where epochs start in the log; `epochs`: all that anybody names; `others`:
    the addresses that may be those of the broker at one, that one included; `acknowledged`: the places of
    messages by the address that acknowledged them; `torn`: addresses of which some of that was not seen.
    """

    tenures: Mapping[int, Tenure] = field(default_factory=dict)
    claims: Mapping[int, str] = field(default_factory=dict)
    starts: Mapping[int, int] = field(default_factory=dict)
    epochs: Collection[int] = ()
    present: Sequence[Present] = ()
    others: Callable[[str | None], Collection[str | None]] = lambda address: (address,)
    acknowledged: Mapping[str | None, Numbers] = field(default_factory=dict)
    torn: Collection[str | None] = ()
    _said: dict[str | None, _Said] = field(default_factory=dict)

    def epoch_of(self, row: Observation) -> Any:
        """The epoch of an acknowledged message; None when no fact names the broker master, UNKNOWN when it
        may have been told in one of several epochs."""
        said = self._said_to(row.address)
        own = {epoch for epoch, tenure in self.tenures.items() if tenure.address in said.addresses}
        place = row.offset or 0
        possible = {epoch for epoch in own if self.starts.get(epoch, 0) <= place} or own
        if not possible:
            return None
        left = {*self._in_the_log(said, possible)}
        if len(left) > 1 or _may_be_of_another(said, row.order, place, min(left)):
            return UNKNOWN
        return min(left)

    def hear(self, acknowledged: Mapping[str | None, Numbers], torn: Collection[str | None]) -> None:
        """Where messages were acknowledged, and where some of that was not seen; as the attributes."""
        self.acknowledged, self.torn = acknowledged, torn
        self._said.clear()

    def borders(self, address: str | None) -> dict[str, list[int]]:
        """Where the epoch of a broker's messages may change, by what is asked of them; what was acknowledged
        where moves none of these."""
        said = self._said_to(address)
        return {
            "order": said.by_order.borders(),
            "offset": [*self.starts.values(), *said.log_ends.values()],
        }

    def _said_to(self, address: str | None) -> _Said:
        if address not in self._said:
            addresses = self.others(address)
            own = [each for each in self.present if each.speaker is None or each.speaker in addresses]
            log_ends: dict[int, int] = {}
            for each in own:
                if each.log_end is not None:
                    log_ends[each.epoch] = max(each.log_end, log_ends.get(each.epoch, 0))
            self._said[address] = _Said(
                addresses,
                _Line((each.order, each.epoch) for each in own),
                log_ends,
                [*self._unnamed(addresses)],
                self._places_of(addresses),
            )
        return self._said[address]

    def _places_of(self, addresses: Collection[str | None]) -> Numbers | None:
        if not set(addresses).isdisjoint(self.torn):
            return None
        nothing = np.zeros(0, np.int64)
        return np.sort(
            np.concatenate([nothing, *(self.acknowledged.get(each, nothing) for each in addresses)])
        )

    def _in_the_log(self, said: _Said, possible: Collection[int]) -> Iterator[int]:
        """Of several offices of a broker the last one, and those before it in which it may have gone on
        writing behind the start of the next epoch.

        Who did so has acknowledged messages from that start on, or stored some that nobody was acknowledged.
        Only where the later office is acknowledged without a gap from its very start on, and nothing lies
        between the two starts, the earlier one is taken to have ended.
        """
        own = sorted(possible)
        for epoch, later in pairwise(own):
            cut = min((at for each, at in self.starts.items() if each > epoch), default=None)
            again = self.starts.get(later)
            if _may_have_written(said.places, cut, again):
                yield epoch
        yield own[-1]

    def _unnamed(self, addresses: Collection[str | None]) -> Iterator[tuple[int, int, int]]:
        """The stretches of epochs as `_Said` has them; controllers count epochs by one."""
        known = sorted({*self.epochs, *self.tenures})
        start, before = 0, 0
        for epoch in known:
            if epoch - before > 1:
                yield before + 1, epoch - 1, start
            start, before = max(start, self.starts.get(epoch, 0)), epoch
            if epoch not in self.tenures and (epoch not in self.claims or self.claims[epoch] in addresses):
                yield epoch, epoch, start
        last = self.tenures.get(known[-1]) if known else None
        if last is not None and last.address not in addresses:
            yield known[-1] + 1, NEVER, start


def _may_have_written(places: Numbers | None, cut: int | None, again: int | None) -> bool:
    """False when all acknowledged places are known, none of them lies between these two, and the least behind
    is where the later office starts."""
    if places is None or cut is None or again is None or cut >= again:
        return True
    first, behind = np.searchsorted(places, np.array([cut, again])).tolist()
    return bool(first < behind or (behind < len(places) and places[behind] != again))


def _may_be_of_another(said: _Said, order: int, place: int, epoch: int) -> bool:
    """True when a broker may have answered in an epoch of which nobody is known to have been master.

    Not in an earlier one when its own one was told before, not in a later one when an earlier one was told
    behind, or when its log is known to have held the place in its own one.
    """
    before, behind = said.by_order.before(order), said.by_order.behind(order)
    reached = said.log_ends.get(epoch, 0) > place
    return any(
        (before < epoch) if last < epoch else (first <= behind and not reached)
        for first, last, start in said.unnamed
        if start <= place
    )
