"""Numbers and flags as text: the values of remoting header fields and the fields of text files.

Parsing is as strict as Java's (`Long.parseLong`), and stricter than Python's `int`, which would take
underscores, blanks and digits of other scripts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError

DIGITS_MAXIMUM = 20
_NUMBER = re.compile(rf"[+-]?[0-9]{{1,{DIGITS_MAXIMUM}}}")
INT32 = (-(1 << 31), (1 << 31) - 1)
INT64 = (-(1 << 63), (1 << 63) - 1)
UINT32 = (0, (1 << 32) - 1)


def parse_integer(text: str, bounds: tuple[int, int], what: str) -> int:
    """The decimal number that `text` is. Raises RemoteProtocolError when it is none or out of bounds."""
    if _NUMBER.fullmatch(text) is None:
        raise RemoteProtocolError(f"{what}: {text[:40]!r} is not a number")
    value = int(text)
    if not bounds[0] <= value <= bounds[1]:
        raise RemoteProtocolError(f"{what}: {text} is outside {bounds[0]}..{bounds[1]}")
    return value


def decimal_of(text: str, maximum: int = INT64[1]) -> int | None:
    """The number that these digits are, without a sign; None for any other text, and for a greater number: a
    peer may write as many digits as it likes."""
    if not (text.isascii() and text.isdecimal()) or len(text) > DIGITS_MAXIMUM:
        return None
    value = int(text)
    return value if value <= maximum else None


def bool_text(value: bool) -> str:
    """ "true" or "false"."""
    return "true" if value else "false"


def split_fields(text: str, separator: str, minimum: int, maximum: int, what: str) -> list[str]:
    """The fields between separators; the last takes the rest. Raises RemoteProtocolError."""
    fields = text.split(separator, maximum - 1)
    if len(fields) < minimum:
        raise RemoteProtocolError(f"{what}: {len(fields)} fields between {separator!r}, {minimum} expected")
    return fields


def split_lines(data: bytes, what: str, *, end_of_line: bool) -> list[str]:
    """The lines of a text file in UTF-8, without their ends (a line feed).

    Raises RemoteProtocolError when the text is not UTF-8, or its last line is not ended although
    `end_of_line` says so.
    """
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError:
        raise RemoteProtocolError(f"{what}: not UTF-8") from None
    if not end_of_line:
        return lines
    if lines.pop() != "":
        raise RemoteProtocolError(f"{what}: the last line is not ended")
    return lines


def join_fields(fields: Iterable[str | int | None], separator: str, what: str) -> str:
    """One line of the fields that are not None.

    Raises LocalProtocolError when a field but the last holds the separator, or any a line feed: the line
    could not be read back.
    """
    texts = [str(field) for field in fields if field is not None]
    if any(separator in text for text in texts[:-1]) or any("\n" in text for text in texts):
        raise LocalProtocolError(f"{what}: a field holds {separator!r} or a line feed")
    return separator.join(texts)


def join_lines(lines: Iterable[str], *, end_of_line: bool) -> bytes:
    """The lines in UTF-8 with line feeds between them, and one at the end when `end_of_line` says so."""
    text = "\n".join(lines)
    return (f"{text}\n" if end_of_line and text else text).encode()


def at_least(number: int, minimum: int, what: str) -> None:
    """Raises RemoteProtocolError when fewer than `minimum` lines are there."""
    if number < minimum:
        raise RemoteProtocolError(f"{what}: {number} lines, at least {minimum} expected")


def agree(written: int, computed: int, what: str) -> None:
    """Raises RemoteProtocolError when a number in the text is not what the text itself gives."""
    if written != computed:
        raise RemoteProtocolError(f"{what}: {written} is written, {computed} is true")


def must_be(written: int, constant: int, what: str) -> None:
    """Raises RemoteProtocolError when a number is not the one that it always is."""
    if written != constant:
        raise RemoteProtocolError(f"{what}: {written} is written, {constant} is read")


def text_of(data: bytes) -> str:
    """The text that bytes are. Raises RemoteProtocolError for what is no UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise RemoteProtocolError("a text is not UTF-8", offset=error.start) from None
