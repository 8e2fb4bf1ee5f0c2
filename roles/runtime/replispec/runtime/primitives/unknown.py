"""The value of what was not seen.

A capture may start in the middle, and packets get lost. `UNKNOWN` stands for the value that nobody
saw: arithmetic on it is unknown again, and a question about it (a comparison, a truth value, a
membership) raises `UnknownRead`, so that `a or b` still answers when `a` alone decides. Code that
was written for known values thus never gives a wrong answer about an unknown one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final, NoReturn, TypeVar

K = TypeVar("K")
V = TypeVar("V")
MessageT = TypeVar("MessageT")


class UnknownRead(Exception):
    """A question was asked whose answer depends on something that was not seen."""


def _refuse(*_: object) -> NoReturn:
    raise UnknownRead("the answer depends on something that was not seen")


def _unknown(*_: object) -> Any:
    return UNKNOWN


class Unknown:
    """The class of `UNKNOWN`; test with `is UNKNOWN`, every other question raises UnknownRead."""

    __slots__ = ()

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __bool__ = __hash__ = __contains__ = __iter__ = __len__ = __index__ = items = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = _unknown
    union = intersection = difference = get = _unknown

    def __repr__(self) -> str:
        return "unknown"

    def __reduce__(self) -> str:
        return "UNKNOWN"


class AtLeast:
    """A number of which only the lower bound `least` is known: it has grown, nobody saw how far.

    Questions that the bound answers are answered, all others raise UnknownRead.
    """

    __slots__ = ("least",)
    __hash__ = _refuse
    __bool__ = __contains__ = __iter__ = __len__ = __index__ = _refuse
    __rsub__ = __sub__ = __mul__ = __rmul__ = __neg__ = _unknown

    def __init__(self, least: int) -> None:
        self.least = least

    def __eq__(self, other: object) -> bool:
        return self._unless(isinstance(other, int) and other < self.least, answer=False)

    def __ne__(self, other: object) -> bool:
        return self._unless(isinstance(other, int) and other < self.least, answer=True)

    def __lt__(self, other: object) -> bool:
        return self._unless(isinstance(other, int) and other <= self.least, answer=False)

    def __le__(self, other: object) -> bool:
        return self._unless(isinstance(other, int) and other < self.least, answer=False)

    def __gt__(self, other: object) -> bool:
        return self._unless(isinstance(other, int) and other < self.least, answer=True)

    def __ge__(self, other: object) -> bool:
        return self._unless(isinstance(other, int) and other <= self.least, answer=True)

    def __add__(self, other: object) -> Any:
        return AtLeast(self.least + other) if isinstance(other, int) else UNKNOWN

    __radd__ = __add__

    def __repr__(self) -> str:
        return f"at least {self.least}"

    def __reduce__(self) -> Any:
        return AtLeast, (self.least,)

    @staticmethod
    def _unless(decided: bool, *, answer: bool) -> bool:
        return answer if decided else _refuse()


UNKNOWN: Final[Any] = Unknown()
"""The one value of its class; typed Any, because it stands wherever a value of any type may stand."""


class Unseen:
    """An event of which nothing but its kind is known: every field of it is `UNKNOWN`."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return UNKNOWN


class PartlySeen(SimpleNamespace):
    """An event of which some fields are known: every other one of it is `UNKNOWN`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return UNKNOWN


def is_none(value: object) -> bool:
    """True when there is no value. Raises UnknownRead when it was not seen whether there is one."""
    if value is UNKNOWN:
        _refuse()
    return value is None


def covers(wide: object, narrow: object) -> bool:
    """True when `narrow` is one of the values that `wide` stands for, or stands for some of them."""
    if isinstance(wide, AtLeast):
        least = narrow.least if isinstance(narrow, AtLeast) else narrow
        return isinstance(least, int) and least >= wide.least
    return wide is UNKNOWN or is_same(wide, narrow)


def with_entry(entries: Mapping[K, V], key: K, value: V) -> Mapping[K, V]:
    """The map with one more entry, or another value for its key; unknown when any of it is."""
    if any(each is UNKNOWN for each in (entries, key, value)):
        unknown: Mapping[K, V] = UNKNOWN
        return unknown
    return {**entries, key: value}


def with_fields(message: MessageT, **values: object) -> MessageT:
    """The message (a dataclass) with other values of these fields; unknown when any of it is."""
    if any(each is UNKNOWN for each in (message, *values.values())):
        unknown: MessageT = UNKNOWN
        return unknown
    return replace(message, **values)  # type: ignore[type-var]  # every message is a dataclass


def without_entries(entries: Mapping[K, V], keys: Iterable[K]) -> Mapping[K, V]:
    """The map without these keys; unknown when any of it is."""
    if any(each is UNKNOWN for each in (entries, keys)):
        unknown: Mapping[K, V] = UNKNOWN
        return unknown
    gone = frozenset(keys)
    return {key: value for key, value in entries.items() if key not in gone}


def is_same(left: object, right: object) -> bool:
    """True when equally much is known of both, and nothing differs. Never raises UnknownRead."""
    if left is right:
        return True
    if isinstance(left, AtLeast) and isinstance(right, AtLeast):
        return left.least == right.least
    if isinstance(left, Unknown | AtLeast) or isinstance(right, Unknown | AtLeast):
        return False
    return left == right


def key_of(value: Any) -> Hashable:
    """What stands for a value as a key: of two values that are not the same by `is_same`, never the same."""
    if value is UNKNOWN:
        return Unknown
    if isinstance(value, AtLeast):
        return AtLeast, value.least
    if isinstance(value, Mapping):
        return Mapping, frozenset(value.items())
    key: Hashable = value
    return key
