"""Where the log of a master got shorter within its masterEpoch, which loses what it had acknowledged.

A log falls only where its broker stops and starts again. So what is told in a later run of the broker is
compared with what was told in an earlier one. Within a run nothing is concluded from the order of frames on
different connections; where one connection tells that the log fell (falls_in_order.py), what became of what
was behind is open.
A place that was given to two messages has lost one of them, whatever the order.
Offsets are bytes of the commit log.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Protocol

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.facts import BY_ID
from replispec.replay.events.rocketmq.falls_in_order import WITNESSES_MIN, Log, fallen_ends, falls_of
from replispec.replay.events.rocketmq.groups import BrokerGroups
from replispec.replay.events.rocketmq.runs import are_different, main_address, message_of
from replispec.runtime.primitives.unknown import UNKNOWN


class InOffice(Protocol):
    """A master of an epoch: its name and how a controller named it, its main address, its first place."""

    master: str
    address: str | None
    order: int
    named_by: str | None


Tenures = Mapping[str, Mapping[int, InOffice]]


def _is_another(office: InOffice, row: Observation) -> bool:
    """True when a row names its broker by an id that is not the master's: addresses pass to other brokers."""
    return office.named_by == BY_ID and row.broker_id is not None and str(row.broker_id) != office.master


def _is_requested_later(row: Observation, before: Observation) -> bool:
    """Whether a message was requested after another one had been acknowledged on the same connection."""
    same = (row.connection, row.direction) == (before.connection, before.direction)
    return same and row.request_order is not None and row.request_order > before.order


@dataclass(slots=True)
class _Told:
    """What one run of a master told of its log.

    `ends`: its own word; `places`: where acknowledged messages begin, each the log's end when it came;
    `again`: one of them was another message's in an earlier run; `most`: how long the log was at least.
    """

    ends: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    again: bool = False
    most: int = -1

    def fallen_to(self, before: int) -> int | None:
        """Up to where the log had been cut when it was `before` bytes long in an earlier run.

        None unless several frames say so, and two of them in the master's own words or one by a place that
        was given twice: places alone are as good as the order of two connections.
        """
        ends = [end for end in self.ends if end < before]
        short = ends + [place for place in self.places if place < before]
        sure = self.again or len(ends) >= WITNESSES_MIN
        return min(short) if sure and len(short) >= WITNESSES_MIN else None


@dataclass(slots=True)
class _Log:
    """The log of one master of one epoch, by run.

    `before`: how long it was before each run; `acknowledged`: where the last message began that had been
    acknowledged by then; `cut_after`: what of it was left at the least in later runs; `least`: in any.
    """

    runs: dict[int, _Told] = field(default_factory=lambda: defaultdict(_Told))
    before: dict[int, int] = field(default_factory=dict)
    acknowledged: dict[int, int] = field(default_factory=dict)
    cut_after: dict[int, int | None] = field(default_factory=dict)
    least: int | None = None

    def compare(self) -> None:
        """Compare every run with those before it; all must have been told."""
        longest, last = -1, -1
        fallen: dict[int, int | None] = {}
        for run in sorted(self.runs):
            if longest >= 0:
                self.before[run] = longest
                self.acknowledged[run] = last
                fallen[run] = self.runs[run].fallen_to(longest)
            longest = max(longest, self.runs[run].most)
            last = max(last, *self.runs[run].places, -1)
        least: int | None = None
        for run in sorted(self.runs, reverse=True):
            self.cut_after[run] = least
            here = fallen.get(run)
            least = here if least is None else least if here is None else min(least, here)
        self.least = least


def _latest_names(rows: Iterable[Observation]) -> Mapping[tuple[str, int], int]:
    """By connection and epoch the place where a controller last named a master of that epoch there."""
    facts = (row for row in rows if row.kind == ObservationKind.FACT and row.master_epoch is not None)
    return {(row.connection, row.master_epoch or 0): row.order for row in facts}


class LogFalls:
    """The logs of masters by group, broker and epoch, as one capture tells them."""

    def __init__(
        self,
        rows: Sequence[Observation],
        groups: BrokerGroups,
        tenures: Tenures,
        starts: Mapping[str, Mapping[int, int]],
        unseen: Mapping[str, int],
        runs: Mapping[str, int | None],
    ) -> None:
        """`rows`: in the order of the capture, with their groups; acknowledged messages with their epochs.
        `starts`: of epochs, by group; `unseen`: by group the latest epoch of which nothing tells it; `runs`:
        those of brokers, by connection, None where nothing tells one."""
        self._groups = groups
        self._tenures = tenures
        self._unseen = unseen
        self._named = _latest_names(rows)
        self._runs = runs
        self._logs: dict[Log, _Log] = defaultdict(_Log)
        self._ends = [(row, key, end) for row in rows for key, end in self._end(row)]
        for row, key, end in self._ends:
            told = self._told(key, row)
            if told is not None:
                told.ends.append(end)
                told.most = max(told.most, end)
        self._fallen = fallen_ends(self._ends, starts)
        self._falls = falls_of(self._ends, self._fallen)
        self._given: dict[tuple[Log, int], list[Observation]] = defaultdict(list)
        # By log, where the last message begins of which nothing tells the run.
        self._undated: dict[Log, int] = {}
        for row in rows:
            if row.kind == ObservationKind.ACKNOWLEDGED:
                self._take(row)
        for log in self._logs.values():
            log.compare()

    def ends(self) -> Iterator[SimpleNamespace]:
        """The events of the stream `logs`."""
        for place, (row, key, end) in enumerate(self._ends):
            group, broker, epoch = key
            log, run = self._logs[key], self._run(row)
            yield SimpleNamespace(
                row=row,
                group=group,
                epoch=epoch,
                broker=broker,
                end=end,
                before=self._before(key, run, end),
                acknowledged=-1 if run is None else log.acknowledged.get(run, -1),
                fell_from=self._fell_from(place),
            )

    def _before(self, key: Log, run: int | None, end: int) -> Any:
        """How long the log was in earlier runs; UNKNOWN where what lay behind `end` may have been in one."""
        before = None if run is None else self._logs[key].before.get(run)
        is_open = before is not None and before <= end < self._undated.get(key, -1) + 1
        return UNKNOWN if is_open else before

    def _fell_from(self, place: int) -> Any:
        row, (group, broker, epoch), _ = self._ends[place]
        if place not in self._fallen:
            return None
        proven = self._falls[group, broker, epoch][row.connection].proven
        # A heartbeat is no word of a master as such: one that was deposed meanwhile cut its log by right.
        is_master = (
            row.kind == ObservationKind.ANSWER or self._named.get((row.connection, epoch), -1) > row.order
        )
        knows = self._unseen.get(str(group), -1) <= epoch
        return self._fallen[place] if proven and is_master and knows else UNKNOWN

    def cut_to(self, row: Observation) -> Any:
        """Where the log ended in a later run that did not hold an acknowledged message any more, or None;
        UNKNOWN when nothing tells whether that run was later."""
        left, is_later = self.left_of(row)
        if left is not None and row.offset is not None and left <= row.offset:
            return left if is_later else UNKNOWN
        between = self.fallen_between(row)
        is_open = between is not None and row.offset is not None and between[0] <= row.offset < between[1]
        return UNKNOWN if is_open else None

    def fallen_between(self, row: Observation) -> tuple[int, int] | None:
        """Between which places the log of an acknowledged message fell within connections that were not in
        an earlier run than the message; which messages were acknowledged before that fall nothing tells."""
        key, own = self._key(row), self._run(row)
        if key is None:
            return None
        told = ((self._runs.get(name, 0), fall.ends) for name, fall in self._falls.get(key, {}).items())
        ends = [each for run, each in told if own is None or run is None or own <= run]
        return (min(least for least, _ in ends), max(most for _, most in ends)) if ends else None

    def left_of(self, row: Observation) -> tuple[int | None, bool]:
        """How long the log of an acknowledged message was at the least in a later run, if one cut it; when
        nothing tells the own run of the message (False), in any run."""
        key, run = self._key(row), self._run(row)
        if key is None:
            return None, True
        log = self._logs[key]
        return (log.least, False) if run is None else (log.cut_after[run], True)

    def is_given_again(self, row: Observation) -> bool:
        """Whether the same broker acknowledged another message at the same place in the same epoch, and kept
        that: one message keeps a place, the latest of those that are not known to have been cut off.
        """
        key = self._key(row)
        if key is None or row.offset is None:
            return False
        given = self._given[key, row.offset]
        if len(given) < 2:
            return False
        kept = max(given, key=self._last)
        return kept is not row and are_different(message_of(row), message_of(kept))

    def may_be_kept(self, row: Observation) -> bool:
        """Whether a message whose place was given again may be the one that is there: no cause tells that
        another one was stored there later, and only the order of connections in the capture says so."""
        key = self._key(row)
        return key is None or not any(
            self._is_before(row, self._run(each)) or _is_requested_later(each, row)
            for each in self._given[key, row.offset or 0]
            if are_different(message_of(row), message_of(each))
        )

    def begun_again(self) -> set[str | None]:
        """The groups in whose logs the very first place was given to two messages."""
        given = ((key[0], own) for (key, place), own in self._given.items() if place == 0)
        return {
            group
            for group, own in given
            if any(are_different(message_of(own[0]), message_of(each)) for each in own[1:])
        }

    def _last(self, row: Observation) -> tuple[bool, int, int]:
        run, cut = self._run(row), self.cut_to(row)
        return cut is None or cut is UNKNOWN, -1 if run is None else run, row.order

    def _take(self, row: Observation) -> None:
        key = self._key(row)
        if key is None or row.offset is None:
            return
        told, given, run = self._told(key, row), self._given[key, row.offset], self._run(row)
        if told is not None:
            told.places.append(row.offset)
            told.most = max(told.most, row.offset + 1)
            for before in given[-1:]:
                told.again |= self._is_before(before, run) and are_different(
                    message_of(before), message_of(row)
                )
        else:
            self._undated[key] = max(row.offset, self._undated.get(key, -1))
        given.append(row)

    def _is_before(self, row: Observation, run: int | None) -> bool:
        own = self._run(row)
        return own is not None and run is not None and own < run

    def _told(self, key: Log, row: Observation) -> _Told | None:
        run = self._run(row)
        return None if run is None else self._logs[key].runs[run]

    def _run(self, row: Observation) -> int | None:
        return self._runs.get(row.connection, 0)

    def _end(self, row: Observation) -> Iterator[tuple[Log, int]]:
        """Whose log ends where, when the row is the word of the master of an epoch about its own log."""
        epoch = row.epoch
        if row.kind == ObservationKind.ANSWER and row.epochs:
            epoch = row.epochs[-1]["epoch"]
        elif row.kind != ObservationKind.ALIVE:
            return
        broker = main_address(self._groups, row)
        if row.group is None or broker is None or epoch is None or row.max_offset is None:
            return
        tenures = self._tenures.get(row.group, {})
        if epoch in tenures and _is_another(tenures[epoch], row):
            return
        deposed = min((each.order for other, each in tenures.items() if other > epoch), default=None)
        master = tenures[epoch].address if epoch in tenures else None
        if master is None or self._groups.identities.broker(row.group, master) != broker:
            return
        if deposed is None or row.order < deposed:
            yield (row.group, broker, epoch), row.max_offset

    def _key(self, row: Observation) -> Log | None:
        """Whose log holds an acknowledged message; None when its epoch is not known."""
        broker = main_address(self._groups, row)
        if row.epoch is None or broker is None or row.offset is None:
            return None
        return row.group, broker, row.epoch
