"""One parameter: its name, what values it takes, and for whom."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, Literal, TypeVar

T = TypeVar("T")
Role = Literal["controller", "nameserver", "broker", "learner"]
ROLES: Final[tuple[Role, ...]] = ("controller", "nameserver", "broker", "learner")
PORT_MAX: Final = 65_535
_NUMBER: Final = re.compile(r"-?[0-9]{1,19}")
_ADDRESS: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:;\[\]]+):([0-9]{1,5})")


class ConfigurationError(Exception):
    """A configuration that cannot be used: names the parameter, its value, and what is allowed."""

    def __init__(self, name: str, value: str, allowed: str) -> None:
        super().__init__(f"{name}={value}: allowed is {allowed}")
        self.name = name
        self.value = value
        self.allowed = allowed


@dataclass(frozen=True, slots=True)
class Parameter(Generic[T]):
    """`read` turns a text into the value and raises ValueError; `allowed` says in words what it takes.

    `default` is a text; None: must be given. `defaults` differ by role. `source`: where RocketMQ has it,
    or "ours". `deviates`: what RocketMQ's default is, where ours is another, and why.
    """

    name: str
    read: Callable[[str], T]
    allowed: str
    default: str | None
    roles: tuple[Role, ...]
    what: str
    source: str = "ours"
    deviates: str = ""
    defaults: Mapping[Role, str] = field(default_factory=dict)

    def default_of(self, role: Role) -> str | None:
        """The text that holds for a role when none is given."""
        return self.defaults.get(role, self.default)

    def value(self, text: str) -> T:
        """The value of a text. Raises ConfigurationError."""
        try:
            return self.read(text)
        except ValueError:
            raise ConfigurationError(self.name, text, self.allowed) from None


def text(value: str) -> str:
    """Any text."""
    return value


def word(value: str) -> str:
    """A text that is not empty and has no control characters."""
    if not value or any(character < " " for character in value):
        raise ValueError(value)
    return value


def flag(value: str) -> bool:
    """true or false, in any case."""
    return {"true": True, "false": False}[_known(value.lower(), ("true", "false"))]


def choice(*names: str) -> Callable[[str], str]:
    """One of these names, in any case."""
    return lambda value: _known(value.upper(), names)


def number(minimum: int, maximum: int) -> Callable[[str], int]:
    """A decimal number within bounds."""

    def read(value: str) -> int:
        if _NUMBER.fullmatch(value) is None or not minimum <= int(value) <= maximum:
            raise ValueError(value)
        return int(value)

    return read


def address(value: str) -> str:
    """HOST:PORT."""
    found = _ADDRESS.fullmatch(value)
    if found is None or int(found[2]) > PORT_MAX:
        raise ValueError(value)
    return value


def addresses(value: str) -> tuple[str, ...]:
    """HOST:PORT, several with ; between them; none for an empty text."""
    return tuple(address(part.strip()) for part in value.split(";") if part.strip())


def peers(value: str) -> dict[str, str]:
    """ID-HOST:PORT, several with ; between them, as address by id; none for an empty text."""
    found: dict[str, str] = {}
    for part in value.split(";"):
        if part.strip():
            identity, separator, place = part.strip().partition("-")
            if not separator or not identity or identity in found:
                raise ValueError(value)
            found[identity] = address(place)
    return found


def _known(value: str, names: tuple[str, ...]) -> str:
    if value not in names:
        raise ValueError(value)
    return value
