"""Sample values for every message of the specification, made from the types of its fields.

Deterministic: the same specification gives the same samples. How far a number may go is asked of the codec,
one field at a time, so that no bound stands here a second time.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from replispec.runtime.primitives.errors import ProtocolError

USUAL, ABSENT, ZERO, NEGATIVE, MAXIMUM = "usual", "absent", "zero", "negative", "maximum"
LABELS = (USUAL, ABSENT, ZERO, NEGATIVE, MAXIMUM)
_NUMBERS = {
    NEGATIVE: (*(-(1 << bits) for bits in (63, 31, 15, 7)), -1),
    MAXIMUM: tuple((1 << bits) - 1 for bits in (63, 32, 31, 16, 15, 8, 7)),
}
# Of messages that were asked for: there are as many as the specification has.
_HINTS: dict[type[Any], Mapping[str, Any]] = {}
RoundTrip = Callable[[Any], bool]


class Sampler:
    """Makes samples of one family's messages.

    `fixed` maps messages to fields that others of the same message decide, so that they cannot be chosen
    alone; None: the codec derives the field.
    """

    def __init__(self, fixed: Mapping[str, Mapping[str, Any]]) -> None:
        self._fixed = fixed

    def samples(self, kind: type[Any], round_trip: RoundTrip) -> Iterator[tuple[str, Any]]:
        """(label, message) of one class: every label that differs from those before and can be written.

        `round_trip` says whether a message is written and read back as the same.
        """
        seen: list[Any] = []
        for label in LABELS:
            message = self._message(kind, label, round_trip)
            if message not in seen and _holds(message, round_trip):
                seen.append(message)
                yield label, message

    def _message(self, kind: type[Any], label: str, round_trip: RoundTrip) -> Any:
        fixed = self._fixed.get(kind.__name__, {})
        if label == ABSENT:
            return kind(**fixed)
        usual = self._filled(kind, self._value)
        if label == USUAL:
            return usual
        changes = {
            name: self._reached(usual, name, hint, label, round_trip)
            for name, hint in hints(kind).items()
            if name not in fixed
        }
        return dataclasses.replace(usual, **changes)

    def _reached(self, usual: Any, name: str, hint: Any, label: str, round_trip: RoundTrip) -> Any:
        """The outermost value of one field that can be written beside the usual ones."""
        for value in self._candidates(hint, label):
            if _holds(dataclasses.replace(usual, **{name: value}), round_trip):
                return value
        return getattr(usual, name)

    def _candidates(self, hint: Any, label: str) -> Iterator[Any]:
        """Values of one type, outermost first."""
        kind = _present(hint)
        if kind is int:
            yield from _NUMBERS.get(label, (0,))
        elif kind is bool:
            yield label == MAXIMUM
        elif kind is str and label == MAXIMUM:
            yield "é" * 60  # two bytes each in UTF-8: lengths count bytes
        elif kind is bytes and label == MAXIMUM:
            yield bytes(range(256))
        else:
            yield from self._compound_candidates(kind, label)

    def _compound_candidates(self, kind: Any, label: str) -> Iterator[Any]:
        arguments = typing.get_args(kind)
        match typing.get_origin(kind):
            case _ if dataclasses.is_dataclass(kind) and isinstance(kind, type):
                for width in range(len(_NUMBERS[MAXIMUM])):
                    yield self._filled(kind, partial(self._nth, label=label, width=width))
            case origin if origin is list and label == ZERO:
                yield []
            case origin if origin is list:
                yield from (
                    [value, self._value(arguments[0])] for value in self._candidates(arguments[0], label)
                )
            case origin if origin is dict and label == ZERO:
                yield {}
            case origin if origin is dict:
                key = self._value(arguments[0])
                yield from ({key: value} for value in self._candidates(arguments[1], label))

    def _nth(self, hint: Any, label: str, width: int) -> Any:
        """The outermost value, or a narrower one where there is one; the usual one where there is none."""
        found = list(self._candidates(hint, label))
        return found[min(width, len(found) - 1)] if found else self._value(hint)

    def _filled(self, kind: type[Any], value: Callable[[Any], Any]) -> Any:
        """A message with a value for every field that may be chosen."""
        fixed = self._fixed.get(kind.__name__, {})
        return kind(
            **{name: fixed[name] if name in fixed else value(hint) for name, hint in hints(kind).items()}
        )

    def _value(self, hint: Any) -> Any:
        """The usual value of a type."""
        kind = _present(hint)
        if dataclasses.is_dataclass(kind) and isinstance(kind, type):
            return self._filled(kind, self._value)
        arguments = typing.get_args(kind)
        if typing.get_origin(kind) is list:
            return [self._value(arguments[0])]
        if typing.get_origin(kind) is dict:
            return {self._value(arguments[0]): self._value(arguments[1])}
        return {int: 7, float: 7.5, str: "name", bool: True, bytes: b"\x01\x7f\x80\xff"}[kind]


def _holds(message: Any, round_trip: RoundTrip) -> bool:
    try:
        return round_trip(message)
    except ProtocolError:
        return False


def hints(kind: type[Any]) -> Mapping[str, Any]:
    """The types of the fields that a message has on the wire, by name."""
    if kind not in _HINTS:
        found = typing.get_type_hints(kind)
        named = (each.name for each in dataclasses.fields(kind))
        _HINTS[kind] = {name: found[name] for name in named if name != "unknown"}
    return _HINTS[kind]


def _present(hint: Any) -> Any:
    """The type of a field that is not absent."""
    if typing.get_origin(hint) is types.UnionType:
        return next(each for each in typing.get_args(hint) if each is not type(None))
    return hint


def plain(value: Any) -> Any:
    """A message or value as JSON has it: fields by name, bytes in hexadecimal, keys as text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: plain(getattr(value, name)) for name in hints(type(value))}
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value
