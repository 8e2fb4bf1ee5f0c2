"""Checksums that the standard library has not: the one module that imports the library for them."""

from __future__ import annotations

import google_crc32c

from replispec.runtime.primitives.binary import Buffer


def crc32c(data: Buffer, mask: int) -> int:
    """CRC-32C (Castagnoli) of `data`, masked."""
    return int(google_crc32c.value(bytes(data))) & mask
