"""JSON objects of a known form decoded straight into typed values, when they are plain.

Plain means: every key is known, every value has its own type. That is what nearly every peer sends
nearly always, and it is read in less time than a parse without types takes. Whatever else a peer may
write (numbers as text, unknown keys, bare keys) is left to the lenient readers in `jsons`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec

OPTIONAL_TEXT = str | None
OPTIONAL_TEXTS = dict[str, str | None] | None
# What a reader raises for bytes that are not plain; they may be sound all the same.
NOT_PLAIN = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def integer_within(bounds: tuple[int, int]) -> Any:
    """The type of integers within bounds, for `plain_reader`."""
    return Annotated[int, msgspec.Meta(ge=bounds[0], le=bounds[1])]


class PlainReader:
    """Reads JSON objects of one form. `one`: a function of bytes that gives an object with the form's fields
    as attributes, or raises NOT_PLAIN."""

    def __init__(self, form: type[msgspec.Struct]) -> None:
        self._decoder = msgspec.json.Decoder(form)
        self.one: Callable[[bytes | memoryview], Any] = self._decoder.decode

    def each(self, texts: Sequence[bytes]) -> list[Any] | None:
        """What `one` gives for each text, in less time; None when not all are known to be plain.

        They are read as lines. No text holds a line's end, each begins with a brace and ends with one, so no
        object goes over a border, each text holds one at least, and as many as there are texts are one each.
        """
        lines = b"\n".join(texts)
        borders = len(texts) - 1
        if not texts or lines[:1] != b"{" or lines[-1:] != b"}":
            return None
        if lines.count(b"\n") != borders or lines.count(b"}\n{") != borders:
            return None
        try:
            found: list[Any] = self._decoder.decode_lines(lines)
        except NOT_PLAIN:
            return None
        return found if len(found) == len(texts) else None


def plain_reader(name: str, *fields: tuple[str, str, Any, Any]) -> PlainReader:
    """The reader of objects with these fields.

    A field is (attribute, key, type, default); the default stands for an absent key.
    """
    form = msgspec.defstruct(
        name,
        [(attribute, kind, default) for attribute, _, kind, default in fields],
        rename={attribute: key for attribute, key, *_ in fields},
        forbid_unknown_fields=True,
        gc=False,
    )
    return PlainReader(form)
