"""Fields of messages whose values have keys: remoting headers and JSON objects.

A generated class names each field's key and kind once; `headers` and `json_messages` read and write
by these declarations. Every field may be absent, which is None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from replispec.runtime.primitives import texts
from replispec.runtime.primitives.jsons import (
    bare_key,
    object_key,
    take_array,
    take_bool,
    take_integer,
    take_integer_map,
    take_map,
    take_number,
    take_string,
)

T = TypeVar("T")
_METADATA = "keyed"


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """How one value is read from parsed JSON, given a name for errors, and written to it.

    `write` is given the value and whether numeric keys stay without quotes; None writes the value itself.
    `bounds` are set for integers; `has_objects`: it is, or holds, a map whose keys are objects.
    """

    read: Callable[[object, str], T]
    write: Callable[[T, bool], object] | None = None
    bounds: tuple[int, int] | None = None
    has_objects: bool = False


def _integer(bounds: tuple[int, int]) -> Kind[int]:
    low, high = bounds

    def read(value: object, what: str) -> int:
        # As nearly every peer writes it.
        if type(value) is int and low <= value <= high:
            return value
        return take_integer(value, bounds, what)

    return Kind(read, bounds=bounds)


TEXT = Kind(take_string)
FLAG = Kind(take_bool)
NUMBER = Kind(take_number)
INT32, INT64, UINT32 = _integer(texts.INT32), _integer(texts.INT64), _integer(texts.UINT32)


class Nested(Protocol):
    """A message that may be the value of a field; `OBJECT_FIELDS` hold maps whose keys are objects."""

    OBJECT_FIELDS: ClassVar[tuple[str, ...]]

    @classmethod
    def from_json(cls, value: object) -> Self:
        """The message that a parsed value is. Raises RemoteProtocolError."""
        ...

    def to_json(self, *, bare_keys: bool = False) -> object:
        """Its value, to be written as JSON."""
        ...


NestedT = TypeVar("NestedT", bound=Nested)


@dataclass(frozen=True, slots=True)
class Keyed:
    """What the declaration of a field says: its attribute, its key on the wire and its kind.

    `place` is the name of the field in errors: that of its message and its key.
    `holds_text` is set for two fields that share one key, in releases that differ by the type of the
    elements: True for the one whose elements are text.
    """

    name: str
    place: str
    key: str
    kind: Kind[Any]
    holds_text: bool | None = None


def text(key: str) -> str | None:
    """A field that holds text."""
    return _field(key, TEXT)


def flag(key: str) -> bool | None:
    """A field that is true or false."""
    return _field(key, FLAG)


def int32(key: str) -> int | None:
    """A field that holds a signed integer of 32 bits."""
    return _field(key, INT32)


def int64(key: str) -> int | None:
    """A field that holds a signed integer of 64 bits."""
    return _field(key, INT64)


def number(key: str) -> float | None:
    """A field that holds a number with a fraction."""
    return _field(key, NUMBER)


def uint32(key: str) -> int | None:
    """A field that holds an unsigned integer of 32 bits."""
    return _field(key, UINT32)


def message(kind: type[NestedT], key: str) -> NestedT | None:
    """A field that holds a message."""
    return _field(key, nested(kind))


def list_of(element: Kind[T], key: str, *, holds_text: bool | None = None) -> list[T] | None:
    """A field that holds a list; `holds_text` as in Keyed."""

    def read(value: object, what: str) -> list[T]:
        take = element.read
        return [take(item, what) for item in take_array(value, what)]

    write = element.write
    kind: Kind[list[T]] = Kind(read)
    if write is not None:
        kind = Kind(
            read,
            lambda items, bare_keys: [write(item, bare_keys) for item in items],
            has_objects=element.has_objects,
        )
    return _field(key, kind, holds_text=holds_text)


def map_of(element: Kind[T], key: str) -> dict[str, T] | None:
    """A field that holds a map with text for keys."""

    def read(value: object, what: str) -> dict[str, T]:
        return take_map(value, lambda item: element.read(item, what), what)

    def write(items: Mapping[str, T], bare_keys: bool) -> dict[str, object]:
        put = element.write
        if put is None:
            return dict(items)
        return {name: put(item, bare_keys) for name, item in items.items()}

    return _field(key, Kind(read, write, has_objects=element.has_objects))


def object_map_of(element: Kind[T], key: str) -> dict[str, T] | None:
    """A field that holds a map whose keys are objects, here their texts; written so that Java reads them."""

    def read(value: object, what: str) -> dict[str, T]:
        return take_map(value, lambda item: element.read(item, what), what)

    def write(items: Mapping[str, T], bare_keys: bool) -> dict[str, object]:
        put = element.write
        return {object_key(text): put(item, bare_keys) if put else item for text, item in items.items()}

    return _field(key, Kind(read, write, has_objects=True))


def integer_map_of(element: Kind[T], key: str, *, bare: bool = False) -> dict[int, T] | None:
    """A field that holds a map with integers for keys, which Java writes without quotes if `bare`."""

    def read(value: object, what: str) -> dict[int, T]:
        return take_integer_map(value, lambda item: element.read(item, what), what)

    def write(items: Mapping[int, T], bare_keys: bool) -> dict[str, object]:
        name = bare_key if bare and bare_keys else str
        put = element.write
        return {name(number): put(item, bare_keys) if put else item for number, item in items.items()}

    return _field(key, Kind(read, write, has_objects=element.has_objects))


def nested(kind: type[NestedT]) -> Kind[NestedT]:
    """The kind of values that are messages."""
    return Kind(
        lambda value, _what: kind.from_json(value),
        lambda value, bare_keys: value.to_json(bare_keys=bare_keys),
        has_objects=bool(kind.OBJECT_FIELDS),
    )


def declared(cls: type[Any]) -> list[Keyed]:
    """The declarations of a class in the order of its attributes."""
    return [
        Keyed(each.name, f"{cls.__name__}.{each.metadata[_METADATA][0]}", *each.metadata[_METADATA])
        for each in fields(cls)
        if _METADATA in each.metadata
    ]


def _field(key: str, kind: Kind[T], *, holds_text: bool | None = None) -> T | None:
    made: T | None = field(default=None, metadata={_METADATA: (key, kind, holds_text)})
    return made
