"""The properties of a stored message, as its record carries them.

Source: apache/rocketmq rocketmq-all-5.4.0, MessageDecoder.string2messageProperties, MessageConst.
"""

from __future__ import annotations

from typing import Final

from replispec.runtime.rocketmq.rules import string_hash

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
    return string_hash(tag)
