"""Records the traffic of a simulated network as packets, for the replay to judge."""

from __future__ import annotations

from replispec.runtime.sim.world import START_MS
from tests.replay.pcap_writer import ACK, FIN, PUSH, RST, SYN, Packet

SEGMENT_BYTES = 60_000


class Wiretap:
    """Packets in the order in which they arrived."""

    def __init__(self) -> None:
        self.packets: list[Packet] = []
        self._next: dict[tuple[str, str], int] = {}

    def opened(self, dialer: str, listener: str, now_us: int) -> None:
        """Two packets of a handshake."""
        self._next[dialer, listener] = self._next[listener, dialer] = 0
        self._add(dialer, listener, now_us, SYN)
        self._add(listener, dialer, now_us, SYN | ACK)

    def carried(self, source: str, target: str, data: bytes, now_us: int) -> None:
        """One packet, or several."""
        for at in range(0, len(data), SEGMENT_BYTES):
            self._add(source, target, now_us, ACK | PUSH, data[at : at + SEGMENT_BYTES])

    def ended(self, source: str, target: str, now_us: int, *, is_reset: bool) -> None:
        """One packet, unless the connection was never seen."""
        if (source, target) in self._next:
            self._add(source, target, now_us, RST if is_reset else FIN | ACK)

    def _add(self, source: str, target: str, now_us: int, flags: int, data: bytes = b"") -> None:
        way, back = (source, target), (target, source)
        packet = Packet(
            _endpoint(source),
            _endpoint(target),
            self._next[way],
            data,
            flags,
            self._next[back] if flags & ACK else 0,
            START_MS * 1_000_000 + now_us * 1_000,
        )
        self.packets.append(packet)
        self._next[way] += len(data) + bool(flags & (SYN | FIN))


def _endpoint(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)
