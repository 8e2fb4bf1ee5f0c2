"""Bits of numbers, and what is shown of a peer's text.

Golden examples in spec/vectors/rocketmq/texts.yaml.
"""

from __future__ import annotations

from typing import Final

_SHOWN_MAX: Final = 200


def has_bit(number: int, bits: int) -> bool:
    """Whether a number has any of these bits."""
    return number & bits != 0


def excerpt(text: str) -> str:
    """The first 200 characters of a text."""
    return text[:_SHOWN_MAX]
