"""A capture of any size with the traffic of a busy broker set, and the truth about it, from a seed.

The mix: 2,000 clients that send messages per 400 MB, four replicas of which one is sent 70 % of the
replicated bytes, segments of 1,448 bytes, 0.4 % of them swapped with a later packet, 0.3 % sent twice,
2.65 % of the clients connected before the capture began. The same seed gives the same bytes.

The truth is a JSON document: totals, and for each direction of a connection (`source>destination`) its
frames, their bytes, and the SHA-256 of one line a frame, in order: sequence, size and key. The key is the
opaque of a command, the offset of a transfer, the maximum offset of a report, or nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import orjson

from replispec.wire.rocketmq.broker import SendMessageResponse, SendMessageV2Request
from replispec.wire.rocketmq.codes import LogMagic, RemotingFlag, RequestCode, ResponseCode, SerializeType
from replispec.wire.rocketmq.ha import (
    HaEpochEntry,
    HaHandshakeAnswer,
    HaHandshakeId,
    HaReport,
    HaTransferHeader,
)
from replispec.wire.rocketmq.remoting import RemotingFrame, RemotingHeader
from replispec.wire.rocketmq.store import LogRecord
from tests.replay.pcap_writer import ACK, FIN, PUSH, START_NS, SYN, Endpoint, Packet, pcap

MEGABYTE = 10**6
CLIENTS_PER_MEGABYTE = 5
REPLICAS = 4
# Share of the exchanges between two packets of a capture that replicate; the rest sends messages.
REPLICATED = 0.045
BUSY_REPLICA = 0.7
LIVE_CLIENTS = 60
EXCHANGES_PER_CLIENT = 60
SEGMENT_BYTES = 1448
SWAPPED, REPEATED, MID_STREAM = 0.004, 0.003, 0.0265
STEP_NS = 20_000
CHUNK_PACKETS = 2_000
BODY_BYTES = (200, 500, 900, 1500, 3000)
BATCH_RECORDS = (4, 16, 32, 32)
VERSION_5_4_0 = 493
BROKER: Endpoint = ("10.0.0.1", 10911)
MASTER: Endpoint = ("10.0.0.2", 10912)
TOPIC, GROUP, REGION = "TopicTest", "producer-group", "DefaultRegion"


@dataclass(slots=True)
class GeneratedSide:
    """What one end of a connection sends, and the truth about it."""

    endpoint: Endpoint
    initial: int
    sent: int = 0
    frames: int = 0
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)

    def note(self, size: int, key: int | None) -> None:
        """The next frame is this long."""
        self.digest.update(line(self.sent, size, key))
        self.frames += 1
        self.sent += size


def line(sequence: int, size: int, key: int | None) -> bytes:
    """What is hashed of one frame."""
    return f"{sequence} {size} {'' if key is None else key}\n".encode()


@dataclass(slots=True)
class GeneratedLink:
    """One connection; `done` counts exchanges of a client and bytes of the log sent to a replica."""

    client: GeneratedSide
    server: GeneratedSide
    seen_opened: bool
    opened: bool = False
    done: int = 0
    limit: int = 0

    def packet(self, *, from_client: bool, flags: int = ACK) -> Packet:
        """A packet without payload, at the place where the sender's bytes have come to."""
        mine, theirs = (self.client, self.server) if from_client else (self.server, self.client)
        begun = flags & SYN == 0
        return Packet(
            mine.endpoint,
            theirs.endpoint,
            mine.initial + mine.sent + begun,
            flags=flags,
            acknowledgment=theirs.initial + theirs.sent + 1 if flags & ACK else 0,
        )

    def open(self) -> Iterator[Packet]:
        """The three-way handshake, unless the capture began later."""
        self.opened = True
        if self.seen_opened:
            yield self.packet(from_client=True, flags=SYN)
            yield self.packet(from_client=False, flags=SYN | ACK)
            yield self.packet(from_client=True)

    def close(self) -> Iterator[Packet]:
        """FIN from both sides."""
        yield self.packet(from_client=True, flags=FIN | ACK)
        yield self.packet(from_client=False, flags=FIN | ACK)

    def send(self, data: bytes, key: int | None, *, from_client: bool) -> Iterator[Packet]:
        """One frame in segments."""
        first = self.packet(from_client=from_client, flags=ACK | PUSH)
        (self.client if from_client else self.server).note(len(data), key)
        for at in range(0, len(data), SEGMENT_BYTES):
            part = data[at : at + SEGMENT_BYTES]
            yield replace(first, sequence=first.sequence + at, payload=part)


class Mix:
    """The traffic of one capture, without end; `links` are the connections so far."""

    def __init__(self, megabytes: float, seed: int) -> None:
        self._random = random.Random(seed)
        self._clients = max(4, round(CLIENTS_PER_MEGABYTE * megabytes))
        self._bodies = [self._letters(size) for size in BODY_BYTES]
        self._live: list[GeneratedLink] = []
        self._next_client = 0
        self._replicas = [self._link(f"10.1.0.{at + 1}", 50_000, MASTER) for at in range(REPLICAS)]
        self._record = self._letters(900)
        self.links: list[GeneratedLink] = list(self._replicas)

    def bursts(self) -> Iterator[list[Packet]]:
        """Packets in the order in which they were sent, without times; each burst ends with its frames."""
        while True:
            if self._random.random() < REPLICATED:
                busy = self._random.random() < BUSY_REPLICA
                at = 0 if busy else self._random.randrange(1, REPLICAS)
                yield list(self._replicate(self._replicas[at]))
            else:
                yield list(self._exchange())

    def _letters(self, count: int) -> bytes:
        return bytes(self._random.choices(range(97, 123), k=count))

    def _link(self, host: str, port: int, server: Endpoint, mid_stream: float = 0.0) -> GeneratedLink:
        starts = (self._random.randrange(1 << 32), self._random.randrange(1 << 32))
        seen_opened = self._random.random() >= mid_stream
        limit = self._random.randrange(EXCHANGES_PER_CLIENT // 2, EXCHANGES_PER_CLIENT * 3 // 2)
        return GeneratedLink(
            GeneratedSide((host, port), starts[0]), GeneratedSide(server, starts[1]), seen_opened, limit=limit
        )

    def _exchange(self) -> Iterator[Packet]:
        """A client sends a message and is answered; clients come and go, the last ones stay."""
        while len(self._live) < min(LIVE_CLIENTS, self._clients) and self._next_client < self._clients:
            host = f"10.2.{self._next_client >> 8 & 255}.{self._next_client & 255}"
            self._live.append(self._link(host, 40_000 + self._next_client % 20_000, BROKER, MID_STREAM))
            self._next_client += 1
            self.links.append(self._live[-1])
        at = self._random.randrange(len(self._live))
        link = self._live[at]
        if not link.opened:
            yield from link.open()
        opaque = link.done
        link.done += 1
        yield from link.send(_request(opaque, self._random.choice(self._bodies)), opaque, from_client=True)
        yield from link.send(_answer(opaque), opaque, from_client=False)
        if link.done >= link.limit and self._next_client < self._clients:
            yield from link.close()
            del self._live[at]

    def _replicate(self, link: GeneratedLink) -> Iterator[Packet]:
        """A master sends a run of its log, the replica reports."""
        if not link.opened:
            yield from link.open()
            yield from link.send(HaHandshakeId(broker_id=2).encode(), None, from_client=True)
            answer = HaHandshakeAnswer(last_epoch=1, entries=[HaEpochEntry(epoch=1)])
            yield from link.send(answer.encode(), None, from_client=False)
            yield from link.send(HaReport().encode(), 0, from_client=True)
        count, offset = self._random.choice(BATCH_RECORDS), link.done
        records = []
        for _ in range(count):
            records.append(_record(link.done, self._record))
            link.done += len(records[-1])
        header = HaTransferHeader(offset=offset, epoch=1, confirm_offset=offset, body=b"".join(records))
        yield from link.send(header.encode(), offset, from_client=False)
        yield from link.send(HaReport(max_offset=link.done).encode(), link.done, from_client=True)


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


def generate(path: Path, megabytes: float, seed: int) -> dict[str, object]:
    """Write a capture of about that many 10^6 bytes and return the truth about it; every frame is whole."""
    mix = Mix(megabytes, seed)
    head = len(pcap([]))
    written = packets = 0
    with path.open("wb") as file:
        written += file.write(pcap([]))
        run = disturbed(_as_many(mix, round(megabytes * MEGABYTE)), random.Random(seed + 1))
        while chunk := list(islice(run, CHUNK_PACKETS)):
            written += file.write(pcap(chunk)[head:])
            packets += len(chunk)
    return {"seed": seed, "bytes": written, "packets": packets, **_truth(mix)}


def _as_many(mix: Mix, size: int) -> Iterator[Packet]:
    """Bursts until they fill so many bytes of a capture."""
    overhead = len(pcap([Packet(BROKER, MASTER, 0)])) - len(pcap([]))
    for burst in mix.bursts():
        yield from burst
        size -= sum(overhead + len(packet.payload) for packet in burst)
        if size <= 0:
            return


def _truth(mix: Mix) -> dict[str, object]:
    """What was sent over the connections of a capture, and how often of which kind."""
    opened = [link for link in mix.links if link.opened]
    directions = {}
    counts = {"remoting": 0, "ha": 0}
    for link in opened:
        kind = "ha" if link.server.endpoint == MASTER else "remoting"
        for mine, theirs in ((link.client, link.server), (link.server, link.client)):
            counts[kind] += mine.frames
            name = f"{mine.endpoint[0]}:{mine.endpoint[1]}>{theirs.endpoint[0]}:{theirs.endpoint[1]}"
            directions[name] = {
                "frames": mine.frames,
                "bytes": mine.sent,
                "sha256": mine.digest.hexdigest(),
                "from_start": link.seen_opened,
            }
    return {"connections": len(opened), "frames": counts, "directions": directions}


def _request(opaque: int, body: bytes) -> bytes:
    header = SendMessageV2Request(
        producer_group=GROUP,
        topic=TOPIC,
        default_topic="TBW102",
        default_topic_queue_nums=8,
        queue_id=opaque & 3,
        sys_flag=0,
        born_timestamp=START_NS // MEGABYTE,
        flag=0,
        properties="KEYS\x01abc\x02UNIQ_KEY\x017F000001",
        reconsume_times=0,
        unit_mode=False,
        batch=False,
    )
    command = RemotingHeader(
        code=RequestCode.SEND_MESSAGE_V2,
        version=VERSION_5_4_0,
        opaque=opaque,
        ext_fields=header.to_ext_fields(),
        serialize_type_current_rpc=SerializeType.JSON.name,
    )
    return RemotingFrame(SerializeType.JSON, command.encode_json(), body).encode()


def _answer(opaque: int) -> bytes:
    header = SendMessageResponse(
        msg_id=f"7F00000100002A9F{opaque:016X}",
        queue_id=opaque & 3,
        queue_offset=opaque,
        trace_on="true",
        msg_region=REGION,
    )
    command = RemotingHeader(
        code=ResponseCode.SUCCESS,
        version=VERSION_5_4_0,
        opaque=opaque,
        flag=RemotingFlag.RESPONSE,
        ext_fields=header.to_ext_fields(),
        serialize_type_current_rpc=SerializeType.JSON.name,
    )
    return RemotingFrame(SerializeType.JSON, command.encode_json()).encode()


def _record(offset: int, body: bytes) -> bytes:
    return LogRecord(
        magic=LogMagic.MESSAGE_V1,
        queue_offset=offset // 1000,
        physical_offset=offset,
        born_timestamp=START_NS // MEGABYTE,
        born_ip=bytes((10, 2, 0, 1)),
        born_port=40_000,
        store_timestamp=START_NS // MEGABYTE,
        store_ip=bytes((10, 0, 0, 2)),
        store_port=BROKER[1],
        body=body,
        topic=TOPIC,
        properties=b"KEYS\x01abc",
    ).encode()


def main() -> None:
    """Write OUT and the truth beside it, as OUT.truth.json."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    truth = generate(arguments.out, arguments.megabytes, arguments.seed)
    arguments.out.with_name(f"{arguments.out.name}.truth.json").write_bytes(orjson.dumps(truth))
    sys.stdout.write(f"{truth['bytes']} bytes, {truth['packets']} packets, frames {truth['frames']}\n")


if __name__ == "__main__":
    main()
