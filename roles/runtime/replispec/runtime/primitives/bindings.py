"""What generated bindings of machines to messages are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar, overload

from replispec.runtime.primitives.binary import crc32
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.immutable import immutable
from replispec.runtime.primitives.machines import Machine
from replispec.runtime.primitives.releases import Release, Releases, of_release

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
HeaderT_co = TypeVar("HeaderT_co", covariant=True)
TEXT_MAX: Final = 1_024
"""Characters of a text that a request must have: a name, an address, a check code."""
_SHOWN_MAX: Final = 10
"""Elements of a set that a text for people shows."""


@immutable
class Answer:
    """What a peer that asked is answered: a code, header fields in the order of the wire, a body."""

    code: int
    ext_fields: dict[str, str | None] | None = None
    body: bytes = b""
    remark: str | None = None


@immutable
class Notice:
    """What a peer is told that did not ask: the code of the command, header fields, a body."""

    code: int
    ext_fields: dict[str, str | None]
    body: bytes = b""


@immutable
class Call(Generic[HeaderT_co]):
    """What this side asks or tells of its own: the code of the command, its header, a body."""

    code: int
    header: HeaderT_co
    body: bytes = b""


@immutable
class Claims:
    """What an answer says: the effects that may have given it, whether they granted what was asked (or count
    as such), and the values of variables that it tells."""

    effects: frozenset[str]
    accepted: bool
    variables: Mapping[str, Any] = field(default_factory=dict)


Reader = Callable[..., Any]
"""Makes an event of header fields and a body, given what the bindings of its machine hand to readers."""
Saying = Callable[..., Answer]
"""What an effect answers: of the variables, the event, and what the bindings hand to answers."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A machine that answers for itself, its bindings, and what its role knows put in.

    `requests` by code, `answers` by effect; `released` and `answered` are the same where releases differ.
    `steady` are the effects that always say the same. `reads` and `says` are what readers and answers are
    handed last; `reads_code`: readers are handed the code of the request before.
    """

    machine: Machine[Any, Any]
    requests: Mapping[int, Reader] = field(default_factory=dict)
    answers: Mapping[str, Saying] = field(default_factory=dict)
    steady: frozenset[str] = frozenset()
    reads: tuple[Any, ...] = ()
    says: tuple[Any, ...] = ()
    reads_code: bool = False
    released: Mapping[int, Iterable[tuple[Releases, Reader]]] = field(default_factory=dict)
    answered: Mapping[str, Iterable[tuple[Releases, Saying]]] = field(default_factory=dict)

    def handed(self, code: int) -> tuple[Any, ...]:
        """What readers of requests with this code are handed beside the request."""
        return (code, *self.reads) if self.reads_code else self.reads

    def event_of(
        self, code: int, ext_fields: Mapping[str, str | None], data: bytes, release: Release | None = None
    ) -> Any:
        """The event that a request with this code and body is; None when it is none.

        Raises RemoteProtocolError when it cannot be read, and Refused with the answer when something
        is missing or the request is refused whatever is remembered.
        """
        choices = self.released.get(code)
        read = self.requests.get(code) if choices is None else of_release(choices, release)
        return None if read is None else read(ext_fields, data, *self.handed(code))

    def answer_of(self, effect: str, variables: Any, event: Any, release: Release | None = None) -> Answer:
        """What an effect answers, by its name; the variables are those after the step."""
        say = of_release(self.answered.get(effect, ()), release) or self.answers[effect]
        return say(variables, event, *self.says)


class Encodes(Protocol):
    """A message that can be written."""

    def encode(self) -> bytes:
        """Its bytes."""
        ...


EncodesT_co = TypeVar("EncodesT_co", bound=Encodes, covariant=True)


class Kept(Generic[EncodesT_co]):
    """A message that is said again and again: it is written when it is first said."""

    __slots__ = ("_data", "message")

    def __init__(self, message: EncodesT_co) -> None:
        self.message = message
        self._data: bytes | None = None

    def encode(self) -> bytes:
        """Its bytes."""
        if self._data is None:
            self._data = self.message.encode()
        return self._data


def encoded(message: Encodes | None) -> bytes:
    """The bytes of a body; none of no message."""
    return b"" if message is None else message.encode()


class Refused(Exception):
    """A request is answered with this, whatever is remembered."""

    def __init__(self, code: int, remark: str) -> None:
        super().__init__(remark)
        self.answer = Answer(code, remark=remark)


def needed(value: T | None, name: str) -> T:
    """The value of a field of an answer. Raises RemoteProtocolError when the answer left it out."""
    if value is None:
        raise RemoteProtocolError(f"{name} is missing")
    return value


def first_of(value: T | None, otherwise: T) -> T:
    """The value, or what stands for an absent one."""
    return otherwise if value is None else value


def told(**variables: Any) -> dict[str, Any]:
    """The variables of which an answer tells the value; one that is None is left out."""
    return {name: value for name, value in variables.items() if value is not None}


@overload
def as_set(items: Sequence[T]) -> frozenset[T]: ...


@overload
def as_set(items: Sequence[T] | None) -> frozenset[T] | None: ...


def as_set(items: Sequence[T] | None) -> frozenset[T] | None:
    """The elements of a list; None for no list."""
    return None if items is None else frozenset(items)


def asked_for(value: T | None, name: str, code: int) -> T:
    """The value of a field of a request. Raises Refused when the request left it out."""
    if value is None:
        raise Refused(code, f"{name} is missing")
    return value


def asked_text(value: str | None, name: str, code: int) -> str:
    """The text of a field of a request. Raises Refused when it is left out, empty or too long."""
    if not value or len(value) > TEXT_MAX:
        state = f"{len(value)} characters long" if value else "missing"
        raise Refused(code, f"{name} is {state}")
    return value


def check_body(data: bytes, checksum: int | None, mask: int) -> None:
    """Compare a body with its CRC-32, masked, as the header says it; 0 and None are not checked.

    Raises RemoteProtocolError.
    """
    if checksum and crc32(data, mask) != checksum:
        raise RemoteProtocolError("the body is not what its checksum says")


def entry_of(entries: Mapping[K, V], key: K | None) -> V | None:
    """What a map has for a key; None for no key."""
    return None if key is None else entries.get(key)


def listed(items: Iterable[Any]) -> str:
    """The first few of these, ascending."""
    found = sorted(items)
    return ", ".join(map(str, found[:_SHOWN_MAX])) + (", ..." if len(found) > _SHOWN_MAX else "")
