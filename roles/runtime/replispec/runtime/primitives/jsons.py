"""JSON as Java's fastjson writes it: lenient to read, strict to write.

fastjson leaves the quotes off numeric keys of maps (`{1:"a"}`), which is not JSON. Reading accepts both
forms; writing quotes, unless Java's bytes are to be reproduced. Keys that are objects (`{{"id":1}:"a"}`) it
writes as they are, and reads in no other form: here they are texts, of a flat object each.

Source: apache/rocketmq rocketmq-all-5.4.0, RemotingSerializable (fastjson2 2.0.43); measured in answers to
106 and 1002.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, Final, TypeVar

import orjson

from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.primitives.texts import INT64, parse_integer

T = TypeVar("T")
NESTED_MAX: Final = 128
"""How deep a value may be nested that is kept without being known; orjson reads 1,024, and writes 254."""
# A string, or a brace or comma with the bare number or the flat object after it that is a key; strings come
# first so that none is cut open.
# Nothing is given back once it is taken, and a string without an end goes to the end of the text: whatever a
# peer sends is walked through once.
_BARE_KEY = re.compile(
    rb'"(?:[^"\\]++|\\.)*+"?|([{,]\s*+)(?:(-?[0-9]{1,20}+)|(\{(?:[^{}"]++|"(?:[^"\\]++|\\.)*+")*+\}))(\s*+:)',
    re.DOTALL,
)
_OBJECT = "\x00object:"
_OBJECT_TEXT = re.compile(r'\{(?:[^{}"]++|"(?:[^"\\]++|\\.)*+")*+\}', re.DOTALL)
_OBJECT_MARK = re.compile(rb'"\\u0000object:((?:[^"\\]++|\\.)*+)":', re.DOTALL)
_UNQUOTED = "\x00bare:"
_QUOTED_MARK = re.compile(rb'"\\u0000bare:(-?[0-9]+)":')


def loads(data: bytes | memoryview) -> Any:
    """The value that `data` is, bare numeric keys of maps allowed.

    Raises RemoteProtocolError when it is no JSON even so.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as fault:
        try:
            return orjson.loads(_BARE_KEY.sub(_quote, bytes(data)))
        except orjson.JSONDecodeError:
            raise RemoteProtocolError(f"not JSON: {fault.msg}", offset=fault.pos) from None


def _quote(match: re.Match[bytes]) -> bytes:
    if match[1] is None:
        return match[0]
    if match[3] is None:
        return match[1] + b'"' + match[2] + b'"' + match[4]
    return match[1] + orjson.dumps(match[3].decode("utf-8", "replace")) + match[4]


def dumps(value: Any, *, bare_keys: bool = False, object_keys: bool = False) -> bytes:
    """`value` as compact JSON in UTF-8, keys in their order; with `bare_keys`, keys made by bare_key without
    quotes, with `object_keys` those made by object_key as objects: any other text may be a peer's.

    Raises LocalProtocolError when the value has no JSON form.
    """
    try:
        data = orjson.dumps(value)
    except (orjson.JSONEncodeError, TypeError) as fault:
        raise LocalProtocolError(f"no JSON form: {fault}") from None
    if object_keys:
        data = _OBJECT_MARK.sub(_as_object, data)
    return _QUOTED_MARK.sub(rb"\1:", data) if bare_keys else data


def _as_object(match: re.Match[bytes]) -> bytes:
    text: str = orjson.loads(b'"' + match[1] + b'"')
    return text.encode() + b":"


def bare_key(key: int) -> str:
    """The mark of a numeric key that dumps writes without quotes, as Java does."""
    return f"{_UNQUOTED}{key}"


def object_key(text: str) -> str:
    """The mark of a key that is the text of an object, which dumps writes as it is; other text stays text."""
    return f"{_OBJECT}{text}" if _OBJECT_TEXT.fullmatch(text) else text


def take_object(value: object, what: str) -> dict[str, Any]:
    """`value` as a JSON object. Raises RemoteProtocolError when it is none."""
    if not isinstance(value, dict):
        raise RemoteProtocolError(f"{what}: an object was expected, not {_kind(value)}")
    return value


def take_array(value: object, what: str) -> list[Any]:
    """`value` as a JSON array. Raises RemoteProtocolError when it is none."""
    if not isinstance(value, list):
        raise RemoteProtocolError(f"{what}: an array was expected, not {_kind(value)}")
    return value


def take_integer(value: object, bounds: tuple[int, int], what: str) -> int:
    """`value` as an integer within bounds; text with a decimal number counts, as it does for Java.

    Raises RemoteProtocolError for anything else, numbers with a fraction or exponent included.
    """
    if isinstance(value, str):
        return parse_integer(value, bounds, what)
    if isinstance(value, bool) or not isinstance(value, int):
        raise RemoteProtocolError(f"{what}: an integer was expected, not {_kind(value)}")
    if not bounds[0] <= value <= bounds[1]:
        raise RemoteProtocolError(f"{what}: {value} is outside {bounds[0]}..{bounds[1]}")
    return value


def take_number(value: object, what: str) -> float:
    """`value` as a number. Raises RemoteProtocolError when it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RemoteProtocolError(f"{what}: a number was expected, not {_kind(value)}")
    return float(value)


def take_string(value: object, what: str) -> str:
    """`value` as text. Raises RemoteProtocolError when it is none."""
    if not isinstance(value, str):
        raise RemoteProtocolError(f"{what}: text was expected, not {_kind(value)}")
    return value


def take_bool(value: object, what: str) -> bool:
    """`value` as true or false. Raises RemoteProtocolError when it is neither."""
    if not isinstance(value, bool):
        raise RemoteProtocolError(f"{what}: true or false was expected, not {_kind(value)}")
    return value


def take_optional(value: object, take: Callable[[object], T]) -> T | None:
    """None for an absent (or null) value, else what `take` makes of it."""
    return None if value is None else take(value)


def take_map(value: object, take: Callable[[object], T], what: str) -> dict[str, T]:
    """A JSON object whose values `take` reads. Raises RemoteProtocolError when it is none."""
    return {key: take(item) for key, item in take_object(value, what).items()}


def take_integer_map(value: object, take: Callable[[object], T], what: str) -> dict[int, T]:
    """The same with integers (int64) for keys."""
    return {parse_integer(key, INT64, what): take(item) for key, item in take_object(value, what).items()}


def take_ext_fields(value: object, what: str) -> dict[str, str | None]:
    """Header fields: numbers and flags become text, as Java's decoder makes of them.

    Raises RemoteProtocolError for nested values.
    """
    fields = take_object(value, what)
    for key, item in fields.items():
        if not isinstance(item, str) and item is not None:
            fields[key] = _as_text(item, f"{what}.{key}")
    return fields


def _as_text(value: object, what: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise RemoteProtocolError(f"{what}: text was expected, not {_kind(value)}")


def unknown_keys(fields: Mapping[str, T], known: frozenset[str]) -> dict[str, T]:
    """The part of `fields` that the specification does not know.

    Raises RemoteProtocolError for one that is nested deeper than could be written again.
    """
    found = {key: value for key, value in fields.items() if key not in known}
    check_depth(*found.values())
    return found


def check_depth(*values: object) -> None:
    """Raises RemoteProtocolError when one of these is nested deeper than could be written again."""
    level = list(values)
    for _ in range(NESTED_MAX):
        level = [item for each in level if isinstance(each, dict | list) for item in _inside(each)]
        if not level:
            return
    raise RemoteProtocolError(f"a value that is not known is nested more than {NESTED_MAX} deep")


def _inside(value: dict[str, object] | list[object]) -> Iterable[object]:
    return value.values() if isinstance(value, dict) else value


def _kind(value: object) -> str:
    names = {
        dict: "an object",
        list: "an array",
        str: "text",
        bool: "a flag",
        int: "a number",
        float: "a number",
    }
    return "null" if value is None else names.get(type(value), type(value).__name__)


def holds_text(value: object) -> bool:
    """True for an array whose first element is text: which of two forms of one key it is."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], str)


def take_named(value: object, names: type[IntEnum], what: str) -> str:
    """The name of a named value, which peers give as a name or a number; absent: the name of 0.

    Unknown names and numbers are kept as text, so that they can be written back. Raises
    RemoteProtocolError for other types.
    """
    if isinstance(value, str):
        return value
    return name_of(0 if value is None else take_integer(value, (0, 255), what), names)


def name_of(number: int, names: type[IntEnum]) -> str:
    """The name of a number, or its digits when it has none."""
    member = names._value2member_map_.get(number)
    return str(number) if member is None else str(member.name)


def number_of(name: str, names: type[IntEnum], what: str) -> int:
    """The inverse of name_of. Raises LocalProtocolError for a name without number."""
    member = names.__members__.get(name)
    if member is not None:
        return int(member)
    if not (name.isascii() and name.isdigit()):
        raise LocalProtocolError(f"{what}: {name[:40]!r} has no number")
    return int(name)
