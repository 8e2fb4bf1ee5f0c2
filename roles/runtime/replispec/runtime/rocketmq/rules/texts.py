"""Bits of numbers, what is shown of a peer's text, and the properties in a text.

Golden examples in spec/vectors/rocketmq/texts.yaml.
"""

from __future__ import annotations

from typing import Final

from replispec.runtime.primitives.parameters import ConfigurationError
from replispec.runtime.primitives.properties import read_properties
from replispec.wire.rocketmq.controller import Property

_SHOWN_MAX: Final = 200


def has_bit(number: int, bits: int) -> bool:
    """Whether a number has any of these bits."""
    return number & bits != 0


def excerpt(text: str) -> str:
    """The first 200 characters of a text."""
    return text[:_SHOWN_MAX]


def properties_in(text: str) -> list[Property] | None:
    """The properties in a text in Java's format, the last value of each; None when an escape is none."""
    try:
        found, _ = read_properties(text)
    except ConfigurationError:
        return None
    return [Property(name, value) for name, value in found.items()]
