"""The properties of a stored message, as its record carries them.

Source: apache/rocketmq rocketmq-all-5.4.0, MessageDecoder.string2messageProperties, MessageConst.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

_KEY_END: Final = "\x01"
_VALUE_END: Final = "\x02"
_TAG: Final = "TAGS"


def properties_of(data: bytes) -> dict[str, str]:
    """Names and values; what is no pair is left out, as Apache RocketMQ does."""
    pairs = (each.split(_KEY_END) for each in data.decode(errors="replace").split(_VALUE_END))
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def tags_code(data: bytes) -> int:
    """The number by which a consumer's filter knows the message's tag; 0 without a tag."""
    tag = properties_of(data).get(_TAG, "") if _TAG.encode() in data else ""
    return _hash_of(tag)


@lru_cache(maxsize=4096)
def _hash_of(text: str) -> int:
    """`String.hashCode` of Java: over UTF-16 units, a signed 32-bit number."""
    units = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for at in range(0, len(units), 2):
        code = (31 * code + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    return code - (code >> 31 << 32)
