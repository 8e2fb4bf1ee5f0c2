"""One broker set under load: its controller's words, its clients, its replicas, and the loss of its master.

What everybody says besides the load is a `World`, whose ledger counts what a judge must evaluate; the load
is counted here into the same ledger. The log is never held: a record follows from its place and the number
of its body.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

from benchmarks.rocketmq import generated_frames
from benchmarks.rocketmq.generated_links import GeneratedLink, GeneratedSide
from replispec.wire.rocketmq.ha import (
    HaEpochEntry,
    HaHandshakeAnswer,
    HaHandshakeId,
    HaReport,
    HaTransferHeader,
)
from tests.replay import expectations as expected
from tests.replay.brokers import Broker
from tests.replay.pcap_writer import Endpoint, Packet, in_time_order
from tests.replay.traffic import Link, Traffic
from tests.replay.world import World

BODY_BYTES = (200, 500, 900, 1500, 3000)
BATCH_RECORDS = (4, 16, 25, 25)
BATCH_BYTES_MAXIMUM = 32_768
LIVE_CLIENTS = 60
EXCHANGES_PER_CLIENT = 60
MID_STREAM = 0.0265
MASTER, HEIR, EPOCH = 1, 2, 1
# The controller is spoken to between so many bursts of load.
BURSTS_BETWEEN_TICKS = 500
CLIENT_PORT, REPLICA_PORT = 40_000, 50_000
AFTER_THE_LOSS = 5
Burst = list[Packet]


@dataclass(frozen=True, slots=True)
class Shape:
    """What the load of a broker set is made of.

    `clients` connect in all; of all bursts the share `replicated` goes to replicas, and of these the share
    `busy` to the first one.
    """

    clients: int
    replicas: int
    replicated: float
    busy: float


@dataclass(slots=True)
class CountedTraffic(Traffic):
    """Counts the frames of all worlds, and gives their packets once."""

    frames: dict[str, int] = field(default_factory=lambda: {"remoting": 0, "ha": 0})

    def send(self, link: Link, data: bytes, *, from_client: bool) -> None:
        """One frame of one side."""
        is_ha = link.talk.server[1] == generated_frames.STORE_PORT + 1
        self.frames["ha" if is_ha else "remoting"] += 1
        Traffic.send(self, link, data, from_client=from_client)

    def take(self) -> Burst:
        """The packets since the last time."""
        packets = in_time_order(link.talk for link in self.links if link.talk.packets)
        for link in self.links:
            link.talk.packets.clear()
        return packets


@dataclass(slots=True)
class Replica:
    """A replica under load: its connection, where its log ends, and the ends of all runs it was sent."""

    number: int
    link: GeneratedLink
    end: int = 0
    borders: set[int] = field(default_factory=lambda: {0})


class GeneratedSet:
    """One broker set. Methods give packets in the order in which they were sent."""

    def __init__(self, number: int, traffic: CountedTraffic, rng: random.Random, shape: Shape) -> None:
        self._number, self._traffic, self._random, self._shape = number, traffic, rng, shape
        self.world = World(name=f"broker-{number}", subnet=number + 1, traffic=traffic)
        self._bodies = [self._letters(size) for size in BODY_BYTES]
        self._sizes = [len(generated_frames.record(0, body)) for body in self._bodies]
        self._offsets, self._kinds = array("Q"), array("B")
        self._end = 0
        self._live: list[GeneratedLink] = []
        self._next_client = self._bursts = 0
        self.links: list[GeneratedLink] = []
        self._replicas: list[Replica] = []

    def begin(self) -> Iterator[Burst]:
        """A first start: a master, an heir in the SyncStateSet, other replicas outside of it."""
        world = self.world
        world.come_up(MASTER)
        world.elect(MASTER)
        world.notify(MASTER)
        world.announce(MASTER)
        for number in range(HEIR, HEIR + self._shape.replicas):
            world.come_up(number)
            world.announce(number)
        world.alter((MASTER, HEIR))
        yield self._traffic.take()
        for number in range(HEIR, HEIR + self._shape.replicas):
            link = self._link((world.brokers[number].host, REPLICA_PORT), self.replication)
            self._replicas.append(Replica(number, link))
            yield list(self._follow(self._replicas[-1]))

    def burst(self) -> Burst:
        """One exchange of a client, a run of the log for a replica, or a word with the controller."""
        self._bursts += 1
        if self._bursts % BURSTS_BETWEEN_TICKS == 0:
            self._tell_ends()
            self.world.heartbeat_controller(MASTER)
            self.world.ask(MASTER)
            return self._traffic.take()
        if self._random.random() < self._shape.replicated:
            busy = self._random.random() < self._shape.busy or len(self._replicas) == 1
            at = 0 if busy else self._random.randrange(1, len(self._replicas))
            if run := list(self._replicate(self._replicas[at], self._random.choice(BATCH_RECORDS))):
                return run
        return list(self._exchange())

    @property
    def replication(self) -> Endpoint:
        """Where replicas reach the master."""
        return self._master.replication_endpoint

    @property
    def behind(self) -> int:
        """Bytes of the log that the heir lacks."""
        return self._end - self._replicas[0].end

    def finish(self, lost: int) -> Iterator[Burst]:
        """The heir has everything, so many more messages are acknowledged, and the master dies."""
        heir = self._replicas[0]
        while self.behind:
            yield list(self._replicate(heir, BATCH_RECORDS[-1]))
        for _ in range(lost):
            yield list(self._exchange())
        self._count_same_bytes()
        for link in self.links:
            if link.opened and not link.closed:
                yield list(link.close())
        world = self.world
        self._tell_ends()
        world.die(MASTER)
        world.take_over(HEIR)
        world.announce(HEIR)
        world.send(AFTER_THE_LOSS)
        world.come_back(MASTER)
        world.announce(MASTER)
        world.follow(MASTER)
        world.replicate(MASTER)
        yield self._traffic.take()

    @property
    def _master(self) -> Broker:
        return self.world.brokers[MASTER]

    def _letters(self, count: int) -> bytes:
        return bytes(self._random.choices(range(97, 123), k=count))

    def _tell_ends(self) -> None:
        """The world's brokers know how far the load has come."""
        self._master.base = self._end
        for replica in self._replicas:
            broker = self.world.brokers[replica.number]
            broker.base, broker.epochs = replica.end, [(EPOCH, 0)]

    def _link(self, client: Endpoint, server: Endpoint, mid_stream: float = 0.0) -> GeneratedLink:
        starts = (self._random.randrange(1 << 32), self._random.randrange(1 << 32))
        seen_opened = self._random.random() >= mid_stream
        limit = self._random.randrange(EXCHANGES_PER_CLIENT // 2, EXCHANGES_PER_CLIENT * 3 // 2)
        sides = GeneratedSide(client, starts[0]), GeneratedSide(server, starts[1])
        self.links.append(GeneratedLink(*sides, seen_opened, limit=limit))
        return self.links[-1]

    def _client(self) -> GeneratedLink:
        at, self._next_client = self._next_client, self._next_client + 1
        host = f"10.{128 + (self._number >> 2)}.{(self._number & 3) << 6 | at >> 8 & 63}.{at & 255}"
        return self._link((host, CLIENT_PORT + at % 20_000), self._master.endpoint, MID_STREAM)

    def _exchange(self) -> Iterator[Packet]:
        """A client sends a message and is answered; clients come and go, the last ones stay."""
        clients = self._shape.clients
        while len(self._live) < min(LIVE_CLIENTS, clients) and self._next_client < clients:
            self._live.append(self._client())
        at = self._random.randrange(len(self._live))
        link = self._live[at]
        if not link.opened:
            yield from link.open()
        opaque, kind = link.done, self._random.randrange(len(self._bodies))
        link.done += 1
        yield from link.send(generated_frames.request(opaque, self._bodies[kind]), opaque, from_client=True)
        answer = generated_frames.answer(opaque, self._master.message_id(self._store(kind)))
        yield from link.send(answer, opaque, from_client=False)
        self.world.ledger.count(expected.PAIRING)
        if link.done >= link.limit and self._next_client < clients:
            yield from link.close()
            del self._live[at]

    def _store(self, kind: int) -> int:
        """A message is stored and acknowledged; returns where it lies."""
        offset = self._end
        self._offsets.append(offset)
        self._kinds.append(kind)
        self._end += self._sizes[kind]
        self.world.ledger.acknowledge(EPOCH, offset)
        return offset

    def _follow(self, replica: Replica) -> Iterator[Packet]:
        """A replica with an empty log connects."""
        link = replica.link
        yield from link.open()
        yield from self._ha(link, HaHandshakeId(broker_id=replica.number).encode(), None, from_client=True)
        answer = HaHandshakeAnswer(last_epoch=EPOCH, entries=[HaEpochEntry(epoch=EPOCH)])
        yield from self._ha(link, answer.encode(), None, from_client=False)
        self.world.ledger.count(expected.LOG_HOLDS)
        yield from self._report(replica)

    def _report(self, replica: Replica) -> Iterator[Packet]:
        report = HaReport(max_offset=replica.end).encode()
        yield from self._ha(replica.link, report, replica.end, from_client=True)
        self.world.ledger.count(expected.ACK_WITHIN_SENT)

    def _replicate(self, replica: Replica, records: int) -> Iterator[Packet]:
        """The master sends a run of whole records, the replica reports; nothing where it has all of them."""
        link, offset, body = replica.link, replica.end, bytearray()
        while link.done < len(self._kinds) and records:
            place, kind = self._offsets[link.done], self._kinds[link.done]
            if len(body) + self._sizes[kind] > BATCH_BYTES_MAXIMUM:
                break
            body += generated_frames.record(place, self._bodies[kind])
            link.done, records = link.done + 1, records - 1
            self.world.ledger.count(expected.BODY_STORED)
        if not body:
            return
        replica.end += len(body)
        replica.borders.add(replica.end)
        header = HaTransferHeader(offset=offset, epoch=EPOCH, confirm_offset=self._end, body=bytes(body))
        yield from self._ha(link, header.encode(), offset, from_client=False)
        self.world.ledger.count(expected.OFFSET_CHAIN, expected.BATCH_IN_EPOCH, expected.CONFIRM_HOLDS)
        self.world.ledger.confirm(EPOCH, self._end)
        yield from self._report(replica)

    def _ha(
        self, link: GeneratedLink, data: bytes, key: int | None, *, from_client: bool
    ) -> Iterator[Packet]:
        self.world.ledger.count(expected.REPLICA_MACHINE, expected.MASTER_MACHINE)
        return link.send(data, key, from_client=from_client)

    def _count_same_bytes(self) -> None:
        """Ranges that two replicas were sent: what lies between two borders that both have."""
        for one, other in combinations(self._replicas, 2):
            for _ in range(len(one.borders & other.borders) - 1):
                self.world.ledger.count(expected.SAME_BYTES)
