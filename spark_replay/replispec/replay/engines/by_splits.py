"""A capture decoded split by split and stitched: the steps of the distributed engine, as plain functions.

`decode_by_splits` runs them all in this process; it gives the same rows as `local.decode_capture`
for any size of the splits.
"""

from __future__ import annotations

import mmap
import pickle
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from replispec.replay.capture.files import map_split, walk
from replispec.replay.capture.records import CaptureBytes, Integers, JoinedBytes, Records, Split
from replispec.replay.engines.decoding import BATCH_FRAMES, DecodedCapture, remarked, without_collector
from replispec.replay.engines.split import CHAINED_FRAMES, FlowPart, decode_split
from replispec.replay.engines.stitch import stitch_flow
from replispec.replay.frames.family import decoded_kinds
from replispec.replay.frames.framing import Decoded
from replispec.replay.frames.hints import Hints
from replispec.replay.frames.tables import (
    FRAMES,
    FRAMES_ORDER,
    HOLES,
    STREAMS,
    frames_batch,
    holes_table,
    streams_table,
)
from replispec.replay.tcp.doubts import Outlines, doubtful_of_parts, outlines
from replispec.replay.tcp.flows import FlowKey, Grouped, Incarnation, group
from replispec.replay.tcp.ground import Ground, kept_packets, lay_ground, standing, survey, wire
from replispec.replay.tcp.packets import Packets, read_packets
from replispec.replay.tcp.rotation import Source, open_rotation
from replispec.replay.tcp.sides import parts_of_connections
from replispec.replay.tcp.turns import Turns, TurnsOfParts

# Where each chain that was used stands: its frames get this connection, this start (added to their
# `sequence`), this first index and this `from_start`. Chains that are not named here are void.
PLACEMENTS: pa.Schema = pa.schema(
    [
        pa.field("split", pa.int32()),
        pa.field("chain", pa.int32()),
        pa.field("connection", pa.string()),
        pa.field("start", pa.int64()),
        pa.field("first_index", pa.int32()),
        pa.field("from_start", pa.bool_()),
    ]
)
SPLITS_KEPT = 8


class SplitReader:
    """Reads the packets of splits, and single flows of them again; what the last few splits hold is kept.

    `grounds`: by number of the capture; `turns`: by number of the split; `kept`: the folder that has the
    packets of each split, and its turns.
    """

    def __init__(
        self,
        splits: Mapping[int, Split],
        grounds: Mapping[int, Ground],
        turns: Mapping[int, Turns] | None = None,
        kept: Path | None = None,
    ) -> None:
        self._splits = splits
        self._grounds = grounds
        self._folder = kept
        given = turns or {}
        self._turns: Callable[[int], Turns] = lambda number: given.get(number, {})
        if kept is not None:
            self._turns = lru_cache(maxsize=SPLITS_KEPT)(partial(kept_turns, kept))
        self._maps: dict[str, mmap.mmap] = {}
        self._joined: dict[int, CaptureBytes] = {}
        self._kept: OrderedDict[int, tuple[Grouped, dict[FlowKey, int]]] = OrderedDict()

    def data(self, number: int) -> CaptureBytes:
        """The bytes of the capture that a split belongs to, by position."""
        owner = self._splits[number].owner
        if owner not in self._joined:
            own = [split for split in self._splits.values() if split.owner == owner]
            first = {split.path: split for split in sorted(own, key=lambda split: -split.start)}
            files = [(split.base + split.start, split.base, self._map(split)) for split in first.values()]
            # A file that is not the first of its capture does not begin at position 0.
            alone = len(files) == 1 and not files[0][1]
            self._joined[owner] = files[0][2] if alone else JoinedBytes(files)
        return self._joined[owner]

    def name(self, number: int) -> str:
        """What rows call a split's capture."""
        return self._splits[number].capture

    def surveyed(self, number: int) -> Packets:
        """The packets of a split as its file has them."""
        return self.read(number, self.records(number))

    def records(self, number: int) -> Records:
        """The records of a split."""
        split = self._splits[number]
        return walk(self._map(split), split)[0]

    def read(self, number: int, records: Records) -> Packets:
        """The packets of a split, of which these are the records."""
        split = self._splits[number]
        return read_packets(self._map(split), records).moved(split.base)

    def packets(self, number: int) -> Packets:
        """The packets of a split as they are to be read."""
        split = self._splits[number]
        ground = self._grounds[split.owner]
        if self._folder is not None:
            read, joined = (kept_packets(path) for path in packets_files(self._folder, number))
            return standing(read, joined, ground.fillers)
        joined_here = ground.joined_in(split.base + split.start, split.base + split.end)
        return standing(self.surveyed(number), joined_here, ground.fillers)

    def turns(self, number: int) -> Turns:
        """The connections of the flows in doubt in a split."""
        return self._turns(number)

    def connections(self, number: int, key: FlowKey) -> list[Incarnation]:
        """The connections of one flow in one split."""
        grouped, flows = self.grouped(number)
        at = flows[key]
        rows = np.arange(int(grouped.borders[at]), int(grouped.borders[at + 1]))
        return parts_of_connections(self.data(number), grouped.packets.take(rows), self.turns(number))

    def _map(self, split: Split) -> mmap.mmap:
        if split.path not in self._maps:
            self._maps[split.path] = map_split(split)
        return self._maps[split.path]

    def grouped(self, number: int) -> tuple[Grouped, dict[FlowKey, int]]:
        """The packets of a split by flow, as they are to be read, and the number of each flow."""
        if number in self._kept:
            self._kept.move_to_end(number)
        else:
            grouped = group(self.packets(number))
            self._kept[number] = (grouped, {key: at for at, key in enumerate(grouped.keys)})
            if len(self._kept) > SPLITS_KEPT:
                self._kept.popitem(last=False)
        return self._kept[number]


def keep_turns(folder: Path, number: int, turns: Turns) -> None:
    """Write the turns of a split into a folder."""
    (folder / f"turns-{number}").write_bytes(pickle.dumps(turns, 5))


def kept_turns(folder: Path, number: int) -> Turns:
    """The turns of a split that were written there; a split without flows in doubt has none."""
    path = folder / f"turns-{number}"
    found: Turns = pickle.loads(path.read_bytes()) if path.exists() else {}
    return found


def packets_files(folder: Path, number: int) -> tuple[Path, Path]:
    """Where the packets of a split are kept, and those joined from fragments that belong to it."""
    return folder / f"packets-{number}.npy", folder / f"joined-{number}.npy"


class KeptOutlines(Mapping[int, Outlines]):
    """The outlines of splits, in file order, each read from a folder when it is asked for: all of them
    together have a row for every flow of every split."""

    def __init__(self, folder: Path, numbers: Sequence[int]) -> None:
        self._folder = folder
        self._numbers = numbers

    def __getitem__(self, number: int) -> Outlines:
        found: Outlines = pickle.loads(outlines_file(self._folder, number).read_bytes())
        return found

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


def outlines_file(folder: Path, number: int) -> Path:
    """Where the outlines of the flows of a split are kept."""
    return folder / f"outlines-{number}"


@dataclass(frozen=True, slots=True)
class Stitched:
    """What the stitch adds: frames outside chains, where the chains stand, holes and streams."""

    frames: list[pa.Table]
    placements: list[pa.Table]
    holes: list[pa.Table]
    streams: list[pa.Table]


def stitch_flows(flows: Iterable[Sequence[FlowPart]], reader: SplitReader, hints: Hints) -> Stitched:
    """Stitch flows; each is given as the parts that the splits of one capture know, in file order."""
    stitched = Stitched([], [], [], [])
    waiting: dict[str, list[Decoded]] = {}
    rows = 0
    with without_collector():
        for parts in flows:
            first = parts[0].split
            found = stitch_flow(reader.data(first), parts, hints, reader.connections)
            for decoded in (part for connection in found for part in connection):
                waiting.setdefault(reader.name(first), []).append(decoded)
                rows += 1 + len(decoded.positions)
            if rows >= BATCH_FRAMES:
                _flush(stitched, waiting)
                rows = 0
        _flush(stitched, waiting)
    return stitched


def _flush(stitched: Stitched, waiting: dict[str, list[Decoded]]) -> None:
    for name, found in waiting.items():
        stitched.frames.append(pa.Table.from_batches([frames_batch(name, found)]))
        stitched.placements.append(placements(found))
        stitched.holes.append(holes_table(name, found))
        stitched.streams.append(streams_table(name, found))
    waiting.clear()


def placements(found: Iterable[Decoded]) -> pa.Table:
    """Where the chains of some directions stand, as PLACEMENTS."""
    rows = []
    for decoded in found:
        if decoded.kind not in decoded_kinds():
            continue
        earlier = 0
        for before, chain in decoded.chains:
            early = chain.start <= decoded.unbroken_until
            name = decoded.direction.connection
            rows.append((chain.split, chain.number, name, chain.start, before + earlier, early))
            earlier += chain.frames
    columns = zip(*rows, strict=True) if rows else ([] for _ in PLACEMENTS)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, PLACEMENTS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=PLACEMENTS)


def by_flow(flows: Iterable[FlowPart]) -> list[list[FlowPart]]:
    """The parts of each flow together, in file order."""
    found: dict[FlowKey, list[FlowPart]] = {}
    for part in flows:
        found.setdefault(part.key, []).append(part)
    return [sorted(parts, key=lambda part: part.split) for parts in found.values()]


@dataclass(frozen=True, slots=True)
class Grounded:
    """What all splits of a capture tell: its ground, and of each split turns and crossing flows."""

    ground: Ground
    turns: Mapping[int, Turns]
    crossing: Mapping[int, Collection[FlowKey]]


def ground_of_splits(data: CaptureBytes, splits: Mapping[int, Split]) -> Grounded:
    """What has to be known before any split of a capture is decoded."""
    reader = SplitReader(splits, {})
    surveys, told = [], {}
    for number in splits:
        packets = reader.surveyed(number)
        surveys.append(survey(packets))
        told[number] = outlines(group(packets))
    ground = lay_ground(data, surveys)
    reader = SplitReader(splits, {0: ground})
    turns = dict(turns_of_splits(reader, told, ground))
    return Grounded(ground, turns, dict(crossing_flows(told, joined_flows(ground))))


def joined_flows(ground: Ground) -> set[FlowKey]:
    """The flows of packets that were put together from fragments."""
    return set() if ground.joined is None else set(group(ground.joined).keys)


def turns_of_splits(
    reader: SplitReader, told: Mapping[int, Outlines], ground: Ground
) -> Iterator[tuple[int, Turns]]:
    """The turns of those splits that hold flows in doubt, by number; `told`: the outlines of a capture's
    splits in file order. Only these splits are read, one at a time."""
    joined = joined_flows(ground)
    doubtful = doubtful_of_parts(told.values()) | joined
    if not doubtful:
        return
    turns = TurnsOfParts(doubtful)
    for number, own in told.items():
        if joined or not doubtful.isdisjoint(own):
            found = turns.add(reader.grouped(number)[0])
            if found:
                yield number, found


def crossing_flows(
    told: Mapping[int, Outlines], joined: Collection[FlowKey] = ()
) -> Iterator[tuple[int, set[FlowKey]]]:
    """By number of the split its flows of which other splits of the capture may have packets.

    `told`: the outlines of the capture's splits, read twice; `joined`: the flows of packets that were put
    together from fragments, which may be of any split.
    """
    seen: dict[FlowKey, int] = {}
    several = set(joined)
    for number, own in told.items():
        several.update(key for key in own if seen.setdefault(key, number) != number)
    seen.clear()
    for number, own in told.items():
        yield number, {*several.intersection(own), *joined}


def decode_by_splits(source: Source, split_bytes: int, hints: Hints | None = None) -> DecodedCapture:
    """What `decode_capture` gives, by way of splits of about `split_bytes`."""
    hints = hints or Hints()
    with open_rotation(source) as capture:
        splits = {split.number: split for split in capture.cuts(split_bytes)}
        known = ground_of_splits(capture.data, splits)
        reader = SplitReader(splits, {0: known.ground}, known.turns)
        decoded = [
            decode_split(
                split,
                reader.data(number),
                reader.packets(number),
                reader.turns(number),
                hints,
                known.crossing[number],
            )
            for number, split in splits.items()
        ]
        flows = by_flow(part for split in decoded for part in split.flows)
        stitched = stitch_flows(flows, reader, hints)
        about = wire(known.ground, (split.remarks for split in decoded))
        warnings = (*capture.warnings, *remarked(capture.name, about.remarks))
    chained = pa.Table.from_batches([batch for split in decoded for batch in split.frames], CHAINED_FRAMES)
    placed = placed_frames(chained, pa.concat_tables([PLACEMENTS.empty_table(), *stitched.placements]))
    for whole in (split.whole for split in decoded):
        stitched.frames.append(pa.Table.from_batches(whole.frames, FRAMES))
        stitched.holes.extend(whole.holes)
        stitched.streams.extend(whole.streams)
    holes = pa.concat_tables([HOLES.empty_table(), *stitched.holes])
    streams = pa.concat_tables([STREAMS.empty_table(), *stitched.streams])
    frames = pa.concat_tables([placed, *stitched.frames])
    return DecodedCapture(
        frames.sort_by([(name, "ascending") for name in FRAMES_ORDER]),
        holes.sort_by([(name, "ascending") for name in ("capture", "connection", "direction", "start")]),
        streams.sort_by([(name, "ascending") for name in ("capture", "connection", "direction")]),
        warnings,
        about,
    )


def placed_frames(chained: pa.Table, placed: pa.Table) -> pa.Table:
    """The frames of the chains that were used, as FRAMES, in any order."""
    known = _chain_keys(placed)
    order = np.argsort(known)
    wanted = _chain_keys(chained)
    at = np.searchsorted(known[order], wanted)
    used = at < len(known)
    used[used] = known[order][at[used]] == wanted[used]
    rows = np.flatnonzero(used)
    table = chained if used.all() else chained.take(pa.array(rows))
    place = placed.take(pa.array(order[at[rows]]))
    columns = {name: table[name] for name in FRAMES.names}
    columns["connection"], columns["from_start"] = place["connection"], place["from_start"]
    columns["sequence"] = pa.array(np.asarray(table["sequence"]) + np.asarray(place["start"]))
    columns["index"] = pa.array(np.asarray(table["index"]) + np.asarray(place["first_index"]))
    return pa.table(columns, schema=FRAMES)


def _chain_keys(table: pa.Table) -> Integers:
    """One number for each row's split and chain."""
    split, chain = (np.asarray(table[name]).astype(np.int64) for name in ("split", "chain"))
    keys: Integers = split << 32 | chain
    return keys
