"""Typed views on headers whose fields are all text: the ext fields of remoting commands.

A generated class declares its fields, one line each; `header` works out once what reading and writing
need. Attributes go by position, keys are looked up all at once, small numbers are looked up and other plain
decimal ones parsed in line, and the order of a Java HashMap is known beforehand, as a header is read or
written for every request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeVar, dataclass_transform

from replispec.runtime.primitives.jsons import unknown_keys
from replispec.runtime.primitives.keyed import FLAG, Keyed, declared
from replispec.runtime.primitives.orders import hash_capacities, hash_ordered
from replispec.runtime.primitives.texts import DIGITS_MAXIMUM, bool_text, parse_integer

HeaderT = TypeVar("HeaderT", bound="type[Header]")
_SMALL: Final = {str(number): number for number in range(1 << 8)}
"""Ids, epochs, flags: most of the numbers in headers, looked up in half of the time that parsing takes."""
# The position of each field among the attributes, its key, and what makes a text of its value (None: it is
# one), in the order in which fields are written.
_Order = tuple[tuple[int, str, Callable[[Any], str] | None], ...]


class _Reading(NamedTuple):
    """What reading needs; `integers` are (position, small numbers that are within bounds, minimum, maximum),
    `flags` are positions."""

    keys: tuple[str, ...]
    known: frozenset[str]
    integers: tuple[tuple[int, Mapping[str | None, int], int, int], ...]
    flags: tuple[int, ...]


class _Writing(NamedTuple):
    """What writing needs: the values, the order for each number of fields from none on, and in binary."""

    values: Callable[[Any], tuple[Any, ...]]
    orders: tuple[_Order, ...]
    in_binary: _Order | None
    hash_capacity: int | None


class ReadFields(dict[str, str | None]):
    """Ext fields that were read: whoever reads them again as the same header is given that one, with what was
    changed in it since."""

    __slots__ = ("header",)
    header: Header


@dataclass(slots=True, kw_only=True)
class Header:
    """A typed view on the ext fields of a remoting header; `unknown` holds the keys it does not declare.

    `CODES` are the request codes it belongs to, `KEYS` the keys that it declares.
    """

    unknown: dict[str, str | None] = field(default_factory=dict)
    CODES: ClassVar[tuple[int, ...]] = ()
    KEYS: ClassVar[frozenset[str]] = frozenset()
    _READING: ClassVar[_Reading]
    _WRITING: ClassVar[_Writing]

    @classmethod
    def from_ext_fields(cls, ext_fields: Mapping[str, str | None]) -> Self:
        """The view on a header's ext fields; unknown keys are kept.

        Raises RemoteProtocolError when a number is none or out of bounds.
        """
        if ext_fields.__class__ is ReadFields and (read := ext_fields.header).__class__ is cls:
            return read
        keys, known, integers, flags = cls._READING
        values: list[Any] = list(map(ext_fields.get, keys))
        for at, small, low, high in integers:
            text = values[at]
            if (found := small.get(text)) is not None:
                values[at] = found
            elif text is not None:
                # Digits of other scripts are digits for Python, hence ASCII.
                if text.isdigit() and text.isascii() and len(text) <= DIGITS_MAXIMUM:
                    values[at] = number = int(text)
                    if low <= number <= high:
                        continue
                values[at] = parse_integer(text, (low, high), f"{cls.__name__}.{keys[at]}")
        for at in flags:
            if (text := values[at]) is not None:
                values[at] = text.lower() == "true"
        # Nothing else is there when every field that is there was found.
        if len(ext_fields) == len(values) - values.count(None) or ext_fields.keys() <= known:
            return cls(*values)
        return cls(*values, unknown=unknown_keys(ext_fields, known))

    @classmethod
    def key_of(cls, attribute: str) -> str:
        """The key of a field on the wire."""
        return next(each.key for each in declared(cls) if each.name == attribute)

    def to_ext_fields(self, *, binary: bool = False) -> dict[str, str | None]:
        """The ext fields in the order in which Java writes them, in a JSON or a binary header.

        Absent fields are left out.
        """
        read, orders, in_binary, hash_capacity = self._WRITING
        values = read(self)
        if binary and in_binary is not None:
            order, hash_capacity = in_binary, None
        else:
            order = orders[len(values) - values.count(None)]
        fields: dict[str, str | None] = {
            key: value if text_of is None else text_of(value)
            for at, key, text_of in order
            if (value := values[at]) is not None
        }
        if not self.unknown:
            return fields
        fields.update(self.unknown)
        return fields if hash_capacity is None else hash_ordered(fields, hash_capacity)


@dataclass_transform()
def header(
    *codes: int, hash_capacity: int | None = None, binary_declared: bool = False
) -> Callable[[HeaderT], HeaderT]:
    """A class decorator that makes a dataclass of a header's declarations, for requests of these codes.

    Fields are written in the order of a Java HashMap of this initial capacity, or as declared: always if
    there is none, in binary headers if `binary_declared`.
    """

    def made(cls: HeaderT) -> HeaderT:
        whole: Any = dataclass(slots=True)(cls)
        found = declared(whole)
        keys = tuple(each.key for each in found)
        whole.CODES, whole.KEYS = codes, frozenset(keys)
        integers = tuple(
            (at, _small_within(each.kind.bounds), *each.kind.bounds)
            for at, each in enumerate(found)
            if each.kind.bounds
        )
        flags = tuple(at for at, each in enumerate(found) if each.kind is FLAG)
        whole._READING = _Reading(keys, whole.KEYS, integers, flags)
        fields = tuple((at, each.key, _text_of(each)) for at, each in enumerate(found))
        in_binary = fields if binary_declared else None
        whole._WRITING = _Writing(_values_of(found), _orders(fields, hash_capacity), in_binary, hash_capacity)
        result: HeaderT = whole
        return result

    return made


def _small_within(bounds: tuple[int, int]) -> Mapping[str | None, int]:
    """The small numbers within bounds, by their text."""
    return {text: number for text, number in _SMALL.items() if bounds[0] <= number <= bounds[1]}


def _orders(fields: _Order, hash_capacity: int | None) -> tuple[_Order, ...]:
    """The order for each number of fields, from none to all of them."""
    if hash_capacity is None:
        return (fields,) * (len(fields) + 1)
    by_key = {key: (at, key, text_of) for at, key, text_of in fields}
    found: list[_Order] = []
    for most, capacity in hash_capacities(hash_capacity, len(fields)):
        order = tuple(hash_ordered(by_key, capacity, count=0).values())
        found += [order] * (most + 1 - len(found))
    return tuple(found)


def _text_of(field: Keyed) -> Callable[[Any], str] | None:
    """What writes the values of a field as Java does."""
    return bool_text if field.kind is FLAG else str if field.kind.bounds else None


def _values_of(found: Sequence[Keyed]) -> Callable[[Any], tuple[Any, ...]]:
    """A function of a message: the values of its fields."""
    names = [each.name for each in found]
    if len(names) > 1:
        return attrgetter(*names)
    value = attrgetter(*names) if names else None
    return (lambda message: (value(message),)) if value else lambda _message: ()
