"""Which protocol a direction speaks, told from its first bytes, from its middle, or from its peer.

Nothing is assumed from port numbers, unless the caller says which ports and addresses belong to
replication. What begins as TLS is named so, what fits nothing is foreign: both are counted, not decoded.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from replispec.replay.frames.anchors import Searcher, proved
from replispec.replay.frames.rocketmq.readers import (
    BAD,
    FOREIGN,
    HA_LEGACY_MASTER,
    HA_LEGACY_REPLICA,
    HA_MASTER,
    HA_REPLICA,
    REMOTING,
    SHORT,
    FrameReader,
    HaMasterReader,
    HaReplicaReader,
    LegacyReader,
    RemotingReader,
)
from replispec.replay.frames.tls import TLS, begins_tls
from replispec.replay.tcp.directions import Direction
from replispec.replay.tcp.space import SequenceSpace

# A direction seen from the middle is searched for a frame this far (bytes): the longest frame, and then some.
SEARCH_BYTES_MAXIMUM = 20 * 1024 * 1024
# A proxy may put its own header before the first frame (PROXY protocol, at most 536 bytes).
PREFACE_BYTES_MAXIMUM = 1024
PEER_KINDS = {
    REMOTING: REMOTING,
    HA_REPLICA: HA_MASTER,
    HA_MASTER: HA_REPLICA,
    HA_LEGACY_REPLICA: HA_LEGACY_MASTER,
    HA_LEGACY_MASTER: HA_LEGACY_REPLICA,
    TLS: TLS,
}


@dataclass(frozen=True, slots=True)
class Hints:
    """What the caller knows: ports and addresses ("ADDRESS:PORT") where masters wait for replicas,
    whether the masters are 5.0.0 (padded answers), and whether raw bodies are wanted."""

    ha_ports: frozenset[int] = frozenset()
    ha_addresses: frozenset[str] = frozenset()
    padded_answers: bool = False
    keep_bodies: bool = False


@dataclass(frozen=True, slots=True)
class Classified:
    """The kind of a direction, and where reading starts: `position` is the start of a frame when
    `aligned`, else the place to search from. `sure` is False when no byte told, only the peer may."""

    kind: str
    position: int
    aligned: bool
    sure: bool


def reader_for(kind: str, hints: Hints) -> FrameReader:
    """The reader of a kind. Raises KeyError for streams that nobody reads."""
    return _readers(hints.padded_answers, hints.keep_bodies)[kind]


@cache
def _readers(padded_answers: bool, keep_bodies: bool) -> dict[str, FrameReader]:
    """All readers; they keep nothing of what they read, so that every direction may share them."""
    return {
        REMOTING: RemotingReader(keep_bodies=keep_bodies),
        HA_REPLICA: HaReplicaReader(),
        HA_MASTER: HaMasterReader(padded_answers=padded_answers, keep_bodies=keep_bodies),
        HA_LEGACY_REPLICA: LegacyReader(HA_LEGACY_REPLICA),
        HA_LEGACY_MASTER: LegacyReader(HA_LEGACY_MASTER),
    }


def allowed_kinds(direction: Direction, hints: Hints) -> tuple[str, ...]:
    """The kinds that a direction may be, most telling first. A replica always opens its connection."""
    if direction.destination_port in hints.ha_ports or direction.destination in hints.ha_addresses:
        return (HA_REPLICA, HA_LEGACY_REPLICA)
    if direction.source_port in hints.ha_ports or direction.source in hints.ha_addresses:
        return (HA_MASTER, HA_LEGACY_MASTER)
    if direction.initiator is None:
        # Three reports in a row look like one heartbeat of a master, but not the other way round.
        return (REMOTING, HA_REPLICA, HA_MASTER, HA_LEGACY_REPLICA, HA_LEGACY_MASTER)
    if direction.initiator:
        return (REMOTING, HA_REPLICA, HA_LEGACY_REPLICA)
    return (REMOTING, HA_MASTER, HA_LEGACY_MASTER)


def classify(direction: Direction, space: SequenceSpace, hints: Hints) -> Classified:
    """The kind of one direction by its own bytes. Raises NeedsBytes when they lie in a chain."""
    kinds = allowed_kinds(direction, hints)
    forced = kinds[0] if REMOTING not in kinds else None
    first = space.first
    if first is None:
        return Classified(forced or FOREIGN, 0, direction.from_syn, forced is not None)
    from_start = direction.from_syn and first == 0
    chain = space.chains.get(first)
    readable = chain is None or chain.kind == FOREIGN
    if readable and (from_start or not direction.from_syn) and begins_tls(space, first):
        return Classified(TLS, first, from_start, sure=True)
    found = _from_start(space, kinds, hints) if from_start else _from_middle(space, kinds, hints, first)
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
    if not peer.sure or (own.sure and peer.kind != TLS):
        return own
    return Classified(PEER_KINDS[peer.kind], own.position, own.aligned, sure=True)


def _from_start(space: SequenceSpace, kinds: tuple[str, ...], hints: Hints) -> Classified | None:
    """Tell the kind from the first frame, which must be there, and the one after it, which may be."""
    chain = space.chains.get(0)
    if chain is not None and chain.from_syn and chain.kind in kinds:
        return Classified(chain.kind, 0, aligned=True, sure=True)
    for kind in kinds:
        if opens(space, reader_for(kind, hints)):
            return Classified(kind, 0, aligned=True, sure=True)
    if REMOTING in kinds:
        found = Searcher(space).find([reader_for(REMOTING, hints)], 0, PREFACE_BYTES_MAXIMUM)
        if found is not None:
            return Classified(REMOTING, found[0], aligned=True, sure=True)
    return None


def opens(space: SequenceSpace, reader: FrameReader) -> bool:
    """Whether the stream's first frame, and the next if it is there, are of the reader's kind.

    A first header that the snap length cut is taken on trust when its visible part fits.
    """
    size, message, *_ = reader.read(space, 0)
    if size in (SHORT, BAD):
        return False
    if message is None:
        return reader.kind == REMOTING and reader.worth_reading(space.buffer, space.window(0, 1))
    if not reader.plausible(message):
        return False
    following, successor, *_ = reader.read(space, size)
    if following == BAD:
        return False
    return successor is None or (reader.plausible(successor) and reader.follows(message, successor))


def _from_middle(space: SequenceSpace, kinds: tuple[str, ...], hints: Hints, first: int) -> Classified | None:
    """Search for a place where frames of one of the kinds follow each other."""
    # Frames outside controller mode have no mark at all: they are told from a known start only.
    readers = [reader_for(kind, hints) for kind in kinds if kind in (REMOTING, HA_REPLICA, HA_MASTER)]
    for reader in readers:
        if proved(space, reader, first):
            return Classified(reader.kind, first, aligned=True, sure=True)
    found = Searcher(space).find(readers, first, first + SEARCH_BYTES_MAXIMUM)
    if found is None:
        return None
    return Classified(found[1].kind, found[0], aligned=True, sure=True)
