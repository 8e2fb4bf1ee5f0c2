"""JSON objects of a known form decoded straight into typed values, when they are plain.

Plain means: every key is known, every value has its own type. That is what nearly every peer sends
nearly always, and it is read in less time than a parse without types takes. Whatever else a peer may
write (numbers as text, unknown keys, bare keys) is left to the lenient readers in `jsons`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import msgspec

OPTIONAL_TEXT = str | None
OPTIONAL_TEXTS = dict[str, str | None] | None
# What a reader raises for bytes that are not plain; they may be sound all the same.
NOT_PLAIN = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def integer_within(bounds: tuple[int, int]) -> Any:
    """The type of integers within bounds, for `plain_reader`."""
    return Annotated[int, msgspec.Meta(ge=bounds[0], le=bounds[1])]


def plain_reader(name: str, *fields: tuple[str, str, Any, Any]) -> Callable[[bytes | memoryview], Any]:
    """A function of bytes that gives an object with these fields as attributes, or raises NOT_PLAIN.

    A field is (attribute, key, type, default); the default stands for an absent key.
    """
    form = msgspec.defstruct(
        name,
        [(attribute, kind, default) for attribute, _, kind, default in fields],
        rename={attribute: key for attribute, key, *_ in fields},
        forbid_unknown_fields=True,
        gc=False,
    )
    return msgspec.json.Decoder(form).decode
