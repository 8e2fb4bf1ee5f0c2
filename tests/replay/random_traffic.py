"""Random traffic for tests, repeatable from a seed: replication, remoting, and what else goes over a wire.

Connections are made whole, then shuffled together, and then the capture is harmed: packets lost,
repeated, reordered, cut; starts left out.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from replispec.wire.rocketmq import ha, remoting
from tests.replay.pcap_writer import ACK, RST, Conversation, Endpoint, Packet, pcap, with_times


@dataclass(frozen=True, slots=True)
class Harm:
    """How often (0 to 1) something happens to a packet, and whether starts are left out."""

    lost: float = 0.0
    repeated: float = 0.0
    reordered: float = 0.0
    cut: float = 0.0
    headless: float = 0.0


HARMLESS = Harm()


def command(
    opaque: int, *, body: bytes = b"", answer: bool = False, binary: bool = False, code: int = 310
) -> bytes:
    """A remoting frame with a few ext fields."""
    header = remoting.RemotingHeader(
        code=0 if answer else code,
        opaque=opaque,
        flag=1 if answer else 0,
        version=493,
        ext_fields={"topic": "TopicA", "queueId": str(opaque % 8)} if opaque % 3 else None,
        remark="a remark" if opaque % 5 == 0 else None,
    )
    data = header.encode_binary() if binary else header.encode_json()
    return remoting.RemotingFrame(serialize_type=int(binary), header=data, body=body).encode()


def batch(offset: int, size: int, *, epoch: int = 1, epoch_start: int = 0, fill: int = 7) -> bytes:
    """A transfer frame with `size` log bytes."""
    header = ha.HaTransferHeader(
        offset=offset,
        epoch=epoch,
        epoch_start_offset=epoch_start,
        confirm_offset=offset,
        body=bytes([fill]) * size,
    )
    return header.encode()


def random_body(rng: random.Random) -> bytes:
    """A message body: nothing, text, JSON, zeros, noise, frames within the frame, or a capture."""
    kind = rng.randrange(8)
    if kind == 0:
        return b'{"syncStateSet":[1,2],"syncStateSetEpoch":%d}' % rng.randrange(100)
    if kind == 1:
        return bytes(rng.randrange(300))
    if kind == 2:
        return rng.randbytes(rng.randrange(2000))
    if kind == 3:
        return b"".join(command(at) for at in range(rng.randrange(1, 6)))
    if kind == 4:
        inner = Conversation(("10.9.9.9", 99), ("10.9.9.8", 98)).open().send(command(1) * 3, from_client=True)
        return pcap(inner.packets)
    return b"text " * rng.randrange(200)


def remoting_talk(rng: random.Random, talk: Conversation) -> None:
    """Requests and answers in both directions."""
    binary = rng.random() < 0.3
    for opaque in range(rng.randrange(1, 12)):
        data = b"".join(
            command(opaque, body=random_body(rng), binary=binary) for _ in range(rng.randrange(1, 3))
        )
        talk.send(data, from_client=True, mss=rng.choice([40, 200, 1448]))
        if rng.random() < 0.8:
            talk.send(command(opaque, answer=True, body=random_body(rng)), from_client=False)
        if rng.random() < 0.2:
            talk.acknowledge(from_client=True)


def replication_talk(rng: random.Random, talk: Conversation) -> None:
    """A handshake, then runs of log bytes and reports."""
    start = rng.randrange(0, 2**33)
    if rng.random() < 0.5:
        talk.send(ha.HaHandshakeId(broker_id=2).encode(), from_client=True)
    else:
        talk.send(ha.HaHandshakeAddress(address="10.0.0.7:10911").encode(), from_client=True)
    entries = [ha.HaEpochEntry(epoch=1, start_offset=0)]
    talk.send(
        ha.HaHandshakeAnswer(max_offset=start, last_epoch=1, entries=entries).encode(), from_client=False
    )
    talk.send(ha.HaReport(max_offset=start).encode(), from_client=True)
    offset = start
    for _ in range(rng.randrange(1, 15)):
        size = rng.choice([0, 0, 100, 3000, 9000])
        talk.send(
            batch(offset, size, fill=rng.randrange(4)), from_client=False, mss=rng.choice([60, 700, 1448])
        )
        offset += size
        talk.send(ha.HaReport(max_offset=offset).encode(), from_client=True)


def legacy_talk(rng: random.Random, talk: Conversation) -> None:
    """Replication outside controller mode."""
    offset = 0
    talk.send(ha.HaLegacyReport(max_offset=offset).encode(), from_client=True)
    for _ in range(rng.randrange(1, 8)):
        body = bytes([5]) * rng.choice([0, 500])
        talk.send(ha.HaLegacyTransferHeader(offset=offset, body=body).encode(), from_client=False)
        offset += len(body)
        talk.send(ha.HaLegacyReport(max_offset=offset).encode(), from_client=True)


def foreign_talk(rng: random.Random, talk: Conversation) -> None:
    """Something else: text, or noise."""
    for _ in range(rng.randrange(1, 6)):
        data = rng.choice(
            [b"GET / HTTP/1.1\r\n\r\n", rng.randbytes(5000), b"\x16\x03\x01" + rng.randbytes(300)]
        )
        talk.send(data, from_client=rng.random() < 0.5)


KINDS = (remoting_talk, remoting_talk, replication_talk, replication_talk, legacy_talk, foreign_talk)


def one_talk(rng: random.Random, client: Endpoint, server: Endpoint, harm: Harm) -> list[Packet]:
    """The packets of one connection; two connections when the ports are used again."""
    packets: list[Packet] = []
    for _ in range(2 if rng.random() < 0.15 else 1):
        initial = rng.choice(
            [rng.randrange(2**32), 2**32 - rng.randrange(1, 3000), 2**31 - rng.randrange(3000)]
        )
        talk = Conversation(client, server, client_initial=initial, server_initial=rng.randrange(2**32))
        headless = rng.random() < harm.headless
        talk.open()
        rng.choice(KINDS)(rng, talk)
        if rng.random() < 0.5:
            talk.close()
        found = talk.packets
        packets += found[rng.randrange(1, len(found)) :] if headless else found
        if rng.random() < 0.1:
            packets.append(Packet(client, server, rng.randrange(2**32), flags=RST))
    return packets


def harmed(rng: random.Random, packets: list[Packet], harm: Harm) -> list[Packet]:
    """The packets as a bad capture point would have them."""
    out: list[Packet] = []
    for packet in packets:
        if rng.random() < harm.lost:
            continue
        if packet.payload and rng.random() < harm.cut:
            kept = rng.randrange(len(packet.payload))
            packet = replace(packet, payload=packet.payload[:kept], payload_wire=len(packet.payload))
        out.append(packet)
        if rng.random() < harm.repeated:
            again = rng.choice(out[-40:])
            out.append(rng.choice([again, replace(again, payload=again.payload[: len(again.payload) // 2])]))
        if packet.payload and rng.random() < harm.repeated / 4:
            out.append(replace(packet, sequence=packet.sequence - 1, payload=b"\x00", flags=ACK))
    for at in range(len(out) - 1):
        if rng.random() < harm.reordered:
            other = min(len(out) - 1, at + rng.randrange(1, 6))
            out[at], out[other] = out[other], out[at]
    return out


def random_capture(seed: int, harm: Harm = HARMLESS, talks: int = 6) -> list[Packet]:
    """Packets of some connections, mixed."""
    rng = random.Random(seed)
    queues = [
        one_talk(rng, (f"10.0.{at}.9", 40_000 + at), ("10.0.0.2", 10_911 + at % 2), harm)
        for at in range(talks)
    ]
    mixed: list[Packet] = []
    while queues := [queue for queue in queues if queue]:
        queue = rng.choice(queues)
        take = rng.randrange(1, 9)
        mixed += queue[:take]
        del queue[:take]
    return with_times(harmed(rng, mixed, harm))
