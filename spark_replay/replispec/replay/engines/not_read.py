"""What was captured with those who take part and was not read, a line each: no promise is given over it.

Who takes part the capture tells: who speaks a known protocol (hosts), and where somebody waits for those who
do (listeners). Traffic that cannot carry such a protocol is no reason, nor what others say to each other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replispec.replay.frames.family import decoded_kinds, frames_families
from replispec.replay.frames.tls import TLS
from replispec.replay.tcp.pieces import CORRUPT_ONLY
from replispec.replay.tcp.remarks import Remarks
from replispec.replay.tcp.senders import FEW
from replispec.replay.tcp.tunnels import OTHER_UDP, UNOPENED
from replispec.replay.tcp.unopened import between, needs_several

ENDS = ("source", "destination")
# So many pairs of addresses are named; of others it is said how many there are.
PAIRS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Participants:
    """The listeners (ADDRESS:PORT) and the addresses of those who speak a known protocol in a capture, and
    the ports on which any of them listens."""

    listeners: Collection[str]
    hosts: Collection[str]
    ports: Collection[int]

    def listens(self, place: str) -> bool:
        """Whether a participant listens there, or one that is alike does so on the same port."""
        host, port = _parts(place)
        return place in self.listeners or (host in self.hosts and port in self.ports)

    def may_speak(self, ends: Collection[str], *, plain: bool) -> bool:
        """Whether something of theirs may have gone between these two addresses (none: nothing tells); in
        what is mostly `plain` only where both of them take part."""
        if not ends:
            return True
        waiting = {_parts(each)[0] for each in self.listeners}
        both = all(end in self.hosts for end in ends)
        return both if plain else both or any(end in waiting for end in ends)


def participants(streams: pa.Table) -> Participants:
    """Who takes part, by the STREAMS of a capture."""
    known = streams.filter(pc.field("protocol").isin(sorted(decoded_kinds())))
    own = {*pc.unique(listeners(known)).to_pylist()}
    beside = {
        _place(host, port + apart)
        for host, port in map(_parts, own)
        for family in frames_families()
        for apart in family.neighbours
    }
    every = {*own, *beside}
    usual = {
        port + apart
        for family in frames_families()
        for port in family.ports
        for apart in (0, *family.neighbours)
    }
    hosts = {host for name in ENDS for host in _hosts(known.column(name))}
    return Participants(every, hosts, {*usual, *(_parts(each)[1] for each in every)})


def not_read(file: str, streams: pa.Table, holes: pa.Table, remarks: Remarks) -> Iterator[str]:
    """All of it."""
    known = participants(streams)
    yield from _strange(file, streams, known)
    yield from _corrupt(file, streams, holes, known)
    yield from _unopened(file, remarks, known)


def listeners(streams: pa.Table, known: Participants | None = None) -> pa.ChunkedArray:
    """The listener of each stream's connection: who accepted it. Where its SYN was not captured only the
    ports hint at that, and clients may have low ones: there a `known` listener at either end is it."""
    source, destination, accepted = (streams.column(name) for name in (*ENDS, "accepted"))
    found, others = pc.if_else(accepted, source, destination), pc.if_else(accepted, destination, source)
    if known is None or not streams.num_rows:
        return found
    turned = np.zeros(streams.num_rows, np.bool_)
    # Nothing is made of the many of which it is sure.
    for row in np.flatnonzero(~np.asarray(streams.column("from_start"))).tolist():
        turned[row] = not known.listens(found[row].as_py()) and known.listens(others[row].as_py())
    return pc.if_else(pa.array(turned), others, found)


def _hosts(places: pa.ChunkedArray) -> list[str]:
    """The different addresses of many places."""
    told = pc.unique(pc.replace_substring_regex(pc.unique(places), ":[0-9]*$", ""))
    return [host.strip("[]") for host in told.to_pylist()]


def _strange(file: str, streams: pa.Table, known: Participants) -> Iterator[str]:
    """What was said in no known way to listeners that others in the capture speak to in known ways."""
    others = streams.filter(~pc.field("protocol").isin(sorted(decoded_kinds())))
    said: Counter[tuple[str, bool]] = Counter()
    said_there = listeners(others, known).to_pylist()
    columns = (said_there, others["protocol"].to_pylist(), others["bytes_payload"].to_pylist())
    for listener, protocol, size in zip(*columns, strict=True):
        if known.listens(listener):
            said[listener, protocol == TLS] += size
    for (listener, encrypted), size in sorted(said.items()):
        if size and encrypted:
            yield f"{file}: {size} bytes on connections with {listener} are encrypted by TLS"
        elif size:
            yield f"{file}: {size} bytes on connections with {listener} are none of what others speak with it"


def _corrupt(file: str, streams: pa.Table, holes: pa.Table, known: Participants) -> Iterator[str]:
    """Connections with participants of which nothing but packets with wrong checksums was captured."""
    corrupt = pc.equal(holes.column("kind"), CORRUPT_ONLY)
    names, others = (pc.unique(holes.filter(each)["connection"]) for each in (corrupt, pc.invert(corrupt)))
    alone = names.filter(pc.invert(pc.is_in(names, others)))
    own = streams.filter(pc.is_in(streams.column("connection"), alone))
    sizes: Counter[str] = Counter()
    at: dict[str, str] = {}
    columns = (own["connection"].to_pylist(), own["bytes_payload"].to_pylist())
    for connection, size, listener in zip(*columns, listeners(own, known).to_pylist(), strict=True):
        sizes[connection] += size
        at[connection] = listener
    count = Counter(at[each] for each in at if not sizes[each] and known.listens(at[each]))
    for listener, number in sorted(count.items()):
        what = "1 connection" if number == 1 else f"{number} connections"
        yield f"{file}: of {what} with {listener} all payload was left out: its checksums are wrong"


def _unopened(file: str, remarks: Remarks, known: Participants) -> Iterator[str]:
    """Packets that nobody opens, and that may have been between participants."""
    found: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    for what, count in between(remarks):
        if known.may_speak(what.ends, plain=what.name == UNOPENED[OTHER_UDP]):
            found[what.name][what.ends] += count
    for kind, pairs in sorted(found.items()):
        total = sum(pairs.values())
        if total < FEW and needs_several(kind):
            continue
        shown = [" and ".join(ends) for ends in sorted(pairs) if ends]
        more = [f"{len(shown) - PAIRS_SHOWN} other pairs of hosts"] if len(shown) > PAIRS_SHOWN else []
        where = f" between {', '.join([*shown[:PAIRS_SHOWN], *more])}" if shown else ""
        left = "1 packet was" if total == 1 else f"{total} packets were"
        yield f"{file}: {left} left out{where}: {kind}"


def _parts(place: str) -> tuple[str, int]:
    host, _, port = place.rpartition(":")
    return host.strip("[]"), int(port)


def _place(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
