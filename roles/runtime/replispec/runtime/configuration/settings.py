"""From the text of a properties file to the options of one role."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from replispec.runtime.primitives.parameters import ConfigurationError, RoleParameters
from replispec.runtime.primitives.properties import read_properties

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Settings(Generic[T]):
    """What a role is made of at its start, and `notes` for people: what of the file has no effect."""

    role: RoleParameters[T]
    options: T
    notes: Sequence[str] = ()

    def properties(self) -> dict[str, str]:
        """All parameters of the role as texts, defaults included, by name."""
        return self.role.texts(self.options)


def parse(text: str, role: RoleParameters[T], *, overrides: Mapping[str, str] | None = None) -> Settings[T]:
    """The settings of a role from the text of its file; `overrides` count more than the file.

    Names that are not known are noted and left alone: files of other implementations hold many. Raises
    ConfigurationError for a value that is not allowed, one that is missing, an unknown override, or a
    text that is no properties file.
    """
    written, notes = read_properties(text)
    notes += _renamed(written, role)
    given = dict(overrides or {})
    _renamed(given, role)
    names = {each.name for each in role.parameters}
    for name, value in given.items():
        if name not in names and name not in role.without_effect:
            near = _nearest(name, names)
            hint = f"; is it {near}?" if near else ""
            raise ConfigurationError(name, value, f"a parameter of a {role.name}{hint}")
    written |= given
    values = {each.name: each.value(written[each.name]) for each in role.parameters if each.name in written}
    idle = role.idle(written)
    notes += [_note(name, role, names) for name in written if name not in names and name not in idle]
    notes += [f"{name} has no effect here" for name in written if name in idle]
    return Settings(role, role.make(values, idle), tuple(notes))


def _renamed(written: dict[str, str], role: RoleParameters[Any]) -> list[str]:
    """Put values under the first name of their parameter; notes about those that are set under two."""
    notes = []
    for parameter in role.parameters:
        for alias in parameter.aliases:
            if alias in written:
                value = written.pop(alias)
                if parameter.name in written:
                    notes.append(f"{alias} is set as {parameter.name} too: the latter counts")
                written.setdefault(parameter.name, value)
    return notes


def _note(name: str, role: RoleParameters[Any], names: Iterable[str]) -> str:
    if name in role.elsewhere:
        return f"{name} is no parameter of a {role.name}: ignored"
    near = _nearest(name, names)
    return f"{name} is not known: ignored" + (f" (is it {near}?)" if near else "")


def _nearest(name: str, names: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name, sorted(names), n=1, cutoff=0.8)), None)
