"""A capture of any size with the traffic of busy broker sets, and the truth about it, from a seed.

The mix: 2,000 clients that send messages per 400 MB, four replicas of which one is sent 70 % of the
replicated bytes and has everything when the master dies at the end, segments of 1,448 bytes, 0.4 % of them
swapped with a later packet, 0.3 % sent twice, 2.65 % of the clients connected before the capture began.
Other shapes: one flow (one replica is sent all), and 300 broker sets with 10,000 connections. So many
acknowledged messages as are asked for are lost with their masters. The same seed gives the same bytes.

The truth is a JSON document: totals; for each direction of a connection of the load (`source>destination`)
its frames, their bytes, and the SHA-256 of one line a frame, in order: sequence, size and key (the opaque of
a command, the offset of a transfer, the maximum offset of a report, or nothing); for each group and rule the
verdict and how often it is evaluated; and every loss.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from enum import Enum
from itertools import islice
from pathlib import Path

import orjson

from benchmarks.rocketmq.generated_set import CountedTraffic, GeneratedSet, Shape
from tests.replay.expectations import Ledger
from tests.replay.pcap_writer import START_NS, Packet, pcap

MEGABYTE = 10**6
CLIENTS_PER_MEGABYTE = 5
MIX_REPLICAS, MIX_REPLICATED, MIX_BUSY = 4, 0.068, 0.7
# One client stores what one replica is sent.
FLOW_REPLICATED = 0.055
MANY_SETS, MANY_CONNECTIONS = 300, 10_000
# What a broker set of two brokers opens besides its clients: two brokers to controller and name server, the
# controller to each master, replication, and what follows on the loss of the master.
CONNECTIONS_OF_A_SET = 11
SWAPPED, REPEATED = 0.004, 0.003
STEP_NS = 20_000
CHUNK_PACKETS = 2_000


class Kind(Enum):
    """What a capture is made of."""

    MIX = "mix"
    FLOW = "flow"
    MANY = "many"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which capture: about so many 10^6 bytes (many sets may need more), with so many lost messages."""

    megabytes: float
    seed: int
    kind: Kind = Kind.MIX
    lost: int = 0
    sets: int = MANY_SETS
    connections: int = MANY_CONNECTIONS

    @property
    def shapes(self) -> list[Shape]:
        """One for each broker set."""
        if self.kind is Kind.FLOW:
            return [Shape(clients=1, replicas=1, replicated=FLOW_REPLICATED, busy=1.0)]
        if self.kind is Kind.MIX:
            clients = max(4, round(CLIENTS_PER_MEGABYTE * self.megabytes))
            return [Shape(clients, MIX_REPLICAS, MIX_REPLICATED, MIX_BUSY)]
        clients = max(1, self.connections // self.sets - CONNECTIONS_OF_A_SET)
        return [Shape(clients, 1, FLOW_REPLICATED, 1.0)] * self.sets


class Generated:
    """The traffic of one capture."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._random = random.Random(wanted.seed)
        self._traffic = CountedTraffic()
        self._sets = [
            GeneratedSet(number, self._traffic, self._random, shape)
            for number, shape in enumerate(wanted.shapes)
        ]

    def packets(self) -> Iterator[Packet]:
        """All packets in the order in which they were sent, without times."""
        size = round(self._wanted.megabytes * MEGABYTE)
        for each in self._sets:
            for burst in each.begin():
                size -= bytes_of(burst)
                yield from burst
        while size > sum(each.behind for each in self._sets):
            for each in self._sets:
                burst = each.burst()
                size -= bytes_of(burst)
                yield from burst
        for number, each in enumerate(self._sets):
            more = number < self._wanted.lost % len(self._sets)
            for burst in each.finish(self._wanted.lost // len(self._sets) + more):
                yield from burst

    def truth(self) -> dict[str, object]:
        """What was sent, and what a judge of it must find. To be asked when all packets were taken."""
        links = [link for each in self._sets for link in each.links if link.opened]
        frames = dict(self._traffic.frames)
        for each in self._sets:
            for link in each.links:
                kind = "ha" if link.server.endpoint == each.replication else "remoting"
                frames[kind] += link.client.frames + link.server.frames
        ledger = Ledger()
        for each in self._sets:
            ledger.add(each.world.ledger)
        scenario = ledger.scenario([])
        return {
            "connections": len(links) + len(self._traffic.links),
            "frames": frames,
            "directions": dict(pair for link in links for pair in link.truth()),
            "rows": {
                group: {name: asdict(row) for name, row in rows.items()}
                for group, rows in scenario.rows.items()
            },
            "losses": [asdict(loss) for loss in scenario.losses],
        }


def bytes_of(packets: Iterable[Packet]) -> int:
    """About so many bytes of a capture."""
    return sum(OVERHEAD + len(packet.payload) for packet in packets)


OVERHEAD = len(pcap([Packet(("10.0.0.1", 1), ("10.0.0.2", 1), 0)])) - len(pcap([]))


def disturbed(packets: Iterable[Packet], rng: random.Random) -> Iterator[Packet]:
    """The packets with times, some with payload swapped with a later one or sent twice; none is lost."""
    now_ns = START_NS
    held: Packet | None = None
    for packet in packets:
        now_ns += STEP_NS
        if held is None and packet.payload and rng.random() < SWAPPED:
            held = packet
            continue
        yield replace(packet, time_ns=now_ns)
        if packet.payload and rng.random() < REPEATED:
            yield replace(packet, time_ns=now_ns + STEP_NS // 4)
        if held is not None:
            yield replace(held, time_ns=now_ns + STEP_NS // 2)
            held = None
    if held is not None:
        yield replace(held, time_ns=now_ns + STEP_NS)


def generate(path: Path, wanted: Wanted) -> dict[str, object]:
    """Write a capture and return the truth about it; every frame is whole."""
    generated = Generated(wanted)
    head = len(pcap([]))
    written = packets = 0
    with path.open("wb") as file:
        written += file.write(pcap([]))
        run = disturbed(generated.packets(), random.Random(wanted.seed + 1))
        while chunk := list(islice(run, CHUNK_PACKETS)):
            written += file.write(pcap(chunk)[head:])
            packets += len(chunk)
    return {"seed": wanted.seed, "bytes": written, "packets": packets, **generated.truth()}


def main() -> None:
    """Write OUT and the truth beside it, as OUT.truth.json."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    add_options(parser)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    truth = generate(arguments.out, wanted(arguments))
    arguments.out.with_name(f"{arguments.out.name}.truth.json").write_bytes(orjson.dumps(truth))
    sys.stdout.write(f"{truth['bytes']} bytes, {truth['packets']} packets, frames {truth['frames']}\n")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that say which capture."""
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--kind", choices=[kind.value for kind in Kind], default=Kind.MIX.value)
    parser.add_argument("--lost", type=int, default=0, help="acknowledged messages that are lost")
    parser.add_argument("--sets", type=int, default=MANY_SETS, help="broker sets of the kind many")
    parser.add_argument("--connections", type=int, default=MANY_CONNECTIONS, help="of the kind many")


def wanted(arguments: argparse.Namespace) -> Wanted:
    """The capture that the options name."""
    options = vars(arguments)
    names = ("megabytes", "seed", "lost", "sets", "connections")
    return Wanted(kind=Kind(options["kind"]), **{name: options[name] for name in names})


if __name__ == "__main__":
    main()
