"""Digests of log bytes that can be joined: of two ranges side by side to that of the whole range.

Runs of one commit log are cut differently on every connection; what lies between two common borders
is compared by joining the digests of its runs. A digest is CRC-32 and Adler-32 of the bytes, as one
signed number of 64 bits. It tells damage, not malice: whoever wants two ranges to look alike can.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final
from zlib import adler32, crc32

import numpy as np
import numpy.typing as npt

_ADLER_MODULUS: Final = 65_521
_CRC_POLYNOMIAL: Final = 0xEDB88320
_ONE: Final = 1 << 31
"""The polynomial 1, its bits in the reversed order of CRC-32."""
_LOW: Final = 2**32 - 1
_SIGN: Final = 1 << 63


def digest(data: bytes | memoryview) -> int:
    """The digest of some bytes."""
    # As `_packed`, in one place: there is one for every body.
    number = crc32(data) << 32 | adler32(data)
    return number - 2 * _SIGN if number >= _SIGN else number


def crc_of(number: int) -> int:
    """The CRC-32 in a digest."""
    return (number >> 32) & _LOW


def crcs_of(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The CRC-32 in each digest."""
    found: npt.NDArray[np.int64] = (numbers >> 32) & _LOW
    return found


def joined(first: int, second: int, second_size: int) -> int:
    """The digest of two ranges side by side; `second_size` is the size of the second one in bytes."""
    one, two = _unpacked(first), _unpacked(second)
    crc = _product(_shift(second_size), one[0]) ^ two[0]
    low = (one[1] & 0xFFFF) + (two[1] & 0xFFFF) - 1
    high = (one[1] >> 16) + (two[1] >> 16) + second_size * ((one[1] & 0xFFFF) - 1)
    return _packed(crc, (high % _ADLER_MODULUS) << 16 | low % _ADLER_MODULUS)


def _packed(crc: int, adler: int) -> int:
    """Both as one signed number."""
    number = crc << 32 | adler
    return number - 2 * _SIGN if number >= _SIGN else number


def _unpacked(number: int) -> tuple[int, int]:
    """CRC-32 and Adler-32 of a digest."""
    return (number >> 32) & _LOW, number & _LOW


def _product(left: int, right: int) -> int:
    """The product of two polynomials modulo that of CRC-32."""
    result = 0
    for bit in range(31, -1, -1):
        if left >> bit & 1:
            result ^= right
        right = right >> 1 ^ (_CRC_POLYNOMIAL if right & 1 else 0)
    return result


@lru_cache(maxsize=4096)
def _shift(size: int) -> int:
    """What CRC-32 is multiplied with when so many bytes follow: x to the power of their bits."""
    power, square, bits = _ONE, _ONE >> 1, 8 * size
    while bits:
        if bits & 1:
            power = _product(power, square)
        square = _product(square, square)
        bits >>= 1
    return power
