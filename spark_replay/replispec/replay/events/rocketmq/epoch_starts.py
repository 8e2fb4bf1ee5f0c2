"""What headers and handshakes tell of the starts of epochs, and which of it is believed.

Offsets are bytes of the commit log.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from replispec.replay.events.observation import Observation, ObservationKind

# Headers that must agree where one of them alone would move the border of an epoch.
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
        assert row.epoch is not None
        assert row.epoch_start_offset is not None
        epoch, start, offset = row.epoch, row.epoch_start_offset, row.offset or 0
        lower = max((at for each, at in self.starts.items() if each < epoch), default=None)
        upper = min((at for each, at in self.starts.items() if each > epoch), default=None)
        told = {
            "epoch_at_offset": max((each for each, at in self.starts.items() if at <= offset), default=None),
            "start_before": self.starts.get(epoch),
            "lower_start": lower,
            "upper_start": upper,
        }
        if (lower is None or lower < start) and (upper is None or start < upper):
            self.starts.setdefault(epoch, start)
        return told


class Witnesses:
    """Who told which start of the epochs of one group."""

    def __init__(self) -> None:
        self._told: dict[int, Counter[int]] = defaultdict(Counter)
        self._listed: set[tuple[int, int]] = set()

    def hear(self, row: Observation) -> None:
        """Take a row of the group that tells starts; others tell none."""
        if row.kind in _LISTS:
            for entry in row.epochs or ():
                self._told[entry["epoch"]][entry["start_offset"]] += 1
                self._listed.add((entry["epoch"], entry["start_offset"]))
        elif row.kind in _HEADERS and knows_epoch(row):
            assert row.epoch is not None
            assert row.epoch_start_offset is not None
            self._told[row.epoch][row.epoch_start_offset] += 1

    def believed(self, named: Collection[int]) -> Mapping[int, int]:
        """The start of each epoch; of several the smallest: a master that starts again tells a later one.

        A start that only one header tells is believed when no other start is told, and a controller knows
        the epoch (`named`): one damaged or false header moves no border.
        """
        starts: dict[int, int] = {}
        for epoch, told in self._told.items():
            sure = [
                start
                for start, count in told.items()
                if count >= WITNESSES_MIN or (epoch, start) in self._listed
            ]
            if sure:
                starts[epoch] = min(sure)
            elif epoch in named and len(told) == 1:
                starts[epoch] = next(iter(told))
        return starts
