"""Which protocol a direction speaks, told from its first bytes, from its middle, or from its peer.

Nothing is assumed from port numbers, unless the caller says which ports and addresses belong to
replication. What begins as TLS is named so, what fits nothing is foreign: both are counted, not decoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replispec.replay.frames.anchors import Searcher, proved
from replispec.replay.frames.family import frames_families, readers
from replispec.replay.frames.hints import Hints
from replispec.replay.frames.readers import BAD, FOREIGN, SHORT, FrameReader
from replispec.replay.frames.tls import TLS, begins_tls
from replispec.replay.tcp.directions import Direction
from replispec.replay.tcp.space import SequenceSpace

# A direction seen from the middle is searched for a frame this far (bytes): the longest frame, and then some.
SEARCH_BYTES_MAXIMUM = 20 * 1024 * 1024
# A proxy may put its own header before the first frame (PROXY protocol, at most 536 bytes).
PREFACE_BYTES_MAXIMUM = 1024


@dataclass(frozen=True, slots=True)
class Classified:
    """The kind of a direction, and where reading starts: `position` is the start of a frame when
    `aligned`, else the place to search from. `sure` is False when no byte told, only the peer may;
    `unmarked`: frames of this kind have no mark, and some zeros look like one."""

    kind: str
    position: int
    aligned: bool
    sure: bool
    unmarked: bool = False


def classify(direction: Direction, space: SequenceSpace, hints: Hints) -> Classified:
    """The kind of one direction by its own bytes. Raises NeedsBytes when they lie in a chain."""
    told = [kind for family in frames_families() for kind in family.told(direction, hints)]
    known = readers(hints)
    allowed = told or [kind for family in frames_families() for kind in family.kinds(direction.initiator)]
    kinds = [known[kind] for kind in allowed]
    forced = told[0] if told else None
    first = space.first
    if first is None:
        return Classified(forced or FOREIGN, 0, direction.from_syn, forced is not None)
    from_start = direction.from_syn and first == 0
    chain = space.chains.get(first)
    readable = chain is None or chain.kind == FOREIGN
    if readable and (from_start or not direction.from_syn) and begins_tls(space, first):
        return Classified(TLS, first, from_start, sure=True)
    found = _from_start(space, kinds) if from_start else _from_middle(space, kinds, first)
    if found is not None:
        return found
    if forced is not None:
        return Classified(forced, first, from_start, sure=True)
    return Classified(FOREIGN, first, from_start, sure=False)


def agree(first: Classified, second: Classified) -> tuple[Classified, Classified]:
    """What the two directions of a connection tell about each other.

    Encryption is of both or of none: what looks like a frame among encrypted bytes is chance.
    """
    return _told_by_peer(first, second), _told_by_peer(second, first)


def _told_by_peer(own: Classified, peer: Classified) -> Classified:
    kind = _peer_kind(peer.kind)
    is_told = own.sure and (own.kind == kind or peer.unmarked or not own.unmarked)
    if not peer.sure or (is_told and peer.kind != TLS):
        return own
    return Classified(kind, own.position, own.aligned, sure=True)


def _peer_kind(kind: str) -> str:
    """What a direction is whose peer is of this kind."""
    return next((family.peers[kind] for family in frames_families() if kind in family.peers), kind)


def _from_start(space: SequenceSpace, kinds: Sequence[FrameReader]) -> Classified | None:
    """Tell the kind from the first frame, which must be there, and the one after it, which may be."""
    chain = space.chains.get(0)
    for reader in kinds:
        if chain is not None and chain.from_syn and chain.kind == reader.kind:
            return Classified(
                reader.kind,
                0,
                aligned=True,
                sure=True,
                unmarked=not (reader.searched or reader.begins_marked),
            )
    for reader in kinds:
        if opens(space, reader):
            return Classified(
                reader.kind,
                0,
                aligned=True,
                sure=True,
                unmarked=not (reader.searched or reader.begins_marked),
            )
    return _searched(space, [reader for reader in kinds if reader.prefaced], 0, PREFACE_BYTES_MAXIMUM)


def _searched(
    space: SequenceSpace, kinds: Sequence[FrameReader], position: int, limit: int
) -> Classified | None:
    found = Searcher(space).find(kinds, position, limit) if kinds else None
    return None if found is None else Classified(found[1].kind, found[0], aligned=True, sure=True)


def opens(space: SequenceSpace, reader: FrameReader) -> bool:
    """Whether the stream's first frame, and the next if it is there, are of the reader's kind.

    A first header that the snap length cut is taken on trust when its visible part fits.
    """
    size, message, *_ = reader.read(space, 0)
    if size in (SHORT, BAD):
        return False
    if message is None:
        return reader.cut_head_opens and reader.worth_reading(space.buffer, space.window(0, 1))
    if not reader.plausible(message):
        return False
    following, successor, *_ = reader.read(space, size)
    if following == BAD:
        return False
    return successor is None or (reader.plausible(successor) and reader.follows(message, successor))


def _from_middle(space: SequenceSpace, kinds: Sequence[FrameReader], first: int) -> Classified | None:
    """Search for a place where frames of one of the kinds follow each other."""
    searched = [reader for reader in kinds if reader.searched]
    for reader in searched:
        if proved(space, reader, first):
            return Classified(reader.kind, first, aligned=True, sure=True)
    return _searched(space, searched, first, first + SEARCH_BYTES_MAXIMUM)
