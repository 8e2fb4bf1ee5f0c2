"""Parameters of a process: their names, what a text must be to be a value, and the options that values make.

What a family declares is generated: a `Parameter` each, and a frozen dataclass of options for each role.
`role_parameters` joins both. Defaults stand in those dataclasses and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, Final, Generic, TypeVar

from replispec.runtime.primitives.texts import INT32

T = TypeVar("T")
PORT_MAX: Final = 65_535
_NUMBER: Final = re.compile(r"-?[0-9]{1,19}")
_ADDRESS: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:;\[\]]+):([0-9]{1,5})")
_WITHOUT_EFFECT: Final = "without_effect"
HIDDEN: Final = "(not shown)"
"""What is shown of a secret."""


class ConfigurationError(Exception):
    """A configuration that cannot be used: names the parameter, its value, and what is allowed."""

    def __init__(self, name: str, value: str, allowed: str) -> None:
        super().__init__(f"{_shown(name)}={_shown(value)}: allowed is {allowed}")
        self.name = name
        self.value = value
        self.allowed = allowed


@dataclass(frozen=True, slots=True)
class ValueKind(Generic[T]):
    """What values a parameter takes: `read` raises ValueError for other texts, `allowed` says it in words.

    `write` gives a text that `read` takes.
    """

    allowed: str
    read: Callable[[str], T]
    write: Callable[[T], str] = str


@dataclass(frozen=True, slots=True)
class Parameter(Generic[T]):
    """One parameter. `field` is its name in the options; `group` the field of the options that holds it,
    empty when they hold it themselves. `aliases` are other names that files may use. `changes`: an
    administrator may change it while the process runs. `not_below`: the name of another one of its group,
    of which it is no less.
    """

    name: str
    field: str
    kind: ValueKind[T]
    group: str = ""
    aliases: tuple[str, ...] = ()
    changes: bool = False
    not_below: str = ""

    @property
    def is_secret(self) -> bool:
        """Whether nobody is shown its value."""
        return self.kind is SECRET

    def value(self, text: str) -> T:
        """The value of a text. Raises ConfigurationError."""
        try:
            return self.kind.read(text)
        except ValueError:
            shown = HIDDEN if self.is_secret else text
            raise ConfigurationError(self.name, shown, self.kind.allowed) from None

    def of(self, options: Any) -> T:
        """The value among the options of a role that has this parameter."""
        found: T = getattr(getattr(options, self.group) if self.group else options, self.field)
        return found

    def refuse(self, options: Any, allowed: str) -> ConfigurationError:
        """The error that a value is not allowed, for checks of several parameters together."""
        return ConfigurationError(self.name, self.kind.write(self.of(options)), allowed)


@dataclass(frozen=True, slots=True, eq=False)
class RoleParameters(Generic[T]):
    """What may be configured of one role: `options` is the dataclass that the values make, `groups` those of
    its fields that are dataclasses themselves. `elsewhere`: names of parameters of other roles.
    """

    name: str
    options: type[T]
    parameters: tuple[Parameter[Any], ...]
    groups: Mapping[str, type[Any]]
    elsewhere: frozenset[str]

    @property
    def without_effect(self) -> dict[str, str]:
        """Names that files of the family hold and that do nothing here, with the text that is shown when
        they are not given; it may be empty."""
        return _without_effect(self.options)

    def idle(self, written: Mapping[str, str]) -> dict[str, str]:
        """What of this has no effect. Raises ConfigurationError for a text that could not be shown.

        What is shown as a number, or as true or false, stays one: whoever reads it counts on that.
        """
        defaults = self.without_effect
        found = {name: text for name, text in written.items() if name in defaults}
        for name, text in found.items():
            kind = _kind_of(defaults[name])
            try:
                kind.read(text)
            except ValueError:
                raise ConfigurationError(name, text, kind.allowed) from None
        return found

    def make(self, values: Mapping[str, Any], without_effect: Mapping[str, str]) -> T:
        """The options of values by parameter name; what is not among them has its default.

        Raises ConfigurationError for a parameter that has none, and for one that is below what it may be.
        One that is not given is what another one wants it to be at least.
        """
        options = self._made(values, without_effect)
        named = {each.name: each for each in self.parameters}
        raised: dict[str, Any] = {}
        for each in self.parameters:
            if each.not_below and each.of(options) < (least := named[each.not_below].of(options)):
                if each.name in values:
                    raise each.refuse(options, f"no less than {each.not_below}, which is {least}")
                raised[each.name] = least
        return self._made({**values, **raised}, without_effect) if raised else options

    def _made(self, values: Mapping[str, Any], without_effect: Mapping[str, str]) -> T:
        own: dict[str, Any] = {}
        inside: dict[str, dict[str, Any]] = {group: {} for group in self.groups}
        for each in self.parameters:
            if each.name in values:
                (inside[each.group] if each.group else own)[each.field] = values[each.name]
            elif self.is_required(each):
                raise ConfigurationError(each.name, "", f"{each.kind.allowed} (it must be given)")
        own |= {group: self.groups[group](**held) for group, held in inside.items()}
        shown = self.without_effect
        if shown:
            own[_WITHOUT_EFFECT] = tuple((shown | dict(without_effect)).items())
        return self.options(**own)

    def like(self, others: Any) -> T:
        """The options of this role in a process of another one, which holds all of its parameters."""
        values = {each.name: each.of(others) for each in self.parameters}
        given = dict(getattr(others, _WITHOUT_EFFECT, ()))
        return self.make(values, {name: text for name, text in given.items() if name in self.without_effect})

    def changed(self, options: T, values: Mapping[str, Any], without_effect: Mapping[str, str]) -> T:
        """The options with other values, by parameter name."""
        kept = {each.name: each.of(options) for each in self.parameters}
        shown = dict(getattr(options, _WITHOUT_EFFECT, ()))
        return self.make(kept | dict(values), shown | dict(without_effect))

    def texts(self, options: T) -> dict[str, str]:
        """Every parameter of the role as a text by its name, those without effect included."""
        effective = {each.name: each.kind.write(each.of(options)) for each in self.parameters}
        return effective | dict(getattr(options, _WITHOUT_EFFECT, ()))

    def has_demanded(self, given: Collection[str]) -> bool:
        """Whether all that has to be given is among these names."""
        return all(
            not self.is_required(each) or bool({each.name, *each.aliases} & set(given))
            for each in self.parameters
        )

    def knows(self, given: Collection[str]) -> int:
        """How many of these names are those of parameters of the role, or have no effect for it."""
        known = {name for each in self.parameters for name in (each.name, *each.aliases)}
        return len(known.union(self.without_effect).intersection(given))

    def is_required(self, parameter: Parameter[Any]) -> bool:
        """Whether a file has to give this parameter."""
        holder = self.groups[parameter.group] if parameter.group else self.options
        return parameter.field in _required(holder)


def names_known(parameters: tuple[Parameter[Any], ...], *roles: type[Any]) -> frozenset[str]:
    """Every name that some role of a family takes, with or without effect."""
    named = {each.name for each in parameters}
    return frozenset(named.union(*map(_without_effect, roles)))


def role_parameters(
    name: str, options: type[T], parameters: tuple[Parameter[Any], ...], known: frozenset[str]
) -> RoleParameters[T]:
    """What may be configured of a role: of a family's parameters those that its options hold. `known` are
    all names of the family."""
    held: Any = options
    groups: dict[str, type[Any]] = {
        each.name: type(each.default) for each in fields(held) if is_dataclass(each.default)
    }
    own = {"": {each.name for each in fields(held)}}
    own |= {group: {each.name for each in fields(kind)} for group, kind in groups.items()}
    mine = tuple(each for each in parameters if each.field in own.get(each.group, ()))
    elsewhere = known.difference((each.name for each in mine), _without_effect(options))
    return RoleParameters(name, options, mine, groups, elsewhere)


def _without_effect(options: Any) -> dict[str, str]:
    defaults: dict[str, Any] = {each.name: each.default for each in fields(options)}
    return dict(defaults.get(_WITHOUT_EFFECT, ()))


def _required(kind: Any) -> Iterator[str]:
    return (each.name for each in fields(kind) if each.default is MISSING)


def _kind_of(default: str) -> ValueKind[Any]:
    """What values are like the one that is shown when none was given."""
    if default in ("true", "false"):
        return FLAG
    return JAVA_INT if _NUMBER.fullmatch(default) else TEXT


# Kinds of values


def _is_line(value: str) -> bool:
    """Whether every way of writing and showing a text takes it: one line, in whole characters."""
    return all(character >= " " and not "\ud800" <= character <= "\udfff" for character in value)


def _shown(value: str) -> str:
    """A refused text in one line of whole characters."""
    return "".join(each if _is_line(each) else each.encode("unicode_escape").decode() for each in value)


def _text(value: str) -> str:
    if not _is_line(value):
        raise ValueError(value)
    return value


def _word(value: str) -> str:
    if not value:
        raise ValueError(value)
    return _text(value)


def _known(value: str, names: tuple[str, ...]) -> str:
    if value not in names:
        raise ValueError(value)
    return value


def _address(value: str) -> str:
    found = _ADDRESS.fullmatch(value)
    if found is None or int(found[2]) > PORT_MAX:
        raise ValueError(value)
    return value


def _addresses(value: str) -> tuple[str, ...]:
    return tuple(_address(part.strip()) for part in value.split(";") if part.strip())


def _peers(value: str) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for part in value.split(";"):
        if part.strip():
            identity, separator, place = part.strip().partition("-")
            if not separator or not identity or identity in found:
                raise ValueError(value)
            found[identity] = _address(place)
    return tuple(found.items())


def _number(minimum: int, maximum: int, words: str) -> ValueKind[int]:
    def read(value: str) -> int:
        if _NUMBER.fullmatch(value) is None or not minimum <= int(value) <= maximum:
            raise ValueError(value)
        return int(value)

    return ValueKind(f"{words}, {minimum} to {maximum}", read)


def number(minimum: int, maximum: int) -> ValueKind[int]:
    """A decimal number within bounds."""
    return _number(minimum, maximum, "a number")


def size(minimum: int, maximum: int) -> ValueKind[int]:
    """A number of bytes within bounds."""
    return _number(minimum, maximum, "bytes")


def duration(minimum: int, maximum: int) -> ValueKind[int]:
    """A number of milliseconds within bounds."""
    return _number(minimum, maximum, "milliseconds")


def choice(*names: str) -> ValueKind[str]:
    """One of these names, in any case."""
    return ValueKind(" or ".join(names), lambda value: _known(value.upper(), names))


TEXT: Final = ValueKind("one line of text, or empty", _text)
PATH: Final = ValueKind("a path, in one line", _text)
SECRET: Final = ValueKind("one line of text, or empty", _text, lambda value: HIDDEN if value else "")
"""A text that nobody is shown: what is written of it is no value that it has."""
WORD: Final = ValueKind("a text that is not empty", _word)
FLAG: Final = ValueKind(
    "true or false",
    lambda value: _known(value.lower(), ("true", "false")) == "true",
    lambda value: str(value).lower(),
)
JAVA_INT: Final = number(*INT32)
PORT: Final = _number(0, PORT_MAX, "a port")
ADDRESSES: Final = ValueKind("HOST:PORT, several with ; between them", _addresses, ";".join)
"""Values are tuples of HOST:PORT; an IPv6 host stands in brackets."""
PEERS: Final = ValueKind(
    "ID-HOST:PORT, several with ; between them",
    _peers,
    lambda value: ";".join(f"{identity}-{place}" for identity, place in value),
)
"""Values are pairs of id and HOST:PORT, each id once."""
