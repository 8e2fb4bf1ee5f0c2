"""What headers and handshakes tell of the starts of epochs, and which of it is believed.

Offsets are bytes of the commit log.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.earlier_ends import NOTHING_SAID, EarlierEnds

# Epochs of one connection that are remembered: no handshake answer tells more.
EPOCHS_MAX = 1_000
# Histories that end with one epoch and differ, which are told apart.
HISTORIES_MAX = 64
# Frames that must agree where one of them alone would move the border of an epoch.
WITNESSES_MIN = 2
_HEADERS = (ObservationKind.BATCH, ObservationKind.HEARTBEAT)
_LISTS = (ObservationKind.ANSWER, ObservationKind.EPOCHS)


def knows_epoch(row: Observation) -> bool:
    """False for the heartbeat of a master that has no data yet: its offsets are below 0."""
    return row.epoch is not None and (row.offset or 0) >= 0 and (row.epoch_start_offset or 0) >= 0


@dataclass(slots=True)
class ToldStarts:
    """The starts of epochs that one connection has told: each epoch's first one that fits the others."""

    starts: dict[int, int] = field(default_factory=dict)

    def answered(self, row: Observation) -> None:
        """A handshake answer tells the master's whole history."""
        if row.epochs:
            self.starts = {entry["epoch"]: entry["start_offset"] for entry in row.epochs}

    def header(self, row: Observation) -> dict[str, int | None]:
        """What was told before, as attributes of a batch; then learn from its header if that fits."""
        epoch, start, offset = row.epoch or 0, row.epoch_start_offset or 0, row.offset or 0
        lower = max((at for each, at in self.starts.items() if each < epoch), default=None)
        upper = min((at for each, at in self.starts.items() if each > epoch), default=None)
        told = {
            "epoch_at_offset": max((each for each, at in self.starts.items() if at <= offset), default=None),
            "start_before": self.starts.get(epoch),
            "lower_start": lower,
            "upper_start": upper,
        }
        fits = (lower is None or lower < start) and (upper is None or start < upper)
        if knows_epoch(row) and fits and len(self.starts) < EPOCHS_MAX:
            self.starts.setdefault(epoch, start)
        return told


def epochs_taken_back(rows: Iterable[Observation]) -> set[tuple[str | None, int]]:
    """The masterEpochs of groups that one answer alone names, and another one on its connection takes back.

    That is a later answer on the same connection with a smaller epoch: one of them is false.
    """
    named: Counter[tuple[str | None, int]] = Counter()
    latest: dict[tuple[str, int, str | None], int] = {}
    fallen: set[tuple[str | None, int]] = set()
    for row in rows:
        if row.kind != ObservationKind.FACT or row.master_epoch is None:
            continue
        stream = (row.connection, row.direction, row.group)
        named[row.group, row.master_epoch] += 1
        before = latest.get(stream, row.master_epoch)
        if row.master_epoch < before:
            fallen |= {(row.group, before), (row.group, row.master_epoch)}
        latest[stream] = row.master_epoch
    return {each for each in fallen if named[each] < WITNESSES_MIN}


class Witnesses:
    """Who told which start of the epochs of one group."""

    def __init__(self) -> None:
        self._told: dict[int, Counter[int]] = defaultdict(Counter)
        self._listed: dict[int, set[int]] = defaultdict(set)
        self._histories: dict[int, int] = {}
        self._lists: dict[int, set[frozenset[int]]] = defaultdict(set)
        self._resumed: dict[int, set[str]] = defaultdict(set)
        self._earlier: Mapping[int, EarlierEnds] = {}

    def hear(self, row: Observation) -> None:
        """Take a row of the group that tells starts; others tell none."""
        if row.kind in _LISTS:
            for entry in row.epochs or ():
                self._told[entry["epoch"]][entry["start_offset"]] += 1
                self._listed[entry["epoch"]].add(entry["start_offset"])
            if row.epochs:
                first, last = row.epochs[0]["epoch"], row.epochs[-1]["epoch"]
                self._histories[last] = min(first, self._histories.get(last, first))
                if len(self._lists[last]) < HISTORIES_MAX:
                    self._lists[last].add(frozenset(entry["epoch"] for entry in row.epochs))
        elif row.kind in _HEADERS and knows_epoch(row):
            assert row.epoch is not None
            assert row.epoch_start_offset is not None
            self._told[row.epoch][row.epoch_start_offset] += 1

    def registered(self, row: Observation) -> bool:
        """Take the answer to a registration; whether it tells the broker that it is the master: then that has
        started again within its epoch."""
        if row.master_epoch is None or row.requester != row.master:
            return False
        self._resumed[row.master_epoch].add(row.connection)
        return True

    def earlier(self, ends: Mapping[int, EarlierEnds]) -> None:
        """What the master of each epoch had said of its log before its office."""
        self._earlier = ends

    def epochs(self) -> Collection[int]:
        """All epochs that somebody told."""
        return frozenset(self._told)

    def moved(self) -> Mapping[int, int]:
        """Epochs of which none of the starts that were told need be the first one, each with the least: it is
        the latest place where the epoch may start.

        A master that starts again tells its epoch from the end of its log on, and bytes of it that lie before
        are called by the epoch before. So it may be where the master started again so often as starts were
        told, or where its log was shorter when it last reported it to the master before; but not where the
        start is an end of its log that it told before its office.
        """
        return {epoch: min(told) for epoch, told in self._told.items() if self._is_moved(epoch, min(told))}

    def _is_moved(self, epoch: int, start: int) -> bool:
        ends = self._earlier.get(epoch, NOTHING_SAID)
        if start in ends.said:
            return False
        if ends.reported is not None and ends.reported < start:
            return True
        return len(self._told[epoch]) <= len(self._resumed.get(epoch, ()))

    def left_out(self, named: Collection[int]) -> Collection[int]:
        """The epochs that had a master, and of which the history of some later log has nothing."""
        found = set()
        for last, histories in self._lists.items():
            for epoch in named:
                between = [each for each in histories if min(each) < epoch < last]
                if between and not any(epoch in each for each in between):
                    found.add(epoch)
        return found

    def believed(self, named: Collection[int]) -> Mapping[int, int]:
        """The start of each epoch; of several the smallest: a master that starts again tells a later one.

        Where starts of an epoch differ, one frame alone is not believed, and a header alone never about an
        epoch that no controller knows (`named`): a damaged or false one moves no border. But a history that
        one answer alone tells takes belief from the larger starts: it may be the one before the master began
        again. Of `moved` epochs no start is believed.
        """
        starts: dict[int, int] = {}
        moved = self.moved()
        for epoch, told in self._told.items():
            if epoch in moved:
                continue
            if len(told) == 1 and (epoch in named or epoch in self._listed):
                starts[epoch] = next(iter(told))
            sure = [start for start, count in told.items() if count >= WITNESSES_MIN]
            if sure and min(sure) <= min(self._listed.get(epoch, sure)):
                starts[epoch] = min(sure)
        return starts

    def unseen(self, named: Collection[int]) -> int:
        """The latest masterEpoch of which nothing tells where it starts; -1 when there is none.

        Every epoch up to the latest one had a master, as controllers count by one. What the history of a log
        with the latest epoch leaves out wrote nothing that is in that log. `named`: epochs that had a master.
        """
        known, moved = self.believed(named), self.moved()
        every = sorted({*known, *named}, reverse=True)
        if not every:
            return -1
        first = self._histories.get(every[0])
        expected = every[0]
        for epoch in every:
            if epoch < expected and (first is None or expected < first):
                return expected
            if epoch not in known and (first is None or epoch < first or epoch in moved):
                return epoch
            expected = epoch - 1
        return -1
