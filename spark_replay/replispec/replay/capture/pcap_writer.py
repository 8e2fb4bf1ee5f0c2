"""Writing packets as classic pcap, times in nanoseconds.

Source: draft-ietf-opsawg-pcap-04. Integers are written little endian.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import IO, Final

from replispec.replay.capture.pcapng_writer import WrittenPacket

_MAGIC: Final = 0xA1B23C4D
_SNAP_LENGTH: Final = 0x40000


def write_pcap(packets: Iterable[WrittenPacket], link_type: int, file: IO[bytes]) -> None:
    """Write the packets, all of this link type, in the order given. Raises OSError."""
    file.write(struct.pack("<IHHiIII", _MAGIC, 2, 4, 0, 0, _SNAP_LENGTH, link_type))
    for packet in packets:
        seconds, rest = divmod(max(packet.time_ns, 0), 10**9)
        file.write(struct.pack("<IIII", seconds, rest, len(packet.data), packet.wire_bytes) + packet.data)
