"""What was captured with those who take part and was not read takes the promise; other traffic does not."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from replispec.replay.engines.by_splits import decode_by_splits
from replispec.replay.engines.decoding import decode_capture
from tests.replay.pcap_writer import Conversation, Packet, frame, pcap
from tests.replay.scenarios import failed_over, two_brokers
from tests.replay.test_all_clear import headline_of, told

ETHERNET_BYTES, IP_BYTES = 14, 20
Alter = Callable[[bytes], bytes]


def internet_sum(data: bytes) -> int:
    """The checksum of RFC 1071."""
    padded = data + bytes(len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def filled(data: bytes, *, tcp: bool = True) -> bytes:
    """An Ethernet frame with right checksums of IPv4 and of TCP."""
    made = bytearray(data)
    end = ETHERNET_BYTES + struct.unpack_from("!H", made, ETHERNET_BYTES + 2)[0]
    at = ETHERNET_BYTES + IP_BYTES
    if tcp:
        made[at + 16 : at + 18] = bytes(2)
        pseudo = bytes(made[ETHERNET_BYTES + 12 : at]) + struct.pack("!BBH", 0, 6, end - at)
        struct.pack_into("!H", made, at + 16, internet_sum(pseudo + bytes(made[at:end])))
    made[ETHERNET_BYTES + 10 : ETHERNET_BYTES + 12] = bytes(2)
    struct.pack_into("!H", made, ETHERNET_BYTES + 10, internet_sum(bytes(made[ETHERNET_BYTES:at])))
    return bytes(made)


def written(packets: Sequence[Packet], alter: Callable[[Packet, bytes], bytes]) -> bytes:
    """A capture of Ethernet frames, each as it is altered."""
    records = [pcap([])[:20] + struct.pack("<I", 1)]
    for each in packets:
        data = alter(each, frame(each)[0])
        seconds, rest = divmod(each.time_ns, 10**9)
        records.append(struct.pack("<IIII", seconds, rest // 1000, len(data), len(data)) + data)
    return b"".join(records)


def apart() -> tuple[list[Packet], set[tuple[str, int]]]:
    """A fail-over after which three messages are missing that were acknowledged on a connection of their
    own; its two ends."""
    world = two_brokers()
    world.producer = None
    world.send(3)
    link = world._to(world.brokers[1])
    world.producer = None
    return failed_over(world).traffic.packets(), {link.talk.client, link.talk.server}


def with_apart(alter: Alter, keep: Callable[[Packet], bool] = lambda _: True) -> bytes:
    """Right checksums everywhere, and that connection altered."""
    packets, ends = apart()
    mine = [each for each in packets if {each.source, each.destination} == ends]
    return written(
        [each for each in packets if each not in mine or keep(each)],
        lambda each, data: alter(data) if each in mine else filled(data),
    )


def wrong_ip(data: bytes) -> bytes:
    made = bytearray(filled(data))
    made[ETHERNET_BYTES + 10] ^= 0x55
    return bytes(made)


def wrong_tcp(data: bytes) -> bytes:
    made = bytearray(filled(data))
    made[ETHERNET_BYTES + IP_BYTES + 16] ^= 0x55
    return bytes(made)


def wrong_but_syn(data: bytes) -> bytes:
    """The SYN of both sides is sound, and nothing else."""
    flags = data[ETHERNET_BYTES + IP_BYTES + 13]
    return filled(data) if flags & 2 else wrong_tcp(data)


def of_ip(number: int) -> Alter:
    def alter(data: bytes) -> bytes:
        made = bytearray(data)
        made[ETHERNET_BYTES + 9] = number
        return filled(bytes(made), tcp=False)

    return alter


def of_ether(number: int) -> Alter:
    return lambda data: data[:12] + struct.pack("!H", number) + data[14:]


def in_udp(port: int) -> Alter:
    def alter(data: bytes) -> bytes:
        inside = struct.pack("!HHHH", 40000, port, 8 + len(data), 0) + data
        made = bytearray(data[: ETHERNET_BYTES + IP_BYTES])
        made[ETHERNET_BYTES + 9] = 17
        struct.pack_into("!H", made, ETHERNET_BYTES + 2, IP_BYTES + len(inside))
        return filled(bytes(made) + inside, tcp=False)

    return alter


UNREAD: dict[str, tuple[Alter, str]] = {
    "IP checksums": (wrong_ip, "checksums are wrong"),
    "TCP checksums": (wrong_tcp, "checksums are wrong"),
    "all but SYN": (wrong_but_syn, "checksums are wrong"),
    "ESP": (of_ip(50), "between 10.0.0.4 and 10.0.1.1: ESP"),
    "no known protocol": (of_ip(253), "IP protocol 253"),
    "malformed IP in IP": (of_ip(4), "malformed IPv4 in IP"),
    "MACsec": (of_ether(0x88E5), "MACsec"),
    "NSH": (of_ether(0x894F), "NSH"),
    "malformed PPPoE": (of_ether(0x8864), "malformed PPPoE"),
    "TRILL": (of_ether(0x22F3), "ether type 0x22f3"),
    "no known ether type": (of_ether(0x9999), "ether type 0x9999"),
    "GTP": (in_udp(2152), "between 10.0.0.4 and 10.0.1.1: UDP"),
    "UDP": (in_udp(51820), "between 10.0.0.4 and 10.0.1.1: UDP"),
}


@pytest.mark.parametrize("name", UNREAD)
def test_a_connection_with_a_participant_that_was_not_read_leaves_no_promise(
    name: str, tmp_path: Path
) -> None:
    alter, why = UNREAD[name]
    summary = told(with_apart(alter), tmp_path / "unread.pcap")
    found = headline_of(summary)
    assert (found.tone, summary.exit_code) == ("unjudged", 0)
    assert any(why in line for line in found.lines if line.startswith("Not read: "))


def in_snap(data: bytes) -> bytes:
    """A frame of IEEE 802.3: its length, and the ether type behind both access points."""
    inside = b"\xaa\xaa\x03\0\0\0" + filled(data)[12:]
    return data[:12] + struct.pack("!H", len(inside)) + inside


def in_tagged_snap(data: bytes) -> bytes:
    return data[:12] + b"\x81\0\0\x05" + in_snap(data)[12:]


@pytest.mark.parametrize("alter", [filled, in_snap, in_tagged_snap])
def test_the_same_connection_with_right_checksums_tells_the_loss(alter: Alter, tmp_path: Path) -> None:
    summary = told(with_apart(alter), tmp_path / "read.pcap")
    assert [each.acknowledged for each in summary.losses] == [3]


PLAIN: dict[str, Alter] = {
    "ARP": of_ether(0x0806),
    "LLDP": of_ether(0x88CC),
    "bridges": of_ether(0x0026),
    "ICMP": of_ip(1),
    "DNS": in_udp(53),
    "NTP": in_udp(123),
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_traffic_between_participants_takes_no_promise(name: str, tmp_path: Path) -> None:
    summary = told(with_apart(PLAIN[name]), tmp_path / "plain.pcap")
    assert (headline_of(summary).tone, summary.captures[0].unread) == ("kept", ())


@pytest.mark.parametrize("damage", [wrong_ip, wrong_tcp])
def test_packets_that_were_damaged_and_sent_again_take_no_promise(damage: Alter, tmp_path: Path) -> None:
    packets = failed_over(two_brokers()).traffic.packets()
    chosen = [each for each in packets if each.payload][::7]
    again = [each for packet in packets for each in ([packet, packet] if packet in chosen else [packet])]
    first: set[int] = set()

    def alter(each: Packet, data: bytes) -> bytes:
        if each not in chosen or id(each) in first:
            return filled(data)
        first.add(id(each))
        return damage(data)

    summary = told(written(again, alter), tmp_path / "damaged.pcap")
    assert summary.captures[0].packets_corrupt == len(chosen)
    assert (headline_of(summary).tone, summary.captures[0].holes) == ("kept", 0)


@pytest.mark.parametrize("at", [("port", 35), ("address", 29)])
def test_a_damaged_packet_that_seems_to_be_another_connections_takes_no_promise(
    at: tuple[str, int], tmp_path: Path
) -> None:
    packets = failed_over(two_brokers()).traffic.packets()
    chosen = next(each for each in packets if each.payload)
    done: list[Packet] = []

    def alter(each: Packet, data: bytes) -> bytes:
        made = bytearray(filled(data))
        if each is chosen and not done:
            done.append(each)
            made[at[1]] ^= 0x10
        return bytes(made)

    again = [each for packet in packets for each in ([packet, packet] if packet is chosen else [packet])]
    summary = told(written(again, alter), tmp_path / "elsewhere.pcap")
    assert (headline_of(summary).tone, summary.captures[0].holes) == ("kept", 0)


@pytest.mark.parametrize("alter", [wrong_ip, wrong_but_syn])
def test_parts_of_a_capture_tell_the_same_of_wrong_checksums(alter: Alter, tmp_path: Path) -> None:
    path = tmp_path / "parts.pcap"
    path.write_bytes(with_apart(alter))
    whole = decode_capture(path)
    for size in (500, 5000):
        parts = decode_by_splits(path, size)
        assert parts.streams.to_pylist() == whole.streams.to_pylist()
        assert parts.holes.to_pylist() == whole.holes.to_pylist()
        assert parts.wire == whole.wire


# ---- encrypted connections -------------------------------------------------------------------------


def encrypted(
    server: tuple[str, int], time_ns: int, *, hello: bool, port: int = 51000, syn: bool = True
) -> list[Packet]:
    """A connection of which everything is encrypted; with its hello or without."""
    talk = Conversation(("10.0.7.7", port), server, time_ns=time_ns)
    if syn:
        talk.open()
    if hello:
        talk.send(b"\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03" + bytes(194), from_client=True)
    talk.send(b"\x17\x03\x03\x01\x2c" + bytes(range(255, 55, -1)), from_client=True)
    return talk.acknowledge(from_client=False).packets


@pytest.mark.parametrize("hello", [True, False])
@pytest.mark.parametrize(
    "server",
    [("10.0.1.1", 10911), ("10.0.1.1", 10909), ("10.0.1.2", 10911), ("10.0.1.2", 10912), ("10.0.0.1", 9878)],
)
def test_encrypted_connections_with_listeners_of_participants_leave_no_promise(
    server: tuple[str, int], hello: bool, tmp_path: Path
) -> None:
    packets = failed_over(two_brokers()).traffic.packets()
    summary = told(
        pcap([*packets, *encrypted(server, packets[-1].time_ns, hello=hello)]), tmp_path / "tls.pcap"
    )
    found = headline_of(summary)
    assert (found.tone, summary.exit_code) == ("unjudged", 0)
    assert any(f"{server[0]}:{server[1]}" in line for line in found.lines)


@pytest.mark.parametrize("hello", [True, False])
@pytest.mark.parametrize("syn", [True, False])
def test_a_client_with_a_lower_port_than_its_listener_leaves_no_promise_either(
    syn: bool, hello: bool, tmp_path: Path
) -> None:
    packets = failed_over(two_brokers()).traffic.packets()
    more = encrypted(("10.0.1.1", 10911), packets[-1].time_ns, hello=hello, port=5000, syn=syn)
    found = headline_of(told(pcap([*packets, *more]), tmp_path / "tls.pcap"))
    assert found.tone == "unjudged"
    assert any("connections with 10.0.1.1:10911" in line for line in found.lines)


@pytest.mark.parametrize("server", [("10.0.9.9", 443), ("10.0.1.1", 443), ("10.0.9.9", 10911)])
def test_encrypted_connections_with_others_take_no_promise(server: tuple[str, int], tmp_path: Path) -> None:
    packets = failed_over(two_brokers()).traffic.packets()
    summary = told(
        pcap([*packets, *encrypted(server, packets[-1].time_ns, hello=True)]), tmp_path / "other.pcap"
    )
    found = headline_of(summary)
    assert found.tone == "kept"
    assert any("encrypted by TLS" in line for line in found.lines)


def test_losses_beside_encrypted_connections_with_a_listener_are_at_least(tmp_path: Path) -> None:
    world = two_brokers()
    world.send(3)
    packets = failed_over(world).traffic.packets()
    more = encrypted(("10.0.1.1", 10911), packets[-1].time_ns, hello=True)
    summary = told(pcap([*packets, *more]), tmp_path / "lost.pcap")
    assert headline_of(summary).text.startswith("At least 3 acknowledged messages")


# ---- why messages could not be compared --------------------------------------------------------------


def test_messages_that_are_told_lost_are_not_among_those_that_were_not_compared(tmp_path: Path) -> None:
    """Without replication connections only the first write of the new master tells where its epoch starts."""
    world = two_brokers()
    world.send(3)
    packets = failed_over(world)
    packets.send(2)
    summary = told(
        pcap(
            [each for each in packets.traffic.packets() if 10912 not in (each.source[1], each.destination[1])]
        ),
        tmp_path / "lost.pcap",
    )
    (sends,) = summary.sends
    lost = sum(each.acknowledged for each in summary.losses)
    assert lost
    for line in headline_of(summary).lines:
        assert f"{sends.acknowledged} of {sends.acknowledged} acknowledged" not in line
    assert sends.lost_alone == lost
