"""Records what a process itself sends and receives as a capture, without any privilege.

The packets are made up: each piece that the kernel took or gave is one TCP segment (more where it is too
long), with numbers as a real stream would have them, real addresses and times in microseconds. What the
network does, delays and retransmissions, is not in it. Every segment is in the file once the call returns, so
that a killed process loses nothing but the piece under way.

Source: the libpcap file format (classic, link type RAW); RFC 791, 8200, 9293. TCP checksums are 0, as with
offloading.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from replispec.runtime.net.addresses import split
from replispec.runtime.world.effects import Buffer

SEGMENT_BYTES_MAX: Final = 65_000
"""Payload of one packet; its length field has 16 bits."""
# Microseconds, little-endian, version 2.4, records of up to 262,144 bytes, link type RAW.
FILE_HEADER: Final = bytes.fromhex("d4c3b2a1 0200 0400 00000000 00000000 00000400 65000000")
RECORD_HEADER_BYTES: Final = 16
_FIN, _SYN, _RST, _PUSH, _ACK = 1, 2, 4, 8, 16
_TCP: Final = 6
_SEQUENCES: Final = 2**32


class TapError(Exception):
    """The file cannot be recorded to."""


@dataclass(slots=True)
class _Flow:
    """One connection: addresses packed, and the next number of each side."""

    ours: bytes
    our_port: bytes
    theirs: bytes
    their_port: bytes
    our_next: int
    their_next: int


class FileTap:
    """Appends to a capture, or makes it. `failed` is told, once, why a recording ended early.

    `accepted_only`: connections that this process dialled are left out, so that the captures of all processes
    of a cluster hold each connection once. `bytes_max`: the file grows no further.
    """

    def __init__(
        self,
        path: Path,
        now_us: Callable[[], int],
        *,
        accepted_only: bool,
        bytes_max: int,
        failed: Callable[[str], None],
    ) -> None:
        self._now_us = now_us
        self._accepted_only = accepted_only
        self._bytes_max = bytes_max
        self._failed = failed
        self._path = path
        self._flows: dict[int, _Flow] = {}
        self._last_handle = 0
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            self._size = _whole_bytes(self._file, path)
            os.ftruncate(self._file, self._size)
            os.lseek(self._file, self._size, os.SEEK_SET)
        except OSError as error:
            raise TapError(f"{path}: {error.strerror}") from error
        self._is_open = True
        if not self._size:
            self._write(FILE_HEADER)

    def opened(self, local: str, peer: str, *, dialled: bool) -> int:
        """Begin a connection with a handshake."""
        self._last_handle += 1
        if dialled and self._accepted_only:
            return self._last_handle
        # As RFC 9293 advises, the first number follows the clock: ports that are used again get another.
        first = self._now_us() // 4 % _SEQUENCES
        flow = _Flow(*_packed(local), *_packed(peer), first, (first + _SEQUENCES // 2) % _SEQUENCES)
        self._flows[self._last_handle] = flow
        self._segment(flow, ours=dialled, flags=_SYN)
        self._segment(flow, ours=not dialled, flags=_SYN | _ACK)
        self._segment(flow, ours=dialled, flags=_ACK)
        return self._last_handle

    def sent(self, handle: int, data: Buffer) -> None:
        """Record what left."""
        self._data(handle, data, ours=True)

    def received(self, handle: int, data: bytes) -> None:
        """Record what came."""
        self._data(handle, data, ours=False)

    def closed(self, handle: int, *, by_peer: bool, broken: bool) -> None:
        """End a connection, by a reset or from the side that ended it."""
        flow = self._flows.pop(handle, None)
        if flow is None:
            return
        if broken:
            self._segment(flow, ours=True, flags=_RST | _ACK)
            return
        self._segment(flow, ours=not by_peer, flags=_FIN | _ACK)
        self._segment(flow, ours=by_peer, flags=_FIN | _ACK)
        self._segment(flow, ours=not by_peer, flags=_ACK)

    def close(self) -> None:
        """End the recording."""
        if self._is_open:
            self._is_open = False
            os.close(self._file)

    def _data(self, handle: int, data: Buffer, *, ours: bool) -> None:
        flow = self._flows.get(handle)
        if flow is not None:
            view = memoryview(data)
            for at in range(0, len(view), SEGMENT_BYTES_MAX):
                part = view[at : at + SEGMENT_BYTES_MAX]
                self._segment(flow, ours=ours, flags=_PUSH | _ACK, data=part)

    def _segment(self, flow: _Flow, *, ours: bool, flags: int, data: Buffer = b"") -> None:
        if ours:
            source, source_port, target, target_port = flow.ours, flow.our_port, flow.theirs, flow.their_port
            number, answered = flow.our_next, flow.their_next
        else:
            source, source_port, target, target_port = flow.theirs, flow.their_port, flow.ours, flow.our_port
            number, answered = flow.their_next, flow.our_next
        head = b"".join(
            (
                source_port,
                target_port,
                number.to_bytes(4, "big"),
                (answered if flags & _ACK else 0).to_bytes(4, "big"),
                # Five words of header; the largest window; no checksum; nothing urgent.
                bytes((0x50, flags, 0xFF, 0xFF, 0, 0, 0, 0)),
            )
        )
        packet = _network(source, target, len(head) + len(data)) + head
        size = len(packet) + len(data)
        seconds, micros = divmod(self._now_us(), 1_000_000)
        record = b"".join(value.to_bytes(4, "little") for value in (seconds, micros, size, size))
        self._write(record + packet, data)
        step = len(data) + bool(flags & (_SYN | _FIN))
        if ours:
            flow.our_next = (number + step) % _SEQUENCES
        else:
            flow.their_next = (number + step) % _SEQUENCES

    def _write(self, *parts: Buffer) -> None:
        if not self._is_open:
            return
        size = sum(map(len, parts))
        if self._size + size > self._bytes_max:
            self._end(f"{self._path}: {self._bytes_max} bytes are recorded")
            return
        try:
            written = os.writev(self._file, parts)
        except OSError as error:
            self._end(f"{self._path}: {error.strerror}")
            return
        if written < size:
            self._end(f"{self._path}: no room")
            return
        self._size += size

    def _end(self, reason: str) -> None:
        self.close()
        self._failed(reason)


def _whole_bytes(file: int, path: Path) -> int:
    """The size of what a recording left behind that is whole: a kill can cut its last record."""
    size = os.fstat(file).st_size
    if size < len(FILE_HEADER):
        return 0
    if os.pread(file, len(FILE_HEADER), 0) != FILE_HEADER:
        raise TapError(f"{path}: is there already, and no recording of this kind")
    at = len(FILE_HEADER)
    while at + RECORD_HEADER_BYTES <= size:
        captured = int.from_bytes(os.pread(file, 4, at + 8), "little")
        if at + RECORD_HEADER_BYTES + captured > size:
            break
        at += RECORD_HEADER_BYTES + captured
    return at


def _packed(address: str) -> tuple[bytes, bytes]:
    host, port = split(address)
    return ipaddress.ip_address(host.partition("%")[0]).packed, port.to_bytes(2, "big")


def _network(source: bytes, target: bytes, size: int) -> bytes:
    """The IP header, version 4 or 6 by the addresses, before `size` bytes."""
    if len(source) > 4:
        return b"\x60\0\0\0" + size.to_bytes(2, "big") + bytes((_TCP, 64)) + source + target
    head = bytearray(b"\x45\0" + (20 + size).to_bytes(2, "big") + b"\0\0\x40\0\x40")
    head += bytes((_TCP, 0, 0)) + source + target
    total = sum(int.from_bytes(head[at : at + 2], "big") for at in range(0, 20, 2))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    head[10:12] = (total ^ 0xFFFF).to_bytes(2, "big")
    return bytes(head)
