"""What the replay is told of the frames of a family, and which families there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from replispec.replay.frames.hints import Hints
from replispec.replay.frames.readers import FrameReader
from replispec.replay.tcp.directions import Direction
from replispec.runtime import families

ROOM = "replay.frames"


@dataclass(frozen=True, slots=True)
class MessageColumns:
    """Columns of what the messages of some kinds of streams say: `arrays` makes them of the messages and the
    encodings of some frames, one of each field. They are null for frames of other kinds."""

    kinds: frozenset[str]
    fields: Sequence[pa.Field]
    arrays: Callable[[Sequence[Any], Sequence[int | None]], Sequence[pa.Array]]


@dataclass(frozen=True, slots=True, eq=False)
class HeldBodies:
    """Bodies that hold something of `column` (entries of an agreed log, messages), in streams of one kind,
    whichever family reads these.

    `holding` says which of some messages have such bodies, by their places; `read` is given one of these
    and its body `buffer[begin:end]`, and answers with None when that cannot be read.
    """

    kind: str
    column: str
    holding: Callable[[Sequence[Any]], Iterable[int]]
    read: Callable[[Any, bytes, int, int], Sequence[tuple[Any, ...]] | None]


@dataclass(frozen=True, slots=True, eq=False)
class FramesFamily:
    """The streams of one family; lies in `replispec.replay.frames.<family>.family` as `FAMILY`.

    `readers` gives the reader of each kind of stream. `kinds`: those that what the opener of a connection
    sends may be (True), or the other end (False), or one of which that is unknown (None), most telling first.
    `told`: the kinds that hints leave for a direction, none where they say nothing. `peers`: what the
    other direction is. `neighbours`: how far from the port of a listener the others are at which the same
    process listens; `ports`: where they listen when nobody chooses. `held`: which bodies hold entries of a
    log, or messages; a family whose messages travel in streams of another one has only these.
    """

    readers: Callable[[Hints], Mapping[str, FrameReader]]
    kinds: Callable[[bool | None], tuple[str, ...]]
    told: Callable[[Direction, Hints], tuple[str, ...]]
    peers: Mapping[str, str]
    columns: Sequence[MessageColumns]
    neighbours: Sequence[int] = ()
    ports: Sequence[int] = ()
    held: Sequence[HeldBodies] = ()


@cache
def frames_families() -> tuple[FramesFamily, ...]:
    """Every family whose frames the replay reads."""
    return tuple(families.part(ROOM, name).FAMILY for name in families.with_part(ROOM))


@cache
def readers(hints: Hints) -> Mapping[str, FrameReader]:
    """The reader of every kind of stream; they keep nothing, so that every direction may share them."""
    return {kind: reader for each in frames_families() for kind, reader in each.readers(hints).items()}


@cache
def held_bodies(kind: str) -> tuple[HeldBodies, ...]:
    """What reads what bodies hold in streams of a kind."""
    return tuple(each for family in frames_families() for each in family.held if each.kind == kind)


@cache
def decoded_kinds() -> frozenset[str]:
    """The kinds of streams whose frames are told one by one."""
    return frozenset(kind for kind, reader in readers(Hints()).items() if reader.decoded)
