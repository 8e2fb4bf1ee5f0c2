"""JSON messages: objects with typed fields, read leniently and written as Java writes them.

A generated class declares its fields, one line each; `json_message` works out once how to read and write.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, dataclass_transform

from replispec.runtime.primitives.errors import LocalProtocolError
from replispec.runtime.primitives.jsons import dumps, holds_text, loads, take_object, unknown_keys
from replispec.runtime.primitives.keyed import Keyed, declared

MessageT = TypeVar("MessageT", bound="type[JsonMessage | BareMessage]")


class _Reading(NamedTuple):
    """What reading a field needs; see `Keyed`."""

    key: str
    holds_text: bool | None
    read: Callable[[object, str], Any]
    place: str


class _Encoded:
    """The bytes of a message that has a value in JSON."""

    __slots__ = ()
    OBJECT_FIELDS: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def decode(cls, data: bytes | memoryview) -> Self:
        """The message that the bytes are, bare numeric keys allowed. Raises RemoteProtocolError."""
        return cls.from_json(loads(data))

    def encode(self, *, bare_keys: bool = False) -> bytes:
        """Compact JSON; `bare_keys` leaves the quotes off numeric keys, as Java does.

        Raises LocalProtocolError when a value has no JSON form.
        """
        value = self.to_json(bare_keys=bare_keys)
        has_objects = any(getattr(self, name) is not None for name in self.OBJECT_FIELDS)
        return dumps(value, bare_keys=bare_keys, object_keys=has_objects)

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Likewise from a parsed value. Raises RemoteProtocolError."""
        raise NotImplementedError

    def to_json(self, *, bare_keys: bool = False) -> object:
        """The value that encode writes. Raises LocalProtocolError."""
        raise NotImplementedError


@dataclass(slots=True, kw_only=True)
class JsonMessage(_Encoded):
    """A JSON object; `unknown` holds the keys that it does not declare, `KEYS` are those it does."""

    unknown: dict[str, object] = field(default_factory=dict)
    KEYS: ClassVar[frozenset[str]] = frozenset()
    _READING: ClassVar[tuple[_Reading, ...]]
    _WRITING: ClassVar[tuple[Keyed, ...]]

    @classmethod
    def from_json(cls, value: object) -> Self:
        """The message that a parsed object is; unknown keys are kept. Raises RemoteProtocolError."""
        fields = take_object(value, cls.__name__)
        get = fields.get
        values: list[Any] = []
        for key, is_text, read, place in cls._READING:
            found = get(key)
            if found is None or (is_text is not None and is_text != holds_text(found)):
                values.append(None)
            else:
                values.append(read(found, place))
        if fields.keys() <= cls.KEYS:
            return cls(*values)
        return cls(*values, unknown=unknown_keys(fields, cls.KEYS))

    def to_json(self, *, bare_keys: bool = False) -> dict[str, object]:
        """The object that encode writes: absent fields are left out, unknown keys come last.

        Raises LocalProtocolError when two fields of one key are set.
        """
        fields: dict[str, object] = {}
        for each in self._WRITING:
            value = getattr(self, each.name)
            if value is None:
                continue
            if each.holds_text is not None and each.key in fields:
                raise LocalProtocolError(f"{each.place}: two alternatives of one key are set")
            write = each.kind.write
            fields[each.key] = value if write is None else write(value, bare_keys)
        fields.update(self.unknown)
        return fields


class BareMessage(_Encoded):
    """A message whose JSON is the value of its only field."""

    __slots__ = ()
    KEYS: ClassVar[frozenset[str]] = frozenset()
    _ONLY: ClassVar[Keyed]

    @classmethod
    def from_json(cls, value: object) -> Self:
        """The message that a parsed value is; null is none. Raises RemoteProtocolError."""
        made: Callable[[Any], Self] = cls
        return made(None if value is None else cls._ONLY.kind.read(value, cls.__name__))

    def to_json(self, *, bare_keys: bool = False) -> object:
        """The value that encode writes."""
        value, write = getattr(self, self._ONLY.name), self._ONLY.kind.write
        return value if value is None or write is None else write(value, bare_keys)


@dataclass_transform()
def json_message(*, alphabetical: bool = False) -> Callable[[MessageT], MessageT]:
    """A class decorator that makes a dataclass of the declarations of a JSON message.

    Keys are written as declared, or in alphabetical order.
    """

    def made(cls: MessageT) -> MessageT:
        whole: Any = dataclass(slots=True)(cls)
        found = tuple(declared(whole))
        whole.KEYS = frozenset(each.key for each in found)
        whole.OBJECT_FIELDS = tuple(each.name for each in found if each.kind.has_objects)
        if issubclass(cls, BareMessage):
            (whole._ONLY,) = found
        else:
            whole._READING = tuple(
                _Reading(each.key, each.holds_text, each.kind.read, each.place) for each in found
            )
            whole._WRITING = tuple(sorted(found, key=lambda each: each.key) if alphabetical else found)
        result: MessageT = whole
        return result

    return made
