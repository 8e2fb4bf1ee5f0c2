"""One decoded frame as a line: for people, and as JSON for scripts.

A frame is a row of the frames table: the table's column names, with None where a column does not apply.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson

from replispec.runtime.primitives.visible import visible

Row = Mapping[str, Any]
Words = Callable[[Row], Iterator[str]]
"""What a frame is, and its fields, as a family words them."""

VALUE_CHARACTERS_MAXIMUM = 200
NS_PER_SECOND = 10**9
LINE_ENDS_TO_BLANKS = bytes.maketrans(b"\r\n", b"  ")


def text_line(row: Row, start_ns: int, words: Words) -> str:
    """The frame for people: seconds since `start_ns`, who to whom, what it is in `words`. No line end."""
    whole, rest = divmod(row["time_ns"] - start_ns, NS_PER_SECOND)
    parts = [f"{whole:>6}.{rest:09}", f"{row['source']} > {row['destination']}", *words(row)]
    if row["body_size"]:
        parts.append(f"body={row['body_size']}")
    if not row["complete"]:
        parts.append("(bytes of it are missing)")
    return "  ".join(parts)


def shown(value: str | None) -> str:
    """A value as a line can hold it."""
    return "(none)" if value is None else visible(value, VALUE_CHARACTERS_MAXIMUM)


def json_line(row: Row) -> bytes:
    """The frame for scripts: one JSON object with the columns that apply, ended by a newline.

    A JSON body is put in as JSON when it is well formed, else as text; raw bodies are left out.
    """
    shown = {key: value for key, value in row.items() if value is not None and key != "body"}
    if "ext_fields" in shown:
        shown["ext_fields"] = dict(shown["ext_fields"])
    if "json_body" in shown:
        shown["json_body"] = _json_body(shown["json_body"])
    return orjson.dumps(shown, option=orjson.OPT_APPEND_NEWLINE)


def _json_body(body: bytes) -> Any:
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode(errors="replace")
    # As it was sent, so that no number loses digits; line ends outside of strings are only white space.
    return orjson.Fragment(body.translate(LINE_ENDS_TO_BLANKS))
