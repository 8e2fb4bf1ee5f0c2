"""The properties of a stored message, as its record carries them.

Source: apache/rocketmq rocketmq-all-5.4.0, MessageDecoder.string2messageProperties, MessageConst.
"""

from __future__ import annotations

from typing import Final

from replispec.runtime.rocketmq.rules import string_hash
from replispec.wire.rocketmq.constants import PROPERTY_NAME_END, PROPERTY_VALUE_END, TAG_PROPERTY

_TAG_BYTES: Final = TAG_PROPERTY.encode()


def properties_of(data: bytes) -> dict[str, str]:
    """Names and values; what is no pair is left out, as Apache RocketMQ does."""
    listed = data.decode(errors="replace").split(PROPERTY_VALUE_END)
    pairs = (each.split(PROPERTY_NAME_END) for each in listed)
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def tags_code(data: bytes) -> int:
    """The number by which a consumer's filter knows the message's tag; 0 without a tag."""
    tag = properties_of(data).get(TAG_PROPERTY, "") if _TAG_BYTES in data else ""
    return string_hash(tag)
