"""The order of the frames of one connection that has more of them than a process should hold.

What `delivery.delivered` tells of whole connections at once, told window by window. Each of its steps is a
running maximum, forwards or backwards, or a search in numbers that ascend: so few numbers go from one window
to the next, and everything else lies in files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from replispec.replay.capture.long_columns import LongColumn, LongColumns
from replispec.replay.capture.long_texts import LongTexts
from replispec.replay.pairing.delivery import FAR, Delivered, Integers, begun_at, positions_told

SIDES = (0, 1)
WINDOW = 1 << 16
"""So many frames are looked at at a time."""
PLACES = ("sequence", "size", "time_ns", "record_offset", "acknowledged")
_UNKNOWN = -1


def columns_of(numbers: Iterable[str], texts: Iterable[str]) -> tuple[str, ...]:
    """The columns of FRAMES that a LongConnection takes which has these besides PLACES."""
    return "direction", "index", *PLACES, *numbers, *texts


@dataclass(frozen=True, slots=True)
class Ends:
    """The ends of a connection: which direction `accepted` it, and the numbers at which directions begin."""

    accepted: int
    first_numbers: tuple[int, int]

    @classmethod
    def of(cls, connection: str, streams: pa.Table) -> Ends:
        """As STREAMS tell them."""
        numbers, accepting = begun_at(pa.array([connection]), streams)
        assert accepting.sum() == 1, "one end of a connection that was seen accepted it"
        return cls(int(np.argmax(accepting)), (int(numbers[0]), int(numbers[1])))


class LongConnection:
    """All frames of one connection, in the order of their delivery.

    `numbers`: the columns of numbers that they have besides PLACES, with their kinds, `texts` those of texts.
    """

    def __init__(
        self,
        capture: str,
        connection: str,
        store: LongColumns,
        numbers: Mapping[str, npt.DTypeLike],
        texts: Sequence[str],
    ) -> None:
        self.capture = capture
        self.connection = connection
        self._store = store
        kinds = {**dict.fromkeys(PLACES, np.int64), **numbers}
        self._columns = [
            {name: store.column(f"{side}-{name}", kind) for name, kind in kinds.items()} for side in SIDES
        ]
        self._texts = [{name: LongTexts(store, f"{side}-{name}") for name in texts} for side in SIDES]
        self._received: tuple[LongColumn, LongColumn]
        self._places: tuple[LongColumn, LongColumn]
        self._order: LongColumn

    def __len__(self) -> int:
        return sum(map(self.count, SIDES))

    def count(self, side: int) -> int:
        """How many frames a direction has."""
        return len(self._columns[side]["sequence"])

    def column(self, side: int, name: str) -> LongColumn:
        """A column of a direction, by the indexes of its frames."""
        return self._columns[side][name]

    def end(self, side: int) -> int:
        """Where the last frame of a direction ends; 0 without one."""
        last = np.array([self.count(side) - 1])
        if last[0] < 0:
            return 0
        return int((self.column(side, "sequence").at(last) + self.column(side, "size").at(last))[0])

    def time_before(self, side: int, position: int) -> int | None:
        """When the last frame of a direction that begins before a position was complete; None without one."""
        at = self.column(side, "sequence").rank(np.array([position])) - 1
        return int(self.column(side, "time_ns").at(at)[0]) if at[0] >= 0 else None

    def take(self, frames: pa.Table) -> None:
        """Some of its frames (rows of FRAMES, some columns); all are taken once, in any order."""
        sides, index = (np.asarray(frames.column(name)).astype(np.int64) for name in ("direction", "index"))
        for side in SIDES:
            rows = np.flatnonzero(sides == side)
            rows = rows[np.argsort(index[rows], kind="stable")]
            own = frames.take(pa.array(rows))
            for name, column in self._columns[side].items():
                column.spread(index[rows], np.asarray(own.column(name)))
            for name, texts in self._texts[side].items():
                texts.write(index[rows], own.column(name))

    def deliver(self, ends: Ends) -> None:
        """Find the order, when all frames were taken."""
        raised = [self._raised(side) for side in SIDES]
        first, second = (self._told(side, raised, ends.first_numbers[side ^ 1]) for side in SIDES)
        self._received = first[0], second[0]
        self._sure = first[1], second[1]
        self._places = self._placed(ends.accepted)
        self._order = self._store.column("order")
        latest = np.zeros(0, np.int64)
        for places in windows(len(self)):
            direction, index = self._frames_at(places)
            arrivals = self._gathered("record_offset", direction, index) - places
            latest = running(arrivals, latest)
            self._order.write(int(places[0]), latest + places)

    def at(self, places: Integers, names: Sequence[str]) -> Delivered:
        """The frames at some places of the order, with some columns and the index."""
        direction, index = self._frames_at(places)
        table = pa.table(
            {
                "capture": pa.repeat(self.capture, len(places)),
                "index": pa.array(index, pa.int32()),
                **{name: self._gathered(name, direction, index) for name in names},
            }
        )
        received, sure = np.empty(len(places), np.int64), np.empty(len(places), np.bool_)
        for side in SIDES:
            own = direction == side
            received[own] = self._received[side].at(index[own])
            sure[own] = self._sure[side].at(index[own]) != 0
        rows, nothing = np.arange(len(places)), np.zeros(len(places), np.int64)
        order = self._order.at(places)
        return Delivered(table, rows, (self.connection,), nothing, direction, index, order, received, sure)

    def texts(self, places: Integers, name: str) -> list[str]:
        """The texts of the frames at some places of the order, empty for none."""
        direction, index = self._frames_at(places)
        found = zip(direction.tolist(), index.tolist(), strict=True)
        return [text for side, at in found for text in self._texts[side][name].at(np.array([at]))]

    def _gathered(self, name: str, direction: Integers, index: Integers) -> Integers:
        found = np.empty(len(index), np.int64)
        for side in SIDES:
            own = direction == side
            found[own] = self._columns[side][name].at(index[own])
        return found

    def _frames_at(self, places: Integers) -> tuple[Integers, Integers]:
        """The direction and the index of the frame at each place."""
        before = self._places[0].rank(places)
        first = before < self.count(0)
        first[first] = self._places[0].at(before[first]) == places[first]
        return np.where(first, 0, 1), np.where(first, before, places - before)

    def _raised(self, side: int) -> LongColumn:
        """By when everything up to each frame had arrived here."""
        found = self._store.column(f"{side}-raised")
        last = np.zeros(0, np.int64)
        for at in windows(self.count(side)):
            last = running(self._of(side, "record_offset", at), last)
            found.write(int(at[0]), last)
        return found

    def _of(self, side: int, name: str, at: Integers) -> Integers:
        return self._columns[side][name].read(int(at[0]), int(at[-1]) + 1)

    def _told(
        self, side: int, raised: Sequence[LongColumn], first_number: int
    ) -> tuple[LongColumn, LongColumn]:
        """How many frames of the peer the sender of each frame had received, and whether acknowledgments tell
        it, by the steps of `delivered`."""
        ends = self._ends(side ^ 1)
        arrived, upto = self._mentioned(side, raised, ends, first_number)
        firm, least = self._firm(side, upto)
        believed, low = self._believed(side, ends, upto, firm, least)
        inside = self._store.column(f"{side}-inside")
        sure = self._store.column(f"{side}-sure", np.int8)
        above = np.zeros(0, np.int64)
        for at in windows(self.count(side), backwards=True):
            told = _read(believed, at)
            above = -running(np.where(told >= 0, -told, -FAR)[::-1], -above)
            least_told, most_told = _read(low, at), ends.rank(above[::-1], "right")
            found = np.clip(_read(arrived, at), least_told, most_told)
            sure.write(int(at[0]), (least_told >= most_told) & (above[::-1] < FAR))
            inside.write(int(at[0]), np.clip(found, 0, len(ends)))
        received = self._store.column(f"{side}-received")
        last = np.zeros(0, np.int64)
        for at in windows(self.count(side)):
            last = running(_read(inside, at), last)
            received.write(int(at[0]), last)
        return received, sure

    def _mentioned(
        self, side: int, raised: Sequence[LongColumn], ends: LongColumn, first_number: int
    ) -> tuple[LongColumn, LongColumn]:
        """How many frames of the peer had arrived here before each, and up to where it acknowledges them."""
        arrived, upto = (self._store.column(f"{side}-{name}") for name in ("arrived", "upto"))
        for at in windows(self.count(side)):
            count = raised[side ^ 1].rank(_read(raised[side], at))
            position = np.zeros(len(at), np.int64)
            position[count > 0] = ends.at(count[count > 0] - 1)
            told, known = positions_told(self._of(side, "acknowledged", at), first_number, position)
            arrived.write(int(at[0]), count)
            upto.write(int(at[0]), np.where(known, told, _UNKNOWN))
        return arrived, upto

    def _firm(self, side: int, upto: LongColumn) -> tuple[LongColumn, LongColumn]:
        """Which numbers came in order, and the least of them from each frame on."""
        firm = self._store.column(f"{side}-firm", np.int8)
        least = self._store.column(f"{side}-least")
        packet, below = np.zeros(0, np.int64), np.zeros(0, np.int64)
        for at in windows(self.count(side), backwards=True):
            packets, told = self._of(side, "record_offset", at), _read(upto, at)
            packet = -running(np.where(told >= 0, -packets, -FAR)[::-1], -packet)
            is_firm = (told >= 0) & (packets <= packet[::-1])
            below = -running(np.where(is_firm, -told, -FAR)[::-1], -below)
            firm.write(int(at[0]), is_firm)
            least.write(int(at[0]), below[::-1])
        return firm, least

    def _believed(
        self, side: int, ends: LongColumn, upto: LongColumn, firm: LongColumn, least: LongColumn
    ) -> tuple[LongColumn, LongColumn]:
        """The numbers that do not fall, and how many frames were received by them at least."""
        believed, low = (self._store.column(f"{side}-{name}") for name in ("believed", "low"))
        most, above = np.zeros(0, np.int64), np.zeros(0, np.int64)
        for at in windows(self.count(side)):
            told = _read(upto, at)
            most = running(np.where(_read(firm, at) != 0, told, -FAR), most)
            known = (told >= most) & (told <= _read(least, at)) & (told >= 0)
            above = running(np.where(known, told, -FAR), above)
            believed.write(int(at[0]), np.where(known, told, _UNKNOWN))
            low.write(int(at[0]), ends.rank(above, "right"))
        return believed, low

    def _placed(self, accepted: int) -> tuple[LongColumn, LongColumn]:
        """The place of each frame, by directions: who accepted sent each behind all that it had received."""
        places = self._store.column("0-place"), self._store.column("1-place")
        for side in SIDES:
            for at in windows(self.count(side)):
                if side == accepted:
                    before = _read(self._received[side], at)
                else:
                    before = self._received[accepted].rank(at, "right")
                places[side].write(int(at[0]), at + before)
        return places

    def _ends(self, side: int) -> LongColumn:
        found = self._store.column(f"{side}-ends")
        if not len(found):
            for at in windows(self.count(side)):
                found.write(int(at[0]), self._of(side, "sequence", at) + self._of(side, "size", at))
        return found


def windows(count: int, *, backwards: bool = False) -> Iterator[Integers]:
    """The numbers up to a count, so many at a time."""
    begins = range(0, count, WINDOW)
    for first in reversed(begins) if backwards else begins:
        yield np.arange(first, min(count, first + WINDOW))


def running(values: Integers, before: Integers) -> Integers:
    """The greatest value so far; `before`: what it was in the window before."""
    last = before[-1:]
    found: Integers = np.maximum.accumulate(np.concatenate([last, values]))
    return found[len(last) :]


def _read(column: LongColumn, at: Integers) -> Integers:
    return column.read(int(at[0]), int(at[-1]) + 1)
